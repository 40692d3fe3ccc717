package actions

import (
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/validate"
)

// evidence is what a row takes from the body: the picks of its success. A value
// that is compared somewhere in a list says nothing about another element of it, so
// that what a comparison ties depends on where the picks come from.
type evidence struct {
	picks []pickedPlace
	// alone says whether the schema of the answer leaves a list no second element.
	alone func(list string) bool
	// inside says that pointers begin at an element, where a list belongs to it.
	inside bool
	// any lets every order count, and not only equality.
	any bool
}

// pickedPlace is where one pick reads: at a pointer, or at one inside the element
// that where finds in the list.
type pickedPlace struct {
	list, at string
	where    *validate.PredicateSpec // nil for a pointer
	optional bool
}

// rowTies lists the value paths that a row ties what it picks to, by `when` and by
// the picks' own `find`. any lets every order count beside equality.
func rowTies(row validate.RowSpec, any bool) map[string]bool {
	e := evidence{any: any}
	body := base(row)
	e.alone = func(list string) bool {
		s, why := pointed(body, list)
		most, ok := intOf(flatShape(s)["maxItems"])
		return why == "" && ok && most == 1
	}
	for _, p := range row.Success {
		switch p.Kind {
		case validate.PickPointer:
			e.picks = append(e.picks, pickedPlace{at: p.At, optional: mayLeaveOut(p)})
		case validate.PickFind:
			e.picks = append(e.picks, pickedPlace{list: p.Find.In, at: p.At, where: &p.Find.Where, optional: mayLeaveOut(p)})
		}
	}
	out := map[string]bool{}
	var beside []validate.PredicateSpec
	if row.When != nil {
		beside = conjuncts(*row.When)
		maps.Copy(out, e.ties(*row.When, beside))
	}
	for _, list := range e.searched() {
		maps.Copy(out, e.found(list, beside))
	}
	return out
}

// conjuncts are the predicates that all hold where p does.
func conjuncts(p validate.PredicateSpec) []validate.PredicateSpec {
	if p.Op != "all_of" {
		return []validate.PredicateSpec{p}
	}
	var out []validate.PredicateSpec
	for _, sub := range p.Subs {
		out = append(out, conjuncts(sub)...)
	}
	return out
}

// ties lists what a predicate compares wherever it is true; beside are the
// predicates that hold with it.
func (e evidence) ties(p validate.PredicateSpec, beside []validate.PredicateSpec) map[string]bool {
	out := map[string]bool{}
	switch p.Op {
	case "equals":
		if p.Arg.Kind == validate.OperandFrom && !e.elsewhere(p.Ptr, beside) {
			out[p.Arg.From] = true
		}
	case "compare":
		if (p.Cmp == "==" || e.any && p.Cmp != "!=") && !e.elsewhere(p.Left.At, beside) && !e.elsewhere(p.Right.At, beside) {
			for _, o := range []validate.Operand{p.Left, p.Right} {
				if o.Kind == validate.OperandFrom {
					out[o.From] = true
				}
			}
		}
	case "some", "each":
		if e.counts(p, beside) {
			return e.within(p.Ptr).ties(p.Subs[0], conjuncts(p.Subs[0]))
		}
	case "all_of":
		for _, sub := range p.Subs {
			maps.Copy(out, e.ties(sub, beside))
		}
	case "any_of":
		for i, sub := range p.Subs {
			each := e.ties(sub, slices.Concat(beside, conjuncts(sub)))
			if i == 0 {
				out = each
			}
			maps.DeleteFunc(out, func(path string, _ bool) bool { return !each[path] })
		}
	}
	return out
}

