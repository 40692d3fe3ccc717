package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// The generator knows these members only; the stranger is in no schema.
var (
	fuzzNames = []string{"a", "b", "c"}
	stranger  = "stranger"
)

type schemaMaker struct{ *rand.Rand }

func (m schemaMaker) pick(list ...any) any { return list[m.IntN(len(list))] }

func (m schemaMaker) leaf() any {
	return m.pick(
		map[string]any{"type": "integer", "minimum": json.Number("0"), "maximum": json.Number("9")},
		map[string]any{"type": "string", "maxLength": json.Number("5")},
		map[string]any{"type": "boolean"}, map[string]any{"const": json.Number("1")}, map[string]any{"enum": []any{"x", nil}},
		map[string]any{"type": []any{"null", "integer"}, "minimum": json.Number("0"), "maximum": json.Number("5")},
		map[string]any{}, false, map[string]any{"type": "object"}, map[string]any{"$ref": "#/$defs/d"},
	)
}

func (m schemaMaker) schema(depth int) any {
	if depth == 0 || m.IntN(6) == 0 {
		return m.leaf()
	}
	s := map[string]any{}
	if m.IntN(4) > 0 {
		s["type"] = m.pick("object", "object", "object", "array", []any{"object", "null"}, []any{"object", "array"})
	}
	for range 1 + m.IntN(3) {
		m.keyword(s, depth)
	}
	switch m.IntN(3) {
	case 0:
		s["additionalProperties"] = m.pick(false, false, false, true, m.schema(depth-1))
	case 1:
		s["unevaluatedProperties"] = m.pick(false, false, false, true)
	}
	return s
}

func (m schemaMaker) list(depth int) []any {
	out := make([]any, 1+m.IntN(2))
	for i := range out {
		out[i] = m.schema(depth - 1)
	}
	return out
}

func (m schemaMaker) named(depth int) map[string]any {
	out := map[string]any{}
	for range 1 + m.IntN(2) {
		out[fuzzNames[m.IntN(len(fuzzNames))]] = m.schema(depth - 1)
	}
	return out
}

func (m schemaMaker) keyword(s map[string]any, depth int) {
	switch m.IntN(14) {
	case 0, 1, 2, 3:
		s["properties"] = m.named(depth)
	case 4:
		s["allOf"] = m.list(depth)
	case 5:
		s["anyOf"] = m.list(depth)
	case 6:
		s["oneOf"] = m.list(depth)
	case 7:
		s["if"], s["then"], s["else"] = m.schema(depth-1), m.schema(depth-1), m.schema(depth-1)
	case 8:
		s["dependentSchemas"] = m.named(depth)
	case 9:
		s["not"] = m.schema(depth - 1)
	case 10, 11:
		m.array(s, depth)
	case 12:
		s["required"] = []any{fuzzNames[m.IntN(len(fuzzNames))]}
	case 13:
		s["patternProperties"] = map[string]any{"^[ab]{1,2}$": m.schema(depth - 1)}
		if t, _ := s["type"].(string); t == "object" {
			s["maxProperties"] = json.Number("4")
		}
	}
}

func (m schemaMaker) array(s map[string]any, depth int) {
	s["type"] = m.pick("array", []any{"array", "object"})
	s["maxItems"] = json.Number("3")
	switch m.IntN(4) {
	case 0:
		s["items"] = m.schema(depth - 1)
	case 1:
		s["prefixItems"], s["items"] = m.list(depth), m.pick(false, m.schema(depth-1))
	case 2:
		s["prefixItems"], s["unevaluatedItems"] = m.list(depth), false
	case 3:
		s["contains"], s["unevaluatedItems"] = m.schema(depth-1), false
	}
}

func (m schemaMaker) document() any {
	s := m.schema(3)
	if o, ok := s.(map[string]any); ok {
		o["$defs"] = map[string]any{"d": m.pick(
			map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{"b": m.schema(0)}},
			map[string]any{"type": "object", "properties": map[string]any{"c": map[string]any{"type": "null"}}},
			map[string]any{"type": "null"})}
	}
	return s
}

// instance makes a value that is often near to what schemas want and often
// holds the stranger.
func (m schemaMaker) instance(depth int) any {
	if depth == 0 || m.IntN(4) == 0 {
		return m.pick(nil, true, json.Number("1"), json.Number("0"), "x", "", map[string]any{}, []any{})
	}
	if m.IntN(4) == 0 {
		out := make([]any, m.IntN(4))
		for i := range out {
			out[i] = m.instance(depth - 1)
		}
		return out
	}
	out := map[string]any{}
	for _, name := range fuzzNames {
		if m.IntN(2) == 0 {
			out[name] = m.instance(depth - 1)
		}
	}
	if m.IntN(4) == 0 {
		out[stranger] = m.instance(0)
	}
	return out
}

