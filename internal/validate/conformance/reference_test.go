package conformance

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A third reading of draft 2020-12, written for clearness only, for the keywords
// that the guard takes. It shares no code with either engine. It trusts that
// the schema is well formed, which the guard has seen to.
type reference struct{ defs map[string]any }

// outcome is the verdict on one value, with the members and elements that the
// schema has spoken of, for the unevaluated keywords.
type outcome struct {
	ok    bool
	props map[string]bool
	items map[int]bool
}

func newOutcome() outcome { return outcome{true, map[string]bool{}, map[int]bool{}} }

// and joins what another schema for the same value says.
func (o *outcome) and(other outcome) {
	if o.ok = o.ok && other.ok; other.ok {
		o.take(other)
	}
}

func (o *outcome) take(other outcome) {
	for p := range other.props {
		o.props[p] = true
	}
	for i := range other.items {
		o.items[i] = true
	}
}

func accepts(doc, v any) bool {
	m, _ := doc.(map[string]any)
	defs, _ := m["$defs"].(map[string]any)
	return reference{defs}.eval(doc, v).ok
}

func (r reference) eval(schema, v any) outcome {
	o := newOutcome()
	if b, ok := schema.(bool); ok {
		o.ok = b
		return o
	}
	s := schema.(map[string]any)
	o.ok = anyType(s, v) && fixed(s, v)
	switch v := v.(type) {
	case string:
		o.ok = o.ok && text(s, v)
	case json.Number:
		o.ok = o.ok && number(s, v)
	case []any:
		r.array(s, v, &o)
	case map[string]any:
		r.object(s, v, &o)
	}
	r.inPlace(s, v, &o)
	r.unevaluated(s, v, &o)
	return o
}

func list(v any) []any { l, _ := v.([]any); return l }

func rat(n any) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n.(json.Number)))
	if !ok {
		panic("no number")
	}
	return r
}

func count(n any) int { return int(rat(n).Num().Int64()) }

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if rat(v).IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func anyType(s map[string]any, v any) bool {
	wanted, stands := s["type"]
	if !stands {
		return true
	}
	types := list(wanted)
	if t, ok := wanted.(string); ok {
		types = []any{t}
	}
	got := typeOf(v)
	return slices.Contains(types, any(got)) || got == "integer" && slices.Contains(types, any("number"))
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		return ok && rat(a).Cmp(rat(n)) == 0
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, equal)
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(m) != len(a) {
			return false
		}
		for name, e := range a {
			if other, ok := m[name]; !ok || !equal(e, other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case json.Number, []any, map[string]any:
		return false
	}
	return a == b
}

func fixed(s map[string]any, v any) bool {
	if c, stands := s["const"]; stands && !equal(c, v) {
		return false
	}
	e, stands := s["enum"]
	return !stands || slices.ContainsFunc(list(e), func(one any) bool { return equal(one, v) })
}

func text(s map[string]any, v string) bool {
	n := utf8.RuneCountInString(v)
	if min, ok := s["minLength"]; ok && n < count(min) {
		return false
	}
	if max, ok := s["maxLength"]; ok && n > count(max) {
		return false
	}
	if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
		return false
	}
	f, ok := s["format"].(string)
	return !ok || slices.Contains(wellFormed[f], v)
}

func number(s map[string]any, n json.Number) bool {
	v := rat(n)
	bound := func(name string, bad func(int) bool) bool {
		b, ok := s[name]
		return ok && bad(v.Cmp(rat(b)))
	}
	if bound("minimum", func(c int) bool { return c < 0 }) || bound("maximum", func(c int) bool { return c > 0 }) ||
		bound("exclusiveMinimum", func(c int) bool { return c <= 0 }) || bound("exclusiveMaximum", func(c int) bool { return c >= 0 }) {
		return false
	}
	m, ok := s["multipleOf"]
	return !ok || new(big.Rat).Quo(v, rat(m)).IsInt()
}

func within(s map[string]any, least, most string, n int) bool {
	if min, ok := s[least]; ok && n < count(min) {
		return false
	}
	max, ok := s[most]
	return !ok || n <= count(max)
}

