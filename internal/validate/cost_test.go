package validate

import (
	"fmt"
	"strings"
	"testing"
)

// hostileParts is how much smaller the answers are that the large ones are held
// against. A cost that grows with the square would be hostileParts times as high
// for each byte; the bound allows for caches and the collector.
const (
	hostileParts = 8
	hostileGrows = 4
)

// Answers at the parser's limits that make engines work hardest cost no more for
// each byte than small ones. Processor time counts, so that neighbours do not.
func TestHostileAnswersStayCheap(t *testing.T) {
	list := func(n int, item func(int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = item(i)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	object := func(n int) string {
		s := list(n, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) })
		return "{" + s[1:len(s)-1] + "}"
	}
	of := func(n int, item func(int) string) func(int) string {
		return func(parts int) string { return list(n/parts, item) }
	}
	objects := func(parts int) string { return object(30_000 / parts) }
	cases := []struct {
		name, schema string
		body         func(parts int) string
	}{
		{"wrong elements of a choice", `{"type":"array","items":{"oneOf":[{"type":"integer"},{"type":"null"},{"type":"boolean"},{"type":"object"}]}}`, of(25_000, func(int) string { return `"x"` })},
		{"different lists", `{"type":"array","uniqueItems":true}`, of(16_000, func(i int) string { return fmt.Sprintf("[%d.5,%d]", i, i) })},
		{"different objects", `{"type":"array","uniqueItems":true}`, of(24_000, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) })},
		{"large exponents", `{"type":"array","items":{"type":"number","multipleOf":0.01,"maximum":5}}`, of(20_000, func(i int) string { return fmt.Sprintf("1.%de-50", i) })},
		{"a long text and a pattern", `{"type":"string","pattern":"^([a-z]{0,6}[a-y]){0,6}$"}`, func(parts int) string { return `"` + strings.Repeat("a", 1_000_000/parts) + `"` }},
		{"members nobody named", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"null"}}}`, objects},
		{"members nobody evaluated", `{"type":"object","unevaluatedProperties":false,"allOf":[{"properties":{"a":{"type":"null"}}}]}`, objects},
		{"branches that half fit", `{"type":"array","items":{"type":"object","unevaluatedProperties":false,"anyOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"integer"}}},{"properties":{"c":{"type":"integer"}}}]}}`,
			of(12_000, func(int) string { return `{"a":1,"b":1,"d":1}` })},
	}
	for _, c := range cases {
		s := mustSchema(t, c.schema)
		cost := func(body string, rounds int) (a float64) {
			doc := mustParse(t, body)
			return cpu(t, func() {
				for range rounds {
					if v := s.Validate(doc); v != nil && (len(v.Message) > 400 || v.EnginesDiffer) {
						t.Errorf("%s: %+v", c.name, v)
					}
				}
			}) / float64(rounds) / float64(len(body))
		}
		var small, large float64
		for range measureTries {
			if small, large = cost(c.body(hostileParts), 2), cost(c.body(1), 1); large <= hostileGrows*small {
				break
			}
		}
		t.Logf("%s: %.0f ns a byte, %.0f of a small one", c.name, large*1e9, small*1e9)
		if large > hostileGrows*small {
			t.Errorf("%s: %.0f ns a byte, %.0f of a small one", c.name, large*1e9, small*1e9)
		}
	}
}
