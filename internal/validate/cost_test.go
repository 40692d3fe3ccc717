package validate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostileCost is far above what one such answer takes (well under a second on
// two busy cores); it catches what grows with the square of the size.
const hostileCost = 10 * time.Second

// Answers at the parser's limits that make engines work hardest.
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
	wrong := list(25_000, func(int) string { return `"x"` })
	long := `"` + strings.Repeat("a", 1_000_000) + `"`
	cases := []struct{ name, schema, body string }{
		{"wrong elements of a choice", `{"type":"array","items":{"oneOf":[{"type":"integer"},{"type":"null"},{"type":"boolean"},{"type":"object"}]}}`, wrong},
		{"different lists", `{"type":"array","uniqueItems":true}`, list(16_000, func(i int) string { return fmt.Sprintf("[%d.5,%d]", i, i) })},
		{"different objects", `{"type":"array","uniqueItems":true}`, list(24_000, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) })},
		{"large exponents", `{"type":"array","items":{"type":"number","multipleOf":0.01,"maximum":5}}`, list(20_000, func(i int) string { return fmt.Sprintf("1.%de-50", i) })},
		{"a long text and a pattern", `{"type":"string","pattern":"^([a-z]{0,6}[a-y]){0,6}$"}`, long},
		{"members nobody named", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"null"}}}`, object(30_000)},
		{"members nobody evaluated", `{"type":"object","unevaluatedProperties":false,"allOf":[{"properties":{"a":{"type":"null"}}}]}`, object(30_000)},
		{"branches that half fit", `{"type":"array","items":{"type":"object","unevaluatedProperties":false,"anyOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"integer"}}},{"properties":{"c":{"type":"integer"}}}]}}`,
			list(12_000, func(int) string { return `{"a":1,"b":1,"d":1}` })},
	}
	for _, c := range cases {
		s := mustSchema(t, c.schema)
		start := time.Now()
		v := s.Validate(mustParse(t, c.body))
		took := time.Since(start)
		t.Logf("%s: %v, %v", c.name, took.Round(time.Millisecond), v != nil)
		if took > hostileCost || v != nil && (len(v.Message) > 400 || v.EnginesDiffer) {
			t.Errorf("%s: %v, %+v", c.name, took, v)
		}
	}
}
