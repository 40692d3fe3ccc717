package validate

import (
	"encoding/json"
	"fmt"
	"slices"
)

// truth has three values. The zero value is unknown, which matches nothing.
type truth int8

const (
	unknown truth = iota
	yes
	no
)

func (t truth) not() truth {
	switch t {
	case yes:
		return no
	case no:
		return yes
	}
	return unknown
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// view is what pointers begin at: the body, or one element inside each, some,
// none and find. A body of no bytes is not present.
type view struct {
	value   any
	present bool
	scope   Scope
}

func (v view) at(p Pointer) (any, bool) {
	if !v.present {
		return nil, false
	}
	return p.Get(v.value)
}

func (v view) element(e any) view { return view{value: e, present: true, scope: v.scope} }

func (v view) from(path string) (any, bool) {
	if v.scope == nil {
		return nil, false
	}
	x, ok := v.scope(path)
	if !ok || !isParsed(x, 0) {
		return nil, false
	}
	return x, true
}

// predicate is a compiled predicate.
type predicate func(view) truth

// predicateDepth bounds predicates inside predicates; nobody can review more.
const predicateDepth = 16

func compilePredicate(s PredicateSpec, depth int) (predicate, error) {
	if depth > predicateDepth {
		return nil, fmt.Errorf("predicates nested deeper than %d", predicateDepth)
	}
	switch s.Op {
	case "not", "all_of", "any_of":
		return compileLogic(s, depth)
	case "each", "some", "none":
		return compileQuantifier(s, depth)
	case "compare":
		return compileCompare(s)
	case "count":
		return compileCount(s)
	}
	p, err := ParsePointer(s.Ptr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Op, err)
	}
	switch s.Op {
	case "equals":
		return compileEquals(p, s.Arg)
	case "in":
		return compileIn(p, s.Set)
	case "exists":
		return func(v view) truth { _, ok := v.at(p); return truthOf(ok) }, nil
	case "is_null":
		return func(v view) truth { x, ok := v.at(p); return truthOf(ok && x == nil) }, nil
	}
	return nil, fmt.Errorf("there is no predicate %q", s.Op)
}

func compileSubs(s PredicateSpec, least, most, depth int) ([]predicate, error) {
	if len(s.Subs) < least || len(s.Subs) > most {
		return nil, fmt.Errorf("%s takes %d to %d predicates, not %d", s.Op, least, most, len(s.Subs))
	}
	out := make([]predicate, len(s.Subs))
	for i, sub := range s.Subs {
		p, err := compilePredicate(sub, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", s.Op, i, err)
		}
		out[i] = p
	}
	return out, nil
}

const predicateList = 64 // predicates in one all_of or any_of

func compileLogic(s PredicateSpec, depth int) (predicate, error) {
	most := predicateList
	if s.Op == "not" {
		most = 1
	}
	subs, err := compileSubs(s, 1, most, depth)
	if err != nil {
		return nil, err
	}
	switch s.Op {
	case "not":
		return func(v view) truth { return subs[0](v).not() }, nil
	case "all_of":
		return func(v view) truth { return all(subs, v) }, nil
	}
	return func(v view) truth { return some(subs, v) }, nil
}

// all is Kleene's conjunction: one no decides, else one unknown does.
func all(list []predicate, v view) truth {
	out := yes
	for _, p := range list {
		switch p(v) {
		case no:
			return no
		case unknown:
			out = unknown
		}
	}
	return out
}

// some is Kleene's disjunction.
func some(list []predicate, v view) truth {
	out := no
	for _, p := range list {
		switch p(v) {
		case yes:
			return yes
		case unknown:
			out = unknown
		}
	}
	return out
}

// compileQuantifier makes each, some and none. Absent is no (none: yes); what
// is no array is unknown; each over an empty array is no.
func compileQuantifier(s PredicateSpec, depth int) (predicate, error) {
	at, err := ParsePointer(s.Ptr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Op, err)
	}
	subs, err := compileSubs(s, 1, 1, depth)
	if err != nil {
		return nil, err
	}
	return func(v view) truth {
		x, ok := v.at(at)
		if !ok {
			return truthOf(s.Op == "none")
		}
		list, ok := x.([]any)
		if !ok {
			return unknown
		}
		switch {
		case s.Op == "none":
			return anyElement(v, list, subs[0]).not()
		case s.Op == "some":
			return anyElement(v, list, subs[0])
		case len(list) == 0:
			return no
		}
		return anyElement(v, list, func(e view) truth { return subs[0](e).not() }).not()
	}, nil
}

