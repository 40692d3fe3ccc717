package actions

import (
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/validate"
)

// This file reasons about predicates without an answer. What it says about two
// of them is certain; what it cannot tell it leaves open.

// literal is one condition on a place of the body: that it exists, that its
// value is one of a set, or anything else under its own spelling.
type literal struct {
	ptr    string
	set    []any  // the value is one of these; nil for the others
	opaque string // the spelling of a condition that is not looked into
	negate bool
}

// exists says whether the literal is only about there being a value.
func (x literal) exists() bool { return x.set == nil && x.opaque == "" }

// conjunction are literals that hold together; a predicate is a list of
// conjunctions of which one holds.
type conjunction []literal

// maxConjunctions bounds the cases of one predicate; beyond it nothing is said.
const maxConjunctions = 64

// cases writes a predicate as a list of conjunctions; false where there are too
// many. A nil predicate holds always.
func cases(p *validate.PredicateSpec) ([]conjunction, bool) {
	if p == nil {
		return []conjunction{{}}, true
	}
	out := expand(*p, false)
	if len(out) > maxConjunctions {
		return nil, false
	}
	return slices.DeleteFunc(out, conjunction.impossible), true
}

func expand(p validate.PredicateSpec, negate bool) []conjunction {
	switch p.Op {
	case "not":
		return expand(p.Subs[0], !negate)
	case "all_of", "any_of":
		if (p.Op == "all_of") != negate {
			return expandAll(p.Subs, negate)
		}
		var out []conjunction
		for _, s := range p.Subs {
			out = append(out, expand(s, negate)...)
		}
		return out
	case "exists":
		return []conjunction{{{ptr: p.Ptr, negate: negate}}}
	case "is_null":
		return []conjunction{{{ptr: p.Ptr, set: []any{nil}, negate: negate}}}
	case "equals":
		if p.Arg.Kind == validate.OperandConst {
			return []conjunction{{{ptr: p.Ptr, set: []any{p.Arg.Const}, negate: negate}}}
		}
	case "in":
		return []conjunction{{{ptr: p.Ptr, set: p.Set, negate: negate}}}
	}
	return []conjunction{{{ptr: p.Ptr, opaque: spelling(p), negate: negate}}}
}

// expandAll multiplies the cases of several predicates. It stops growing just
// beyond the bound.
func expandAll(list []validate.PredicateSpec, negate bool) []conjunction {
	out := []conjunction{{}}
	for _, s := range list {
		var next []conjunction
		for _, a := range out {
			for _, b := range expand(s, negate) {
				next = append(next, slices.Concat(a, b))
				if len(next) > maxConjunctions {
					return next
				}
			}
		}
		out = next
	}
	return out
}

// spelling is a text that is the same for the same predicate.
func spelling(p validate.PredicateSpec) string {
	subs := make([]string, len(p.Subs))
	for i, s := range p.Subs {
		subs[i] = spelling(s)
	}
	return fmt.Sprintf("%s %q %v %q %v %s %v %v (%s)", p.Op, p.Ptr, p.Arg, validate.Canonical(p.Set), p.Left, p.Cmp, p.Right, p.N, strings.Join(subs, ","))
}

// impossible says whether two of the literals exclude each other.
func (c conjunction) impossible() bool {
	for i, a := range c {
		if a.set != nil && !a.negate && len(a.set) == 0 {
			return true
		}
		for _, b := range c[i+1:] {
			if excludes(a, b) || excludes(b, a) {
				return true
			}
		}
	}
	return false
}

