package conformance

import (
	"maps"
	"slices"
	"testing"

	"chatelaine/internal/validate"
)

// The suite writes `maxLength` where a contract must write `type: string` beside
// it. fit rewrites such a schema into one that means the same and that the
// guard takes, so that the suite's tests reach the engines through our door.

var everyType = []any{"null", "boolean", "object", "array", "number", "string"}

// boundTypes names the type that each bound speaks of.
var boundTypes = map[string]string{
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minItems": "array", "maxItems": "array", "uniqueItems": "array", "minProperties": "object", "maxProperties": "object",
}

var (
	oneSchema   = []string{"additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains"}
	oneInPlace  = []string{"not", "if", "then", "else"}
	listInPlace = []string{"allOf", "anyOf", "oneOf"}
	schemaMaps  = []string{"properties", "patternProperties", "$defs"}
)

// fit returns an equivalent schema; v itself is left as it is.
func fit(v any) any {
	in, ok := v.(map[string]any)
	if !ok {
		return v
	}
	s := maps.Clone(in)
	delete(s, "default") // says nothing about validity
	each := func(names []string, f func(any) any) {
		for _, name := range names {
			if sub, ok := s[name]; ok {
				s[name] = f(sub)
			}
		}
	}
	each(oneSchema, fit)
	each(oneInPlace, fitInPlace)
	each(listInPlace, func(l any) any { return fitList(l, fitInPlace) })
	each([]string{"prefixItems"}, func(l any) any { return fitList(l, fit) })
	each(schemaMaps, func(m any) any { return fitMap(m, fit) })
	each([]string{"dependentSchemas"}, func(m any) any { return fitMap(m, fitInPlace) })
	moveBounds(s)
	return s
}

// fitInPlace writes true out, which the guard refuses where it applies to the
// value of its parent.
func fitInPlace(v any) any {
	if v == true {
		return map[string]any{"type": everyType}
	}
	return fit(v)
}

func fitList(v any, f func(any) any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = f(e)
	}
	return out
}

func fitMap(v any, f func(any) any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for name, e := range m {
		out[name] = f(e)
	}
	return out
}

// moveBounds replaces each bound that stands without its type by an allOf
// member: of the type and within the bound, or of any other type.
func moveBounds(s map[string]any) {
	types, _ := s["type"].([]any)
	if t, ok := s["type"].(string); ok {
		types = []any{t}
	}
	all, _ := s["allOf"].([]any)
	all = slices.Clone(all)
	for _, name := range slices.Sorted(maps.Keys(boundTypes)) {
		bound, stands := s[name]
		t := boundTypes[name]
		if !stands || slices.Contains(types, any(t)) || t == "number" && slices.Contains(types, any("integer")) {
			continue
		}
		delete(s, name)
		others := slices.DeleteFunc(slices.Clone(everyType), func(o any) bool { return o == t })
		all = append(all, map[string]any{"anyOf": []any{map[string]any{"type": t, name: bound}, map[string]any{"type": others}}})
	}
	if len(all) > 0 {
		s["allOf"] = all
	}
}

func TestFitMeansTheSame(t *testing.T) {
	for _, c := range []struct{ schema, good, bad string }{
		{`{"maxLength":2}`, `"ab"`, `"abc"`}, {`{"maxLength":2}`, `1`, `"abc"`}, {`{"properties":{"a":{"minimum":3}}}`, `{"a":"x"}`, `{"a":2}`},
		{`{"type":"object","anyOf":[{"minProperties":2},{"required":["a"]}]}`, `{"a":1}`, `{"b":1}`}, {`{"not":true}`, ``, `1`},
		{`{"oneOf":[true,{"type":"string"}]}`, `1`, `"x"`}, {`{"if":{"multipleOf":2},"else":false}`, `"x"`, `3`},
	} {
		s, err := validate.CompileSchema("fit", fit(parse(t, c.schema)))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if c.good != "" && s.Validate(parse(t, c.good)) != nil {
			t.Errorf("%s refuses %s", c.schema, c.good)
		}
		if s.Validate(parse(t, c.bad)) == nil {
			t.Errorf("%s accepts %s", c.schema, c.bad)
		}
	}
}

func parse(t testing.TB, s string) any {
	t.Helper()
	v, err := validate.Parse([]byte(s), validate.AnswerLimits())
	if err != nil {
		t.Fatalf("%.200s: %v", s, err)
	}
	return v
}
