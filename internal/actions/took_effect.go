package actions

import (
	"maps"
	"net/http"
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
		maps.Copy(bound, rowTies(row, false))
		maps.Copy(bound, checkTies(row, d.c.checks, "same"))
		if d.ownMark(bound) {
			continue
		}
		if !d.tiedAtAll(row, bound) {
			d.bad(s.rowPos[i], "reconcile", "compare it with an input, with call.id where the request sends it, or with what a lookup found", "this row says that the request took effect, and nothing ties its answer to this call")
			continue
		}
		for _, path := range names {
			if !d.tied(path, bound) {
				d.bad(s.rowPos[i], "reconcile", "compare it: in the query, with equals in `when`, or with same under checks", "this row says that the request took effect, and nothing ties its answer to %q, which names the thing", strings.TrimPrefix(path, "input."))
			}
		}
	}
}

// tiedAtAll says whether anything of this call stands behind a row: an input, its
// own mark, or a fact that was found before. What the operator wrote is the same for
// every call, and the time is for every call of that time. That a thing which only
// the operator names is gone needs no more where the request was to take it away.
func (d *draft) tiedAtAll(row validate.RowSpec, bound map[string]bool) bool {
	more := rowTies(row, true)
	maps.Copy(more, bound)
	maps.Copy(more, checkTies(row, d.c.checks, "increased"))
	for path := range more {
		if ofTheCall(path) && path != "call.now" {
			return true
		}
	}
	gone := !slices.ContainsFunc(row.Status, func(st int) bool { return st != http.StatusNotFound && st != http.StatusGone })
	return gone && d.c.effect == Destroy && d.c.request.path != nil && d.c.reconcile.path != nil && d.c.request.path.text == d.c.reconcile.path.text
}

// ofTheCall says whether a value comes with one call: not the operator's, and not
// of the answer that is looked at.
func ofTheCall(path string) bool {
	root, _, dotted := strings.Cut(path, ".")
	return dotted && root != "target" && root != "result"
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

// checkTies lists what the checks of one kind compare with a member that the row
// picks from the answer.
func checkTies(row validate.RowSpec, checks []validate.CheckSpec, kind string) map[string]bool {
	bound := map[string]bool{}
	for _, c := range checks {
		picked := slices.ContainsFunc([]string{c.Left, c.Right}, func(p string) bool {
			rest, ok := strings.CutPrefix(p, "result.")
			member, _, _ := strings.Cut(rest, ".")
			pick, has := row.Success[member]
			return ok && has && pick.Kind != validate.PickConst && pick.Kind != validate.PickFrom
		})
		if c.Kind == kind && picked {
			bound[c.Left], bound[c.Right] = true, true
		}
	}
	return bound
}
