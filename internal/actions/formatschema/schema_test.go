package formatschema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	kaptinlin "github.com/kaptinlin/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func parsed(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func compiled(t *testing.T, b []byte) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///s.json", parsed(t, b)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///s.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDocumentsAreSchemas(t *testing.T) {
	for _, d := range Documents() {
		compiled(t, d.JSON())
		if !json.Valid(d.JSON()) || !bytes.HasSuffix(d.JSON(), []byte("}\n")) {
			t.Errorf("%s is no JSON text with a newline", d.Name)
		}
		for _, no := range []string{marker, "argv", `"confirm"`, `"exit"`} {
			if bytes.Contains(d.JSON(), []byte(no)) {
				t.Errorf("%s publishes %s, which the loader refuses", d.Name, no)
			}
		}
		one, ok := Named(d.Name)
		if !ok || !bytes.Equal(one.JSON(), d.JSON()) {
			t.Errorf("%s is not found by its name", d.Name)
		}
	}
	if _, ok := Named("contracts"); ok {
		t.Error("a name that is none was found")
	}
}

// Editors do not use our engine: another one reads the schemas alike.
func TestAnotherEngineReadsThem(t *testing.T) {
	for _, c := range []struct {
		name, text string
		fits       bool
	}{
		{"targets", `{"targets": {}, "identities": {}}`, true},
		{"targets", `{"targets": {}, "identities": {"a": {"kind": "basic"}}}`, false},
		{"targets", `{"targets": {"a": {"url": "https://a.example", "identity": "b", "actions": [], "effects": ["change"]}}, "identities": {}}`, false},
		{"fixture", `{"name": "a", "input": {}, "want": {"ok": false, "code": "NOT_FOUND"}}`, true},
		{"fixture", `{"name": "a", "input": {}, "want": {"ok": true, "code": "NOT_FOUND"}}`, false},
		{"contract", smallContract, true},
		{"contract", strings.Replace(smallContract, `{"from": "input.id"}`, `{"from": "input.id", "or": 1}`, 1), false},
		{"contract", strings.Replace(smallContract, `"GET"`, `"POST"`, 1), true},
		{"contract", strings.Replace(smallContract, `"effect": "read"`, `"effect": "change"`, 1), false},
		{"contract", strings.Replace(smallContract, `{"exists": "/a"}`, `{"exists": "a"}`, 1), false},
	} {
		d, _ := Named(c.name)
		s, err := kaptinlin.NewCompiler().Compile(d.JSON())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := s.Validate(parsed(t, []byte(c.text))).IsValid(); got != c.fits {
			t.Errorf("%s: the other engine says %v to %s", c.name, got, c.text)
		}
		if err := compiled(t, d.JSON()).Validate(parsed(t, []byte(c.text))); (err == nil) != c.fits {
			t.Errorf("%s: %v to %s", c.name, err, c.text)
		}
	}
}

const smallContract = `{"contract": "v1", "action": "get_it", "version": "1.0.0", "summary": "Get it.", "owner": "us", "effect": "read",
	"input": {"type": "object", "additionalProperties": false, "properties": {"id": {"type": "string", "maxLength": 9}}}, "route": {"target": "a"},
	"request": {"method": "GET", "path": "/a", "query": {"id": {"from": "input.id"}}, "outcomes": [{"status": 200, "when": {"exists": "/a"}, "success": {}}]},
	"result": {"type": "object", "additionalProperties": false}}`

// The members stand in the order of the source: editors list them so.
func TestOrderOfMembersStays(t *testing.T) {
	d, _ := Named("contract")
	text := string(d.JSON())
	at := 0
	for _, key := range []string{`"contract": {`, `"action": {`, `"version": {`, `"effect": {`, `"input": {`, `"route": {`, `"request": {`, `"exceptions": {`} {
		i := strings.Index(text[at:], key)
		if i < 0 {
			t.Fatalf("%s does not follow", key)
		}
		at += i
	}
}

