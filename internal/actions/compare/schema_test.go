package compare

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// maker makes random schemas and values of a small world, so that the two meet
// often.
type maker struct{ r *rand.Rand }

func (m maker) pick(words ...string) string { return words[m.r.IntN(len(words))] }

func num(i int) json.Number { return json.Number(strconv.Itoa(i)) }

func (m maker) schema(depth int) map[string]any {
	switch k := m.r.IntN(6); {
	case k == 0:
		return map[string]any{"type": "integer", "minimum": num(m.r.IntN(3)), "maximum": num(3 + m.r.IntN(3))}
	case k == 1:
		s := map[string]any{"type": "string", "maxLength": num(1 + m.r.IntN(3))}
		if m.r.IntN(2) == 0 {
			s["pattern"] = m.pick("^[ab]{1,3}$", "^[a]{1,3}$")
		}
		return s
	case k == 2:
		return map[string]any{"type": "string", "enum": m.subset("a", "b", "ab", "c")}
	case k == 3 && depth > 0:
		return map[string]any{"type": "array", "maxItems": num(1 + m.r.IntN(3)), "items": m.schema(depth - 1)}
	case k >= 4 && depth > 0:
		return m.object(depth)
	}
	return map[string]any{"type": "boolean"}
}

func (m maker) subset(words ...string) []any {
	out := []any{words[0]}
	for _, w := range words[1:] {
		if m.r.IntN(2) == 0 {
			out = append(out, w)
		}
	}
	return out
}

func (m maker) object(depth int) map[string]any {
	props, required := map[string]any{}, []any{}
	for _, name := range []string{"x", "y", "z"} {
		if m.r.IntN(2) == 0 {
			props[name] = m.schema(depth - 1)
			if m.r.IntN(2) == 0 {
				required = append(required, name)
			}
		}
	}
	return map[string]any{"type": "object", "additionalProperties": m.r.IntN(4) == 0, "properties": props, "required": required}
}

// near changes a schema at one or two places.
func (m maker) near(s map[string]any, depth int) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		out[k] = v
	}
	if props, ok := s["properties"].(map[string]any); ok && m.r.IntN(3) > 0 {
		other := map[string]any{}
		for k, v := range props {
			if sub, is := v.(map[string]any); is && m.r.IntN(2) == 0 {
				v = m.near(sub, depth-1)
			}
			if m.r.IntN(6) > 0 {
				other[k] = v
			}
		}
		if m.r.IntN(4) == 0 {
			other[m.pick("x", "y", "z")] = m.schema(depth - 1)
		}
		out["properties"] = other
		required := []any{}
		for k := range other {
			if m.r.IntN(2) == 0 {
				required = append(required, k)
			}
		}
		if m.r.IntN(2) == 0 {
			out["required"] = required
		}
		return out
	}
	for k, v := range m.schema(depth) {
		if _, has := out[k]; has && m.r.IntN(2) == 0 {
			out[k] = v
		}
	}
	return out
}

func (m maker) value(depth int) any {
	switch k := m.r.IntN(6); {
	case k == 0:
		return num(m.r.IntN(7))
	case k <= 2:
		return m.pick("a", "b", "ab", "c", "aaa", "abab")
	case k == 3 && depth > 0:
		out := []any{}
		for range m.r.IntN(4) {
			out = append(out, m.value(depth-1))
		}
		return out
	case k >= 4 && depth > 0:
		out := map[string]any{}
		for _, name := range []string{"x", "y", "z", "w"} {
			if m.r.IntN(3) == 0 {
				out[name] = m.value(depth - 1)
			}
		}
		return out
	}
	return m.r.IntN(2) == 0
}

// fitting makes a value that a schema probably takes.
func (m maker) fitting(s map[string]any) any {
	switch s["type"] {
	case "integer":
		return num(m.r.IntN(7))
	case "string":
		if set, ok := s["enum"].([]any); ok {
			return set[m.r.IntN(len(set))]
		}
		return m.pick("a", "b", "ab", "aaa")
	case "array":
		items, _ := s["items"].(map[string]any)
		out := []any{}
		for range m.r.IntN(4) {
			out = append(out, m.fitting(items))
		}
		return out
	case "object":
		out := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		for name, sub := range props {
			if m.r.IntN(4) > 0 {
				p, _ := sub.(map[string]any)
				out[name] = m.fitting(p)
			}
		}
		if m.r.IntN(3) == 0 {
			out[m.pick("x", "y", "z", "w")] = m.value(1)
		}
		return out
	}
	return m.r.IntN(2) == 0
}

func nodeOf(t *testing.T, doc any) *strictyaml.Node {
	t.Helper()
	return parse(t, "schema", string(validate.Canonical(doc)))
}

// moves are what a finding says about the set of values.
var moves = map[string]direction{
	"narrower": narrower, "wider": wider, "now-required": narrower, "now-optional": wider, "opened": wider, "closed": narrower,
	"added": wider, "removed": narrower, "described": unmoved,
}

// What is called narrower takes nothing new, what is called wider refuses
// nothing that was taken, and what is called equal does neither; both engines
// decide.
func TestDirectionsAreTrue(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(7, 11))}
	told := map[direction]int{}
	for range 600 {
		old := m.schema(2)
		new := m.near(old, 2)
		x, errX := validate.CompileSchema("old", old)
		y, errY := validate.CompileSchema("new", new)
		if errX != nil || errY != nil {
			continue
		}
		move := unmoved
		for _, f := range compareSchemas(nodeOf(t, old), nodeOf(t, new)) {
			d, known := moves[f.what]
			if !known {
				d = different
			}
			move = move.and(d)
		}
		told[move]++
		for range 20 {
			v := m.fitting(old)
			if m.r.IntN(2) == 0 {
				v = m.fitting(new)
			}
			before, after := x.Validate(v) == nil, y.Validate(v) == nil
			if before && !after && (move == wider || move == unmoved) || after && !before && (move == narrower || move == unmoved) {
				t.Fatalf("%v is told for\n%s\n%s\nvalue %s: %v, %v\n%+v", move, validate.Canonical(old), validate.Canonical(new), validate.Canonical(v), before, after,
					compareSchemas(nodeOf(t, old), nodeOf(t, new)))
			}
		}
	}
	for _, d := range []direction{unmoved, narrower, wider, different} {
		if told[d] < 10 {
			t.Errorf("the direction %d was told %d times only", d, told[d])
		}
	}
}

// A schema that grows without end is not followed.
func TestExpandGivesUp(t *testing.T) {
	text := "{$defs: {a0: {type: boolean}"
	for i := 1; i < 40; i++ {
		text += ", a" + itoa(i) + ": {anyOf: [{$ref: '#/$defs/a" + itoa(i-1) + "'}, {$ref: '#/$defs/a" + itoa(i-1) + "'}]}"
	}
	text += "}, $ref: '#/$defs/a39'}"
	big := parse(t, "big", text)
	if _, ok := expand(big); ok {
		t.Error("it was followed to the end")
	}
	if found := compareSchemas(big, parse(t, "small", "{type: boolean}")); len(found) != 1 || found[0].what != "changed" {
		t.Errorf("%+v", found)
	}
	round := parse(t, "round", "{$defs: {a: {$ref: '#/$defs/a'}}, $ref: '#/$defs/a'}")
	if _, ok := expand(round); ok {
		t.Error("a circle was followed to the end")
	}
}
