package actions

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"chatelaine/internal/validate"
)

// chooser makes small predicates and bodies about the same few places, so that
// they meet often.
type chooser struct{ r *rand.Rand }

var (
	places3 = []string{"", "/a", "/b", "/a/c"}
	values6 = []any{nil, true, "x", "y", json.Number("1"), json.Number("2")}
)

func (g chooser) predicate(depth int) validate.PredicateSpec {
	ptr := places3[g.r.IntN(len(places3))]
	n := 6
	if depth > 0 {
		n = 9
	}
	switch g.r.IntN(n) {
	case 0:
		return validate.PredicateSpec{Op: "exists", Ptr: ptr}
	case 1:
		return validate.PredicateSpec{Op: "is_null", Ptr: ptr}
	case 2, 3:
		return validate.PredicateSpec{Op: "equals", Ptr: ptr, Arg: validate.Operand{Kind: validate.OperandConst, Const: values6[g.r.IntN(len(values6))]}}
	case 4:
		return validate.PredicateSpec{Op: "in", Ptr: ptr, Set: g.set()}
	case 5:
		return validate.PredicateSpec{Op: "count", Ptr: ptr, Cmp: []string{"<", "==", ">="}[g.r.IntN(3)], N: json.Number("1")}
	case 6:
		return validate.PredicateSpec{Op: "not", Subs: []validate.PredicateSpec{g.predicate(depth - 1)}}
	}
	return validate.PredicateSpec{Op: []string{"all_of", "any_of"}[g.r.IntN(2)], Subs: []validate.PredicateSpec{g.predicate(depth - 1), g.predicate(depth - 1)}}
}

func (g chooser) set() []any {
	out := []any{values6[1+g.r.IntN(5)]}
	if v := values6[1+g.r.IntN(5)]; !slices.ContainsFunc(out, func(x any) bool { return validate.Equal(x, v) }) {
		out = append(out, v)
	}
	return out
}

func (g chooser) body(depth int) any {
	switch n := g.r.IntN(8); {
	case n < 4 || depth == 0:
		return values6[g.r.IntN(len(values6))]
	case n == 4:
		return []any{g.body(depth - 1)}
	}
	out := map[string]any{}
	for _, name := range []string{"a", "b", "c"} {
		if g.r.IntN(3) > 0 {
			out[name] = g.body(depth - 1)
		}
	}
	return out
}

// matches says which of the predicates are true of a body, by asking a reader
// of one row each.
func matches(t *testing.T, p validate.PredicateSpec, body []byte) bool {
	t.Helper()
	empty := map[string]any{"type": "object", "additionalProperties": false}
	r, err := validate.Compile("x", validate.ReaderSpec{Result: empty, Rows: []validate.RowSpec{{Name: "row", Status: []int{200}, When: &p, HasSuccess: true}}})
	if err != nil {
		t.Fatal(err) // depth 2 is far below the limit; a skip would hide every seed
	}
	proved, no := r.Prove(validate.Raw{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil, time.Time{})
	return no == nil && proved != nil
}

// What the lint says of two predicates is held against real answers: what it
// calls impossible matches nothing, and what it says always matches too does.
func checkLogic(t *testing.T, seed uint64) {
	t.Helper()
	g := chooser{rand.New(rand.NewPCG(seed, 1))}
	p, q := g.predicate(2), g.predicate(2)
	a, okA := cases(&p)
	b, okB := cases(&q)
	for range 12 {
		body := validate.Canonical(g.body(2))
		isP := matches(t, p, body)
		if okA && len(a) == 0 && isP {
			t.Fatalf("seed %d: %+v matches %s and is called impossible", seed, p, body)
		}
		if okA && okB && isP && always(a, b) && !matches(t, q, body) {
			t.Fatalf("seed %d: %s matches %+v and not %+v, which is said to follow", seed, body, p, q)
		}
	}
}

func TestLogicOfPredicates(t *testing.T) {
	for seed := range uint64(1500) {
		checkLogic(t, seed)
	}
}

func FuzzLogicOfPredicates(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkLogic)
}

// What the lint should see, and what it must not.
func TestRivals(t *testing.T) {
	parse := func(p ...validate.PredicateSpec) []conjunction {
		out, ok := cases(&validate.PredicateSpec{Op: "all_of", Subs: p})
		if !ok {
			t.Fatal("too many cases")
		}
		return out
	}
	eq := func(ptr string, v any) validate.PredicateSpec {
		return validate.PredicateSpec{Op: "equals", Ptr: ptr, Arg: validate.Operand{Kind: validate.OperandConst, Const: v}}
	}
	in := func(ptr string, vs ...any) validate.PredicateSpec {
		return validate.PredicateSpec{Op: "in", Ptr: ptr, Set: vs}
	}
	exists := func(ptr string) validate.PredicateSpec { return validate.PredicateSpec{Op: "exists", Ptr: ptr} }
	not := func(p validate.PredicateSpec) validate.PredicateSpec {
		return validate.PredicateSpec{Op: "not", Subs: []validate.PredicateSpec{p}}
	}
	for name, c := range map[string]struct {
		p    []validate.PredicateSpec
		dead bool
	}{
		"two values":          {[]validate.PredicateSpec{eq("/a", "x"), eq("/a", "y")}, true},
		"a value and none":    {[]validate.PredicateSpec{eq("/a", "x"), not(exists("/a"))}, true},
		"null and a value":    {[]validate.PredicateSpec{eq("/a", "x"), eq("/a", nil)}, true},
		"a part of a text":    {[]validate.PredicateSpec{eq("/a", "x"), exists("/a/b")}, true},
		"one and not in":      {[]validate.PredicateSpec{eq("/a", "x"), not(in("/a", "x", "y"))}, true},
		"the whole is absent": {[]validate.PredicateSpec{not(exists("/a")), exists("/a/b")}, true},
		"other places":        {[]validate.PredicateSpec{eq("/a", "x"), eq("/b", "y")}, false},
		"sets that meet":      {[]validate.PredicateSpec{in("/a", "x", "y"), in("/a", "y", "z")}, false},
		"absent or other":     {[]validate.PredicateSpec{not(eq("/a", "x")), not(exists("/a"))}, false},
	} {
		if got := len(parse(c.p...)) == 0; got != c.dead {
			t.Errorf("%s: dead %v", name, got)
		}
	}
	if !always(parse(eq("/a", "x")), parse(exists("/a"))) || always(parse(exists("/a")), parse(eq("/a", "x"))) {
		t.Error("what has a value exists, and not the other way round")
	}
	if _, both := together(parse(in("/a", "x", "y")), parse(in("/a", "y"))); !both {
		t.Error("two sets share a value")
	}
	if _, both := together(parse(exists("/a")), parse(exists("/b"))); both {
		t.Error("two shapes are told apart by the author")
	}
}
