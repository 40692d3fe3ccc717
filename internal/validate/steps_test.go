package validate

import (
	"fmt"
	"strings"
	"testing"
)

var (
	tookIt   = true
	tookNone = false
)

// The built-in rows of each kind of step, for reads and for changes.
func TestBuiltInRowsOfEachStep(t *testing.T) {
	const unknownOutcome, away, pending = "OUTCOME_UNKNOWN", "UPSTREAM_UNAVAILABLE", "pending"
	cases := []struct {
		step   StepKind
		change bool
		want   map[int]string
	}{
		{StepRequest, false, map[int]string{401: "REMOTE_UNAUTHENTICATED", 403: "REMOTE_FORBIDDEN", 404: "NOT_FOUND", 408: away, 429: "REMOTE_RATE_LIMITED", 500: away, 599: away}},
		{StepRequest, true, map[int]string{401: "REMOTE_UNAUTHENTICATED", 403: "REMOTE_FORBIDDEN", 404: "NOT_FOUND", 408: unknownOutcome, 429: "REMOTE_RATE_LIMITED", 500: unknownOutcome, 599: unknownOutcome}},
		{StepLookup, true, map[int]string{401: "REMOTE_UNAUTHENTICATED", 404: "NOT_FOUND", 408: away, 429: "REMOTE_RATE_LIMITED", 503: away}},
		{StepReconcile, true, map[int]string{401: "REMOTE_UNAUTHENTICATED", 404: "NOT_FOUND", 408: away, 429: "REMOTE_RATE_LIMITED", 503: away}},
		{StepPoll, false, map[int]string{401: "REMOTE_UNAUTHENTICATED", 403: "REMOTE_FORBIDDEN", 404: "NOT_FOUND", 408: pending, 429: pending, 500: pending, 599: pending}},
		// What the change was accepted for is not undone by a later refusal.
		{StepPoll, true, map[int]string{401: unknownOutcome, 403: unknownOutcome, 404: unknownOutcome, 408: pending, 429: pending, 502: pending}},
	}
	for _, c := range cases {
		r := mustReader(t, ReaderSpec{Step: c.step, Change: c.change, Rows: []RowSpec{goodRow(c.step)}})
		for status, want := range c.want {
			p, no := r.Prove(answer(status, `<html>`), nil, testNow)
			if no != nil {
				t.Errorf("%d %d: %v", c.step, status, no)
				continue
			}
			got, builtin := p.Failure()
			if p.Pending() {
				got += pending
			}
			_, said := p.TookEffect()
			_, goes := p.Captured()
			if got != want || !builtin || said || goes || p.OK() || p.Row() != "built-in" {
				t.Errorf("step %d, change %v, status %d: %q, want %q", c.step, c.change, status, got, want)
			}
		}
		for _, status := range []int{202, 302, 400, 418} {
			if p, no := r.Prove(answer(status, `{}`), nil, testNow); no == nil || no.Rule != "status" {
				t.Errorf("step %d, status %d has a meaning: %+v", c.step, status, p)
			}
		}
	}
}

// goodRow is the plainest row that a step may have.
func goodRow(k StepKind) RowSpec {
	switch k {
	case StepLookup:
		return RowSpec{Status: []int{200}, HasCapture: true}
	case StepReconcile:
		return RowSpec{Status: []int{200}, HasSuccess: true, TookEffect: &tookIt}
	}
	return RowSpec{Status: []int{200}, HasSuccess: true}
}

