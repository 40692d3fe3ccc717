package validate

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated tells how many bytes of memory f asks for, over all its life.
func allocated(f func()) float64 {
	f() // what is made once is made here
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// costTimes is the bound of memory, as a multiple of an answer's size.
const costTimes = 12

// Of an answer that a contract lets in, everything but the engines' own work
// asks for at most twelve times its size, and a small constant.
func TestMemoryOfAnAnswer(t *testing.T) {
	for _, c := range boundaryCases(t, listElements()) {
		r := mustReader(t, c.spec)
		raw := answer(200, c.body)
		doc := mustParse(t, c.body)
		p, no := r.Prove(raw, benchScope, testNow)
		if no != nil {
			t.Fatal(no)
		}
		whole := allocated(func() { r.Prove(raw, benchScope, testNow) })
		engines := allocated(func() {
			engineFirst(t, r.rows[0].expect, doc)
			engineSecond(t, r.rows[0].expect, doc)
			engineFirst(t, r.result, p.data)
			engineSecond(t, r.result, p.data)
		})
		t.Logf("%s: %d bytes, %.1f times that without the engines, %.1f with", c.name, len(c.body), (whole-engines)/float64(len(c.body)), whole/float64(len(c.body)))
		if whole-engines > costTimes*float64(len(c.body))+costConstant {
			t.Errorf("%s: %.0f bytes of memory for an answer of %d", c.name, whole-engines, len(c.body))
		}
	}
}

// costConstant is what does not grow with an answer: the way into deep documents
// and the first sizes of what grows.
const costConstant = 8 << 10

// tree makes again what both engines ask for: Go maps, slices and texts, of the
// sizes that they end with. It is the engines' share of what a parse costs.
func tree(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := newObject(len(x))
		for name, e := range x {
			out[string([]byte(name))] = tree(e)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = tree(e)
		}
		return out
	case string:
		return string([]byte(x)) // as the parser does: a text of one byte takes no memory
	case json.Number:
		return json.Number([]byte(x))
	}
	return v
}

// hostile is a document that costs a parser most, or that makes it ask for memory
// and then is none. before is what of that could be read: a document too, or "".
type hostile struct{ body, before string }

