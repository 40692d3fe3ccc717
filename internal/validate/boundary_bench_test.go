package validate

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// boundaryCase is one answer with the reader that a contract would make for it.
type boundaryCase struct {
	name string
	body string
	spec ReaderSpec
}

// listElements makes the largest answer: 1 MB where it is measured, a tenth of
// that in an ordinary test run, which the race detector slows down.
func listElements() int {
	if *boundaryFor > 0 {
		return 3150
	}
	return 315
}

// boundaryCases are a result of about 400 bytes of which all but two members
// are picked, an object of a code host of about 25 KB of which five are, and a
// list of about 1 MB in which one element is found and its name told.
func boundaryCases(t testing.TB, elements int) []boundaryCase {
	large := listBody(elements)
	return []boundaryCase{
		{"400B", statusBody, statusSpec(t)},
		{"25KB", reviewBody(), reviewSpec(t)},
		{fmt.Sprintf("%.1fMB", float64(len(large))/1e6), large, listSpec(t)},
	}
}

const statusBody = `{"deployment_id":"dep_8f2k1m9q","project_id":"shop-api","environment":"production","version":"2.14.3","state":"healthy","observed_at":"2026-01-05T09:58:00.120+02:00",
 "replicas":{"wanted":12,"ready":12,"updated":12},"commit":"9f2c1b7e5a3d4c6b8e0f1a2b3c4d5e6f70819203","region":"north-1","weight":0.25,
 "message":"All instances of the service answered their health checks within the last five minutes."}`

func statusSpec(t testing.TB) ReaderSpec {
	result := mustParse(t, `{"type":"object","additionalProperties":false,"required":["deployment_id","project_id","environment","version","state","observed_at","ready","commit"],"properties":{
	 "deployment_id":{"type":"string","pattern":"^dep_[a-z0-9]{8,32}$","maxLength":36},"project_id":{"type":"string","pattern":"^[a-z0-9][a-z0-9-]{2,62}$","maxLength":63},"environment":{"enum":["test","production"]},
	 "version":{"type":"string","pattern":"^[0-9]{1,4}\\.[0-9]{1,4}\\.[0-9]{1,4}$","maxLength":14},"state":{"enum":["queued","running","healthy","failed"]},"observed_at":{"type":"string","format":"date-time","maxLength":35},
	 "ready":{"type":"integer","minimum":0,"maximum":1000},"commit":{"type":"string","pattern":"^[0-9a-f]{40}$","maxLength":40}}}`)
	expect := mustParse(t, `{"type":"object","additionalProperties":false,"required":["deployment_id","project_id","environment","version","state","observed_at","replicas","commit"],"properties":{
	 "deployment_id":{"type":"string","maxLength":64},"project_id":{"type":"string","maxLength":63},"environment":{"enum":["test","production"]},"version":{"type":"string","maxLength":14},"state":{"enum":["queued","running","healthy","failed"]},
	 "observed_at":{"type":"string","format":"date-time","maxLength":35},"replicas":{"type":"object","additionalProperties":false,"required":["wanted","ready"],"properties":{"wanted":{"type":"integer","minimum":0},"ready":{"type":"integer","minimum":0},"updated":{"type":"integer","minimum":0}}},
	 "commit":{"type":"string","maxLength":40},"region":{"type":"string","maxLength":20},"weight":{"type":"number","minimum":0,"maximum":1},"message":{"type":"string","maxLength":4000}}}`)
	picks := map[string]PickSpec{"ready": at("/replicas/ready"), "observed_at": with("/observed_at", func(p *PickSpec) { p.Time = "rfc3339" })}
	for _, name := range []string{"deployment_id", "project_id", "environment", "version", "state", "commit"} {
		picks[name] = at("/" + name)
	}
	return ReaderSpec{
		Result: result, Display: map[string]DisplayBound{"message": {Max: 2000, Lines: 40}},
		Rows: []RowSpec{
			{Status: []int{200}, When: &PredicateSpec{Op: "exists", Ptr: "/deployment_id"}, Expect: expect, HasSuccess: true, Success: picks, Display: map[string]PickSpec{"message": at("/message")}},
			{Status: []int{200}, When: &PredicateSpec{Op: "exists", Ptr: "/error"}, Failure: &FailureSpec{Code: "FAILED"}},
		},
		Checks: []CheckSpec{{Kind: "same", Left: "result.project_id", Right: "target.project"}, {Kind: "fresh", At: "result.observed_at", Within: 72 * time.Hour}},
	}
}