// A row that says pending matches only where every other row of its status is
// false; one that cannot be told makes the answer invalid.
func TestPendingIsLookedAtLast(t *testing.T) {
	rows := []RowSpec{
		{Name: "pending", Status: []int{200}, Pending: true},
		{Name: "done", Status: []int{200}, When: equalsSpec("/state", "done"), HasSuccess: true},
		{Name: "failed", Status: []int{200}, When: equalsSpec("/state", "failed"), Failure: &FailureSpec{Code: "RUN_FAILED"}},
		{Name: "old", Status: []int{200}, When: &PredicateSpec{Op: "compare", Left: Operand{Kind: OperandAt, At: "/age"}, Cmp: ">", Right: Operand{Kind: OperandConst, Const: numberOne}}, Failure: &FailureSpec{Code: "TOO_OLD"}},
		{Name: "queued", Status: []int{202}, When: equalsSpec("/state", "queued"), Pending: true},
		{Name: "waits", Status: []int{202}, When: equalsSpec("/waits", true), Pending: true},
		{Name: "gone", Status: []int{202}, Media: MediaNone, HasSuccess: true},
	}
	r := mustReader(t, ReaderSpec{Step: StepPoll, Change: true, Rows: rows})
	cases := []struct {
		status     int
		body, want string
	}{
		{200, `{"state":"running","age":0}`, "pending"}, {200, `{"state":"done","age":0}`, "done"}, {200, `{"state":"failed","age":0}`, "failed"},
		{200, `{"state":"done","age":2}`, "several-rows"}, {200, `{"state":"running","age":2}`, "old"},
		{200, `{"state":"running"}`, "no-row"}, {200, `{"state":"running","age":"0"}`, "no-row"}, {200, `{"state":7,"age":0}`, "no-row"},
		{200, `{"age":0}`, "pending"}, // an absent state is no end that is named
		{200, `{"state":"done"}`, "done"}, {200, `{`, ruleSyntax},
		{202, `{"state":"queued"}`, "queued"}, {202, `{"state":"other"}`, "no-row"}, {202, `{"state":7}`, "no-row"}, {202, `{"state":"queued","waits":true}`, "several-rows"}, {202, ``, "gone"},
	}
	for _, c := range cases {
		p, no := r.Prove(answer(c.status, c.body), nil, testNow)
		got := ""
		if no != nil {
			got = no.Rule
		} else {
			got = p.Row()
		}
		if got != c.want {
			t.Errorf("%d %s: %s, want %s", c.status, c.body, got, c.want)
		}
		if p != nil && p.Pending() != (got == "pending" || got == "queued") {
			t.Errorf("%d %s: pending is %v", c.status, c.body, p.Pending())
		}
	}
}

func TestPendingHasAnExpect(t *testing.T) {
	r := mustReader(t, ReaderSpec{Step: StepPoll, Rows: []RowSpec{
		{Status: []int{200}, Pending: true, Expect: mustParse(t, `{"type":"object","additionalProperties":false,"properties":{"state":{"type":"string"}}}`)},
	}})
	if p, no := r.Prove(answer(200, `{"state":"x"}`), nil, testNow); no != nil || !p.Pending() {
		t.Errorf("%v", no)
	}
	if _, no := r.Prove(answer(200, `{"status":"x"}`), nil, testNow); no == nil || no.Layer != LayerSchema {
		t.Errorf("%v", no)
	}
}

