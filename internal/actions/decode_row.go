package actions

import (
	"net/http"
	"slices"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

var rowKeys = []string{
	"status", "media", "when", "expect", "success", "display", "failure", "not_done", "capture", "pending", "took_effect",
}

// laterRowKeys are a row's keys that belong to steps of a later release.
var laterRowKeys = []string{"exit"}

// stepRowKeys are the keys of a row that only some kinds of step have.
var stepRowKeys = map[string][]StepKind{
	"success":     {StepRequest, StepPoll, StepReconcile},
	"display":     {StepRequest, StepPoll, StepReconcile},
	"capture":     {StepLookup, StepRequest},
	"pending":     {StepPoll},
	"took_effect": {StepReconcile},
	"not_done":    {StepRequest},
}

// row reads one row. captures are the shapes of what it captures.
func (d *draft) row(n *strictyaml.Node, name string, s *stepSpec) (row validate.RowSpec, captures map[string]shape, ok bool) {
	before := d.f.Count()
	row = validate.RowSpec{Name: name}
	if !d.f.Map(n, "a row", append(slices.Clone(rowKeys), laterRowKeys...)...) {
		return row, nil, false
	}
	misplaced := false
	for _, m := range n.Members {
		if slices.Contains(laterRowKeys, m.Key) {
			d.later(m.KeyPos, m.Key+" in a row")
		}
		if kinds := stepRowKeys[m.Key]; kinds != nil && !slices.Contains(kinds, s.kind) {
			d.bad(m.KeyPos, "outcome-step", rowWayOut(m.Key, s.kind), "%s has no %s", stepWords(s), m.Key)
			misplaced = true
		}
	}
	d.status(n, &row)
	d.media(n.Get("media"), &row)
	chooses := true
	if w := n.Get("when"); w != nil {
		p, good := d.predicate(w, true)
		row.When, chooses = &p, good
		if row.Media == validate.MediaNone {
			d.bad(w.Pos, "outcome", "", "when needs a body, and media: none has none")
		}
	}
	d.expect(n.Get("expect"), &row)
	if misplaced {
		return row, nil, false // what the row means is not known
	}
	body := base(row)
	d.ends(n, &row, s)
	if v := n.Get("success"); v != nil {
		d.fits(v, row.Success, body)
	}
	if v := n.Get("display"); v != nil {
		row.Display = d.displayPicks(v, body)
		if !row.HasSuccess {
			d.bad(v.Pos, "outcome", "", "display stands beside success")
		}
	}
	if v := n.Get("capture"); v != nil && d.f.Is(v, strictyaml.Mapping, "capture") {
		row.HasCapture = true
		row.Capture, captures = d.capturePicks(v, body)
	}
	d.bodyless(n, row, s)
	d.failureShape(n.Get("failure"), row, body)
	return row, captures, chooses && d.f.Count() == before
}

// rowWayOut says what a row of another kind of step is written with.
func rowWayOut(key string, k StepKind) string {
	switch {
	case k == StepLookup && key == "success":
		return "write capture: what a lookup finds out is for the steps after it"
	case k == StepPoll && key == "capture", k == StepReconcile && key == "capture":
		return "no step comes after it; pick into success"
	case key == "pending":
		return "only a poll waits for an end"
	case key == "took_effect":
		return "only a reconcile tells whether the request took effect"
	case key == "not_done":
		return "it stands in the request of a change"
	}
	return "take it away"
}

// bodyless refuses a row that reads a body which cannot be there: it would
// match no answer, or refuse every answer that it matches.
func (d *draft) bodyless(n *strictyaml.Node, row validate.RowSpec, s *stepSpec) {
	if row.Media != validate.MediaNone {
		if s.method == http.MethodHead {
			d.bad(n.Pos, "outcome", "write media: none, and pick from headers", "an answer to HEAD has no body")
		}
		return
	}
	const hint = "pick from a header, a constant or the target, or take media: none away"
	for _, part := range []struct {
		key   string
		picks map[string]validate.PickSpec
	}{{"success", row.Success}, {"display", row.Display}, {"capture", row.Capture}} {
		for _, name := range sortedKeys(part.picks) {
			p := part.picks[name]
			if p.Kind == validate.PickPointer || p.Kind == validate.PickFind || p.Kind == validate.PickEach {
				d.bad(n.Get(part.key).Get(name).Pos, "outcome", hint, "the pick needs a body, and media: none has none")
			}
		}
	}
	if row.Failure != nil && row.Failure.Code == "" {
		d.bad(n.Get("failure").Pos, "outcome", "write one code, or take media: none away", "failure at needs a body, and media: none has none")
	}
}

// ends reads how the row ends or goes on: exactly one of what its step has.
func (d *draft) ends(n *strictyaml.Node, row *validate.RowSpec, s *stepSpec) {
	success, failure, capture := n.Get("success"), n.Get("failure"), n.Get("capture")
	if p := n.Get("pending"); p != nil {
		row.Pending, _ = d.f.Flag(p, "pending")
		if !row.Pending {
			d.bad(p.Pos, "outcome-end", "take it away", "pending: false says nothing")
		}
		if success != nil || failure != nil {
			d.bad(p.Pos, "outcome-end", "", "a pending row has no success and no failure: the end has not come")
		}
		return
	}
	if t := n.Get("took_effect"); t != nil {
		if v, ok := d.f.Flag(t, "took_effect"); ok {
			row.TookEffect = &v
		}
	}
	if !d.oneEnd(n, row, s) {
		return
	}
	if nd := n.Get("not_done"); nd != nil {
		row.NotDone, _ = d.f.Flag(nd, "not_done")
		if failure == nil || d.c.effect == Read {
			d.bad(nd.Pos, "outcome", "", "not_done stands beside a failure of a contract that changes something")
		}
	}
	switch {
	case success != nil:
		row.HasSuccess = true
		row.Success = d.successPicks(success)
		d.knownSuccess(success, row, s)
	case failure != nil:
		row.Failure = d.failure(failure, row)
		row.NotDone = row.NotDone && row.Failure != nil
	case capture != nil && s.kind == StepRequest && !d.polls:
		d.bad(capture.Pos, "outcome-end", "write success, or add a poll that goes on from here", "the contract has no poll that this row could go on to")
	}
}

// oneEnd wants exactly one end of a row.
func (d *draft) oneEnd(n *strictyaml.Node, row *validate.RowSpec, s *stepSpec) bool {
	success, failure, capture := n.Get("success"), n.Get("failure"), n.Get("capture")
	broken := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return slices.Contains(n.Broken(), k) })
	}
	told := broken("success", "failure", "capture", "pending", "took_effect") || n.Get("exit") != nil
	switch {
	case success != nil && failure != nil:
		d.bad(failure.Pos, "outcome-end", "", "a row has success or failure, not both")
		return false
	case capture != nil && (success != nil || failure != nil) && s.kind != StepPoll && s.kind != StepReconcile:
		d.bad(capture.Pos, "outcome-end", "a row ends the call or goes on; take one of the two away", "a row has capture, or success or failure, not both")
		return false
	case s.kind == StepReconcile:
		return told || d.effectEnd(n, row)
	case success == nil && failure == nil && capture == nil && !told:
		d.bad(n.Pos, "outcome-end", "", "a row needs %s", rowEnds[s.kind])
		return false
	}
	return true
}

