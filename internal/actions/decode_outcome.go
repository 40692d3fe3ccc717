package actions

import (
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

const maxRows = 40

// outcomes reads a step's rows.
func (d *draft) outcomes(n *strictyaml.Node, s *stepSpec) {
	rows := d.f.List(n, "outcomes")
	if n != nil && n.Kind == strictyaml.Sequence && len(rows) == 0 {
		d.bad(n.Pos, "outcome", "", "outcomes has no row")
	}
	if len(rows) > maxRows {
		d.bad(n.Pos, "outcome", "", "more than %d rows", maxRows)
		return
	}
	where := s.name
	if s.kind == StepLookup {
		where = "lookups." + s.name
	}
	for i, r := range rows {
		row, captures, ok := d.row(r, fmt.Sprintf("%s.outcomes[%d]", where, i), s)
		if !ok {
			continue
		}
		d.overlap(r, row, s)
		s.rows = append(s.rows, row)
		s.rowPos = append(s.rowPos, r.Pos)
		s.captures = append(s.captures, captures)
	}
	if len(rows) > 0 && len(s.rows) == len(rows) {
		d.leadsOn(n, s)
	}
}

// leadsOn wants a row that does what the step is for.
func (d *draft) leadsOn(n *strictyaml.Node, s *stepSpec) {
	has := func(is func(validate.RowSpec) bool) bool { return slices.ContainsFunc(s.rows, is) }
	switch s.kind {
	case StepLookup:
		if !has(func(r validate.RowSpec) bool { return r.HasCapture }) {
			d.bad(n.Pos, "outcome", "write capture in the row that goes on", "no row has capture, so that no call ever goes on")
		}
	case StepReconcile:
		if !has(func(r validate.RowSpec) bool { return r.TookEffect != nil }) {
			d.bad(n.Pos, "outcome", "write took_effect in the row that tells", "no row has took_effect, so that it never tells anything")
		}
	default:
		if !has(func(r validate.RowSpec) bool { return r.HasSuccess }) && (s.kind == StepPoll || !d.polls) {
			d.bad(n.Pos, "outcome", "", "no row has success")
		}
	}
}

// overlap refuses a row that could never be the only one: same status and
// media, and one of the two has no predicate. A pending row is looked at last,
// so that it needs none beside rows that have one.
func (d *draft) overlap(n *strictyaml.Node, row validate.RowSpec, s *stepSpec) {
	for i, o := range s.rows {
		always := o.When == nil && (!o.Pending || row.Pending) || row.When == nil && (!row.Pending || o.Pending)
		for _, st := range row.Status {
			if slices.Contains(o.Status, st) && o.Media == row.Media && always {
				d.bad(n.Pos, "outcome-overlap", "give both rows a `when` that excludes the other", "this row and the one in line %d both match status %d", s.rowPos[i].Line, st)
				return
			}
		}
	}
}

func (d *draft) status(n *strictyaml.Node, row *validate.RowSpec) {
	if n.Get("exit") != nil {
		return // refused already
	}
	s := d.f.Require(n, "a row", "status")
	if s == nil {
		return
	}
	nodes := []*strictyaml.Node{s}
	if s.Kind == strictyaml.Sequence {
		nodes = s.Items
	}
	for _, it := range nodes {
		if it.Kind == strictyaml.String {
			d.bad(it.Pos, "outcome-status", "write each number out", "a status is an exact number, never a range or a text")
			continue
		}
		v, ok := d.f.Whole(it, "status", 200, 599)
		if ok && slices.Contains(row.Status, int(v)) {
			d.bad(it.Pos, "outcome-status", "", "the status %d stands twice", v)
		} else if ok {
			row.Status = append(row.Status, int(v))
		}
	}
}

func (d *draft) media(n *strictyaml.Node, row *validate.RowSpec) {
	if n == nil {
		return
	}
	word, _ := d.f.Word(n, "media", "json", "text", "none")
	row.Media = map[string]validate.Media{"text": validate.MediaText, "none": validate.MediaNone}[word]
}

func (d *draft) expect(n *strictyaml.Node, row *validate.RowSpec) {
	if n == nil {
		return
	}
	if !d.f.Is(n, strictyaml.Mapping, "expect") {
		return
	}
	if row.Media == validate.MediaNone {
		d.bad(n.Pos, "outcome", "", "expect needs a body, and media: none has none")
		return
	}
	doc := n.Value()
	if !d.schemaLint(n, doc, validate.UseExpect) {
		return
	}
	if _, err := validate.CompileSchema(row.Name+".expect", doc); err != nil {
		d.bad(n.Pos, "schema-compile", "", "the schema does not compile: %v", err)
		return
	}
	row.Expect = doc
}

// unknownStatus are the answers after which nobody knows what was done.
func unknownStatus(st int) bool { return st == 408 || st >= 500 }

func (d *draft) failure(n *strictyaml.Node, row *validate.RowSpec) *validate.FailureSpec {
	if n.Kind == strictyaml.String {
		if !d.failureCode(n, row) {
			return nil
		}
		return &validate.FailureSpec{Code: n.Text}
	}
	if !d.f.Map(n, "failure", "at", "map", "other") {
		return nil
	}
	out := &validate.FailureSpec{Map: map[string]string{}}
	if at := d.f.Require(n, "failure", "at"); at != nil {
		out.At, _ = d.pointer(at)
	}
	m := d.f.Require(n, "failure", "map")
	if m == nil || !d.f.Is(m, strictyaml.Mapping, "map") {
		return nil
	}
	if len(m.Members) == 0 {
		d.bad(m.Pos, "outcome", "", "map is empty")
	}
	for _, e := range m.Members {
		if d.failureCode(e.Value, row) {
			out.Map[e.Key] = e.Value.Text
		}
	}
	if o := n.Get("other"); o != nil && d.failureCode(o, row) {
		out.Other = o.Text
	}
	return out
}

// failureCode says which codes a row may give. In a change the codes that would
// make somebody send it again need proof that nothing was done.
func (d *draft) failureCode(n *strictyaml.Node, row *validate.RowSpec) bool {
	code, ok := d.f.Text(n, "a failure's code")
	if !ok {
		return false
	}
	if _, own := d.c.OwnCode(code); own {
		d.codeUses[code] = true
	} else if !d.apiCode(n, code) {
		return false
	}
	const unknown, away = string(fault.OutcomeUnknown), string(fault.UpstreamUnavailable)
	kind := d.step.kind
	changed := d.c.effect != Read && kind == StepRequest
	switch {
	case code == unknown && kind == StepLookup:
		d.bad(n.Pos, "failure-code", "give UPSTREAM_UNAVAILABLE, or a code of this action", "before the request nothing is %s", code)
	case code == unknown && d.c.effect == Read:
		d.bad(n.Pos, "failure-code", "", "a contract that reads has no %s", code)
	case code == unknown && row.TookEffect != nil:
		d.bad(n.Pos, "failure-code", "take took_effect away where the answer does not tell", "took_effect: false says that it is known")
	case code == away && changed && !row.NotDone:
		d.bad(n.Pos, "failure-code", "write not_done: true, and a fixture that shows it", "%s in a change says that nothing was done", code)
	case changed && !row.NotDone && code != unknown && slices.ContainsFunc(row.Status, unknownStatus):
		d.bad(n.Pos, "failure-code", "write OUTCOME_UNKNOWN, or not_done: true and a fixture that shows it", "after 408 or 5xx nobody knows whether the change was done")
	default:
		return true
	}
	return false
}

func (d *draft) apiCode(n *strictyaml.Node, code string) bool {
	allowed := []string{
		string(fault.NotFound), string(fault.RemoteUnauthenticated), string(fault.RemoteForbidden), string(fault.RemoteRateLimited),
		string(fault.OutcomeUnknown), string(fault.UpstreamUnavailable),
	}
	if slices.Contains(allowed, code) {
		return true
	}
	if fault.Known(fault.Code(code)) {
		d.bad(n.Pos, "failure-code", "", "a row cannot give the code %s", code)
		return false
	}
	for _, o := range d.c.failures {
		allowed = append(allowed, o.Code)
	}
	hint := strictyaml.DidYouMean(code, allowed)
	if !strings.HasPrefix(hint, "did you mean") {
		hint = "declare it under failures"
	}
	d.bad(n.Pos, "failure-code", hint, "the code %q is not known", code)
	return false
}

// failureShape refuses a vendor's code that no answer can hold.
func (d *draft) failureShape(n *strictyaml.Node, row validate.RowSpec, body shape) {
	if row.Failure == nil || row.Failure.Code != "" || n.Get("at") == nil {
		return
	}
	s, why := pointed(body, row.Failure.At)
	if k := schemaKind(flatShape(s)); why == "" && s != nil && k != kindAny && k != kindText && k != kindNumber {
		why = nowhere("a code is text or a whole number, and here is " + k.String())
	}
	if why != "" {
		d.bad(n.Get("at").Pos, "pick-not-there", "point at what expect describes", "there is never a code: %s", why)
	}
}