// excludes says whether b cannot hold where a does. It is asked both ways.
func excludes(a, b literal) bool {
	switch {
	case a.opaque != "" && a.opaque == b.opaque:
		return a.negate != b.negate
	case a.negate && a.exists():
		return !b.negate && needs(b, a.ptr)
	case a.negate || b.negate && b.set == nil:
		return false
	case a.set != nil && b.set != nil && a.ptr == b.ptr && !b.negate:
		return !slices.ContainsFunc(a.set, func(v any) bool { return holds(b.set, v) })
	case a.set != nil && b.set != nil && a.ptr == b.ptr:
		return !slices.ContainsFunc(a.set, func(v any) bool { return !holds(b.set, v) })
	}
	// A plain value has nothing inside it.
	return a.set != nil && !b.negate && strings.HasPrefix(b.ptr, a.ptr+"/") && !slices.ContainsFunc(a.set, hasMembers) && needs(b, a.ptr)
}

func hasMembers(v any) bool {
	k := kindOf(v)
	return k == kindObject || k == kindList
}

// needs says whether a literal holds only where there is a value at ptr.
// `none` holds without one, and compare may read a pointer of its own.
func needs(x literal, ptr string) bool {
	if x.negate || x.opaque != "" && (strings.HasPrefix(x.opaque, "none ") || strings.HasPrefix(x.opaque, "compare ")) {
		return false
	}
	return x.ptr == ptr || strings.HasPrefix(x.ptr, ptr+"/")
}

func holds(set []any, v any) bool {
	return slices.ContainsFunc(set, func(x any) bool { return validate.Equal(x, v) })
}

// implies says whether b holds wherever all of c does.
func (c conjunction) implies(b literal) bool {
	for _, a := range c {
		switch {
		case a.opaque != "" || b.opaque != "":
			if a.opaque == b.opaque && a.negate == b.negate || b.exists() && !b.negate && needs(a, b.ptr) {
				return true
			}
		case b.exists() && !b.negate:
			if needs(a, b.ptr) {
				return true
			}
		case b.exists():
			if a.negate && a.exists() && (b.ptr == a.ptr || strings.HasPrefix(b.ptr, a.ptr+"/")) {
				return true
			}
		case a.ptr == b.ptr && a.set != nil && !a.negate && sameKinds(a.set, b.set):
			inside := !slices.ContainsFunc(a.set, func(v any) bool { return !holds(b.set, v) })
			apart := !slices.ContainsFunc(a.set, func(v any) bool { return holds(b.set, v) })
			if !b.negate && inside || b.negate && apart {
				return true
			}
		case a.ptr == b.ptr && a.set != nil && a.negate && b.negate && sameKinds(a.set, b.set):
			if !slices.ContainsFunc(b.set, func(v any) bool { return !holds(a.set, v) }) {
				return true
			}
		}
	}
	return false
}

// sameKinds says whether all values are of one kind: comparing different kinds is
// unknown, and proves nothing.
func sameKinds(a, b []any) bool {
	all := slices.Concat(a, b)
	return !slices.ContainsFunc(all, func(v any) bool { return kindOf(v) != kindOf(all[0]) })
}

// always says whether b holds wherever a does.
func always(a, b []conjunction) bool {
	for _, x := range a {
		covered := slices.ContainsFunc(b, func(y conjunction) bool {
			return !slices.ContainsFunc(y, func(lit literal) bool { return !x.implies(lit) })
		})
		if !covered {
			return false
		}
	}
	return true
}

// together gives the conjunction in which both predicates hold for sure, where
// they speak of the same places and of nothing that is not looked into.
func together(a, b []conjunction) (conjunction, bool) {
	for _, x := range a {
		for _, y := range b {
			both := slices.Concat(x, y)
			if samePlaces(x, y) && !both.impossible() && !slices.ContainsFunc(both, func(l literal) bool { return l.opaque != "" }) {
				return both, true
			}
		}
	}
	return nil, false
}

func samePlaces(a, b conjunction) bool {
	inside := func(x, y conjunction) bool {
		return !slices.ContainsFunc(x, func(l literal) bool {
			return !slices.ContainsFunc(y, func(m literal) bool { return l.ptr == m.ptr })
		})
	}
	return inside(a, b) && inside(b, a)
}
