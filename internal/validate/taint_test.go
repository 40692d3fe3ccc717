package validate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every leaf and every member name of these bodies is a mark of its own, so
// that a byte that comes out tells where it came from.
var (
	mark     = regexp.MustCompile(`[nvh][0-9]{5}q|81[0-9]{5}`)
	leafMark = regexp.MustCompile(`[vh][0-9]{5}q|81[0-9]{5}`) // marks of values, not of names
)

func marksIn(s string) []string {
	found := mark.FindAllString(s, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// tainter makes bodies and readers from one source of chance.
type tainter struct {
	*rand.Rand
	next int
}

func (g *tainter) id() int { g.next++; return g.next }

func (g *tainter) text() string {
	v := fmt.Sprintf("v%05dq", g.id())
	switch g.IntN(8) {
	case 0:
		return base64.StdEncoding.EncodeToString([]byte(v))
	case 1:
		return " " + v + "\n"
	case 2:
		return "pre-" + v
	case 3:
		return v + " \u202e\"\\\x01é"
	}
	return v
}

func (g *tainter) value(depth int) any {
	switch n := g.IntN(10); {
	case depth > 0 && n < 4:
		return g.object(depth)
	case depth > 0 && n < 6:
		list := make([]any, g.IntN(4))
		for i := range list {
			if list[i] = g.value(depth - 1); g.IntN(2) == 0 {
				list[i] = g.object(depth - 1)
			}
		}
		return list
	case n == 6:
		return json.Number(fmt.Sprintf("81%05d", g.id()))
	case n == 7 && g.IntN(3) == 0:
		return []any{nil, true, false}[g.IntN(3)]
	}
	return g.text()
}

func (g *tainter) object(depth int) map[string]any {
	out := map[string]any{}
	for range 1 + g.IntN(4) {
		out[fmt.Sprintf("n%05dq", g.id())] = g.value(depth - 1)
	}
	if g.IntN(2) == 0 {
		out["id"] = g.text()
	}
	return out
}

// places lists the pointers of a value and all below it.
func places(at string, v any, out map[string]any) map[string]any {
	out[at] = v
	switch v := v.(type) {
	case map[string]any:
		for name, sub := range v {
			places(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), sub, out)
		}
	case []any:
		for i, sub := range v {
			places(fmt.Sprint(at, "/", i), sub, out)
		}
	}
	return out
}

// wanted is a pick with the part of the body that it selects.
type wanted struct {
	spec     PickSpec
	selected func(body any) []any
	whole    bool // comes out as it is: no conversion
}

func (g *tainter) pick(body any, depth int) wanted {
	all := places("", body, map[string]any{})
	pointers := slices.Sorted(maps.Keys(all))
	at := pointers[g.IntN(len(pointers))]
	if g.IntN(12) == 0 {
		at += "/gone"
	}
	if list, ok := all[at].([]any); ok && len(list) > 0 && depth > 0 && g.IntN(2) == 0 {
		return g.inList(at, list, depth)
	}
	s := PickSpec{Kind: PickPointer, At: at, Optional: g.IntN(3) == 0}
	s.Null = []string{"", "keep", "omit", "refuse"}[g.IntN(4)]
	whole := true
	if _, text := all[at].(string); text && g.IntN(3) == 0 {
		whole = false
		g.convert(&s)
	}
	return wanted{s, selectAt(at), whole}
}

func (g *tainter) convert(s *PickSpec) {
	switch g.IntN(7) {
	case 0:
		s.Base64 = true
	case 1:
		s.Trim = true
	case 2:
		s.StripPrefix = "pre-"
	case 3:
		s.Lower = true
	case 4:
		s.HasMap, s.Map, s.HasOther, s.Other = true, map[string]any{"a": "b"}, true, "another"
	case 5:
		s.Integer = true
	default:
		s.Prefix, s.Trim = "P", true
	}
}

func selectAt(at string) func(any) []any {
	p, err := ParsePointer(at)
	if err != nil {
		panic(err)
	}
	return func(body any) []any {
		if v, ok := p.Get(body); ok {
			return []any{v}
		}
		return nil
	}
}

// inList finds one element, or picks from each.
func (g *tainter) inList(at string, list []any, depth int) wanted {
	in := selectAt(at)
	element := list[g.IntN(len(list))]
	inner := g.pick(element, 0)
	if id, ok := element.(map[string]any); ok && id["id"] != nil && g.IntN(2) == 0 {
		want := id["id"]
		where := PredicateSpec{Op: "equals", Ptr: "/id", Arg: Operand{Kind: OperandConst, Const: want}}
		inner.spec.Kind, inner.spec.Find = PickFind, &FindSpec{In: at, Where: where}
		return wanted{inner.spec, func(body any) (out []any) {
			for _, l := range in(body) {
				l, _ := l.([]any)
				for _, e := range l {
					if m, ok := e.(map[string]any); ok && Equal(m["id"], want) {
						out = append(out, inner.selected(e)...)
					}
				}
			}
			return out
		}, false}
	}
	inner.spec.Optional = true
	s := PickSpec{Kind: PickEach, Optional: g.IntN(2) == 0, Each: &EachSpec{In: at, Max: 4, Pick: map[string]PickSpec{"x": inner.spec}}}
	return wanted{s, func(body any) (out []any) {
		for _, l := range in(body) {
			l, _ := l.([]any)
			for _, e := range l {
				out = append(out, inner.selected(e)...)
			}
		}
		return out
	}, false}
}

// taintRow is a row with what its picks select.
type taintRow struct {
	spec  RowSpec
	picks map[string]wanted
	codes []string
}

func (g *tainter) row(body any, status int) taintRow {
	r := taintRow{spec: RowSpec{Status: []int{status}}, picks: map[string]wanted{}}
	if g.IntN(3) == 0 {
		all := slices.Sorted(maps.Keys(places("", body, map[string]any{})))
		r.spec.When = &PredicateSpec{Op: "exists", Ptr: all[g.IntN(len(all))]}
	}
	if g.IntN(5) == 0 {
		r.spec.Failure = &FailureSpec{At: "/id", Map: map[string]string{"a": "OWN_CODE"}}
		if g.IntN(2) == 0 {
			r.spec.Failure.Other = "OTHER_CODE"
		}
		r.codes = []string{"OWN_CODE", "OTHER_CODE"}
		return r
	}
	r.spec.HasSuccess, r.spec.Success, r.spec.Display = true, map[string]PickSpec{}, map[string]PickSpec{}
	for i := range 1 + g.IntN(4) {
		name := fmt.Sprint("m", i)
		r.picks[name] = g.pick(body, 1)
		r.spec.Success[name] = r.picks[name].spec
	}
	if g.IntN(3) == 0 {
		r.picks["head"] = wanted{PickSpec{Kind: PickHeader, Header: "X-One", Optional: true}, func(any) []any { return []any{"h00001q"} }, true}
		r.spec.Success["head"] = r.picks["head"].spec
	}
	if g.IntN(3) == 0 {
		w := g.pick(body, 0)
		w.whole = false
		r.picks["shown"] = w
		r.spec.Display["shown"] = w.spec
	}
	return r
}

// out is everything that could reach an agent.
func (p *Proved) out() string {
	shown := map[string]any{}
	for name, d := range p.Display() {
		shown[name] = d.Text
	}
	captured, _ := p.Captured()
	code, _ := p.Failure()
	var data, kept any
	if m := p.Data(); m != nil {
		data = m
	}
	if captured != nil {
		kept = captured
	}
	return string(Canonical([]any{data, shown, kept, code}))
}

// For random bodies, random readers and broken bytes: what comes out was
// selected by a pick of the row that matched, and a refusal shows no value.
func TestOnlyWhatWasPickedComesOut(t *testing.T) {
	rounds := 1500
	succeeded, failed, refused, carried := 0, 0, 0, 0
	for seed := range rounds {
		g := &tainter{Rand: rand.New(rand.NewPCG(uint64(seed), 7))}
		body := g.object(4)
		rows := []taintRow{g.row(body, 200)}
		if g.IntN(3) == 0 {
			rows = append(rows, g.row(body, 200))
		}
		spec := ReaderSpec{Result: mustParse(t, `{"type":"object"}`), Display: map[string]DisplayBound{"shown": {Max: 12, Lines: 1}}}
		for i, r := range rows {
			r.spec.Name = fmt.Sprint("row", i)
			spec.Rows = append(spec.Rows, r.spec)
		}
		reader := mustReader(t, spec)
		header := http.Header{"Content-Type": {"application/json"}, "X-One": {"h00001q"}, "X-Two": {"h00002q"}, "Www-Authenticate": {"h00003q"}}
		raw := Raw{Status: 200, Header: header, Trailer: http.Header{"X-Late": {"h00004q"}}, Body: g.broken(Canonical(body))}
		p, no := reader.Prove(raw, nil, testNow)
		switch {
		case no != nil:
			refused++
			if found := leafMark.FindString(no.Error()); found != "" {
				t.Fatalf("seed %d: a refusal shows %s: %v", seed, found, no)
			}
			if found := mark.FindString(p.out()); found != "" {
				t.Fatalf("seed %d: a refused answer gives %s", seed, found)
			}
		case !p.OK():
			failed++
			if found := mark.FindString(p.out() + p.Row()); found != "" {
				t.Fatalf("seed %d: a failure gives %s", seed, found)
			}
		default:
			succeeded++
			carried += checkTaint(t, seed, rows, p, raw.Body)
		}
	}
	t.Logf("%d successes with %d marks, %d failures, %d refusals", succeeded, carried, failed, refused)
	if succeeded < rounds/5 || failed < rounds/50 || refused < rounds/10 || carried < rounds/5 {
		t.Error("too few of one kind: the property is hardly tried")
	}
}

// broken leaves most bodies alone and spoils some.
func (g *tainter) broken(b []byte) []byte {
	b = slices.Clone(b)
	switch g.IntN(8) {
	case 0:
		b[g.IntN(len(b))] = byte(g.IntN(256))
	case 1:
		b = b[:g.IntN(len(b))]
	case 2:
		b = slices.Insert(b, g.IntN(len(b)), []byte(`,"n99999q":"v99999q"`)...)
	}
	return b
}

// checkTaint compares the marks of a success with those of the picked parts of
// the body, which is read by the standard library here. It returns how many
// marks came out.
func checkTaint(t *testing.T, seed int, rows []taintRow, p *Proved, sent []byte) int {
	t.Helper()
	var body any
	d := json.NewDecoder(strings.NewReader(string(sent)))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		t.Fatalf("seed %d: encoding/json cannot read what was proved: %v", seed, err)
	}
	var row taintRow
	for i := range rows {
		if p.Row() == fmt.Sprint("row", i) {
			row = rows[i]
		}
	}
	allowed := map[string]bool{}
	for name, w := range row.picks {
		for _, v := range w.selected(body) {
			for _, m := range marksIn(spelled(v)) {
				allowed[m] = true
			}
			if got, there := p.Data()[name]; w.whole && there && !Equal(got, v) {
				t.Fatalf("seed %d: %s is %v, was %v", seed, name, got, v)
			}
		}
	}
	out := marksIn(p.out())
	for _, m := range out {
		if !allowed[m] {
			t.Fatalf("seed %d: %s came out and no pick selected it\n%s\n%s", seed, m, sent, p.out())
		}
	}
	for name := range p.Data() {
		if _, ok := row.spec.Success[name]; !ok {
			t.Fatalf("seed %d: the member %s was not declared", seed, name)
		}
	}
	return len(out)
}

// spelled writes a value with every text also as base64 reads it.
func spelled(v any) string {
	switch v := v.(type) {
	case string:
		raw, _ := base64.StdEncoding.DecodeString(v)
		return v + " " + string(raw)
	case json.Number:
		return string(v)
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, spelled(e))
		}
		return strings.Join(parts, " ")
	case map[string]any:
		var parts []string
		for name, e := range v {
			parts = append(parts, name, spelled(e))
		}
		return strings.Join(parts, " ")
	}
	return ""
}