func benchScope(path string) (any, bool) { return "shop-api", path == "target.project" }

// reviewBody is an object as code hosts send them: people, links and labels of
// which nobody here wants anything.
func reviewBody() string {
	user := func(i int) string {
		return fmt.Sprintf(`{"login":"user-%d","id":%d,"node_id":"U_%016d","avatar_url":"https://avatars.example.test/u/%d?v=4","html_url":"https://code.example.test/user-%d","type":"User","site_admin":false}`, i, 4000+i, i, i, i)
	}
	list := func(n int, f func(int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	label := func(i int) string {
		return fmt.Sprintf(`{"id":%d,"name":"area-%d","color":"%06x","default":false,"description":"Everything about area %d of the product \u2014 ask its owners."}`, i, i, i*977, i)
	}
	file := func(i int) string {
		return fmt.Sprintf(`{"sha":"%040x","filename":"internal/room%d/file_%d.go","status":"modified","additions":%d,"deletions":%d,"changes":%d,"contents_url":"https://api.code.example.test/repos/acme/shop/contents/room%d/file_%d.go"}`, i*31, i, i, i*3, i, i*4, i, i)
	}
	return `{"number":4711,"state":"open","draft":false,"merged":false,"mergeable":true,"title":"Retry the upload when the store is busy","body":"` + strings.Repeat(`A line of the description with \"quotes\" and a tab\t.\n`, 40) + `",` +
		`"user":` + user(1) + `,"head":{"ref":"retry-upload","sha":"9f2c1b7e5a3d4c6b8e0f1a2b3c4d5e6f70819203","repo":{"full_name":"acme/shop","private":true,"size":1048576}},"base":{"ref":"main","sha":"0f2c1b7e5a3d4c6b8e0f1a2b3c4d5e6f70819203"},` +
		`"assignees":` + list(6, user) + `,"requested_reviewers":` + list(12, user) + `,"labels":` + list(24, label) + `,"files":` + list(60, file) + `,"comments":12,"commits":3,"score":0.75,"created_at":"2026-01-04T08:00:00Z","updated_at":"2026-01-05T09:00:00Z"}`
}

func reviewSpec(t testing.TB) ReaderSpec {
	expect := mustParse(t, `{"type":"object","additionalProperties":true,"required":["number","state","draft","head","updated_at"],"properties":{
	 "number":{"type":"integer","minimum":1},"state":{"enum":["open","closed"]},"draft":{"type":"boolean"},"mergeable":{"type":["boolean","null"]},"title":{"type":"string"},"updated_at":{"type":"string","format":"date-time"},
	 "head":{"type":"object","additionalProperties":true,"required":["sha"],"properties":{"sha":{"type":"string","pattern":"^[0-9a-f]{40}$"}}},
	 "requested_reviewers":{"type":"array","maxItems":100,"items":{"type":"object","additionalProperties":true,"required":["login"],"properties":{"login":{"type":"string","maxLength":64}}}},
	 "files":{"type":"array","maxItems":3000,"items":{"type":"object","additionalProperties":true,"required":["filename","status"],"properties":{"filename":{"type":"string","maxLength":1000},"status":{"enum":["added","modified","removed","renamed"]},"changes":{"type":"integer","minimum":0}}}}}}`)
	return ReaderSpec{
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"required":["number","state","sha","updated_at"],"properties":{"number":{"type":"integer","minimum":1,"maximum":2147483647},"state":{"enum":["open","closed"]},
		 "sha":{"type":"string","pattern":"^[0-9a-f]{40}$","maxLength":40},"updated_at":{"type":"string","format":"date-time","maxLength":35},"reviewers":{"type":"array","maxItems":20,"items":{"type":"object","additionalProperties":false,"required":["login"],"properties":{"login":{"type":"string","pattern":"^[a-z0-9-]{1,39}$","maxLength":39}}}}}}`),
		Display: map[string]DisplayBound{"title": {Max: 200, Lines: 1}},
		Rows: []RowSpec{{
			Status: []int{200}, When: &PredicateSpec{Op: "exists", Ptr: "/number"}, Expect: expect, HasSuccess: true,
			Success: map[string]PickSpec{"number": at("/number"), "state": at("/state"), "sha": at("/head/sha"), "updated_at": with("/updated_at", func(p *PickSpec) { p.Time = "rfc3339" }),
				"reviewers": {Kind: PickEach, Each: &EachSpec{In: "/requested_reviewers", Max: 20, Pick: map[string]PickSpec{"login": at("/login")}}}},
			Display: map[string]PickSpec{"title": at("/title")},
		}},
	}
}

func listBody(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"id":"dep_%08d","environment":"test","state":"QUEUED","number":%d,"ratio":%d.25,"note":"r\u00e9sum\u00e9 of build %d, as the agent of the farm told it; no step was left out and none was run twice","flags":[true,false,null],"owner":{"login":"user-%d","id":%d,"team":"the team that keeps the service and its tests"}}`, i, i, i, i, i, i*7)
	}
	return `{"items":[` + strings.Join(parts, ",") + `],"total":` + fmt.Sprint(n) + `}`
}