func TestLaterPartsAreOneSwitchAway(t *testing.T) {
	b, err := publish(contractSource, true)
	if err != nil {
		t.Fatal(err)
	}
	compiled(t, b)
	if bytes.Contains(b, []byte(marker)) || !bytes.Contains(b, []byte(`"argv"`)) || !bytes.Contains(b, []byte(`"confirm"`)) {
		t.Error("with the switch on the marked parts are there and the marks are not")
	}
	for _, source := range [][]byte{targetsSource, fixtureSource} {
		b, err := publish(source, true)
		if err != nil {
			t.Fatal(err)
		}
		compiled(t, b)
	}
}

func TestPublishRefusesWhatIsNoJSON(t *testing.T) {
	for _, s := range []string{``, `{`, `[`, `{"a":`, `{"a":1`, `[1`, `{"x-later":`, `{"a":1,"a":2}`} {
		if v, err := publish([]byte(s), false); err == nil {
			t.Errorf("%q gave %s", s, v)
		}
	}
}

// Every object is closed, or says what its other members are, and everything
// that a person can write is explained.
func TestClosedAndExplained(t *testing.T) {
	for _, d := range Documents() {
		root := parsed(t, d.JSON()).(map[string]any)
		x := explained{t: t, name: d.Name, root: root}
		x.walk(root, "", true)
		x.references()
	}
}

type explained struct {
	t    *testing.T
	name string
	root map[string]any
	refs map[string]bool
}

// branches hold schemas that add to their parent and need not be closed.
var branches = []string{"allOf", "anyOf", "oneOf", "if", "then", "else", "not", "contains"}

func (x *explained) walk(s map[string]any, at string, stands bool) {
	if ref, ok := s["$ref"].(string); ok {
		if x.refs == nil {
			x.refs = map[string]bool{}
		}
		x.refs[ref] = true
	}
	props, _ := s["properties"].(map[string]any)
	if _, own := s["$ref"]; stands && props != nil && !own {
		if _, said := s["additionalProperties"]; !said && s["oneOf"] == nil && s["if"] == nil {
			x.t.Errorf("%s%s: an object that is open without a word", x.name, at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		sub, ok := props[name].(map[string]any)
		if !ok {
			continue
		}
		if stands && x.text(sub) == "" {
			x.t.Errorf("%s%s/%s: nothing explains it", x.name, at, name)
		}
		x.walk(sub, at+"/"+name, stands)
	}
	for _, key := range branches {
		for i, sub := range list(s[key]) {
			x.walk(sub, at+"/"+key+string(rune('0'+i)), false)
		}
	}
	for _, key := range []string{"items", "prefixItems", "additionalProperties", "propertyNames"} {
		for _, sub := range list(s[key]) {
			x.walk(sub, at+"/"+key, stands)
		}
	}
	defs, _ := s["$defs"].(map[string]any)
	for name, sub := range defs {
		x.walk(sub.(map[string]any), "/$defs/"+name, true)
	}
}

func list(v any) []map[string]any {
	var out []map[string]any
	switch v := v.(type) {
	case map[string]any:
		out = append(out, v)
	case []any:
		for _, one := range v {
			if m, ok := one.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// text is what an editor shows: the schema's own description, or that of the
// one it refers to.
func (x *explained) text(s map[string]any) string {
	if d, ok := s["description"].(string); ok {
		return d
	}
	if ref, ok := s["$ref"].(string); ok {
		return x.text(x.def(ref))
	}
	for _, sub := range list(s["anyOf"]) {
		if d := x.text(sub); d != "" {
			return d
		}
	}
	return ""
}

func (x *explained) def(ref string) map[string]any {
	defs, _ := x.root["$defs"].(map[string]any)
	sub, ok := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	if !ok {
		x.t.Errorf("%s: %s leads nowhere", x.name, ref)
	}
	return sub
}

func (x *explained) references() {
	defs, _ := x.root["$defs"].(map[string]any)
	for name := range defs {
		if !x.refs["#/$defs/"+name] {
			x.t.Errorf("%s: nothing uses $defs/%s", x.name, name)
		}
	}
	for ref := range x.refs {
		x.def(ref)
	}
}
