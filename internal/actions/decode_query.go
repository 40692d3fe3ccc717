package actions

import (
	"slices"

	"chatelaine/internal/actions/strictyaml"
)

func (d *draft) queryMembers(n *strictyaml.Node) []valueMember {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "query") {
		return nil
	}
	var out []valueMember
	for _, m := range n.Members {
		if slices.ContainsFunc(keyPieces(m.Key), overridingMember) {
			d.bad(m.KeyPos, "refused-member", "", "the query key %q changes what a request is or for whom", m.Key)
			continue
		}
		if m.Key == "" || !oneLine(m.Key) {
			d.bad(m.KeyPos, "query", "", "a query key is empty or holds control characters")
			continue
		}
		v := d.member(m, kindAny, nil, keyPieces(m.Key)...)
		if v != nil && !d.queryValue(m.Value.Pos, v) {
			continue
		}
		if v != nil {
			out = append(out, valueMember{m.Key, v, m.KeyPos})
		}
	}
	return out
}

// queryValue refuses what a query cannot carry: an object, a null, a list of
// anything but plain values.
func (d *draft) queryValue(at strictyaml.Pos, v *valueNode) bool {
	if d.plain(v) {
		return true
	}
	ok := false
	switch v.op {
	case opList:
		ok = true
		for _, a := range v.args {
			ok = ok && d.plain(a)
		}
	case opEach:
		ok = v.args[1].op != opObject && v.args[1].op != opList && v.args[1].op != opEach
	case opFrom:
		s := d.valueSchema(v.path, nil)
		if s != nil && schemaKind(s) == kindList {
			it := d.in.items(s)
			ok = it != nil && schemaKind(it).fits(kindScalar)
		}
	case opConst:
		list, isList := v.lit.([]any)
		ok = isList
		for _, x := range list {
			ok = ok && kindOf(x).fits(kindScalar)
		}
	}
	if !ok {
		d.bad(at, "query", "take text, a number, true or false, or a list of these; leave out what is absent with optional: true", "a query value is one plain value or a list of them")
	}
	return ok
}

// plain says whether a value is text, a number, or true or false.
func (d *draft) plain(v *valueNode) bool {
	switch v.op {
	case opConst:
		return kindOf(v.lit).fits(kindScalar)
	case opObject, opList, opEach:
		return false
	case opFrom:
		if s := d.valueSchema(v.path, nil); s != nil {
			return schemaKind(s).fits(kindScalar)
		}
	}
	return true
}