func (r reference) array(s map[string]any, v []any, o *outcome) {
	o.ok = o.ok && within(s, "minItems", "maxItems", len(v))
	prefix := list(s["prefixItems"])
	for i, e := range v {
		if i < len(prefix) {
			o.ok = o.ok && r.eval(prefix[i], e).ok
			o.items[i] = true
		} else if items, ok := s["items"]; ok {
			o.ok = o.ok && r.eval(items, e).ok
			o.items[i] = true
		}
		if s["uniqueItems"] == true && slices.ContainsFunc(v[:i], func(other any) bool { return equal(e, other) }) {
			o.ok = false
		}
	}
	contains, ok := s["contains"]
	if !ok {
		return
	}
	hits := 0
	for i, e := range v {
		if r.eval(contains, e).ok {
			hits++
			o.items[i] = true
		}
	}
	if _, ok := s["minContains"]; !ok && hits == 0 {
		o.ok = false
	}
	o.ok = o.ok && within(s, "minContains", "maxContains", hits)
}

func (r reference) object(s, v map[string]any, o *outcome) {
	o.ok = o.ok && within(s, "minProperties", "maxProperties", len(v)) && hasAll(v, s["required"])
	needs, _ := s["dependentRequired"].(map[string]any)
	props, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for name, e := range v {
		if names, ok := needs[name]; ok {
			o.ok = o.ok && hasAll(v, names)
		}
		if sub, ok := s["propertyNames"]; ok {
			o.ok = o.ok && r.eval(sub, name).ok
		}
		named := false
		if sub, ok := props[name]; ok {
			named = true
			o.ok = o.ok && r.eval(sub, e).ok
		}
		for p, sub := range patterns {
			if regexp.MustCompile(p).MatchString(name) {
				named = true
				o.ok = o.ok && r.eval(sub, e).ok
			}
		}
		if sub, ok := s["additionalProperties"]; ok && !named {
			named = true
			o.ok = o.ok && r.eval(sub, e).ok
		}
		if named {
			o.props[name] = true
		}
	}
}

func hasAll(v map[string]any, names any) bool {
	for _, name := range list(names) {
		if _, ok := v[name.(string)]; !ok {
			return false
		}
	}
	return true
}

func (r reference) inPlace(s map[string]any, v any, o *outcome) {
	if to, ok := s["$ref"].(string); ok {
		o.and(r.eval(r.defs[strings.TrimPrefix(to, "#/$defs/")], v))
	}
	for _, sub := range list(s["allOf"]) {
		o.and(r.eval(sub, v))
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if s[name] == nil {
			continue
		}
		fits := 0
		for _, sub := range list(s[name]) {
			if got := r.eval(sub, v); got.ok {
				fits++
				o.take(got)
			}
		}
		o.ok = o.ok && fits > 0 && (name == "anyOf" || fits == 1)
	}
	if sub, ok := s["not"]; ok {
		o.ok = o.ok && !r.eval(sub, v).ok
	}
	r.conditional(s, v, o)
	m, isObject := v.(map[string]any)
	if subs, ok := s["dependentSchemas"].(map[string]any); ok && isObject {
		for name, sub := range subs {
			if _, stands := m[name]; stands {
				o.and(r.eval(sub, v))
			}
		}
	}
}

func (r reference) conditional(s map[string]any, v any, o *outcome) {
	cond, ok := s["if"]
	if !ok {
		return
	}
	branch := "else"
	if got := r.eval(cond, v); got.ok {
		branch = "then"
		o.take(got)
	}
	if sub, ok := s[branch]; ok {
		o.and(r.eval(sub, v))
	}
}

func (r reference) unevaluated(s map[string]any, v any, o *outcome) {
	switch v := v.(type) {
	case map[string]any:
		sub, ok := s["unevaluatedProperties"]
		for name, e := range v {
			if ok && !o.props[name] {
				o.ok = o.ok && r.eval(sub, e).ok
				o.props[name] = true
			}
		}
	case []any:
		if s["unevaluatedItems"] == false {
			for i := range v {
				o.ok = o.ok && o.items[i]
			}
		}
	}
}