// guided makes a value that the schema probably accepts, so that refusals are
// not only those of a wrong type.
func (m schemaMaker) guided(root, s any, depth int) any {
	o, ok := s.(map[string]any)
	if !ok || depth == 0 {
		return m.instance(0)
	}
	if c, ok := o["const"]; ok {
		return c
	}
	if list, ok := o["enum"].([]any); ok {
		return m.pick(list...)
	}
	out := map[string]any{}
	for _, part := range m.parts(root, o) {
		v := m.guided(root, part, depth-1)
		sub, isObject := v.(map[string]any)
		if !isObject {
			return v
		}
		maps.Copy(out, sub)
	}
	if o["type"] == "array" {
		list := make([]any, m.IntN(3))
		prefix, _ := o["prefixItems"].([]any)
		for i := range list {
			if i < len(prefix) {
				list[i] = m.guided(root, prefix[i], depth-1)
			} else {
				list[i] = m.guided(root, o["items"], depth-1)
			}
		}
		return list
	}
	props, _ := o["properties"].(map[string]any)
	for _, name := range fuzzNames {
		if sub, ok := props[name]; ok && m.IntN(3) > 0 {
			out[name] = m.guided(root, sub, depth-1)
		}
	}
	if t, ok := o["type"].(string); ok && t != "object" {
		return map[string]any{"integer": json.Number("1"), "string": "x", "boolean": true, "null": nil}[t]
	}
	return out
}

// parts chooses the schemas that apply in place.
func (m schemaMaker) parts(root any, o map[string]any) []any {
	var out []any
	if o["$ref"] != nil {
		out = append(out, root.(map[string]any)["$defs"].(map[string]any)["d"])
	}
	if list, ok := o["allOf"].([]any); ok {
		out = append(out, list...)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if list, ok := o[name].([]any); ok {
			out = append(out, m.pick(list...))
		}
	}
	if o["if"] != nil {
		out = append(out, m.pick(o["then"], o["else"]))
	}
	return out
}

// plant puts the stranger into one object of v, wherever one is.
func (m schemaMaker) plant(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for _, name := range slices.Sorted(maps.Keys(out)) {
			if planted := m.plant(out[name]); hasStranger(planted) && m.IntN(2) == 0 {
				out[name] = planted
				return out
			}
		}
		out[stranger] = m.instance(0)
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			if planted := m.plant(out[i]); hasStranger(planted) {
				out[i] = planted
				break
			}
		}
		return out
	}
	return v
}

func hasStranger(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if name == stranger || hasStranger(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasStranger)
	}
	return false
}

type proofTally struct{ clean, accepted, strange, differ int }

func tryProof(m schemaMaker, instances int, tally *proofTally) error {
	doc := m.document()
	use := []SchemaUse{UseInput, UseEnvelope}[m.IntN(2)]
	if len(LintSchema(doc, use)) > 0 {
		return nil
	}
	s, err := CompileSchema("random", doc)
	if err != nil {
		return fmt.Errorf("lint-clean and does not compile: %s: %w", Canonical(doc), err)
	}
	tally.clean++
	for range instances {
		v := m.instance(3)
		if m.IntN(3) > 0 {
			if v = m.guided(doc, doc, 5); m.IntN(2) == 0 {
				v = m.plant(v)
			}
		}
		odd := hasStranger(v)
		if odd {
			tally.strange++
		}
		// One engine is enough to break the proof; both must hold it.
		_, one := runFirst(s.first, v)
		two := runSecond(s.second, v)
		if odd && (one || two) {
			return fmt.Errorf("santhosh %v, kaptinlin %v: schema %s let through %s", one, two, Canonical(doc), Canonical(v))
		}
		if one != two {
			tally.differ++
		}
		if one && two {
			tally.accepted++
		}
	}
	return nil
}

func TestNoUndeclaredMemberGetsThroughACleanSchema(t *testing.T) {
	var tally proofTally
	for seed := range uint64(700) {
		if err := tryProof(schemaMaker{rand.New(rand.NewPCG(seed, 7))}, 60, &tally); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d clean schemas, %d instances accepted, %d with an undeclared member refused, the engines differed over %d", tally.clean, tally.accepted, tally.strange, tally.differ)
	// A difference refuses a good answer, so contracts that pass the lint must
	// not meet one.
	if tally.differ > 0 {
		t.Errorf("the engines differ over %d instances of lint-clean schemas", tally.differ)
	}
	if tally.clean < 50 || tally.accepted < 1000 || tally.strange < 1000 {
		t.Errorf("the generator makes too little: %+v", tally)
	}
}

func FuzzLintProof(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		var tally proofTally
		if err := tryProof(schemaMaker{rand.New(rand.NewPCG(a, b))}, 80, &tally); err != nil {
			t.Fatal(err)
		}
	})
}