// What a reconcile may tell: that it happened, that it did not, or nothing.
func TestTookEffect(t *testing.T) {
	find := PickSpec{Kind: PickFind, Find: &FindSpec{In: "", Where: *equalsSpec("/name", "x")}, At: "/id"}
	r := mustReader(t, ReaderSpec{
		Step: StepReconcile, Change: true,
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"type":"string","pattern":"^[a-z]{1,4}$","maxLength":4}}}`),
		Rows: []RowSpec{
			{Name: "did", Status: []int{200}, HasSuccess: true, TookEffect: &tookIt, Success: map[string]PickSpec{"id": find}},
			{Name: "not", Status: []int{404}, TookEffect: &tookNone},
			{Name: "own", Status: []int{410}, TookEffect: &tookNone, Failure: &FailureSpec{Code: "GONE"}},
			{Name: "dunno", Status: []int{202}, Failure: &FailureSpec{Code: "OUTCOME_UNKNOWN"}},
		},
	})
	cases := []struct {
		status       int
		body, want   string
		effect, said bool
	}{
		{200, `[{"name":"x","id":"abc"}]`, "", true, true},
		{200, `[{"name":"y","id":"abc"}]`, "NOT_FOUND", false, false}, // a list that lacks it tells nothing
		{404, `{}`, "UPSTREAM_UNAVAILABLE", false, true}, {410, `{}`, "GONE", false, true}, {202, `{}`, "OUTCOME_UNKNOWN", false, false}, {500, ``, "UPSTREAM_UNAVAILABLE", false, false},
	}
	for _, c := range cases {
		p, no := r.Prove(answer(c.status, c.body), nil, testNow)
		if no != nil {
			t.Errorf("%d: %v", c.status, no)
			continue
		}
		code, _ := p.Failure()
		effect, said := p.TookEffect()
		if code != c.want || effect != c.effect || said != c.said || p.OK() != c.effect {
			t.Errorf("%d %s: %q %v %v", c.status, c.body, code, effect, said)
		}
	}
	for _, p := range []*Proved{nil, {}, {took: true, said: true, pending: true}} {
		if effect, said := p.TookEffect(); effect || said || p.Pending() {
			t.Errorf("%+v tells something", p)
		}
	}
}

// A find that meets nothing before the request is only NOT_FOUND; after it, it
// may have been done.
func TestMissedBeforeTheRequest(t *testing.T) {
	capture := map[string]PickSpec{"id": {Kind: PickFind, Find: &FindSpec{In: "", Where: *equalsSpec("/name", "x")}, At: "/id"}}
	for step, want := range map[StepKind]bool{StepLookup: false, StepRequest: true} {
		r := mustReader(t, ReaderSpec{Step: step, Change: true, Rows: []RowSpec{{Status: []int{200}, HasCapture: true, Capture: capture}}})
		p, no := r.Prove(answer(200, `[]`), nil, testNow)
		if code, _ := p.Failure(); no != nil || code != "NOT_FOUND" || p.Missed() != want {
			t.Errorf("step %d: %v %s %v", step, no, code, p.Missed())
		}
		if _, goes := p.Captured(); goes {
			t.Errorf("step %d goes on without what it should have found", step)
		}
	}
}

// What each step's rows may not say.
func TestCompileHoldsRowsToTheirStep(t *testing.T) {
	fails := func(code string) *FailureSpec { return &FailureSpec{Code: code} }
	cases := []struct {
		step StepKind
		row  RowSpec
		want string
	}{
		{9, RowSpec{HasSuccess: true}, "no such step"},
		{StepLookup, RowSpec{HasSuccess: true}, "a lookup has no success"},
		{StepLookup, RowSpec{HasSuccess: true, HasCapture: true}, "a lookup has no success"},
		{StepLookup, RowSpec{}, "write capture or failure"},
		{StepLookup, RowSpec{Failure: fails("OUTCOME_UNKNOWN")}, "before the request nothing is"},
		{StepLookup, RowSpec{HasCapture: true, Pending: true}, "pending stands in a poll only"},
		{StepLookup, RowSpec{Failure: fails("NOT_FOUND"), TookEffect: &tookNone}, "took_effect stands in a reconcile only"},
		{StepRequest, RowSpec{Pending: true}, "pending stands in a poll only"},
		{StepRequest, RowSpec{HasSuccess: true, TookEffect: &tookIt}, "took_effect stands in a reconcile only"},
		{StepPoll, RowSpec{HasCapture: true}, "a poll captures nothing"},
		{StepPoll, RowSpec{}, "write one of success, failure or pending"},
		{StepPoll, RowSpec{Pending: true, HasSuccess: true}, "pending stands alone"},
		{StepPoll, RowSpec{Pending: true, Failure: fails("MY_CODE")}, "pending stands alone"},
		{StepReconcile, RowSpec{TookEffect: &tookNone, HasCapture: true}, "a reconcile captures nothing"},
		{StepReconcile, RowSpec{HasSuccess: true}, "write took_effect"},
		{StepReconcile, RowSpec{Failure: fails("NOT_FOUND")}, "write took_effect"},
		{StepReconcile, RowSpec{}, "write took_effect"},
		{StepReconcile, RowSpec{TookEffect: &tookIt}, "took_effect: true stands beside success"},
		{StepReconcile, RowSpec{TookEffect: &tookIt, Failure: fails("MY_CODE")}, "took_effect: true stands beside success"},
		{StepReconcile, RowSpec{TookEffect: &tookNone, HasSuccess: true}, "took_effect: false is no success"},
		{StepReconcile, RowSpec{TookEffect: &tookNone, Failure: fails("OUTCOME_UNKNOWN")}, "take took_effect away"},
	}
	for _, c := range cases {
		c.row.Status = []int{200}
		_, err := Compile("step", ReaderSpec{Step: c.step, Change: true, Rows: []RowSpec{c.row}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("step %d, %+v: %v, want %q", c.step, c.row, err, c.want)
		}
	}
}

// What reads may say what only the request of a change may not.
func TestStepsThatReadSayMore(t *testing.T) {
	away := &FailureSpec{Code: "UPSTREAM_UNAVAILABLE"}
	for i, c := range []struct {
		step   StepKind
		change bool
		row    RowSpec
	}{
		{StepLookup, true, RowSpec{Status: []int{503}, Failure: away}},
		{StepPoll, false, RowSpec{Status: []int{503}, Failure: away}},
		{StepPoll, true, RowSpec{Status: []int{503}, Failure: away}},
		{StepPoll, true, RowSpec{Status: []int{500}, Failure: &FailureSpec{Code: "RUN_FAILED"}}},
		{StepPoll, true, RowSpec{Status: []int{500}, HasSuccess: true}},
		{StepReconcile, true, RowSpec{Status: []int{500}, TookEffect: &tookNone, Failure: away}},
		{StepReconcile, true, RowSpec{Status: []int{500}, HasSuccess: true, TookEffect: &tookIt}},
	} {
		if _, err := Compile("step", ReaderSpec{Step: c.step, Change: c.change, Rows: []RowSpec{c.row}}); err != nil {
			t.Error(fmt.Sprint(i), err)
		}
	}
}
