package actions

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

var rowKeys = []string{"status", "media", "when", "expect", "success", "display", "failure", "not_done"}

// laterRowKeys are a row's keys that belong to steps of a later release.
var laterRowKeys = []string{"exit", "capture", "pending", "took_effect"}

const maxRows = 40

func (d *draft) outcomes(n *strictyaml.Node) {
	rows := d.f.List(n, "outcomes")
	if n != nil && n.Kind == strictyaml.Sequence && len(rows) == 0 {
		d.bad(n.Pos, "outcome", "", "outcomes has no row")
	}
	if len(rows) > maxRows {
		d.bad(n.Pos, "outcome", "", "more than %d rows", maxRows)
		return
	}
	for i, r := range rows {
		row, ok := d.row(r, fmt.Sprintf("request.outcomes[%d]", i))
		if !ok {
			continue
		}
		d.overlap(r, row)
		d.c.request.rows = append(d.c.request.rows, row)
		d.c.request.rowPos = append(d.c.request.rowPos, r.Pos)
	}
	success := slices.ContainsFunc(d.c.request.rows, func(r validate.RowSpec) bool { return r.HasSuccess })
	if len(rows) > 0 && len(d.c.request.rows) == len(rows) && !success {
		d.bad(n.Pos, "outcome", "", "no row has success")
	}
}

// overlap refuses a row that could never be the only one: same status and
// media, and one of the two has no predicate.
func (d *draft) overlap(n *strictyaml.Node, row validate.RowSpec) {
	for i, o := range d.c.request.rows {
		for _, st := range row.Status {
			if slices.Contains(o.Status, st) && o.Media == row.Media && (o.When == nil || row.When == nil) {
				d.bad(n.Pos, "outcome-overlap", "give both rows a `when` that excludes the other", "this row and the one in line %d both match status %d", d.c.request.rowPos[i].Line, st)
				return
			}
		}
	}
}

func (d *draft) row(n *strictyaml.Node, name string) (validate.RowSpec, bool) {
	before := d.f.Count()
	row := validate.RowSpec{Name: name}
	if !d.f.Map(n, "a row", append(slices.Clone(rowKeys), laterRowKeys...)...) {
		return row, false
	}
	for _, m := range n.Members {
		if slices.Contains(laterRowKeys, m.Key) {
			d.later(m.KeyPos, m.Key+" in a row")
		}
	}
	d.status(n, &row)
	d.media(n.Get("media"), &row)
	if w := n.Get("when"); w != nil {
		if p, ok := d.predicate(w, true); ok {
			row.When = &p
		}
		if row.Media == validate.MediaNone {
			d.bad(w.Pos, "outcome", "", "when needs a body, and media: none has none")
		}
	}
	d.expect(n.Get("expect"), &row)
	d.ends(n, &row)
	if v := n.Get("display"); v != nil {
		row.Display = d.displayPicks(v)
		if !row.HasSuccess {
			d.bad(v.Pos, "outcome", "", "display stands beside success")
		}
	}
	d.bodyless(n, row)
	return row, d.f.Count() == before
}

// bodyless refuses a row that reads a body which cannot be there: it would
// match no answer, or refuse every answer that it matches.
func (d *draft) bodyless(n *strictyaml.Node, row validate.RowSpec) {
	if row.Media != validate.MediaNone {
		if d.c.request.method == http.MethodHead {
			d.bad(n.Pos, "outcome", "write media: none, and pick from headers", "an answer to HEAD has no body")
		}
		return
	}
	const hint = "pick from a header, a constant or the target, or take media: none away"
	for part, picks := range map[string]map[string]validate.PickSpec{"success": row.Success, "display": row.Display} {
		for name, p := range picks {
			if p.Kind == validate.PickPointer || p.Kind == validate.PickFind || p.Kind == validate.PickEach {
				d.bad(n.Get(part).Get(name).Pos, "outcome", hint, "the pick needs a body, and media: none has none")
			}
		}
	}
	if row.Failure != nil && row.Failure.Code == "" {
		d.bad(n.Get("failure").Pos, "outcome", "write one code, or take media: none away", "failure at needs a body, and media: none has none")
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

// ends reads how the row ends: success or failure, exactly one.
func (d *draft) ends(n *strictyaml.Node, row *validate.RowSpec) {
	success, failure := n.Get("success"), n.Get("failure")
	later := slices.ContainsFunc(n.Keys(), func(k string) bool { return slices.Contains(laterRowKeys, k) })
	switch {
	case success == nil && failure == nil:
		if !later && !slices.Contains(n.Broken(), "success") && !slices.Contains(n.Broken(), "failure") {
			d.bad(n.Pos, "outcome-end", "", "a row needs success or failure")
		}
		return
	case success != nil && failure != nil:
		d.bad(failure.Pos, "outcome-end", "", "a row has success or failure, not both")
		return
	}
	if nd := n.Get("not_done"); nd != nil {
		row.NotDone, _ = d.f.Flag(nd, "not_done")
		if failure == nil || d.c.effect == Read {
			d.bad(nd.Pos, "outcome", "", "not_done stands beside a failure of a contract that changes something")
		}
	}
	if success != nil {
		row.HasSuccess = true
		row.Success = d.successPicks(success)
		if d.c.effect != Read {
			for _, st := range row.Status {
				if unknownStatus(st) {
					d.bad(success.Pos, "outcome-status", "", "the answer %d to a change cannot be a success", st)
					break
				}
			}
		}
		return
	}
	row.Failure = d.failure(failure, row)
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
	change := d.c.effect != Read
	if code == string(fault.OutcomeUnknown) && !change {
		d.bad(n.Pos, "failure-code", "", "a contract that reads has no %s", code)
		return false
	}
	if code == string(fault.UpstreamUnavailable) && change && !row.NotDone {
		d.bad(n.Pos, "failure-code", "write not_done: true, and a fixture that shows it", "%s in a change says that nothing was done", code)
		return false
	}
	if change && !row.NotDone && code != string(fault.OutcomeUnknown) && slices.ContainsFunc(row.Status, unknownStatus) {
		d.bad(n.Pos, "failure-code", "write OUTCOME_UNKNOWN, or not_done: true and a fixture that shows it", "after 408 or 5xx nobody knows whether the change was done")
		return false
	}
	return true
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