var rowEnds = map[StepKind]string{
	StepLookup: "capture or failure", StepRequest: "success or failure", StepPoll: "success, failure or pending",
}

// effectEnd holds a row of a reconcile to what it may tell.
func (d *draft) effectEnd(n *strictyaml.Node, row *validate.RowSpec) bool {
	success, failure, took := n.Get("success"), n.Get("failure"), n.Get("took_effect")
	switch {
	case took == nil && failure != nil && failure.Text == "OUTCOME_UNKNOWN":
		return true
	case took == nil:
		d.bad(n.Pos, "outcome-end", "a row that cannot tell is failure: OUTCOME_UNKNOWN", "a row of a reconcile needs took_effect")
	case row.TookEffect == nil:
	case *row.TookEffect && success == nil:
		d.bad(took.Pos, "outcome-end", "", "took_effect: true needs success")
	case !*row.TookEffect && success != nil:
		d.bad(success.Pos, "outcome-end", "write took_effect: true, or take success away", "took_effect: false is no success")
	default:
		return true
	}
	return false
}

// knownSuccess refuses a success of a change after which nobody knows.
func (d *draft) knownSuccess(n *strictyaml.Node, row *validate.RowSpec, s *stepSpec) {
	if d.c.effect == Read || s.kind != StepRequest {
		return
	}
	for _, st := range row.Status {
		if unknownStatus(st) {
			d.bad(n.Pos, "outcome-status", "", "the answer %d to a change cannot be a success", st)
			return
		}
	}
}

// fits holds each pick of success against what the result wants.
func (d *draft) fits(n *strictyaml.Node, picks map[string]validate.PickSpec, body shape) {
	for _, name := range sortedKeys(picks) {
		at := n.Get(name).Pos
		s := d.pickShape(picks[name], body, at)
		if d.c.resultSchema == nil {
			continue // refused already
		}
		want, _ := d.resultView.member(d.resultView.flat(d.c.resultDoc), name)
		if why := clash(d.resultView, s, want); s != nil && want != nil && why != "" {
			d.bad(at, "pick-never", "convert it in the pick, or change the result", "the pick never fits: %s", why)
		}
	}
}

// capturePicks reads capture.
func (d *draft) capturePicks(n *strictyaml.Node, body shape) (map[string]validate.PickSpec, map[string]shape) {
	out, shapes := map[string]validate.PickSpec{}, map[string]shape{}
	for _, m := range n.Members {
		if !memberName.MatchString(m.Key) {
			d.bad(m.KeyPos, "capture", "small letters, digits and _", "%q is no name of a captured value", m.Key)
			continue
		}
		p, ok := d.pick(m.Value, false)
		if !ok {
			continue
		}
		if ownWords(p) {
			d.bad(m.Value.Pos, "capture", "name the input itself where it is used", "the caller's own words are nothing that was found out")
			continue
		}
		if p.Kind == validate.PickHeader && !p.Integer && p.Matches == "" {
			d.bad(m.Value.Pos, "capture", "write integer: true, or matches: an anchored pattern", "a value captured from a header is any text")
			continue
		}
		out[m.Key], shapes[m.Key] = p, d.pickShape(p, body, m.Value.Pos)
	}
	return out, shapes
}

// ownWords says whether a pick gives back what the caller said.
func ownWords(p validate.PickSpec) bool {
	root, _, _ := cutPath(p.From)
	if p.Kind == validate.PickFrom && root == "input" {
		return true
	}
	if p.Each == nil {
		return false
	}
	for _, sub := range p.Each.Pick {
		if ownWords(sub) {
			return true
		}
	}
	return false
}
