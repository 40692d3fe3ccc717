//go:build conformance

package conformance

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/validate"
)

// The worst answers that the parser lets through, for the parser and for either
// engine under the keywords that the guard takes. body makes one of about n
// bytes. refused says that the schema does not let it in: engines work hardest
// on what they must complain about.
type worst struct {
	name, schema string
	body         func(n int) string
	refused      bool
}

const largest = 1<<20 - 100 // just below the limit of an answer

// repeat joins items to about n bytes, but never to more values than an answer
// may have; per is how many values one item is.
func repeat(n, per int, item func(i int) string) string {
	var b strings.Builder
	for i := 0; (i+1)*per < validate.AnswerLimits().Nodes-10; i++ {
		one := item(i)
		if b.Len()+len(one) >= n {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(one)
	}
	return b.String()
}

func array(per int, item func(i int) string) func(int) string {
	return func(n int) string { return "[" + repeat(n, per, item) + "]" }
}

func object(per int, item func(i int) string) func(int) string {
	return func(n int) string { return "{" + repeat(n, per, item) + "}" }
}

func same(s string) func(int) string { return func(int) string { return s } }

func longText(item string) func(int) string {
	return func(n int) string { return `"` + strings.Repeat(item, n/len(item)) + `"` }
}

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

func names(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"k%06d":1`, i)
	}
	return strings.Join(parts, ",")
}

var (
	pad   = strings.Repeat("p", 60)
	worse = []worst{
		{"deep lists", `{"type":"array"}`, array(60, same(nested("[", "", "]", 60))), false},
		{"deep objects", `{"type":"array"}`, array(61, same(nested(`{"a":`, "1", "}", 60))), false},
		{"wide object", `{"type":"object"}`, object(1, func(i int) string { return fmt.Sprintf(`"k%06d":1`, i) }), false},
		{"wide object that nobody named", `{"type":"object","additionalProperties":false}`, object(1, func(i int) string { return fmt.Sprintf(`"k%06d":1`, i) }), true},
		{"wide object that nobody evaluated", `{"type":"object","allOf":[{"properties":{"a":{"type":"null"}}}],"unevaluatedProperties":false}`, object(1, func(i int) string { return fmt.Sprintf(`"k%06d":1`, i) }), true},
		{"names against a rule", `{"type":"object","propertyNames":{"type":"string","maxLength":3}}`, object(1, func(i int) string { return fmt.Sprintf(`"k%06d":1`, i) }), true},
		{"too many names against a pattern", `{"type":"object","patternProperties":{"^([a-z]{0,9}[0-9]{0,9}){0,3}$":{"type":"null"}}}`, object(1, func(i int) string { return fmt.Sprintf(`"k%06d":1`, i) }), true},
		{"as many names against a pattern as may be", `{"type":"array","items":{"type":"object","patternProperties":{"^([a-z]{0,9}[0-9]{0,9}){0,3}$":{"type":"null"}}}}`, array(2001, same("{"+names(2000)+"}")), true},
		{"names that nearly collide", `{"type":"object"}`, object(1, func(i int) string { return fmt.Sprintf(`"\u00%02xx%06d":1`, 0x61+i%20, i) }), false},
		{"short numbers", `{"type":"array","items":{"type":"integer","minimum":0,"maximum":9}}`, array(1, func(i int) string { return fmt.Sprint(i % 10) }), false},
		{"longest numbers", `{"type":"array","items":{"type":"number","multipleOf":1,"minimum":0}}`, array(1, func(i int) string { return fmt.Sprintf("1%062d.%de-1", i, i%10) }), true},
		{"largest exponents", `{"type":"array","items":{"type":"number","multipleOf":1e-60,"exclusiveMaximum":1e60}}`, array(1, func(i int) string { return fmt.Sprintf("%d.%de%d", 1+i%9, i, 60-i%120) }), true},
		{"short texts", `{"type":"array","items":{"type":"string","maxLength":2}}`, array(1, same(`"ab"`)), false},
		{"texts of no format", `{"type":"array","items":{"type":"string","format":"date-time"}}`, array(1, func(i int) string { return fmt.Sprintf(`"2026-01-05T10:00:00.%09dX"`, i) }), true},
		{"long uris", `{"type":"array","items":{"type":"string","format":"uri"}}`, array(1, same(`"https://example.test/`+strings.Repeat("%41", 300)+`"`)), false},
		{"one long text", `{"type":"string","maxLength":10}`, longText("a"), true},
		{"one long text of escapes", `{"type":"string","maxLength":10}`, longText(`\u00e9`), true},
		{"one long text of pairs", `{"type":"string","minLength":1}`, longText(`\ud83d\ude00`), false},
		{"one long text and a pattern", `{"type":"string","pattern":"^([a-z]{0,25}[a-y])*b$"}`, longText("a"), true},
		{"a pattern at every element", `{"type":"array","items":{"type":"string","pattern":"^(a{0,9}){0,6}b$"}}`, array(1, same(`"`+strings.Repeat("a", 80)+`"`)), true},
		{"different lists", `{"type":"array","uniqueItems":true}`, array(2, func(i int) string { return fmt.Sprintf(`["%s%06d"]`, pad[:20], i) }), false},
		{"different objects", `{"type":"array","uniqueItems":true}`, array(2, func(i int) string { return fmt.Sprintf(`{"%s":%d}`, pad[:20], i) }), false},
		{"different numbers", `{"type":"array","uniqueItems":true}`, array(1, func(i int) string { return fmt.Sprintf("%d.50", 1000000000000+i) }), false},
		{"numbers that are the same in many spellings", `{"type":"array","items":{"const":100}}`, array(1, func(i int) string { return []string{"100", "1e2", "100.0", "10e1", "1.00e2"}[i%5] }), false},
		{"none of many constants", `{"type":"array","items":{"enum":["x",1,2,3,{"a":[1]},[1,2]]}}`, array(3, same(`{"a":[2]}`)), true},
		{"contained nearly", `{"type":"array","contains":{"type":"object","properties":{"a":{"const":9}},"required":["a"]},"minContains":3}`, array(2, same(`{"a":8}`)), true},
		{"choices that fail late", `{"type":"array","items":{"oneOf":[{"type":"object","properties":{"z":{"const":1}},"required":["z"]},{"type":"object","properties":{"z":{"const":2}},"required":["z"]},{"type":"object","properties":{"z":{"const":3}},"required":["z"]}]}}`, array(3, same(`{"a":1,"z":4}`)), true},
		{"choices within choices", `{"type":"array","items":{"anyOf":[{"anyOf":[{"type":"object","required":["a"],"properties":{"a":{"const":1}}},{"type":"array","items":{"type":"null"}}]},{"allOf":[{"type":"object"},{"not":{"required":["b"]}}]}]}}`, array(3, same(`{"b":1,"a":2}`)), true},
		{"conditions", `{"type":"array","items":{"type":"object","if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]},"unevaluatedProperties":false}}`, array(3, func(i int) string { return fmt.Sprintf(`{"a":%d,"d":0}`, i%3) }), true},
		{"dependents", `{"type":"array","items":{"type":"object","dependentSchemas":{"a":{"required":["b"]}},"dependentRequired":{"b":["c"]}}}`, array(3, same(`{"a":1,"b":2}`)), true},
		{"branches that half fit", `{"type":"array","items":{"type":"object","unevaluatedProperties":false,"anyOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"integer"}}},{"properties":{"c":{"type":"integer"}}}]}}`, array(4, same(`{"a":1,"b":1,"d":1}`)), true},
		{"elements that nobody evaluated", `{"type":"array","anyOf":[{"prefixItems":[{"type":"integer"}]},{"prefixItems":[{"type":"integer"},{"type":"integer"}]}],"unevaluatedItems":false}`, array(1, same("1")), true},
		{"references over references", `{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"type":"integer","maximum":3}}}`, array(1, same("4")), true},
		{"spaces", `{"type":"array"}`, func(n int) string { return "[" + strings.Repeat(" \n", n/2) + "]" }, false},
	}
)

// cpu is the time that this process has computed; other processes do not
// lengthen it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// growth is how much more a byte may cost in the largest answer than in one of
// an eighth of it: the square would be 8; the collector and the caches of a
// small machine take the rest.
const growth = 3

func TestWorstAnswersGrowWithTheirSizeOnly(t *testing.T) {
	var b strings.Builder
	for _, w := range worse {
		s, err := validate.CompileSchema(w.name, parse(t, w.schema))
		if err != nil {
			t.Errorf("%s: %v", w.name, err)
			continue
		}
		measure := func(body string) time.Duration {
			best := time.Duration(0)
			for range 3 { // the collector may pay for the answer before in one of them
				begin := cpu(t)
				v, err := validate.Parse([]byte(body), validate.AnswerLimits())
				if err != nil {
					t.Fatalf("%s: %v", w.name, err)
				}
				no := s.Validate(v)
				took := cpu(t) - begin
				if (no != nil) != w.refused || no != nil && no.EnginesDiffer {
					t.Errorf("%s: %+v", w.name, no)
				}
				if best == 0 || took < best {
					best = took
				}
			}
			return best
		}
		whole := w.body(largest)
		part := w.body(len(whole) / 8)
		small, large := measure(part), measure(whole)
		perByte := func(d time.Duration, body string) float64 { return float64(d.Nanoseconds()) / float64(len(body)) }
		times := perByte(large, whole) / perByte(small, part)
		fmt.Fprintf(&b, "%-45s %7d bytes %8.1f ms, a byte costs %.1f times that of %d bytes\n", w.name, len(whole), float64(large.Microseconds())/1000, times, len(part))
		if times > growth {
			t.Errorf("%s: a byte costs %.1f times as much in %d bytes as in %d", w.name, times, len(whole), len(part))
		}
	}
	t.Log("\n" + b.String())
}
