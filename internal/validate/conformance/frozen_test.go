package conformance

import (
	"testing"

	"chatelaine/internal/validate"
)

// The frozen cases are ours: for every keyword that the guard takes, a value
// that both engines accept and one that they refuse. They run with all other
// tests, without anybody's data.
var frozen = []struct {
	schema     string
	good, evil []string
}{
	{`{"type":"object"}`, []string{`{}`, `{"a":1}`}, []string{`[]`, `null`, `"{}"`, `1`, `true`}},
	{`{"type":"array"}`, []string{`[]`, `[1,"a"]`}, []string{`{}`, `"[]"`, `null`}},
	{`{"type":"string"}`, []string{`""`, `"\u0000"`}, []string{`1`, `null`, `["a"]`}},
	{`{"type":"integer"}`, []string{`1`, `1.0`, `1e2`, `-0`, `10e-1`, `9007199254740993`}, []string{`1.5`, `"1"`, `1e-1`, `0.99999999999999999999`, `null`}},
	{`{"type":"number"}`, []string{`1`, `0.1`, `-1e-5`}, []string{`"1"`, `true`, `[]`}},
	{`{"type":"boolean"}`, []string{`true`, `false`}, []string{`0`, `1`, `"true"`, `null`}},
	{`{"type":"null"}`, []string{`null`}, []string{`0`, `""`, `false`, `{}`, `[]`}},
	{`{"type":["string","null"]}`, []string{`"a"`, `null`}, []string{`1`, `false`}},
	{`{"const":1}`, []string{`1`, `1.0`, `10e-1`}, []string{`true`, `"1"`, `1.0000000000000000001`, `[1]`}},
	{`{"const":{"a":[1,null]}}`, []string{`{"a":[1.0,null]}`}, []string{`{"a":[null,1]}`, `{"a":[1,null],"b":0}`, `{}`}},
	{`{"const":false}`, []string{`false`}, []string{`0`, `null`, `""`, `[]`}},
	{`{"enum":["a",null,0]}`, []string{`"a"`, `null`, `0`, `0.0`, `-0`}, []string{`"A"`, `false`, `""`, `"null"`}},
	{`{"enum":[9007199254740993]}`, []string{`9007199254740993`}, []string{`9007199254740992`, `9007199254740994`}},
	{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"😀😀"`, `"e\u0301x"`}, []string{`"a"`, `"abcd"`, `"😀"`, `1`}},
	{`{"type":"string","pattern":"^[a-z]{2}-[0-9]+$"}`, []string{`"ab-1"`}, []string{`"ab-1\n"`, `"xab-1"`, `"AB-1"`, `"ab-"`, `"ab-１"`}},
	{`{"type":"integer","minimum":-1,"maximum":9007199254740993}`, []string{`-1`, `9007199254740993`}, []string{`-2`, `9007199254740994`, `1e60`}},
	{`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.3}`, []string{`0.1`, `1e-64`}, []string{`0`, `-0`, `0.3`, `0.30`, `3e-1`}},
	{`{"type":"number","multipleOf":0.01}`, []string{`19.99`, `0`, `-0.01`, `1e10`}, []string{`0.001`, `19.999`, `1e-3`}},
	{`{"type":"array","items":{"type":"integer"}}`, []string{`[]`, `[1,2]`}, []string{`[1,"2"]`, `[null]`, `[[1]]`}},
	{`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`, []string{`[]`, `[1]`, `[1,"a"]`}, []string{`[1,"a",0]`, `["a"]`, `[1,1]`}},
	{`{"type":"array","prefixItems":[{"type":"integer"}],"unevaluatedItems":false}`, []string{`[1]`}, []string{`[1,1]`, `["a"]`}},
	{`{"type":"array","allOf":[{"prefixItems":[{"type":"null"}]}],"unevaluatedItems":false}`, []string{`[null]`, `[]`}, []string{`[null,null]`, `[1]`}},
	{`{"type":"array","contains":{"const":1},"minContains":2,"maxContains":3}`, []string{`[1,1]`, `[1,0,1,1]`}, []string{`[1]`, `[]`, `[1,1,1,1]`}},
	{`{"type":"array","contains":{"const":1},"minContains":0}`, []string{`[]`, `[0]`}, []string{`{}`}},
	{`{"type":"array","minItems":1,"maxItems":2}`, []string{`[0]`, `[0,0]`}, []string{`[]`, `[0,0,0]`}},
	{`{"type":"array","uniqueItems":true}`, []string{`[1,true]`, `[0,false,null,""]`, `[{"a":1},{"a":2}]`}, []string{`[1,1.0]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[[1],[1.0]]`}},
	{`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`, []string{`{}`, `{"a":1}`}, []string{`{"A":1}`, `{"a":1,"b":2}`, `{"a ":1}`, `{"":1}`, `{"a":"1"}`}},
	{`{"type":"object","additionalProperties":{"type":"null"}}`, []string{`{"x":null}`}, []string{`{"x":0}`}},
	{`{"type":"object","patternProperties":{"^x-[a-z]{1,9}$":{"type":"string"}},"additionalProperties":false}`, []string{`{"x-a":""}`}, []string{`{"x-":""}`, `{"x-a":1}`, `{"y-a":""}`, `{"x-a\n":""}`}},
	{`{"type":"object","propertyNames":{"type":"string","maxLength":2}}`, []string{`{"ab":1}`}, []string{`{"abc":1}`}},
	{`{"type":"object","required":["a","__proto__"]}`, []string{`{"a":null,"__proto__":0}`}, []string{`{"a":1}`, `{}`}},
	{`{"type":"object","dependentRequired":{"a":["b"]}}`, []string{`{"b":1}`, `{"a":1,"b":1}`}, []string{`{"a":1}`, `{"a":null}`}},
	{`{"type":"object","dependentSchemas":{"a":{"required":["b"]}}}`, []string{`{}`, `{"a":1,"b":1}`}, []string{`{"a":1}`}},
	{`{"type":"object","minProperties":1,"maxProperties":2}`, []string{`{"a":1}`}, []string{`{}`, `{"a":1,"b":1,"c":1}`}},
	{`{"allOf":[{"type":"integer"},{"type":"integer","minimum":2}]}`, []string{`2`}, []string{`1`, `"a"`}},
	{`{"anyOf":[{"type":"integer"},{"type":"string","minLength":2}]}`, []string{`1`, `"ab"`}, []string{`"a"`, `1.5`, `null`}},
	{`{"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]}`, []string{`1`, `2.5`}, []string{`3`, `1.5`, `"a"`}},
	{`{"type":"integer","not":{"const":3}}`, []string{`2`}, []string{`3`, `3.0`}},
	{`{"type":"object","if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, []string{`{"a":1,"b":1}`, `{"c":1}`}, []string{`{"a":1,"c":1}`, `{}`, `{"b":1}`}},
	{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer","maximum":3}}}`, []string{`3`}, []string{`4`, `"3"`}},
	{`{"$ref":"#/$defs/n","type":"integer","minimum":2,"$defs":{"n":{"type":"integer","maximum":3}}}`, []string{`2`}, []string{`1`, `4`}},
	{`{"type":"object","allOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"b":{"type":"null"}}}],"unevaluatedProperties":false}`, []string{`{"a":null,"b":null}`}, []string{`{"a":null,"c":null}`, `{"a":0}`}},
	{`{"type":"object","anyOf":[{"properties":{"a":{"type":"null"}},"required":["a"]},{"properties":{"b":{"type":"null"}},"required":["b"]}],"unevaluatedProperties":false}`, []string{`{"a":null}`, `{"a":null,"b":null}`}, []string{`{"a":null,"b":0}`, `{"a":null,"x":1}`, `{}`}},
	{`{"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":{"type":"null"}}},"unevaluatedProperties":false}`, []string{`{"a":1,"b":null}`, `{}`}, []string{`{"a":2}`, `{"b":null}`}},
	{`{"type":"string","format":"date-time"}`, []string{`"2026-01-05T10:00:00Z"`, `"2024-02-29t23:59:59.5+14:00"`}, []string{`"2026-02-29T10:00:00Z"`, `"2026-01-05 10:00:00Z"`, `"2026-01-05T24:00:00Z"`, `"2026-01-05T10:00:00"`, `"2026-01-05T10:00:00.1234567890Z"`, `"2026-01-05T10:00:60Z"`}},
	{`{"type":"string","format":"date"}`, []string{`"2026-01-05"`}, []string{`"2026-13-01"`, `"2026-1-05"`, `"2026-01-05Z"`}},
	{`{"type":"string","format":"uuid"}`, []string{`"2EB8AA08-AA98-11EA-B4AA-73B441D16380"`}, []string{`"2eb8aa08aa9811eab4aa73b441d16380"`, `"{2eb8aa08-aa98-11ea-b4aa-73b441d16380}"`, `"2eb8aa08-aa98-11ea-b4aa-73b441d1638g"`}},
	{`{"type":"string","format":"uri"}`, []string{`"https://example.test/a?b#c"`, `"urn:x:y"`}, []string{`"//example.test"`, `"https://example.test/a b"`, `"https://example.test/%zz"`, `"nothing"`}},
	{`{"type":"string","format":"ipv4"}`, []string{`"192.0.2.1"`}, []string{`"192.0.2.01"`, `"192.0.2"`, `"+192.0.2.1"`, `"::ffff:192.0.2.1"`}},
	{`{"type":"string","format":"email"}`, []string{`"a.b+c@example.test"`}, []string{`"a@"`, `"@b"`, `"\"do this\"@example.test"`, `"a..b@example.test"`, `"a b@example.test"`}},
	{`{"type":"string","format":"hostname"}`, []string{`"a-1.example.test"`}, []string{`"-a.test"`, `"a_b.test"`, `"a..b"`, `""`}},
	{`{"type":"object","description":"x","title":"y","$comment":"z","examples":[1],"deprecated":true}`, []string{`{}`}, []string{`1`}},
	{`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"null"}`, []string{`null`}, []string{`0`}},
	{`false`, nil, []string{`null`, `{}`, `0`}},
}

func TestFrozenCases(t *testing.T) {
	for _, c := range frozen {
		doc := parse(t, c.schema)
		s, err := validate.CompileSchema("frozen", doc)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for _, in := range c.good {
			if no := s.Validate(parse(t, in)); no != nil {
				t.Errorf("%s refuses %s: %+v", c.schema, in, no)
			}
		}
		for _, in := range c.evil {
			if no := s.Validate(parse(t, in)); no == nil || no.EnginesDiffer {
				t.Errorf("%s and %s: %+v", c.schema, in, no)
			}
		}
	}
}

// Keywords that the guard takes must all stand in a frozen case, and no other.
func TestFrozenCasesNameEveryKeyword(t *testing.T) {
	used := map[string]bool{}
	for _, c := range frozen {
		keywordsOf(parse(t, c.schema), used)
	}
	for _, name := range []string{
		"$schema", "$ref", "$defs", "$comment", "title", "description", "examples", "deprecated", "type", "enum", "const", "format",
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "properties", "patternProperties", "additionalProperties",
		"unevaluatedProperties", "propertyNames", "required", "dependentRequired", "minProperties", "maxProperties", "prefixItems", "items",
		"contains", "unevaluatedItems", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minLength", "maxLength", "pattern",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	} {
		if !used[name] {
			t.Errorf("no frozen case for %s", name)
		}
		delete(used, name)
	}
	for name := range used {
		t.Errorf("%s is in a frozen case and not in the list", name)
	}
}

func keywordsOf(v any, into map[string]bool) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	for name, sub := range s {
		into[name] = true
		switch name {
		case "properties", "patternProperties", "$defs", "dependentSchemas":
			for _, one := range sub.(map[string]any) {
				keywordsOf(one, into)
			}
		case "const", "enum", "examples", "dependentRequired":
		default:
			keywordsOf(sub, into)
			for _, one := range list(sub) {
				keywordsOf(one, into)
			}
		}
	}
}
