package actions

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/validate"
)

// A shape is what the loader knows about a value before any answer: a schema
// without references, nil where nothing is known. It is worked out from a row's
// expect and from what a pick does with the value.
type shape = map[string]any

// maxShape bounds the size of a shape: a schema that says more about one value
// is treated as one that says nothing.
const maxShape = 20000

// inline copies a schema with every reference written out. It returns nil for
// what is too large.
func (v schemaView) inline(s any) shape {
	left := maxShape
	out, _ := v.inlined(s, &left).(map[string]any)
	if left < 0 {
		return nil
	}
	return out
}

func (v schemaView) inlined(x any, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch x := x.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, sub := range x {
			switch k {
			case "$defs", "$schema", "$ref":
			case "const", "enum", "examples":
				out[k] = sub
			default:
				out[k] = v.inlined(sub, left)
			}
		}
		if ref, ok := x["$ref"]; ok {
			all, _ := out["allOf"].([]any)
			out["allOf"] = append([]any{v.inlined(v.resolve(map[string]any{"$ref": ref}), left)}, all...)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, sub := range x {
			out[i] = v.inlined(sub, left)
		}
		return out
	}
	return x
}

// plainView looks into a shape, which has no references.
func plainView(s shape) schemaView { return schemaView{root: s} }

// flatShape joins the conjunctions of a shape and takes null away, since a pick
// never gives null but where it says so.
func flatShape(s shape) shape {
	if s == nil {
		return nil
	}
	out := plainView(s).flat(s)
	types, several := out["type"].([]any)
	vs, listed := out["enum"].([]any)
	if !several && !listed {
		return out
	}
	out = maps.Clone(out)
	if several {
		types = slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
		if out["type"] = types; len(types) == 1 {
			out["type"] = types[0]
		}
	}
	if listed {
		out["enum"] = slices.DeleteFunc(slices.Clone(vs), func(v any) bool { return v == nil })
	}
	return out
}

// nowhere says that a pointer leads to nothing that the schema lets in.
type nowhere string

// pointed follows a JSON pointer into a shape. why is not "" where no value that
// fits the shape has anything there; the shape is nil where it may.
func pointed(s shape, pointer string) (found shape, why nowhere) {
	if pointer == "" {
		return s, ""
	}
	for _, tok := range strings.Split(pointer[1:], "/") {
		tok = unescapePointer.Replace(tok)
		s = flatShape(s)
		if s == nil {
			return nil, ""
		}
		switch schemaKind(s) {
		case kindObject:
			s, why = pointedMember(s, tok)
		case kindList:
			s, why = pointedItem(s, tok)
		case kindAny:
			s, _ = pointedMember(s, tok)
		default:
			return nil, nowhere("a value that is " + schemaKind(s).String() + " has no members")
		}
		if why != "" || s == nil {
			return nil, why
		}
	}
	return s, ""
}

func pointedMember(s shape, name string) (shape, nowhere) {
	if sub, _ := plainView(s).member(s, name); sub != nil {
		if props, _ := s["properties"].(map[string]any); props[name] == nil && isOpen(s) {
			return nil, "" // a branch describes it, and another one may hold
		}
		return sub, ""
	}
	if s["additionalProperties"] == false || s["unevaluatedProperties"] == false {
		return nil, nowhere("no answer that fits expect has the member " + strconv.Quote(name))
	}
	return nil, ""
}

// isOpen says whether an object may have members that its schema does not name.
func isOpen(s shape) bool {
	s = flatShape(s)
	branches, _ := s["anyOf"].([]any)
	open := func(is func(shape) bool) bool {
		return slices.ContainsFunc(branches, func(b any) bool { m, _ := b.(map[string]any); return is(m) })
	}
	switch more, said := s["additionalProperties"]; {
	case said:
		return more != false
	case s["unevaluatedProperties"] == false:
		return open(letsMore)
	}
	return len(branches) == 0 || open(isOpen)
}

// letsMore says whether a branch takes members that it does not name.
func letsMore(s shape) bool {
	s = flatShape(s)
	for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
		if more, said := s[key]; said && more != false {
			return true
		}
	}
	branches, _ := s["anyOf"].([]any)
	return slices.ContainsFunc(branches, func(b any) bool { m, _ := b.(map[string]any); return letsMore(m) })
}

func pointedItem(s shape, tok string) (shape, nowhere) {
	i, err := strconv.Atoi(tok)
	if err != nil {
		return nil, nowhere("a list has no member " + strconv.Quote(tok))
	}
	if prefix, _ := s["prefixItems"].([]any); i < len(prefix) {
		sub, _ := prefix[i].(map[string]any)
		return sub, ""
	}
	if most, ok := intOf(s["maxItems"]); ok && i >= most {
		return nil, nowhere("no list that fits expect is so long")
	}
	return plainView(s).items(s), ""
}

// elementsOf returns the shape of a list's elements; why says that the value is
// no list.
func elementsOf(s shape) (shape, nowhere) {
	s = flatShape(s)
	switch k := schemaKind(s); {
	case s == nil:
		return nil, ""
	case k == kindList:
		return plainView(s).items(s), ""
	case k != kindAny:
		return nil, nowhere("it searches what is " + k.String())
	}
	return nil, ""
}

// converted applies a pick's conversions to a shape. why says that one of them
// never gives a value.
func converted(s shape, p validate.PickSpec) (out shape, why nowhere) {
	s = flatShape(s)
	for _, c := range conversionsOf(p) {
		if k := schemaKind(s); s != nil && !k.fits(c.wants) {
			return nil, nowhere(c.name + " reads " + c.wants.String() + ", and here is " + k.String())
		}
		s = flatShape(c.gives(s))
	}
	return s, ""
}

