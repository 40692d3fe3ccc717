package actions

import (
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// pickShape works out what a pick gives; base is the shape of what its pointers
// start at. A pick that can never give a value is reported at at.
func (d *draft) pickShape(p validate.PickSpec, base shape, at strictyaml.Pos) shape {
	begun, why := d.beginShape(p, base, at)
	if why != "" {
		d.bad(at, "pick-not-there", "pick what expect describes, or describe it", "the pick never gives a value: %s", why)
		return nil
	}
	out, why := converted(begun, p)
	if why != "" {
		d.bad(at, "pick-never", "convert only what has that form", "the pick never gives a value: %s", why)
		return nil
	}
	return out
}

func (d *draft) beginShape(p validate.PickSpec, base shape, at strictyaml.Pos) (shape, nowhere) {
	switch p.Kind {
	case validate.PickPointer:
		return pointed(base, p.At)
	case validate.PickFind:
		if p.Find == nil {
			return nil, ""
		}
		list, why := pointed(base, p.Find.In)
		if why != "" {
			return nil, why
		}
		item, why := elementsOf(list)
		if why != "" || item == nil {
			return nil, why
		}
		return pointed(item, p.At)
	case validate.PickHeader:
		return shape{"type": "string", "maxLength": num(maxHeaderText)}, ""
	case validate.PickFrom:
		return d.valueSchema(p.From, nil), ""
	case validate.PickConst:
		return shape{"const": p.Const}, ""
	case validate.PickEach:
		return d.eachShape(p.Each, base, at)
	}
	return nil, ""
}

// eachShape is a list of closed objects.
func (d *draft) eachShape(e *validate.EachSpec, base shape, at strictyaml.Pos) (shape, nowhere) {
	if e == nil {
		return nil, ""
	}
	list, why := pointed(base, e.In)
	if why != "" {
		return nil, why
	}
	item, why := elementsOf(list)
	if why != "" {
		return nil, why
	}
	props, required := map[string]any{}, []any{}
	for _, name := range sortedKeys(e.Pick) {
		sub := d.pickShape(e.Pick[name], item, at)
		if sub == nil {
			sub = shape{}
		}
		props[name] = sub
		if !mayLeaveOut(e.Pick[name]) {
			required = append(required, name)
		}
	}
	return shape{
		"type": "array", "maxItems": num(e.Max),
		"items": shape{"type": "object", "additionalProperties": false, "properties": props, "required": required},
	}, ""
}

// mayLeaveOut says that a pick may give no value, or null, and the answer still
// be good.
func mayLeaveOut(p validate.PickSpec) bool {
	return p.Optional || p.Null == "omit" || p.Null == "keep"
}

// base returns the shape of a row's body.
func base(row validate.RowSpec) shape {
	switch row.Media {
	case validate.MediaText:
		return shape{"type": "string"}
	case validate.MediaJSON:
		doc, _ := row.Expect.(map[string]any)
		if doc != nil {
			return schemaView{root: doc}.inline(doc)
		}
	}
	return nil
}

// clash says why no value of a shape fits a schema, "" where one may. It sees
// what is plain: kinds, closed sets, members.
func clash(view schemaView, s shape, schema map[string]any) string {
	s, schema = flatShape(s), view.flat(schema)
	have, want := schemaKind(s), schemaKind(schema)
	switch {
	case s == nil || schema == nil || have == kindAny || want == kindAny:
		return ""
	case !have.fits(want):
		return "the result wants " + want.String() + ", and this gives " + have.String()
	case want == kindList:
		item, _ := s["items"].(map[string]any)
		inner, _ := schema["items"].(map[string]any)
		if item == nil || inner == nil {
			return ""
		}
		return clash(view, item, inner)
	case want == kindObject:
		return clashMembers(view, s, schema)
	}
	if vs, closed := closedSet(s); closed && !slices.ContainsFunc(vs, func(v any) bool { return mayFit(schema, v) }) {
		return "the result allows none of the values that it gives"
	}
	if vs, closed := closedSet(schema); closed && !slices.ContainsFunc(vs, func(v any) bool { return mayFit(s, v) }) {
		return "it gives none of the values that the result allows"
	}
	return ""
}

func clashMembers(view schemaView, s shape, schema map[string]any) string {
	closed := func(m map[string]any) bool {
		return m["additionalProperties"] == false || m["unevaluatedProperties"] == false
	}
	for _, name := range requiredOf(s) {
		sub, _ := plainView(s).member(s, name)
		want, _ := view.member(schema, name)
		switch {
		case want == nil && closed(schema):
			return "the result has no member " + name
		case want != nil && sub != nil:
			if why := clash(view, sub, want); why != "" {
				return name + ": " + why
			}
		}
	}
	for _, name := range requiredOf(schema) {
		if sub, _ := plainView(s).member(s, name); sub == nil && closed(s) {
			return "the result requires the member " + name + ", which is not picked"
		}
	}
	return ""
}

func requiredOf(s map[string]any) []string {
	req, _ := s["required"].([]any)
	var out []string
	for _, r := range req {
		if name, ok := r.(string); ok {
			out = append(out, name)
		}
	}
	return out
}

// mayFit says whether a value fits what a schema says about plain values.
func mayFit(s map[string]any, v any) bool {
	if vs, closed := closedSet(s); closed && !slices.ContainsFunc(vs, func(x any) bool { return validate.Equal(x, v) }) {
		return false
	}
	text, ok := v.(string)
	if !ok {
		return true
	}
	if p, has := s["pattern"].(string); has && !patternMatches(p, text) {
		return false
	}
	if n, has := intOf(s["maxLength"]); has && len([]rune(text)) > n {
		return false
	}
	if f, has := s["format"].(string); has && !strings.HasPrefix(f, "uri") && !formatFits(f, text) {
		return false
	}
	return true
}
