package actions

import (
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/validate"
)

// tookEffectBound holds every row that says took_effect: true to the inputs that
// name the thing: an answer about another thing says nothing about this call.
func (d *draft) tookEffectBound() {
	s := d.c.reconcile
	if s == nil || d.in.root == nil {
		return
	}
	names := d.namingPaths()
	asked := s.askedPaths()
	for i, row := range s.rows {
		if row.TookEffect == nil || !*row.TookEffect {
			continue
		}
		bound := maps.Clone(asked)
		if row.When != nil {
			maps.Copy(bound, boundBy(*row.When))
		}
		for _, p := range row.Success {
			if p.Find != nil && !mayLeaveOut(p) { // what is left out where nothing is found ties nothing
				maps.Copy(bound, boundBy(p.Find.Where))
			}
		}
		d.boundByChecks(row, bound)
		if d.ownMark(bound) {
			continue
		}
		for _, path := range names {
			if !d.tied(path, bound) {
				d.bad(s.rowPos[i], "reconcile", "compare it: in the query, with equals in `when`, or with same under checks", "this row says that the request took effect, and nothing ties its answer to %q, which names the thing", strings.TrimPrefix(path, "input."))
			}
		}
	}
}

// tied says whether a value that names the thing is bound: by itself, as a part of
// an object that is, or, where a lookup found it, by all that the lookup asked with
// beside the operator's constants.
func (d *draft) tied(path string, bound map[string]bool) bool {
	for at := path; at != ""; at = at[:max(0, strings.LastIndex(at, "."))] {
		if bound[at] {
			return true
		}
	}
	root, _, _ := strings.Cut(path, ".")
	g, looked := d.gatheredBy(root)
	if !looked {
		return false
	}
	for from := range g.step.askedPaths() {
		root, _, _ := strings.Cut(from, ".")
		if root != "target" && root != "call" && !d.tied(from, bound) {
			return false
		}
	}
	return true
}

// ownMark says whether the answer is tied to something that only this call sent:
// the call's own id or key, where the thing itself keeps it. What stands in a header
// is forgotten by the service.
func (d *draft) ownMark(bound map[string]bool) bool {
	sent := d.c.request.askedPaths()
	key := "call.idempotency_key"
	sent[key] = sent[key] || d.markedByKey()
	return bound["call.id"] && sent["call.id"] || bound[key] && sent[key]
}

// markedByKey says whether the daemon writes the idempotency key into the body,
// where the thing itself keeps it. A key in a header is forgotten by the service.
func (d *draft) markedByKey() bool {
	n := d.root.Get("idempotency")
	return n != nil && n.Get("json") != nil
}

// namingPaths lists the values that name the thing: inputs in the request's path and
// query, and in its body the words with a pattern; what lookups found in its path (in
// the query it may be the version that is compared). Which of several targets it is
// needs no word: the reconcile asks the same one.
func (d *draft) namingPaths() []string {
	named := map[string]bool{}
	body := map[string]bool{}
	d.c.request.body.paths(body)
	for _, p := range d.c.request.path.placeholders() {
		root, _, _ := strings.Cut(p.path, ".")
		if _, looked := d.gatheredBy(root); looked {
			named[p.path] = true
		}
	}
	for path := range d.c.request.askedPaths() {
		root, rest, _ := strings.Cut(path, ".")
		switch {
		case root == "input" && !body[path]:
			named[path] = true
		case root == "input":
			sub, required, _ := d.in.property(d.in.root, rest)
			d.namingWords(path, sub, required, named, refDepth)
		}
	}
	return sortedKeys(named)
}

// namingWords adds the words with a pattern in a value of the body that are always
// there.
func (d *draft) namingWords(path string, s map[string]any, required bool, named map[string]bool, depth int) {
	if !required || depth == 0 {
		return
	}
	if s["pattern"] != nil && tight(d.in, s, refDepth) {
		named[path] = true
	}
	if schemaKind(s) != kindObject {
		return
	}
	for _, name := range d.in.propertyNames(s, refDepth) {
		sub, always := d.in.member(s, name)
		d.namingWords(path+"."+name, sub, always, named, depth-1)
	}
}

// askedPaths is what a step asks with, as a set: its path, its query and its body,
// not its headers.
func (s *stepSpec) askedPaths() map[string]bool {
	plain := *s
	plain.headers = nil
	out := map[string]bool{}
	for _, p := range plain.paths() {
		out[p] = true
	}
	return out
}

// boundBy lists the value paths that a predicate compares for equality wherever
// it is true.
func boundBy(p validate.PredicateSpec) map[string]bool {
	out := map[string]bool{}
	switch p.Op {
	case "equals":
		if p.Arg.Kind == validate.OperandFrom {
			out[p.Arg.From] = true
		}
	case "compare":
		if p.Cmp == "==" {
			for _, o := range []validate.Operand{p.Left, p.Right} {
				if o.Kind == validate.OperandFrom {
					out[o.From] = true
				}
			}
		}
	case "all_of", "some", "each":
		for _, sub := range p.Subs {
			maps.Copy(out, boundBy(sub))
		}
	case "any_of":
		for i, sub := range p.Subs {
			each := boundBy(sub)
			if i == 0 {
				out = each
			}
			maps.DeleteFunc(out, func(path string, _ bool) bool { return !each[path] })
		}
	}
	return out
}

// boundByChecks adds what same compares with a member that the row picks.
func (d *draft) boundByChecks(row validate.RowSpec, bound map[string]bool) {
	for _, c := range d.c.checks {
		sides := []string{c.Left, c.Right}
		picked := slices.ContainsFunc(sides, func(p string) bool {
			rest, ok := strings.CutPrefix(p, "result.")
			member, _, _ := strings.Cut(rest, ".")
			pick, has := row.Success[member]
			return ok && has && pick.Kind != validate.PickConst && pick.Kind != validate.PickFrom
		})
		if c.Kind == "same" && picked {
			bound[c.Left], bound[c.Right] = true, true
		}
	}
}
