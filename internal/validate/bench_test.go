package validate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchBodies are made here: about 370 bytes, 23 KB and 1 MB.
func benchBodies() map[string][]byte {
	item := func(i int) string {
		return fmt.Sprintf(`{"id":"dep_%08d","environment":"test","state":"QUEUED","number":%d,"ratio":%d.25,"note":"r\u00e9sum\u00e9 of build %d","flags":[true,false,null],"owner":{"login":"user-%d","id":%d}}`, i, i, i, i, i, i*7)
	}
	list := func(n int) []byte {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = item(i)
		}
		return []byte(`{"items":[` + strings.Join(parts, ",") + `],"total":` + fmt.Sprint(n) + `}`)
	}
	return map[string][]byte{"small": list(2), "middle": list(130), "large": list(2900)}
}

// against runs ours and encoding/json over the same bytes in one benchmark, a
// slice of each in turn, and reports the ratio of the two times: absolute times
// mean little on a shared machine.
func against(b *testing.B, bytes int, ours, theirs func()) {
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	var mine, other float64
	for b.Loop() {
		mine += seconds(ours)
		b.StopTimer()
		other += seconds(theirs)
		b.StartTimer()
	}
	b.ReportMetric(mine/other, "x-encoding/json")
}

func seconds(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []string{"small", "middle", "large"} {
		body := benchBodies()[size]
		b.Run(size, func(b *testing.B) {
			against(b, len(body), func() {
				if _, err := Parse(body, AnswerLimits()); err != nil {
					b.Fatal(err)
				}
			}, func() { unmarshal(b, body) })
		})
	}
}

func unmarshal(b *testing.B, body []byte) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		b.Fatal(err)
	}
}

const benchSchema = `{"type":"object","additionalProperties":false,"required":["items","total"],"properties":{"total":{"type":"integer","minimum":0,"maximum":5000},"items":{"type":"array","maxItems":5000,"items":{
 "type":"object","additionalProperties":false,"required":["id","environment","state"],"properties":{"id":{"type":"string","pattern":"^dep_[0-9]{8}$","maxLength":12},"environment":{"enum":["test","production"]},"state":{"enum":["QUEUED","LIVE"]},
 "number":{"type":"integer","minimum":0,"maximum":5000},"ratio":{"type":"number","minimum":0,"maximum":5000},"note":{"type":"string","maxLength":99},"flags":{"type":"array","maxItems":3,"items":{"type":["boolean","null"]}},
 "owner":{"type":"object","additionalProperties":false,"properties":{"login":{"type":"string","maxLength":20},"id":{"type":"integer","minimum":0,"maximum":50000}}}}}}}}`

func BenchmarkValidate(b *testing.B) {
	s := mustSchema(b, benchSchema)
	for _, size := range []string{"small", "middle", "large"} {
		body := benchBodies()[size]
		v := mustParse(b, string(body))
		b.Run(size, func(b *testing.B) {
			against(b, len(body), func() {
				if v := s.Validate(v); v != nil {
					b.Fatal(v)
				}
			}, func() { unmarshal(b, body) })
		})
	}
}

func BenchmarkProve(b *testing.B) {
	r := mustReader(b, ReaderSpec{
		Rows:   []RowSpec{{Status: []int{200}, Expect: mustParse(b, benchSchema), HasSuccess: true, Success: map[string]PickSpec{"total": at("/total")}}},
		Result: mustParse(b, `{"type":"object","additionalProperties":false,"properties":{"total":{"type":"integer","minimum":0,"maximum":5000}}}`),
	})
	for _, size := range []string{"small", "middle", "large"} {
		body := benchBodies()[size]
		raw := answer(200, string(body))
		b.Run(size, func(b *testing.B) {
			against(b, len(body), func() {
				if _, no := r.Prove(raw, nil, testNow); no != nil {
					b.Fatal(no)
				}
			}, func() { unmarshal(b, body) })
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	doc := mustParse(b, benchSchema)
	b.Run("schema", func(b *testing.B) {
		for b.Loop() {
			if _, err := CompileSchema("bench", doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lint", func(b *testing.B) {
		for b.Loop() {
			if found := LintSchema(doc, UseInput); len(found) > 0 {
				b.Fatal(found)
			}
		}
	})
}
