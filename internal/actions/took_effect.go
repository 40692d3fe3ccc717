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
	names := d.namingInputs()
	asked := s.sentPaths()
	for i, row := range s.rows {
		if row.TookEffect == nil || !*row.TookEffect {
			continue
		}
		bound := maps.Clone(asked)
		if row.When != nil {
			maps.Copy(bound, boundBy(*row.When))
		}
		for _, p := range row.Success {
			if p.Find != nil {
				maps.Copy(bound, boundBy(p.Find.Where))
			}
		}
		d.boundByChecks(row, bound)
		if d.ownMark(bound) {
			continue
		}
		for _, name := range names {
			if !bound["input."+name] {
				d.bad(s.rowPos[i], "reconcile", "compare it: in the query, with equals in `when`, or with same under checks", "this row says that the request took effect, and nothing ties its answer to %q, which names the thing", name)
			}
		}
	}
}

// ownMark says whether the answer is tied to something that only this call sent:
// the call's own id or key.
func (d *draft) ownMark(bound map[string]bool) bool {
	sent := d.c.request.sentPaths()
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

// namingInputs lists the inputs that name the thing: those in the request's path
// and query, and in its body the words with a pattern. Which of several targets
// it is needs no word: the reconcile asks the same one.
func (d *draft) namingInputs() []string {
	named := map[string]bool{}
	body := map[string]bool{}
	d.c.request.body.paths(body)
	for path := range d.c.request.sentPaths() {
		name, ok := strings.CutPrefix(path, "input.")
		if !ok {
			continue
		}
		sub, required, _ := d.in.property(d.in.root, name)
		if !body[path] || required && sub["pattern"] != nil && tight(d.in, sub, refDepth) {
			named[name] = true
		}
	}
	return sortedKeys(named)
}

// sentPaths is what a step sends, as a set.
func (s *stepSpec) sentPaths() map[string]bool {
	out := map[string]bool{}
	for _, p := range s.paths() {
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
