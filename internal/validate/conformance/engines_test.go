package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"chatelaine/internal/validate"
)

// maker draws schemas and values from a string of bytes, so that the fuzzer's
// changes of bytes are changes of one choice. When they run out it draws zeros.
type maker struct {
	bytes []byte
	used  int
}

func (m *maker) below(n int) int {
	if m.used >= len(m.bytes) {
		return 0
	}
	b := m.bytes[m.used]
	m.used++
	return int(b) % n
}

func (m *maker) one(from ...any) any { return from[m.below(len(from))] }

var (
	memberNames = []string{"a", "b", "ab", "x-id", "z"}
	patterns    = []any{"^[ab]{1,2}$", "^x-[a-z]{1,3}$", "^[0-9]{2,4}$"}
	numbers     = []any{
		json.Number("0"), json.Number("1"), json.Number("-1"), json.Number("2"), json.Number("3.0"), json.Number("1.5"), json.Number("0.1"),
		json.Number("0.30"), json.Number("1e2"), json.Number("9007199254740993"), json.Number("9007199254740992"), json.Number("-0"), json.Number("12345678901234567890.5"),
	}
	texts = []any{"", "a", "ab", "b", "x-id", "42", "é€", "😀😀", "2026-02-28", "2026-02-30", "192.0.2.1", "192.0.2.01", "e3b0c442-98fc-4c14-9afb-f4c8996fb924", "e3b0c442"}
	// wellFormed lists which of texts are of a format.
	wellFormed = map[string][]string{
		"date": {"2026-02-28"}, "ipv4": {"192.0.2.1"}, "uuid": {"e3b0c442-98fc-4c14-9afb-f4c8996fb924"},
	}
)

func (m *maker) small() any { return json.Number(fmt.Sprint(m.below(4))) }

func (m *maker) schema(depth int) any {
	s := map[string]any{}
	if depth <= 0 {
		m.leaf(s)
		return s
	}
	switch m.below(8) {
	case 0:
		m.leaf(s)
	case 1, 2:
		m.array(s, depth)
	case 3:
		return m.one(false, map[string]any{"type": "null"}, map[string]any{}, map[string]any{"$ref": "#/$defs/d"}, map[string]any{"$ref": "#/$defs/e"})
	default:
		m.object(s, depth)
	}
	for range m.below(3) {
		m.choice(s, depth)
	}
	return s
}

func (m *maker) leaf(s map[string]any) {
	switch m.below(6) {
	case 0:
		s["type"] = m.one("integer", "number", []any{"integer", "null"})
		for range m.below(3) {
			s[m.one("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum").(string)] = numbers[m.below(len(numbers))]
		}
		if m.below(3) == 0 {
			s["multipleOf"] = m.one(json.Number("1"), json.Number("0.1"), json.Number("0.5"), json.Number("3"), json.Number("1e1"))
		}
	case 1:
		s["type"] = m.one("string", []any{"string", "boolean"})
		s[m.one("minLength", "maxLength").(string)] = m.small()
	case 2:
		s["type"] = "string"
		s["pattern"] = patterns[m.below(len(patterns))]
	case 3:
		s["type"] = "string"
		s["format"] = m.one("date", "ipv4", "uuid")
	case 4:
		s["const"] = m.value(1)
	default:
		s["enum"] = []any{numbers[m.below(len(numbers))], texts[m.below(len(texts))], m.one(nil, true, []any{}, map[string]any{"a": json.Number("1.0")})}
	}
}

func (m *maker) array(s map[string]any, depth int) {
	s["type"] = m.one("array", []any{"array", "null"})
	for range 1 + m.below(3) {
		switch m.below(7) {
		case 0:
			s["items"] = m.schema(depth - 1)
		case 1:
			s["prefixItems"] = []any{m.schema(depth - 1), m.schema(depth - 2)}
		case 2:
			s["contains"] = m.schema(depth - 2)
		case 3:
			s["contains"] = m.schema(depth - 2)
			s[m.one("minContains", "maxContains").(string)] = m.small()
		case 4:
			s[m.one("minItems", "maxItems").(string)] = m.small()
		case 5:
			s["uniqueItems"] = true
		case 6:
			s["unevaluatedItems"] = false
		}
	}
}

func (m *maker) named(depth int) map[string]any {
	out := map[string]any{}
	for range 1 + m.below(3) {
		out[memberNames[m.below(len(memberNames))]] = m.schema(depth - 1)
	}
	return out
}

func (m *maker) object(s map[string]any, depth int) {
	s["type"] = m.one("object", "object", []any{"object", "array"})
	s["properties"] = m.named(depth)
	for range 1 + m.below(3) {
		switch m.below(9) {
		case 0, 1:
			s["additionalProperties"] = m.one(false, false, true, m.schema(depth-1))
		case 2, 3:
			s["unevaluatedProperties"] = m.one(false, false, true, m.schema(depth-1))
		case 4:
			s["patternProperties"] = map[string]any{patterns[m.below(len(patterns))].(string): m.schema(depth - 1)}
		case 5:
			s["propertyNames"] = map[string]any{"type": "string", m.one("minLength", "maxLength").(string): m.small()}
		case 6:
			s["required"] = []any{memberNames[m.below(len(memberNames))]}
		case 7:
			s["dependentRequired"] = map[string]any{memberNames[m.below(len(memberNames))]: []any{memberNames[m.below(len(memberNames))]}}
		case 8:
			s[m.one("minProperties", "maxProperties").(string)] = m.small()
		}
	}
}