// counts says whether `some` or `each` is about what is picked. With one element in
// the list it is. Otherwise `some` is only where every pick finds its element by a
// part of the same predicate, and `each` only where an element is picked for sure:
// of an empty list it says nothing.
func (e evidence) counts(p validate.PredicateSpec, beside []validate.PredicateSpec) bool {
	var read []pickedPlace
	for _, x := range e.picks {
		if x.reads(p.Ptr) {
			read = append(read, x)
		}
	}
	sure := slices.ContainsFunc(read, func(x pickedPlace) bool { return !x.optional })
	switch {
	case one(p.Ptr, beside) || p.Op == "some" && e.alone(p.Ptr):
		return true
	case p.Op == "each":
		return sure
	case len(e.picks) == 0 || e.inside && len(read) == 0:
		return true // nothing is picked, or nothing of a list that belongs to the element
	}
	known := map[string]bool{}
	for _, sub := range conjuncts(p.Subs[0]) {
		known[spelling(sub)] = true
	}
	return sure && !slices.ContainsFunc(read, func(x pickedPlace) bool {
		return x.where == nil || x.list != p.Ptr || slices.ContainsFunc(conjuncts(*x.where), func(c validate.PredicateSpec) bool { return !known[spelling(c)] })
	})
}

// elsewhere says whether a pointer leads into one element of a list, and a pick into
// another one.
func (e evidence) elsewhere(ptr string, beside []validate.PredicateSpec) bool {
	mine := pointerTokens(ptr)
	return slices.ContainsFunc(e.picks, func(x pickedPlace) bool {
		theirs := pointerTokens(x.at)
		if x.where != nil {
			if one(x.list, beside) || e.alone(x.list) {
				return false
			}
			theirs = append(pointerTokens(x.list), "-") // whichever is found
		}
		for i := range min(len(mine), len(theirs)) {
			if mine[i] != theirs[i] {
				return indexOf(mine[i]) >= 0 && (indexOf(theirs[i]) >= 0 || x.where != nil && i == len(theirs)-1)
			}
		}
		return false
	})
}

// one says whether a count of exactly one element of the list stands beside.
func one(list string, beside []validate.PredicateSpec) bool {
	return slices.ContainsFunc(beside, func(p validate.PredicateSpec) bool {
		return p.Op == "count" && p.Ptr == list && p.Cmp == "==" && p.N == "1"
	})
}

// reads says whether a pick reads inside a list.
func (x pickedPlace) reads(list string) bool {
	at := x.at
	if x.where != nil {
		at = x.list
	}
	return at == list || strings.HasPrefix(at, list+"/")
}

// within is the evidence as an element of the list has it.
func (e evidence) within(list string) evidence {
	in := evidence{any: e.any, inside: true, alone: func(string) bool { return false }}
	for _, x := range e.picks {
		switch rest, below := strings.CutPrefix(x.at, list+"/"); {
		case x.where != nil && x.list == list:
			in.picks = append(in.picks, pickedPlace{at: x.at, optional: x.optional})
		case x.where == nil && below:
			_, inner, deeper := strings.Cut(rest, "/")
			if deeper {
				inner = "/" + inner
			}
			in.picks = append(in.picks, pickedPlace{at: inner, optional: x.optional})
		}
	}
	return in
}

// searched lists the lists in which picks find their elements, each once.
func (e evidence) searched() []string {
	lists := map[string]bool{}
	for _, x := range e.picks {
		if x.where != nil {
			lists[x.list] = true
		}
	}
	return sortedKeys(lists)
}

// found lists what the picks from one list are tied to by the way in which they find
// their element: all of them, unless the list has only one. What is left out where
// nothing is found ties nothing, and a pick that takes an element by its place may
// take another one.
func (e evidence) found(list string, beside []validate.PredicateSpec) map[string]bool {
	only := one(list, beside) || e.alone(list)
	var out map[string]bool
	sure, in := false, e.within(list)
	for _, x := range e.picks {
		switch {
		case x.where == nil && x.reads(list) && !only:
			return nil
		case x.where == nil || x.list != list || only && x.optional:
			continue
		}
		sure = sure || !x.optional
		each := in.ties(*x.where, conjuncts(*x.where))
		if out == nil {
			out = maps.Clone(each)
		}
		if only {
			maps.Copy(out, each)
			continue
		}
		maps.DeleteFunc(out, func(path string, _ bool) bool { return !each[path] })
	}
	if !sure {
		return nil
	}
	return out
}
