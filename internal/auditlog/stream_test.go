package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// story is a record's events, one a second, with their sequences.
func story(evs ...Event) []Event {
	for i := range evs {
		evs[i].Seq = uint64(i + 1)
		evs[i].Wall = time.Date(2026, 11, 30, 9, 0, i, 0, time.UTC)
	}
	return evs
}

// ofStep is an event of the call c that names a step.
func ofStep(kind, step, status string) Event {
	return Event{Type: kind, SessionID: "s", CallID: "c", Actor: "worker", Action: "deploy", Status: status, Detail: map[string]any{"step": step, "effect": "create"}}
}

// folded streams a story and gives what came out.
func folded(t *testing.T, hold int, evs []Event) (calls []Activity, sessions []SessionSum) {
	t.Helper()
	j := NewJournal(hold, func(a Activity) error { calls = append(calls, a); return nil },
		func(s SessionSum) error { sessions = append(sessions, s); return nil }, nil)
	for i := range evs {
		if err := j.Add(&evs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.End(); err != nil {
		t.Fatal(err)
	}
	return calls, sessions
}

func resolve(decision string, happened bool) Event {
	return Event{Type: TypeConfig, Actor: "uid 7", Decision: decision, Target: "c", Detail: map[string]any{"happened": happened}}
}

// Where a call stands, after every kind of end and of none.
func TestStates(t *testing.T) {
	sent := func(status string) []Event {
		return []Event{ofStep(TypeIntent, "request", ""), ofStep(TypeOutcome, "request", status)}
	}
	read := ofStep(TypeIntent, "request", "")
	read.Detail = map[string]any{"step": "request", "effect": "read"}
	left := ofStep(TypeReconcile, "", "OUTCOME_UNKNOWN") // what the next run says of it
	token := ofStep(TypeIntent, "token", "")
	token.Detail["kind"] = KindExchange
	cases := []struct {
		name  string
		evs   []Event
		state string
		ended bool
	}{
		{"success", sent("OK"), CallFinished, true},
		{"a code of the contract", sent("RELEASE_EXISTS"), CallFinished, true},
		{"refused", []Event{ofStep(TypeDeny, "", "APPROVAL_DENIED")}, CallRefused, true},
		{"under way, or a crash", []Event{ofStep(TypeIntent, "request", "")}, CallUnresolved, false},
		{"a crash after the answer", []Event{ofStep(TypeIntent, "request", ""), ofStep(TypeAnswer, "request", "")}, CallUnresolved, false},
		{"a crash, and the next run gives up", []Event{ofStep(TypeIntent, "request", ""), left}, CallUnresolved, true},
		{"a crash, and the next run looks", []Event{ofStep(TypeIntent, "request", ""), ofStep(TypeReconcile, "", "IN_PROGRESS")}, CallInProgress, false},
		{"a crash in a poll that goes on", append(sent("IN_PROGRESS"), ofStep(TypeIntent, "poll", ""), ofStep(TypeReconcile, "", "IN_PROGRESS"), ofStep(TypeIntent, "poll", ""), ofStep(TypeOutcome, "poll", "OK")), CallFinished, true},
		{"looked up: it took effect", append(sent("OUTCOME_UNKNOWN"), ofStep(TypeReconcile, "", "OK")), CallFinished, true},
		{"looked up: cannot tell", append(sent("OUTCOME_UNKNOWN"), ofStep(TypeReconcile, "", "OUTCOME_UNKNOWN")), CallUnresolved, true},
		{"goes on", sent("IN_PROGRESS"), CallInProgress, false},
		{"an answer that proves nothing, of a change", sent("INVALID_RESPONSE"), CallUnresolved, true},
		{"the same of a read", []Event{read, ofStep(TypeOutcome, "request", "INVALID_RESPONSE")}, CallFinished, true},
		{"a person says", append(sent("OUTCOME_UNKNOWN"), resolve("call.resolve", true)), CallResolved, true},
		{"which did not count", append(sent("OUTCOME_UNKNOWN"), resolve("call.resolve", true), resolve("call.resolve-refused", true)), CallUnresolved, true},
		{"a look that ends after the person spoke", append(sent("OUTCOME_UNKNOWN"), resolve("call.resolve", true), ofStep(TypeReconcile, "", "OUTCOME_UNKNOWN")), CallResolved, true},
		{"sent anew after it did not happen", append(sent("OUTCOME_UNKNOWN"), resolve("call.resolve", false), ofStep(TypeIntent, "request", "")), CallUnresolved, false},
		{"only a token was asked for", []Event{token}, CallBegun, false},
	}
	for _, c := range cases {
		evs := story(c.evs...)
		if c.name == "the same of a read" {
			evs[1].Detail = map[string]any{"step": "request"}
		}
		calls, _ := folded(t, 10, evs)
		if len(calls) != 1 || calls[0].State != c.state || calls[0].Ended.IsZero() == c.ended {
			t.Errorf("%s: %+v", c.name, calls)
		}
		whole := ActivityJournal(evs)
		if len(whole) != 1 || whole[0].State != c.state {
			t.Errorf("%s: of this run: %+v", c.name, whole)
		}
	}
}

// Steps in order of their first event: polls together, an exchange as one that is no
// end of the call.
func TestSteps(t *testing.T) {
	intent := func(step, endpoint string) Event {
		e := ofStep(TypeIntent, step, "")
		e.Detail["endpoint"] = endpoint
		return e
	}
	token, tokenEnd := intent("token", "POST https://idp"), ofStep(TypeOutcome, "token", "IN_PROGRESS")
	token.Detail["kind"], tokenEnd.Detail["kind"] = KindExchange, KindExchange
	answer := ofStep(TypeAnswer, "request", "")
	answer.Detail["upstream_status"] = json.Number("202")
	bad := ofStep(TypeOutcome, "poll", "INVALID_RESPONSE")
	bad.Rule = "schema/required"
	calls, _ := folded(t, 10, story(token, tokenEnd, intent("request", "POST https://api"), answer, ofStep(TypeOutcome, "request", "IN_PROGRESS"),
		intent("poll", "GET https://api"), ofStep(TypeOutcome, "poll", "IN_PROGRESS"), intent("poll", "GET https://api"), bad))
	want := []Step{
		{Step: "token", Kind: KindExchange, Sends: 1, Endpoint: "POST https://idp", Status: "IN_PROGRESS"},
		{Step: "request", Sends: 1, Endpoint: "POST https://api", Upstream: 202, Status: "IN_PROGRESS"},
		{Step: "poll", Sends: 2, Endpoint: "GET https://api", Status: "INVALID_RESPONSE", Rule: "schema/required"},
	}
	if len(calls) != 1 || !reflect.DeepEqual(calls[0].Steps, want) || calls[0].Intents != 3 {
		t.Fatalf("%+v", calls)
	}
	var many []Event
	for i := range 2 * maxSteps {
		many = append(many, intent(fmt.Sprint("step", i), ""))
	}
	if calls, _ := folded(t, 10, story(many...)); len(calls[0].Steps) != maxSteps {
		t.Errorf("%d steps are held", len(calls[0].Steps))
	}
}

func TestSessionSums(t *testing.T) {
	open := Event{Type: TypeSessionOpen, SessionID: "s", Actor: "worker", Status: "pending",
		Detail: map[string]any{"executable": "/usr/bin/agent", "listener": "socket", "pid": json.Number("42"), "uid": json.Number("0")}}
	yes := Event{Type: TypeConfig, SessionID: "s", Actor: "uid 7", Decision: "session.authorize", Target: "s"}
	end := Event{Type: TypeSessionClose, SessionID: "s", Actor: "worker", Status: "revoked"}
	early := Event{Type: TypeDeny, SessionID: "s", Actor: "worker", Action: "nonsense", Status: "UNKNOWN_ACTION"} // before any id
	refused := ofStep(TypeDeny, "", "TARGET_NOT_ALLOWED")
	refused.CallID = "d"
	evs := story(open, yes, ofStep(TypeIntent, "request", ""), early, refused, end)
	_, sessions := folded(t, 10, evs)
	if len(sessions) != 1 {
		t.Fatalf("%+v", sessions)
	}
	s := sessions[0]
	root := 0
	want := SessionSum{
		SessionID: "s", Actor: "worker", State: "revoked", Opened: evs[0].Wall, Closed: evs[5].Wall, Last: evs[5].Wall, FirstSeq: 1, LastSeq: 6,
		Executable: "/usr/bin/agent", Listener: "socket", PID: 42, UID: &root,
		Decisions: []Decision{{Seq: 2, At: evs[1].Wall, By: "uid 7", Decision: "session.authorize"}},
		Calls:     2, Refused: 2, Unresolved: 1, Actions: map[string]int{"deploy": 2, "nonsense": 1}, Codes: map[string]int{"TARGET_NOT_ALLOWED": 1, "UNKNOWN_ACTION": 1},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	for state, evs := range map[string][]Event{"pending": {open}, "authorised": {open, yes}} {
		if _, s := folded(t, 10, story(evs...)); s[0].State != state {
			t.Errorf("%s: %+v", state, s)
		}
	}
	// The front of the record is not there.
	if _, s := folded(t, 10, story(ofStep(TypeIntent, "request", ""))); !s[0].Continues || s[0].State != "authorised" || s[0].Actor != "worker" {
		t.Errorf("%+v", s)
	}
}

// However long the record is, no more is held than was said, and what was let go of
// comes out in order, once, with a mark where it goes on.
func TestJournalIsBounded(t *testing.T) {
	const hold, calls = 4, 100
	var out []Activity
	most := 0
	var j *Journal
	j = NewJournal(hold, func(a Activity) error {
		most = max(most, j.calls.order.Len(), len(j.calls.byID), j.sessions.order.Len())
		out = append(out, a)
		return nil
	}, nil, nil)
	for i := range calls {
		for _, kind := range []string{TypeIntent, TypeOutcome} {
			ev := Event{Type: kind, CallID: fmt.Sprint("c", i), SessionID: fmt.Sprint("s", i), Status: "OK"}
			if err := j.Add(&ev); err != nil {
				t.Fatal(err)
			}
		}
	}
	late := Event{Type: TypeReconcile, CallID: "c0", IntentSeq: 1, Status: "OK"}
	if err := errors.Join(j.Add(&late), j.End()); err != nil {
		t.Fatal(err)
	}
	if most > hold || len(out) != calls+1 {
		t.Fatalf("%d held, %d came out", most, len(out))
	}
	for i, a := range out[:calls] {
		if a.CallID != fmt.Sprint("c", i) || a.Continues || a.State != CallFinished || a.Detail != nil {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if a := out[calls]; a.CallID != "c0" || !a.Continues {
		t.Errorf("%+v", a)
	}
}

// A reader that cannot write any more stops the fold.
func TestJournalStops(t *testing.T) {
	full := errors.New("the disk is full")
	j := NewJournal(1, func(Activity) error { return full }, nil, nil)
	a, b := Event{Type: TypeIntent, CallID: "a"}, Event{Type: TypeIntent, CallID: "b"}
	if err := j.Add(&a); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(&b); err != full {
		t.Errorf("%v", err)
	}
}

func TestRefusals(t *testing.T) {
	var r Refusals
	if got := r.List(); got == nil || len(got) != 0 {
		t.Errorf("%v", got)
	}
	evs := story(Event{Type: TypeDeny, Actor: "a", Action: "x", Status: "VAULT_LOCKED"}, Event{Type: TypeDeny, Actor: "b", Action: "x", Status: "UNKNOWN_ACTION"},
		Event{Type: TypeIntent, Actor: "a", Action: "x"}, Event{Type: TypeDeny, Actor: "b", Action: "x", Status: "UNKNOWN_ACTION", Rule: "newest"})
	for i := range evs {
		r.Add(&evs[i])
	}
	want := []Refusal{{"b", "x", "UNKNOWN_ACTION", 2, evs[1].Wall, evs[3].Wall, "newest"}, {"a", "x", "VAULT_LOCKED", 1, evs[0].Wall, evs[0].Wall, ""}}
	if got := r.List(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	// Names that an agent makes up do not take the memory.
	for i := range 2 * maxRefusals {
		r.Add(&Event{Type: TypeDeny, Actor: "b", Action: fmt.Sprint("made-up-", i), Status: "UNKNOWN_ACTION"})
	}
	got := r.List()
	total := 0
	for _, x := range got {
		total += x.Count
	}
	if len(got) != maxRefusals+1 || got[0].Actor != others || total != 3+2*maxRefusals {
		t.Errorf("%d sums of %d refusals, first %+v", len(got), total, got[0])
	}
}