func (m *maker) choice(s map[string]any, depth int) {
	switch m.below(6) {
	case 0:
		s["allOf"] = []any{m.schema(depth - 1), m.schema(depth - 1)}
	case 1:
		s["anyOf"] = []any{m.schema(depth - 1), m.schema(depth - 1)}
	case 2:
		s["oneOf"] = []any{m.schema(depth - 1), m.schema(depth - 1)}
	case 3:
		s["if"], s["then"], s["else"] = m.schema(depth-1), m.schema(depth-1), m.schema(depth-1)
	case 4:
		s["not"] = m.schema(depth - 2)
	case 5:
		s["dependentSchemas"] = m.named(depth - 1)
	}
}

func (m *maker) document() any {
	s := m.schema(3)
	if o, ok := s.(map[string]any); ok {
		o["$defs"] = map[string]any{
			"d": map[string]any{"type": "object", "properties": map[string]any{"b": m.schema(0)}},
			"e": map[string]any{"type": "array", "prefixItems": []any{m.schema(0)}},
		}
	}
	return s
}

// value draws anything.
func (m *maker) value(depth int) any {
	kind := m.below(8)
	if depth <= 0 {
		kind %= 5
	}
	switch kind {
	case 0, 1:
		return numbers[m.below(len(numbers))]
	case 2, 3:
		return texts[m.below(len(texts))]
	case 4:
		return m.one(nil, true, false)
	case 5:
		out := make([]any, m.below(4))
		for i := range out {
			out[i] = m.value(depth - 1)
		}
		return out
	}
	out := map[string]any{}
	for range m.below(4) {
		out[memberNames[m.below(len(memberNames))]] = m.value(depth - 1)
	}
	return out
}

// near draws what the schema perhaps accepts.
func (m *maker) near(root, schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth <= 0 || m.below(8) == 0 {
		return m.value(1)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if e := list(s["enum"]); len(e) > 0 {
		return m.one(e...)
	}
	out := map[string]any{}
	for _, part := range m.parts(root, s) {
		if sub, ok := m.near(root, part, depth-1).(map[string]any); ok {
			maps.Copy(out, sub)
		}
	}
	switch t := s["type"].(type) {
	case string:
		switch t {
		case "array":
			return m.elements(root, s, depth)
		case "string":
			return texts[m.below(len(texts))]
		case "integer", "number":
			return numbers[m.below(len(numbers))]
		case "null":
			return nil
		}
	case []any:
		if slices.Contains(t, any("array")) && m.below(2) == 0 {
			return m.elements(root, s, depth)
		}
	}
	props, _ := s["properties"].(map[string]any)
	for _, name := range memberNames {
		if sub, ok := props[name]; ok && m.below(3) > 0 {
			out[name] = m.near(root, sub, depth-1)
		}
	}
	if m.below(4) == 0 {
		out[memberNames[m.below(len(memberNames))]] = m.value(1)
	}
	return out
}

func (m *maker) parts(root any, s map[string]any) []any {
	out := slices.Clone(list(s["allOf"]))
	for _, name := range []string{"anyOf", "oneOf"} {
		if l := list(s[name]); len(l) > 0 {
			out = append(out, m.one(l...))
		}
	}
	if s["if"] != nil {
		out = append(out, m.one(s["then"], s["else"]))
	}
	if to, ok := s["$ref"].(string); ok {
		out = append(out, root.(map[string]any)["$defs"].(map[string]any)[to[len(to)-1:]])
	}
	return out
}

func (m *maker) elements(root any, s map[string]any, depth int) []any {
	prefix := list(s["prefixItems"])
	out := make([]any, m.below(4))
	for i := range out {
		switch {
		case i < len(prefix):
			out[i] = m.near(root, prefix[i], depth-1)
		case s["items"] != nil:
			out[i] = m.near(root, s["items"], depth-1)
		case s["contains"] != nil:
			out[i] = m.near(root, s["contains"], depth-1)
		default:
			out[i] = m.value(1)
		}
	}
	return out
}

type engineTally struct{ schemas, clean, accepted, refused int }

const valuesPerSchema = 12

// compareEngines asks both engines, through our door, and the reference. All
// three must agree over every schema that the guard takes.
func compareEngines(data []byte, tally *engineTally) error {
	m := &maker{bytes: data}
	doc := m.document()
	s, err := validate.CompileSchema("random", doc)
	if err != nil {
		for _, f := range err.(*validate.SchemaError).Findings {
			if f.Rule == "schema-compile" {
				return fmt.Errorf("the guard takes it and an engine does not: %s: %w", validate.Canonical(doc), err)
			}
		}
		return nil
	}
	tally.schemas++
	if len(validate.LintSchema(doc, validate.UseExpect)) == 0 {
		tally.clean++
	}
	for range valuesPerSchema {
		v := m.near(doc, doc, 5)
		want := accepts(doc, v)
		no := s.Validate(v)
		if want {
			tally.accepted++
		} else {
			tally.refused++
		}
		if (no == nil) != want || no != nil && no.EnginesDiffer {
			return fmt.Errorf("schema %s\nvalue %s\nthe reference says %v, the engines %+v", validate.Canonical(doc), validate.Canonical(v), want, no)
		}
	}
	return nil
}

func FuzzEngines(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(randomBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var tally engineTally
		if err := compareEngines(data, &tally); err != nil {
			t.Fatal(err)
		}
	})
}

func randomBytes(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2020))
	out := make([]byte, 400)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

func TestEnginesAgreeWithTheReference(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 150
	}
	var tally engineTally
	for seed := range seeds {
		if err := compareEngines(randomBytes(seed), &tally); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d schemas that the guard takes, %d of them clean for expect; %d values accepted, %d refused", tally.schemas, tally.clean, tally.accepted, tally.refused)
	if tally.schemas < 100 || tally.clean < 50 || tally.accepted < 200 || tally.refused < 500 {
		t.Errorf("the maker makes too little: %+v", tally)
	}
}
