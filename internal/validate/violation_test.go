package validate

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

func TestEveryKindOfViolationHasASentence(t *testing.T) {
	cases := []struct{ schema, in, rule, message, reason string }{
		{`{"type":"string","minLength":2}`, `"x"`, "minLength", "has 1 characters, must have at least 2", ""},
		{`{"type":"array","minItems":2}`, `[1]`, "minItems", "has 1 elements, must have at least 2", ""},
		{`{"type":"object","minProperties":2}`, `{"a":1}`, "minProperties", "has 1 members, must have at least 2", ""},
		{`{"type":"object","maxProperties":1}`, `{"a":1,"b":2}`, "maxProperties", "has 2 members, may have at most 1", ""},
		{`{"type":"number","exclusiveMinimum":0.5}`, `0.5`, "exclusiveMinimum", "must be above 0.5", ""},
		{`{"type":"number","exclusiveMaximum":5}`, `5`, "exclusiveMaximum", "must be below 5", ""},
		{`{"type":"number","minimum":-0.25}`, `-1`, "minimum", "must not be below -0.25", ""},
		{`{"type":"number","multipleOf":0.01}`, `0.005`, "multipleOf", "must be a multiple of 0.01", ""},
		{`{"type":"object","dependentRequired":{"a":["b"]}}`, `{"a":1}`, "dependentRequired", "lacks b, which must stand beside a", ""},
		{`{"type":"object","propertyNames":{"type":"string","pattern":"^[a-z]{1,3}$"}}`, `{"A b":1}`, "propertyNames", "holds a member whose name is not allowed: A{U+0020}b", "holds a member whose name is not allowed"},
		{`{"type":"array","contains":{"const":1}}`, `[2]`, "contains", "has too few elements of the wanted form", ""},
		{`{"type":"array","contains":{"const":1},"minContains":2}`, `[1]`, "minContains", "has too few elements of the wanted form", ""},
		{`{"type":"array","contains":{"const":1},"maxContains":1}`, `[1,1]`, "maxContains", "has too many elements of the wanted form", ""},
		{`{"not":{"type":"null"}}`, `null`, "not", "has a form that is not allowed", ""},
		{`{"type":"object","properties":{"a":false}}`, `{"a":1}`, "false-schema", "is not allowed here", "is not allowed"},
		{`{"type":"object","properties":{"items":false}}`, `{"items":1}`, "false-schema", "is not allowed here", "is not allowed"},
		{`{"type":"array","items":false}`, `[1]`, "items", "is not allowed here", "is not allowed"},
		{`{"type":"array","prefixItems":[{"type":"integer"}],"unevaluatedItems":false}`, `[1,2]`, "unevaluatedItems", "is not allowed here", "is not allowed"},
		{`{"anyOf":[{"type":"null"},{"type":"boolean"}]}`, `1`, "anyOf", "fits none of the shapes", ""},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `1`, "oneOf", "fits shapes 0 and 1 at once, must fit exactly one", "fits more than one of the shapes"},
		{`{"type":["string","null"]}`, `1`, "type", "is number, must be null or string", "must be null or string"},
		{`{"const":{"a":1}}`, `{"a":2}`, "const", "is not the one value allowed", ""},
		{`{"allOf":[{"$ref":"#/$defs/n"}],"$defs":{"n":{"type":"integer"}}}`, `"x"`, "type", "is string, must be integer", "must be integer"},
		{`{"type":"object","unevaluatedProperties":false}`, `{"z":1,"b":1,"c":1,"d":1,"e":1}`, "unevaluatedProperties", "holds members that the schema does not name: b", "holds a member that is not declared"},
		{`{"type":"object","additionalProperties":false}`, `{"z":1,"b":1,"c":1,"d":1,"e":1}`, "additionalProperties", "holds members that the schema does not name: b, c, d, and 2 more", "holds a member that is not declared"},
	}
	for _, c := range cases {
		if c.reason == "" {
			c.reason = c.message
		}
		v := mustSchema(t, c.schema).Validate(mustParse(t, c.in))
		if v == nil || v.Rule != c.rule || v.Message != c.message || v.Reason != c.reason || v.EnginesDiffer {
			t.Errorf("%s of %s: %+v", c.schema, c.in, v)
		}
	}
}

// Even past the guard, no engine loads anything: not from the network, not from
// a file.
func TestEnginesLoadNothing(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(`{"type":"object"}`))
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{srv.URL + "/s.json", "file://" + file, "other.json", "urn:x:y"} {
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			doc := map[string]any{keyword: ref}
			if _, err := compileFirst(doc); err == nil {
				t.Errorf("the first engine compiled %s %s", keyword, ref)
			}
			if _, err := compileSecond(doc); err == nil {
				t.Errorf("the second engine compiled %s %s", keyword, ref)
			}
			if _, err := CompileSchema("x", doc); err == nil {
				t.Errorf("%s %s compiled", keyword, ref)
			}
		}
	}
	if n := hits.Load(); n > 0 {
		t.Errorf("%d requests left the machine", n)
	}
}

func TestCallerLimitsAreTheNarrowerOnes(t *testing.T) {
	a, c := AnswerLimits(), CallerLimits()
	if c.Bytes != 64<<10 || a.Bytes != 1<<20 || a.Depth != 64 || a.Nodes != 50_000 {
		t.Errorf("%+v %+v", a, c)
	}
	if c.Depth > a.Depth || c.Nodes > a.Nodes || c.StringBytes > a.StringBytes || c.NumberDigits != 64 || c.Exponent != 64 {
		t.Errorf("%+v %+v", a, c)
	}
}