func listSpec(t testing.TB) ReaderSpec {
	expect := mustParse(t, `{"type":"object","additionalProperties":false,"required":["items","total"],"properties":{"total":{"type":"integer","minimum":0,"maximum":5000},"items":{"type":"array","maxItems":5000,"items":{
	 "type":"object","additionalProperties":false,"required":["id","environment","state"],"properties":{"id":{"type":"string","pattern":"^dep_[0-9]{8}$","maxLength":12},"environment":{"enum":["test","production"]},"state":{"enum":["QUEUED","LIVE"]},
	 "number":{"type":"integer","minimum":0,"maximum":5000},"ratio":{"type":"number","minimum":0,"maximum":5000},"note":{"type":"string","maxLength":200},"flags":{"type":"array","maxItems":3,"items":{"type":["boolean","null"]}},
	 "owner":{"type":"object","additionalProperties":false,"properties":{"login":{"type":"string","maxLength":20},"id":{"type":"integer","minimum":0,"maximum":50000},"team":{"type":"string","maxLength":100}}}}}}}}`)
	one := &FindSpec{In: "/items", Where: *equalsSpec("/id", "dep_00000001")}
	return ReaderSpec{
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"required":["total","state"],"properties":{"total":{"type":"integer","minimum":0,"maximum":5000},"state":{"enum":["queued","live"]}}}`),
		Rows: []RowSpec{{
			Status: []int{200}, When: &PredicateSpec{Op: "count", Ptr: "/items", Cmp: ">", N: "0"}, Expect: expect, HasSuccess: true,
			Success: map[string]PickSpec{"total": at("/total"), "state": {Kind: PickFind, At: "/state", Find: one, HasMap: true, Map: map[string]any{"QUEUED": "queued", "LIVE": "live"}}},
		}},
	}
}

// boundaryTimes are the seconds of processor time that one answer took, whole
// and by part.
type boundaryTimes struct{ whole, parse, first, second, result float64 }

func (t *boundaryTimes) add(o boundaryTimes) {
	t.whole, t.parse, t.first, t.second, t.result = t.whole+o.whole, t.parse+o.parse, t.first+o.first, t.second+o.second, t.result+o.result
}

// alone is what the strict parse and both engines' Validate take.
func (t boundaryTimes) alone() float64 { return t.parse + t.first + t.second + t.result }

// cpu is the seconds of processor time that this process takes for f, the
// collector's included: a neighbour on a shared machine does not count.
func cpu(t testing.TB, f func()) float64 {
	used := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	before := used()
	f()
	return used() - before
}

// turnBytes are read in one turn: small answers are repeated, because the
// kernel counts processor time in microseconds.
const turnBytes = 400_000

// measure runs the whole boundary over one answer, and then the parse and the
// engines alone over the same, each right after the other.
// Which goes first alternates, so that neither pays for the other's garbage.
func measure(t testing.TB, r *Reader, raw Raw, data any, wholeFirst bool) (out boundaryTimes) {
	rounds := max(1, turnBytes/len(raw.Body))
	timed := func(into *float64, f func()) {
		*into = cpu(t, func() {
			for range rounds {
				f()
			}
		}) / float64(rounds)
	}
	whole := func() {
		timed(&out.whole, func() {
			if _, no := r.Prove(raw, benchScope, testNow); no != nil {
				t.Fatal(no)
			}
		})
	}
	if wholeFirst {
		whole()
	} else {
		defer whole()
	}
	var doc any
	timed(&out.parse, func() {
		var err error
		if doc, err = Parse(raw.Body, r.limits); err != nil {
			t.Fatal(err)
		}
	})
	expect := r.rows[0].expect
	timed(&out.first, func() { engineFirst(t, expect, doc) })
	timed(&out.second, func() { engineSecond(t, expect, doc) })
	timed(&out.result, func() {
		engineFirst(t, r.result, data)
		engineSecond(t, r.result, data)
	})
	return out
}

func engineFirst(t testing.TB, s *Schema, v any) {
	if err := s.first.Validate(v); err != nil {
		t.Fatal("santhosh-tekuri refuses")
	}
}

func engineSecond(t testing.TB, s *Schema, v any) {
	if !s.second.Validate(v).IsValid() {
		t.Fatal("kaptinlin refuses")
	}
}

const benchTurns = 10

// BenchmarkBoundary shows what one answer costs from bytes to proof, as a
// multiple of the strict parse and both engines alone (x-alone), and where the
// time goes.
func BenchmarkBoundary(b *testing.B) {
	for _, c := range boundaryCases(b, 3150) {
		r := mustReader(b, c.spec)
		raw := answer(200, c.body)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			var sum boundaryTimes // of some turns before the benchmark's own
			p, no := r.Prove(raw, benchScope, testNow)
			if no != nil {
				b.Fatal(no)
			}
			for turn := range benchTurns {
				sum.add(measure(b, r, raw, p.data, turn%2 == 0))
			}
			for b.Loop() {
				if _, no := r.Prove(raw, benchScope, testNow); no != nil {
					b.Fatal(no)
				}
			}
			b.ReportMetric(sum.whole/sum.alone(), "x-alone")
			for name, part := range map[string]float64{"parse": sum.parse, "santhosh": sum.first, "kaptinlin": sum.second, "result": sum.result, "rest": sum.whole - sum.alone()} {
				b.ReportMetric(100*part/sum.whole, "%-"+name)
			}
		})
	}
}

var boundaryFor = flag.Duration("boundary", 0, "measure each answer for so long and hold the boundary to its promise (make bench-boundary)")

// The whole boundary takes at most this many times what the strict parse and
// both engines' Validate take alone, in the same run.
const (
	boundaryPromise = 1.3
	boundaryNoisy   = 2.5 // in an ordinary test run, beside other tests and under the race detector
)

// TestBoundaryTable prints the table of make bench-boundary. Of each answer the
// median turn counts, by the ratio: a neighbour on the machine moves the mean.
func TestBoundaryTable(t *testing.T) {
	long, bound := *boundaryFor, boundaryPromise
	if long == 0 {
		long, bound = 200*time.Millisecond, boundaryNoisy
	}
	table := &strings.Builder{}
	fmt.Fprintf(table, "\n%-6s %9s %7s %10s %9s %7s %7s %6s %6s %8s %8s\n", "answer", "bytes", "µs cpu", "x alone", "parse", "santh.", "kaptin.", "result", "rest", "ns/byte", "allocs")
	for _, c := range boundaryCases(t, listElements()) {
		r := mustReader(t, c.spec)
		raw := answer(200, c.body)
		p, no := r.Prove(raw, benchScope, testNow)
		if no != nil {
			t.Fatal(no)
		}
		var m boundaryTimes
		var ratio float64
		for range measureTries {
			m = medianTurn(t, r, raw, p.data, long)
			if ratio = m.whole / m.alone(); ratio <= bound {
				break
			}
		}
		allocs := testing.AllocsPerRun(3, func() { r.Prove(raw, benchScope, testNow) })
		share := func(part float64) string { return fmt.Sprintf("%.0f %%", 100*part/m.whole) }
		fmt.Fprintf(table, "%-6s %9d %7.0f %10.2f %9s %7s %7s %6s %6s %8.0f %8.0f\n", c.name, len(c.body), m.whole*1e6, ratio,
			share(m.parse), share(m.first), share(m.second), share(m.result), share(m.whole-m.alone()), m.whole*1e9/float64(len(c.body)), allocs)
		if ratio > bound {
			t.Errorf("%s: %.2f times the parse and the engines alone, may be %.1f", c.name, ratio, bound)
		}
	}
	t.Log(table.String())
}

// medianTurn measures one answer for so long and gives the median turn.
func medianTurn(t *testing.T, r *Reader, raw Raw, data any, long time.Duration) boundaryTimes {
	t.Helper()
	var turns []boundaryTimes
	least := 7
	if *boundaryFor == 0 {
		least = 3 // an ordinary run only looks for what is far off, and tries again
	}
	for end := time.Now().Add(long); len(turns) < least || time.Now().Before(end); {
		turns = append(turns, measure(t, r, raw, data, len(turns)%2 == 0))
	}
	slices.SortFunc(turns, func(a, b boundaryTimes) int { return cmp.Compare(a.whole/a.alone(), b.whole/b.alone()) })
	return turns[len(turns)/2]
}
