package validate

import (
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
	const constant = 8 << 10
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
		if whole-engines > costTimes*float64(len(c.body))+constant {
			t.Errorf("%s: %.0f bytes of memory for an answer of %d", c.name, whole-engines, len(c.body))
		}
	}
}

// Whatever bytes come, parsing them asks for at most twelve times the limit on
// bytes. An object is a Go map, of some 340 bytes, because the engines want
// one; so a list of the smallest objects costs fifty times its size, and it is
// the limit on values that bounds it.
func TestMemoryOfHostileBytes(t *testing.T) {
	l := AnswerLimits()
	fill := func(head, item, tail string) string {
		n := (l.Bytes - len(head) - len(tail)) / len(item)
		return head + strings.Repeat(item, n) + tail
	}
	lists := func(item string, nodes int) string {
		n := min(l.Nodes/nodes-1, l.Bytes/(len(item)+1)-2)
		return "[" + strings.Repeat(item+",", n) + item + "]"
	}
	named := func() string {
		var b strings.Builder
		for i := range 40_000 {
			fmt.Fprintf(&b, `,"%x":0`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	worst := 0.0
	for name, body := range map[string]string{
		"the smallest objects": lists(`{"a":1}`, 2), "empty objects": lists(`{}`, 1), "empty lists": lists(`[]`, 1), "lists of one": lists(`[1]`, 2), "numbers": lists(`1`, 1), "long numbers": lists(strings.Repeat("9", 60), 1), "nine members": lists(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, 10),
		"one object": named(), "a long text": fill(`"`, "a", `"`), "a text of escapes": fill(`"`, `\u0041`, `"`), "a text of pairs": fill(`"`, `\ud83d\ude00`, `"`), "texts": lists(`"abc"`, 1), "deep": strings.Repeat("[", 60) + strings.Repeat("]", 60),
		"broken at the end": fill(`[`, `"abcdefghijklmnopqrstuvwxyz",`, ``), "many lines and broken": fill("[", "\n", "x"), "deep lists": lists(strings.Repeat("[", 50)+strings.Repeat("]", 50), 50),
	} {
		asked := allocated(func() { Parse([]byte(body), l) }) - float64(len(body)) // the copy of this call
		times := asked / float64(len(body))
		worst = max(worst, asked)
		t.Logf("%s: %d bytes, %.0f KiB of memory, %.1f times", name, len(body), asked/1024, times)
		if asked > costTimes*float64(l.Bytes) {
			t.Errorf("%s: %.0f bytes of memory", name, asked)
		}
	}
	t.Logf("worst: %.1f MiB", worst/(1<<20))
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
	small, middle, large := took(listBody(2), n/4), took(listBody(n/40), 5), took(listBody(n), 1)
	t.Logf("nanoseconds a byte: %.0f for 2 elements, %.0f for %d, %.0f for %d", small*1e9, middle*1e9, n/40, large*1e9, n)
	// A growth with the square would be 40 times from the middle; five allows
	// for caches and the collector.
	if large > 5*middle || large > 5*small {
		t.Errorf("the time for one byte grows: %.0f, %.0f, %.0f ns", small*1e9, middle*1e9, large*1e9)
	}
}