// conversion is what the loader knows about one conversion of a pick.
type conversion struct {
	name  string
	wants kind
	gives func(shape) shape
}

// conversionsOf lists those that a pick writes, in the one order of the format.
func conversionsOf(p validate.PickSpec) []conversion {
	var out []conversion
	add := func(written bool, name string, wants kind, gives func(shape) shape) {
		if written {
			out = append(out, conversion{name, wants, gives})
		}
	}
	add(p.Base64, "base64", kindText, onlyLength)
	add(p.LastSegment, "last_segment", kindText, onlyLength)
	add(p.Trim, "trim", kindText, onlyLength)
	add(p.StripPrefix != "", "strip_prefix", kindText, onlyLength)
	add(p.Lower, "lower", kindText, onlyLength)
	add(p.HasMap, "map", kindText, func(shape) shape { return mapShape(p) })
	add(p.Integer, "integer", kindText, integerShape)
	add(p.Time != "", "time: "+p.Time, timeWants(p.Time), func(shape) shape {
		return shape{"type": "string", "format": "date-time", "maxLength": num(maxTimeText)}
	})
	add(p.Text, "text", kindNumber, decimalShape)
	add(p.Prefix != "", "prefix", kindText, func(s shape) shape { return prefixShape(p.Prefix, s) })
	add(p.Matches != "", "matches", kindText, func(s shape) shape { return matchShape(p.Matches, s) })
	return out
}

// timeWants says what a form of time is read from.
func timeWants(form string) kind {
	if strings.HasPrefix(form, "unix_") {
		return kindNumber
	}
	return kindText
}

const (
	maxTimeText   = 64   // characters of a time that a pick gives
	maxDigits     = 64   // of a number that the parser takes
	maxHeaderText = 8192 // characters of one header's value; the executor reads less than that in all
)

// onlyLength keeps what a conversion of text leaves: a text that is no longer.
func onlyLength(s shape) shape {
	if s == nil {
		return nil
	}
	out := shape{"type": "string"}
	if n, ok := longest(s); ok {
		out["maxLength"] = num(n)
	}
	return out
}

// longest gives the greatest length of a text of a shape, where it is bounded.
func longest(s shape) (int, bool) {
	if n, ok := intOf(s["maxLength"]); ok {
		return n, true
	}
	vs, closed := closedSet(s)
	if closed {
		n := 0
		for _, v := range vs {
			t, _ := v.(string)
			n = max(n, len([]rune(t)))
		}
		return n, true
	}
	if s["format"] == "date-time" || s["format"] == "date" || s["format"] == "uuid" {
		return maxTimeText, true
	}
	if p, ok := s["pattern"].(string); ok {
		return validate.LongestMatch(p)
	}
	return 0, false
}

// closedSet returns the values of an enum or a constant.
func closedSet(s shape) ([]any, bool) {
	if v, ok := s["const"]; ok {
		return []any{v}, true
	}
	vs, ok := s["enum"].([]any)
	return vs, ok
}

// mapShape is closed: what map and other can give.
func mapShape(p validate.PickSpec) shape {
	var vs []any
	for _, k := range slices.Sorted(maps.Keys(p.Map)) {
		if !slices.ContainsFunc(vs, func(v any) bool { return validate.Equal(v, p.Map[k]) }) {
			vs = append(vs, p.Map[k])
		}
	}
	if p.HasOther {
		vs = append(vs, p.Other)
	}
	return shape{"enum": vs}
}

// integerShape is a whole number of as many digits as the text has characters.
// A negative one is let through by the conversion; the builder of a path refuses
// it there.
func integerShape(s shape) shape {
	if s == nil {
		return nil
	}
	digits, ok := longest(s)
	if !ok {
		return shape{"type": "integer"}
	}
	nines := json.Number(strings.Repeat("9", max(1, min(digits, maxDigits))))
	return shape{"type": "integer", "minimum": json.Number("0"), "maximum": nines}
}

// decimalShape is the text of a number: digits, where it is whole and not
// negative.
func decimalShape(s shape) shape {
	if s == nil {
		return nil
	}
	low, _ := s["minimum"].(json.Number)
	if s["type"] == "integer" && low != "" && !strings.HasPrefix(string(low), "-") {
		return shape{"type": "string", "pattern": "^[0-9]{1,130}$", "maxLength": num(130)}
	}
	return shape{"type": "string", "pattern": "^-?[0-9]{1,130}(?:[.][0-9]{1,130})?$", "maxLength": num(262)}
}

func prefixShape(prefix string, s shape) shape {
	if s == nil {
		return nil
	}
	out := onlyLength(s)
	if n, ok := intOf(out["maxLength"]); ok {
		out["maxLength"] = num(n + len([]rune(prefix)))
	}
	if vs, ok := closedSet(s); ok {
		longer := make([]any, len(vs))
		for i, v := range vs {
			t, _ := v.(string)
			longer[i] = prefix + t
		}
		return shape{"enum": longer}
	}
	if p, ok := s["pattern"].(string); ok && strings.HasPrefix(p, "^") && strings.HasSuffix(p, "$") && overAlphabet(p, func(rune) bool { return true }) {
		out["pattern"] = "^" + regexp.QuoteMeta(prefix) + "(?:" + p[1:len(p)-1] + ")$"
	}
	return out
}

func matchShape(pattern string, s shape) shape {
	if s == nil {
		return nil
	}
	out := onlyLength(s)
	out["pattern"] = pattern
	return out
}