// hostileBodies are of about n bytes, and of no more values than an answer may
// have.
func hostileBodies(n int) map[string]hostile {
	l := AnswerLimits()
	fill := func(head, item, tail string) string {
		return head + strings.Repeat(item, max(0, n-len(head)-len(tail))/len(item)) + tail
	}
	lists := func(item string, nodes int) string {
		times := max(0, min((l.Nodes-1)/nodes-1, n/(len(item)+1)-2))
		return "[" + strings.Repeat(item+",", times) + item + "]"
	}
	named := func(end string) string {
		var b strings.Builder
		for i := 0; i < 40_000 && b.Len() < n-20; i++ {
			fmt.Fprintf(&b, `,"%x":0`, i)
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + end
	}
	words := fill(`[`, `"abcdefghijklmnopqrstuvwxyz",`, ``)
	smallest := lists(`{"a":1}`, 2)
	out := map[string]hostile{
		"broken at the end": {words, words + `""]`}, "an object broken at the end": {named(""), named("}")}, "small objects broken at the end": {smallest[:len(smallest)-1] + ",", smallest},
		"many lines and broken": {fill("[", "\n", "x"), ""}, "one member again and again": {fill("{", `"":1,`, "}"), `{"":1}`}, "commas": {fill("[", ",", "]"), ""}, "no values": {fill("[", "x,", "]"), ""}, "colons": {fill("{", `"":`, "}"), ""},
		"names alone": {fill("{", `"a",`, "}"), ""}, "too deep": {fill("", "[", "x"), ""}, "objects too deep": {fill("", `{"":`, ""), ""}, "wide and too deep": {fill("", `[1,`, ""), ""}, "brackets behind the end": {fill("1", "[", ""), "1"},
	}
	for name, body := range map[string]string{
		"the smallest objects": smallest, "empty objects": lists(`{}`, 1), "empty lists": lists(`[]`, 1), "lists of one": lists(`[1]`, 2), "numbers": lists(`1`, 1), "long numbers": lists(strings.Repeat("9", 60), 1),
		"nine members": lists(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, 10), "one object": named("}"), "a long text": fill(`"`, "a", `"`), "a text of escapes": fill(`"`, `\u0041`, `"`), "a text of pairs": fill(`"`, `\ud83d\ude00`, `"`),
		"texts of escapes": lists(`"\n"`, 1), "texts": lists(`"abc"`, 1), "deep": strings.Repeat("[", 60) + strings.Repeat("]", 60), "deep lists": lists(strings.Repeat("[", 50)+strings.Repeat("]", 50), 50),
		"deep objects": lists(strings.Repeat(`{"":`, 50)+"1"+strings.Repeat("}", 50), 51), "spaces": fill("[", " ", "]"), "truths": lists("true", 1), "a text of brackets": fill(`"`, "[{", `"`),
	} {
		out[name] = hostile{body, body}
	}
	return out
}

// share is what could be read, from which the engines' tree is made.
func (h hostile) share(t *testing.T) (read any) {
	t.Helper()
	if h.before != "" {
		read = mustParse(t, h.before)
	}
	return read
}

// mostMemory bounds what any answer costs before the engines: fifty thousand
// objects of one member each, inside one another.
const mostMemory = 17 << 20

// Whatever bytes come, reading them asks for at most twelve times their number
// beyond the tree that the engines need. The tree itself is bounded by the limit
// on values: an object is a Go map of some 340 bytes, because the engines want
// one, so that a list of the smallest objects is a tree of forty times its size.
func TestMemoryOfHostileBytes(t *testing.T) {
	l, worst, most := AnswerLimits(), 0.0, 0.0
	for _, n := range []int{50, 1_000, l.Bytes} {
		for name, h := range hostileBodies(n) {
			in := []byte(h.body)
			if _, err := Parse(in, l); (err == nil) != (h.body == h.before) {
				t.Fatalf("%s: %v", name, err)
			}
			read := h.share(t)
			asked := allocated(func() { Parse(in, l) })
			share := allocated(func() { tree(read) })
			ours, size := asked-share, float64(len(in))
			worst = max(worst, asked)
			if n == l.Bytes && size > costConstant {
				most = max(most, ours/size)
				t.Logf("%s: %d bytes, %.1f times that for the tree, %.1f beyond it", name, len(in), share/size, ours/size)
			}
			if ours > costTimes*size+costConstant {
				t.Errorf("%s: %.0f bytes of memory beyond the tree for a document of %d", name, ours, len(in))
			}
		}
	}
	if worst > mostMemory {
		t.Errorf("%.0f bytes of memory", worst)
	}
	t.Logf("worst: %.1f MiB, and %.1f times beyond the tree", worst/(1<<20), most)
}

// The same through the whole boundary: what it asks for beyond the tree and what
// the engines ask for themselves.
func TestMemoryOfHostileAnswers(t *testing.T) {
	r := mustReader(t, ReaderSpec{
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"properties":{"x":{"type":"boolean"}}}`),
		Rows:   []RowSpec{{Status: []int{200}, Expect: mustParse(t, `{"type":["array","object","string"]}`), HasSuccess: true, Success: map[string]PickSpec{"x": at("/absent")}}},
	})
	expect, most := r.rows[0].expect, 0.0
	for name, h := range hostileBodies(AnswerLimits().Bytes) {
		raw, read := answer(200, h.body), h.share(t)
		whole := allocated(func() {
			if _, no := r.Prove(raw, benchScope, testNow); no == nil {
				t.Fatalf("%s is proved", name)
			}
		})
		share := allocated(func() {
			tree(read)
			if h.body == h.before {
				engineFirst(t, expect, read)
				engineSecond(t, expect, read)
			}
		})
		size := float64(len(h.body))
		if size > costConstant {
			most = max(most, (whole-share)/size)
		}
		if whole-share > costTimes*size+costConstant {
			t.Errorf("%s: %.1f times the %d bytes", name, (whole-share)/size, len(h.body))
		}
	}
	t.Logf("at most %.1f times", most)
}

// From 400 bytes to 1 MB the time for one byte does not grow.
func TestTimeIsLinear(t *testing.T) {
	spec := listSpec(t)
	r := mustReader(t, spec)
	took := func(body string, rounds int) float64 {
		raw := answer(200, body)
		best := 0.0
		for range 3 { // the best of three: the collector and cold caches only ever add
			s := cpu(t, func() {
				for range rounds {
					if _, no := r.Prove(raw, benchScope, testNow); no != nil {
						t.Fatal(no)
					}
				}
			}) / float64(rounds) / float64(len(body))
			if best == 0 || s < best {
				best = s
			}
		}
		return best
	}
	n := listElements()
	var small, middle, large float64
	for range measureTries {
		small, middle, large = took(listBody(2), n/4), took(listBody(n/40), 5), took(listBody(n), 1)
		t.Logf("nanoseconds a byte: %.0f for 2 elements, %.0f for %d, %.0f for %d", small*1e9, middle*1e9, n/40, large*1e9, n)
		// A growth with the square would be 40 times from the middle; five allows
		// for caches and the collector.
		if large <= 5*middle && large <= 5*small {
			return
		}
	}
	t.Errorf("the time for one byte grows: %.0f, %.0f, %.0f ns", small*1e9, middle*1e9, large*1e9)
}

// measureTries is how often a measurement of time is made before it fails a test.
// A busy machine spoils one now and then, never all of them; what is really slow
// is slow every time.
const measureTries = 5
