package auditlog

import (
	"reflect"
	"testing"
	"time"
)

func TestJournals(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	evs := []Event{
		{Seq: 1, Type: TypeConfig, Wall: at(1)},
		{Seq: 2, Type: TypeSessionOpen, SessionID: "s1", Actor: "build-worker (uid 1000)", Wall: at(2), Detail: map[string]any{"exe": "/bin/x"}},
		{Seq: 3, Type: TypeSessionOpen, SessionID: "s1", Decision: "allow", Rule: "operator", Actor: "alice", Wall: at(3)},
		{Seq: 4, Type: TypeIntent, SessionID: "s1", CallID: "c1", Action: "deploy", Target: "prod", Actor: "build-worker", Decision: "allow", Wall: at(4), Detail: map[string]any{"a": 1}},
		{Seq: 5, Type: TypeDeny, SessionID: "s1", CallID: "c2", Action: "delete", Status: "TARGET_NOT_ALLOWED", Wall: at(5)},
		{Seq: 6, Type: TypeAnswer, SessionID: "s1", CallID: "c1", IntentSeq: 4, Wall: at(6)},
		{Seq: 7, Type: TypeIntent, SessionID: "s2", CallID: "c3", Action: "deploy", Wall: at(7)},
		{Seq: 8, Type: TypeOutcome, SessionID: "s1", CallID: "c1", IntentSeq: 4, Status: "ok", Wall: at(8), Detail: map[string]any{"b": 2}},
		{Seq: 9, Type: TypeSessionClose, SessionID: "s1", Status: "revoked", Actor: "alice", Wall: at(9)},
	}
	calls := ActivityJournal(evs)
	want := Activity{
		CallID: "c1", SessionID: "s1", Actor: "build-worker", Action: "deploy", Target: "prod", Decision: "allow", Status: "ok",
		Started: at(4), Ended: at(8), FirstSeq: 4, LastSeq: 8, Intents: 1, Answers: 1, Detail: map[string]any{"a": 1, "b": 2},
		State: CallFinished, Steps: []Step{{Step: "request", Sends: 1, Status: "ok"}},
	}
	if len(calls) != 3 || !reflect.DeepEqual(calls[0], want) {
		t.Fatalf("%+v", calls)
	}
	if !calls[2].Unresolved || calls[2].CallID != "c3" || calls[1].Unresolved || calls[1].Status != "TARGET_NOT_ALLOWED" {
		t.Errorf("%+v", calls[1:])
	}
	sessions := SessionJournal(evs)
	if len(sessions) != 2 {
		t.Fatalf("%+v", sessions)
	}
	s := sessions[0]
	if s.Opened != at(2) || s.Closed != at(9) || s.Status != "revoked" || s.Denied != 1 || s.Detail["exe"] != "/bin/x" || s.Actor != "build-worker (uid 1000)" {
		t.Errorf("%+v", s)
	}
	wantCalls := []CallRef{{"c1", "deploy", "ok"}, {"c2", "delete", "TARGET_NOT_ALLOWED"}}
	if !reflect.DeepEqual(s.Calls, wantCalls) || len(s.Decisions) != 2 || s.Decisions[0].By != "alice" {
		t.Errorf("%+v %+v", s.Calls, s.Decisions)
	}
	if sessions[1].Status != "open" {
		t.Errorf("%+v", sessions[1])
	}
	// Never nil: programs read these as JSON lists.
	if a, s := ActivityJournal(nil), SessionJournal(nil); a == nil || s == nil || len(a)+len(s) != 0 {
		t.Error("folds of nothing")
	}
}

// What a token was asked for, and when that ended, says nothing of the call: an
// exchange outlives the call that began it.
func TestAnExchangeIsNoEnd(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	token := map[string]any{"kind": KindExchange, "step": "token"}
	evs := []Event{
		{Seq: 1, Type: TypeIntent, SessionID: "s", CallID: "c", Actor: "worker", Action: "deploy", Wall: at, Detail: token},
		{Seq: 2, Type: TypeDeny, SessionID: "s", CallID: "c", Action: "deploy", Status: "UPSTREAM_UNAVAILABLE", Wall: at.Add(time.Second)},
		{Seq: 3, Type: TypeAnswer, SessionID: "s", CallID: "c", IntentSeq: 1, Wall: at.Add(2 * time.Second), Detail: token},
		{Seq: 4, Type: TypeOutcome, SessionID: "s", CallID: "c", IntentSeq: 1, Status: statusGoesOn, Wall: at.Add(2 * time.Second), Detail: token},
	}
	want := Activity{
		CallID: "c", SessionID: "s", Actor: "worker", Action: "deploy", Status: "UPSTREAM_UNAVAILABLE", Started: at, Ended: at.Add(time.Second),
		FirstSeq: 1, LastSeq: 4, Detail: map[string]any{},
		State: CallRefused, Steps: []Step{{Step: "token", Kind: KindExchange, Sends: 1, Status: statusGoesOn}},
	}
	if got := ActivityJournal(evs); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("%+v", got)
	}
	if got := SessionJournal(evs); len(got) != 1 || !reflect.DeepEqual(got[0].Calls, []CallRef{{"c", "deploy", "UPSTREAM_UNAVAILABLE"}}) {
		t.Errorf("%+v", got)
	}
	evs[0].Seq = 0
	if got := ActivityJournal(evs[:1]); got[0].Unresolved || got[0].Intents != 0 {
		t.Errorf("a crash in an exchange leaves %+v", got)
	}
}

// A call whose lookup or poll has ended goes on; it ends with the outcome that
// says so.
func TestACallThatGoesOnHasNotEnded(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	evs := []Event{
		{Type: TypeIntent, CallID: "c", Wall: at}, {Type: TypeOutcome, CallID: "c", Status: "IN_PROGRESS", Wall: at.Add(time.Second)},
		{Type: TypeIntent, CallID: "c", Wall: at.Add(2 * time.Second)},
	}
	if a := ActivityJournal(evs[:2])[0]; !a.Ended.IsZero() || a.Unresolved || a.Status != "IN_PROGRESS" {
		t.Errorf("after the first: %+v", a)
	}
	if a := ActivityJournal(evs)[0]; !a.Unresolved {
		t.Errorf("while the second is under way: %+v", a)
	}
	evs = append(evs, Event{Type: TypeOutcome, CallID: "c", Status: "OK", Wall: at.Add(3 * time.Second)})
	if a := ActivityJournal(evs)[0]; a.Ended != at.Add(3*time.Second) || a.Unresolved || a.Intents != 2 {
		t.Errorf("in the end: %+v", a)
	}
}