func anyElement(v view, list []any, p predicate) truth {
	out := no
	for _, e := range list {
		switch p(v.element(e)) {
		case yes:
			return yes
		case unknown:
			out = unknown
		}
	}
	return out
}

// sameType says whether two values can be compared at all. Null is the answer
// "nothing", of its own type.
func sameType(a, b any) bool {
	return typeName(a) == typeName(b)
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

func compileEquals(p Pointer, o Operand) (predicate, error) {
	switch o.Kind {
	case OperandConst:
		if !isParsed(o.Const, 0) {
			return nil, fmt.Errorf("equals: the constant is no JSON value")
		}
	case OperandFrom:
		if o.From == "" {
			return nil, fmt.Errorf("equals: an empty value path")
		}
	default:
		return nil, fmt.Errorf("equals takes a pointer and a constant or {from: PATH}")
	}
	return func(v view) truth {
		x, ok := v.at(p)
		want, known := o.Const, true
		if o.Kind == OperandFrom {
			want, known = v.from(o.From)
		}
		if !ok || !known {
			return no
		}
		if !sameType(x, want) && want != nil {
			return unknown
		}
		return truthOf(Equal(x, want))
	}, nil
}

func compileIn(p Pointer, set []any) (predicate, error) {
	if len(set) == 0 || !isParsed(set, 0) {
		return nil, fmt.Errorf("in takes a pointer and a list of one or more constants")
	}
	return func(v view) truth {
		x, ok := v.at(p)
		if !ok {
			return no
		}
		if !slices.ContainsFunc(set, func(c any) bool { return sameType(x, c) }) {
			return unknown
		}
		return truthOf(slices.ContainsFunc(set, func(c any) bool { return Equal(x, c) }))
	}, nil
}

var operators = map[string]func(int) bool{
	"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 }, "==": func(c int) bool { return c == 0 },
	"!=": func(c int) bool { return c != 0 }, ">=": func(c int) bool { return c >= 0 }, ">": func(c int) bool { return c > 0 },
}

func compileCount(s PredicateSpec) (predicate, error) {
	at, err := ParsePointer(s.Ptr)
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	holds := operators[s.Cmp]
	if holds == nil || !isCount(s.N) {
		return nil, fmt.Errorf("count takes a pointer, one of < <= == != >= > and a whole number")
	}
	return func(v view) truth {
		x, _ := v.at(at)
		list, ok := x.([]any)
		if !ok {
			return unknown
		}
		return truthOf(holds(Compare(json.Number(fmt.Sprint(len(list))), s.N)))
	}, nil
}

// numberOf gives one side of compare; false where it is absent or no number.
type numberOf func(view) (json.Number, bool)

func compileCompare(s PredicateSpec) (predicate, error) {
	holds := operators[s.Cmp]
	if holds == nil {
		return nil, fmt.Errorf("compare takes one of < <= == != >= > in the middle")
	}
	left, err := compileNumber(s.Left)
	if err != nil {
		return nil, fmt.Errorf("compare, left: %w", err)
	}
	right, err := compileNumber(s.Right)
	if err != nil {
		return nil, fmt.Errorf("compare, right: %w", err)
	}
	return func(v view) truth {
		a, ok := left(v)
		b, also := right(v)
		if !ok || !also {
			return unknown
		}
		return truthOf(holds(Compare(a, b)))
	}, nil
}

func compileNumber(o Operand) (numberOf, error) {
	switch o.Kind {
	case OperandConst:
		n, ok := o.Const.(json.Number)
		if !ok || !isParsed(n, 0) {
			return nil, fmt.Errorf("the constant is no number")
		}
		return func(view) (json.Number, bool) { return n, true }, nil
	case OperandFrom:
		return func(v view) (json.Number, bool) {
			x, _ := v.from(o.From)
			n, ok := x.(json.Number)
			return n, ok
		}, nil
	case OperandAt:
		p, err := ParsePointer(o.At)
		if err != nil {
			return nil, err
		}
		if o.HasAbsent && !isParsed(o.Absent, 0) {
			return nil, fmt.Errorf("absent is no number")
		}
		return func(v view) (json.Number, bool) {
			x, ok := v.at(p)
			if !ok && o.HasAbsent {
				return o.Absent, true
			}
			n, ok := x.(json.Number)
			return n, ok
		}, nil
	}
	return nil, fmt.Errorf("each side is a pointer, a number, {from: PATH} or {at: POINTER, absent: NUMBER}")
}
