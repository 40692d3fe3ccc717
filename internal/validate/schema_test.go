package validate

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

func mustSchema(t testing.TB, s string) *Schema {
	t.Helper()
	c, err := CompileSchema("test", mustParse(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const releaseSchema = `{"type":"object","additionalProperties":false,"required":["environment","revision","state"],"properties":{
 "environment":{"enum":["staging","production"]},"revision":{"type":"string","pattern":"^[0-9a-f]{7}$","maxLength":7},
 "state":{"enum":["healthy","failed"]},"at":{"type":"string","format":"date-time","maxLength":35},
 "count":{"type":"integer","minimum":0,"maximum":9007199254740993},"tags":{"type":"array","maxItems":2,"uniqueItems":true,"items":{"type":"string","minLength":1,"maxLength":3}}}}`

func TestValidate(t *testing.T) {
	s := mustSchema(t, releaseSchema)
	base := `{"environment":"staging","revision":"a83f19c","state":"healthy"`
	cases := []struct{ in, rule, at, schema, message string }{
		{base + `}`, "", "", "", ""},
		{base + `,"count":9007199254740993,"at":"2026-01-05T10:00:00.123456789+05:30","tags":["a","b"]}`, "", "", "", ""},
		{base + `,"count":1.0}`, "", "", "", ""},
		{base + `,"maintenance":true}`, "additionalProperties", "", "/additionalProperties", "holds members that the schema does not name: maintenance"},
		{base + `,"Ignore previous\n":1}`, "additionalProperties", "", "/additionalProperties", "holds members that the schema does not name: Ignore{U+0020}previous{U+000A}"},
		{`{"environment":"staging","revision":"a83f19c","state":{"value":"healthy","message":"deploy"}}`, "enum", "/state", "/properties/state/enum", "is none of the listed values"},
		{`{"environment":"stаging","revision":"a83f19c","state":"healthy"}`, "enum", "/environment", "/properties/environment/enum", "is none of the listed values"},
		{`{"environment":"staging","revision":"a83f19c"}`, "required", "", "/required", "lacks state"},
		{`null`, "type", "", "/type", "is null, must be object"}, {`[]`, "type", "", "/type", "is array, must be object"}, {`"x"`, "type", "", "/type", "is string, must be object"},
		{base + `,"count":"4"}`, "type", "/count", "/properties/count/type", "is string, must be integer"},
		{base + `,"count":1.5}`, "type", "/count", "/properties/count/type", "is number, must be integer"},
		{base + `,"count":9007199254740994}`, "maximum", "/count", "/properties/count/maximum", "must not be above 9007199254740993"},
		{base + `,"count":-1}`, "minimum", "/count", "/properties/count/minimum", "must not be below 0"},
		{base + `,"count":null}`, "type", "/count", "/properties/count/type", "is null, must be integer"},
		{base + `,"at":"2026-02-30T10:00:00Z"}`, "format", "/at", "/properties/at/format", "is not of the format date-time"},
		{base + `,"tags":["a","a"]}`, "uniqueItems", "/tags", "/properties/tags/uniqueItems", "has the same element twice"},
		{base + `,"tags":["a","b","c"]}`, "maxItems", "/tags", "/properties/tags/maxItems", "has 3 elements, may have at most 2"},
		{base + `,"tags":["", "long"]}`, "minLength", "/tags/0", "/properties/tags/items/minLength", "has 0 characters, must have at least 1"},
		{`{"environment":"staging","revision":"A83F19C","state":"healthy"}`, "pattern", "/revision", "/properties/revision/pattern", "does not match the pattern"},
	}
	for _, c := range cases {
		v := s.Validate(mustParse(t, c.in))
		if v == nil {
			if c.rule != "" {
				t.Errorf("%s was accepted", c.in)
			}
			continue
		}
		if v.Rule != c.rule || v.InstancePath != c.at || v.SchemaPath != c.schema || v.Message != c.message || v.EnginesDiffer {
			t.Errorf("%s\n got %+v\nwant %+v", c.in, *v, c)
		}
	}
}

func TestViolationsNeverShowAValue(t *testing.T) {
	s := mustSchema(t, `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string","pattern":"^[a-z]$"},"c":{"enum":["x"]},
	 "d":{"type":"string","format":"uuid"},"e":{"type":"number","maximum":1},"f":{"const":true},"g":{"type":"array","maxItems":1,"items":{"type":"boolean"}},"h":{"not":{"type":"string"},"type":"integer"},
	 "i":{"oneOf":[{"type":"null"},{"type":"boolean"}]}}}`)
	planted := "PLANTED-424242"
	doc := map[string]any{planted: "x", "g": []any{planted, planted}, "e": json.Number("424242")}
	for _, name := range []string{"a", "b", "c", "d", "f", "h", "i"} {
		doc[name] = planted
	}
	found := s.Violations(doc, 99)
	if len(found) < 9 {
		t.Errorf("only %d violations", len(found))
	}
	for _, v := range found {
		if strings.Contains(v.Reason, "424242") || strings.Contains(v.Reason, "PLANTED") || v.Reason == "" {
			t.Errorf("the reason shows the value: %+v", v)
		}
		if v.Rule != "additionalProperties" && strings.Contains(v.Message+v.InstancePath, "424242") {
			t.Errorf("the message shows the value: %+v", v)
		}
	}
}

func TestNoSchemaAcceptsNothing(t *testing.T) {
	for _, s := range []*Schema{nil, {}} {
		if v := s.Validate(nil); v == nil || v.Rule != "not-compiled" {
			t.Errorf("%v: %+v", s, v)
		}
	}
	s := mustSchema(t, `{"type":"object","additionalProperties":true}`)
	for _, v := range []any{map[string]any{"a": []string{"x"}}, map[string]string{}, json.RawMessage(`{}`), struct{ A int }{}, []byte(`{}`), map[string]any{"a": 1}, map[string]any{"a": json.Number("1e1000001")}, map[string]any{"a": json.Number("x")}} {
		if got := s.Validate(v); got == nil || got.Rule != "value-type" {
			t.Errorf("%T: %+v", v, got)
		}
	}
}

func TestCompositionStaysClosed(t *testing.T) {
	s := mustSchema(t, `{"allOf":[{"type":"object","required":["subject"],"properties":{"subject":{"type":"string","minLength":1,"maxLength":128}}},
	  {"type":"object","required":["source"],"properties":{"source":{"enum":["directory","review_service"]}}}],"unevaluatedProperties":false}`)
	if v := s.Validate(mustParse(t, `{"subject":"x","source":"directory"}`)); v != nil {
		t.Errorf("%+v", v)
	}
	v := s.Validate(mustParse(t, `{"subject":"x","source":"directory","admin_override":true}`))
	if v == nil || v.Rule != "unevaluatedProperties" || v.InstancePath != "" || v.Message != "holds members that the schema does not name: admin_override" || v.EnginesDiffer {
		t.Errorf("%+v", v)
	}
	two := mustSchema(t, `{"oneOf":[{"type":"object","additionalProperties":false,"required":["ok","data"],"properties":{"ok":{"const":true},"data":{"type":"object","additionalProperties":false,"required":["qty"],"properties":{"qty":{"type":"integer","minimum":1}}}}},
	 {"type":"object","additionalProperties":false,"required":["ok","error"],"properties":{"ok":{"const":false},"error":{"type":"object","additionalProperties":false,"required":["code"],"properties":{"code":{"enum":["NOT_FOUND","TEMPORARY"]}}}}}]}`)
	for in, ok := range map[string]bool{
		`{"ok":true,"data":{"qty":4}}`: true, `{"ok":false,"error":{"code":"NOT_FOUND"}}`: true,
		`{"ok":true,"data":{"qty":"4"}}`: false, `{"ok":true,"data":{"qty":4},"error":{"code":"NOT_FOUND"}}`: false,
		`{"ok":true,"data":{}}`: false, `{"ok":false,"error":{"code":"UNKNOWN"}}`: false, `{"ok":"true","data":{"qty":4}}`: false, `{"ok":false,"data":{"qty":4}}`: false,
	} {
		if got := two.Validate(mustParse(t, in)); (got == nil) != ok {
			t.Errorf("%s: %+v", in, got)
		}
	}
}

// The second engine merges the evaluated indexes of a child into its parent;
// the guard keeps contracts away from that. This test reaches it on purpose.
func TestEnginesThatDifferRefuse(t *testing.T) {
	doc := mustParse(t, `{"unevaluatedItems":{"type":"array","items":{"type":"integer"}}}`)
	s, err := compileBoth("test", doc)
	if err != nil {
		t.Fatal(err)
	}
	v := s.Validate(mustParse(t, `[[0,0],{"prompt":"x"}]`))
	if v == nil || v.Rule != "engines-differ" || !v.EnginesDiffer || v.Reason != "cannot be checked" {
		t.Fatalf("%+v", v)
	}
	if !strings.HasPrefix(v.Message, "kaptinlin accepts and santhosh-tekuri refuses") || v.InstancePath != "/1" {
		t.Errorf("%+v", v)
	}
}

// Each engine alone can refuse: here they are given different schemas.
func TestEitherEngineRefuses(t *testing.T) {
	a, b := mustSchema(t, `{"type":"string"}`), mustSchema(t, `{"type":"integer"}`)
	mixed := &Schema{first: a.first, second: b.second}
	for _, v := range []any{"x", json.Number("1")} {
		got := mixed.Validate(v)
		if got == nil || got.Rule != ruleDiffer || !got.EnginesDiffer || got.Message == "" {
			t.Errorf("%v: %+v", v, got)
		}
	}
	if got := mixed.Validate(true); got == nil || got.Rule != "type" || got.EnginesDiffer {
		t.Errorf("%+v", got)
	}
	for _, half := range []*Schema{{first: a.first}, {second: a.second}} {
		if got := half.Validate("x"); got == nil || got.Rule != "not-compiled" {
			t.Errorf("%+v", got)
		}
	}
}

// An engine that panics refuses. The second engine's panics are those of a
// schema it was never given; the first has none that we can reach, so its
// guard is tried with a schema of zero content.
func TestAPanicIsARefusal(t *testing.T) {
	if runSecond(nil, "x") {
		t.Error("a panic of the second engine accepted")
	}
	if found, ok := runFirst(nil, "x"); ok || found[0].Rule != "engine-panic" {
		t.Errorf("%v", found)
	}
}

func TestCompileSchemaRefuses(t *testing.T) {
	for in, rule := range map[string]string{
		`{"$ref":"https://example.test/x.json"}`: ruleRef, `{"$ref":"file:///etc/passwd"}`: ruleRef, `{"$ref":"#/$defs/nope"}`: ruleRef, `{"$ref":"#"}`: ruleRecursion,
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`: ruleDialect, `{"$id":"x"}`: ruleKeyword, `7`: ruleValue, `null`: ruleNull,
		`{"type":"object","additionalproperties":false}`: ruleKeyword, `{"type":"string","format":"made-up"}`: ruleFormat,
	} {
		_, err := CompileSchema("request.expect", mustParse(t, in))
		se, ok := err.(*SchemaError)
		if !ok || se.Findings[0].Rule != rule || !strings.HasPrefix(err.Error(), "request.expect: #") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	s := mustSchema(t, releaseSchema)
	good := mustParse(t, `{"environment":"staging","revision":"a83f19c","state":"healthy","tags":["a"]}`)
	bad := mustParse(t, `{"environment":"x","revision":"A","state":1,"tags":[1],"more":0}`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if s.Validate(good) != nil || s.Validate(bad) == nil {
					t.Error("wrong verdict")
				}
			}
		})
	}
	wg.Wait()
}

func TestDocIsACopy(t *testing.T) {
	s := mustSchema(t, releaseSchema)
	s.Doc().(map[string]any)["additionalProperties"] = true
	if s.Doc().(map[string]any)["additionalProperties"] != false || (*Schema)(nil).Doc() != nil {
		t.Error("Doc gave away the schema")
	}
}

func TestFormats(t *testing.T) {
	cases := map[string]struct{ good, bad []string }{
		"date-time": {
			[]string{"2026-01-05T10:00:00Z", "2026-01-05t10:00:00z", "2024-02-29T23:59:59.123456789-00:00", "2026-01-05T10:00:00+23:59", "0001-01-01T00:00:00Z"},
			[]string{"", "2026-01-05", "2026-01-05 10:00:00Z", "2026-01-05T10:00:00", "2023-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-05T24:00:00Z", "2026-01-05T23:59:60Z", "2026-01-05T10:00:00.Z", "2026-01-05T10:00:00.1234567890Z", "2026-01-05T10:00:00,5Z", "2026-01-05T+2:00:00Z", "2026-01-05T10:00:00+24:00", "2026-01-05T10:00:00+05:60", "2026-01-05T10:00:00+0530", "2026-01-05T10:00:00Zx", "२०२६-01-05T10:00:00Z", "9999-12-31T23:59:59-01:00", "2026-01-05T1:00:000Z", "-026-01-05T10:00:00Z"},
		},
		"date":     {[]string{"2024-02-29"}, []string{"2023-02-29", "2024-2-29", "20240229", "2024-02-29T", "+024-02-29", " 2024-02-9"}},
		"uuid":     {[]string{"116f3ede-f6a5-f6e7-2d0e-1fda136390f0", "116F3EDE-F6A5-F6E7-2D0E-1FDA136390F0"}, []string{"", "116f3edef6a5f6e72d0e1fda136390f0", "116f3ede-f6a5-f6e7-2d0e-1fda136390f", "116f3ede-f6a5-f6e7-2d0e-1fda136390fg", "{116f3ede-f6a5-f6e7-2d0e-1fda13639f0}", "116f3ede_f6a5-f6e7-2d0e-1fda136390f0"}},
		"uri":      {[]string{"https://example.test/a?b=c#d", "urn:isbn:123", "https://[::1]/"}, []string{"", "example.test/a", "//example.test", "/a", "https://a b", "ignore all rules: do it", "https://example.test/%zz", "https://example.test/\"", "https://é.test", "x:", "https://e.test/\n"}},
		"ipv4":     {[]string{"127.0.0.1", "255.255.255.255"}, []string{"", "1.2.3", "+1.2.3.4", "01.2.3.4", "1.2.3.256", "::1", "1.2.3.4 ", "0x7f.0.0.1"}},
		"email":    {[]string{"a.b+c@example.test"}, []string{"", "a", "@b", "a@", "a@@b", `"ignore all rules"@example.test`, "a..b@c", ".a@c", "a b@c", "a@b c", "a@-b", "a@b_c", "é@c"}},
		"hostname": {[]string{"example.test", "a", "xn--bcher-kva.test"}, []string{"", ".", "a.", "a..b", "-a", "a-", "a_b", "a b", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", "bücher.test"}},
	}
	for name, c := range cases {
		for _, s := range c.good {
			if !formats[name](s) {
				t.Errorf("%s refuses %q", name, s)
			}
		}
		for _, s := range c.bad {
			if formats[name](s) {
				t.Errorf("%s accepts %q", name, s)
			}
		}
		s := mustSchema(t, `{"type":"string","format":"`+name+`"}`)
		for _, text := range append(c.good, c.bad...) {
			v := s.Validate(text)
			if (v == nil) != formats[name](text) || v != nil && v.EnginesDiffer {
				t.Errorf("%s %q: the engines do not use our format: %+v", name, text, v)
			}
		}
	}
}
