package auditlog

import (
	"maps"
	"time"
)

// Statuses that a fold reads. Codes are those of the catalogue.
const (
	// statusGoesOn is the status of an outcome after which the call goes on: a
	// lookup or a poll has ended, the call has not.
	statusGoesOn  = "IN_PROGRESS"
	statusUnknown = "OUTCOME_UNKNOWN"
)

// statusUntold are the codes with which a call that may have changed something may
// have changed it: the answer proves nothing.
var statusUntold = map[string]bool{"INVALID_RESPONSE": true, "INTERNAL": true}

// effectRead is detail.effect of an intent that changes nothing.
const effectRead = "read"

// Decisions of config events that are about a call, whose id is their target.
const (
	decisionResolve        = "call.resolve"
	decisionResolveRefused = "call.resolve-refused"
)

// The words of Activity.State.
const (
	CallBegun      = "begun"       // nothing of the call itself was sent or refused yet
	CallInProgress = "in progress" // a step has ended, the call goes on
	CallUnresolved = "unresolved"  // it may have happened: no end is recorded, or one that does not tell
	CallResolved   = "resolved"    // a person said what became of it
	CallRefused    = "refused"     // nothing was sent
	CallFinished   = "finished"
)

// KindExchange is detail.kind of the events of an exchange: an identity's secret went
// out and a token came back. The call that it was sent for may have ended by then, and
// the token serves others too, so that it says nothing of how the call stands.
const KindExchange = "exchange"

// ofExchange says whether an event is of an exchange.
func (ev *Event) ofExchange() bool { return ev.Detail["kind"] == KindExchange }

// Activity is one call as the activity journal shows it.
type Activity struct {
	CallID     string         `json:"call_id"`
	SessionID  string         `json:"session_id"`
	Actor      string         `json:"actor"`
	Action     string         `json:"action"`
	Target     string         `json:"target"`
	Decision   string         `json:"decision"`
	Rule       string         `json:"rule"`
	Status     string         `json:"status"`
	Started    time.Time      `json:"started"`
	Ended      time.Time      `json:"ended,omitzero"`
	FirstSeq   uint64         `json:"first_seq"`
	LastSeq    uint64         `json:"last_seq"`
	Intents    int            `json:"intents"`
	Answers    int            `json:"answers"`
	Unresolved bool           `json:"unresolved"` // an intent without an outcome: it may have happened
	State      string         `json:"state"`      // one of the Call constants
	Sentence   string         `json:"sentence,omitzero"`
	Steps      []Step         `json:"steps"`
	Resolved   *Decision      `json:"resolved,omitzero"`  // what a person said became of it
	Continues  bool           `json:"continues,omitzero"` // its beginning is not among the events that were folded
	Detail     map[string]any `json:"detail,omitzero"`

	change bool      // an intent said that it changes something
	last   time.Time // of the newest event; only a Journal fills it
}

// SessionEntry is one session as the session journal shows it.
type SessionEntry struct {
	SessionID string         `json:"session_id"`
	Actor     string         `json:"actor"`
	Status    string         `json:"status"`
	Opened    time.Time      `json:"opened"`
	Closed    time.Time      `json:"closed,omitzero"`
	Decisions []Decision     `json:"decisions"`
	Calls     []CallRef      `json:"calls"`
	Denied    int            `json:"denied"`
	Detail    map[string]any `json:"detail"`
}

// Decision is one yes or no inside a session.
type Decision struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Decision string    `json:"decision"`
	Rule     string    `json:"rule"`
	CallID   string    `json:"call_id"`
}

// CallRef points from a session to a call.
type CallRef struct {
	CallID string `json:"call_id"`
	Action string `json:"action"`
	Status string `json:"status"`
}

// ActivityJournal folds events, in order of sequence, into one entry a call,
// in order of the calls' first events. Events without a call id are not in it.
func ActivityJournal(evs []Event) []Activity {
	index := map[string]int{}
	out := []Activity{}
	for i := range evs {
		ev := &evs[i]
		id := ev.ofCall()
		if id == "" {
			continue
		}
		at, ok := index[id]
		if !ok {
			at = len(out)
			index[id] = at
			out = append(out, newActivity(id, ev))
			out[at].Detail = map[string]any{}
		}
		out[at].fold(ev)
	}
	return out
}

// ofCall is the id of the call that an event is about: what a person said of a call
// names it as its target.
func (ev *Event) ofCall() string {
	if ev.Type == TypeConfig && (ev.Decision == decisionResolve || ev.Decision == decisionResolveRefused) {
		return ev.Target
	}
	return ev.CallID
}

// newActivity begins a call with its first event. An answer, an end or a person's
// word about it comes after an intent.
func newActivity(id string, ev *Event) Activity {
	return Activity{
		CallID: id, FirstSeq: ev.Seq, Started: ev.Wall, State: CallBegun, Steps: []Step{},
		Continues: ev.IntentSeq != 0 || ev.Type == TypeConfig,
	}
}

// fold adds one event to its call. A later event's word stands, but for the
// actor: who asked, not who decided. The detail is gathered where there is a map
// for it.
func (a *Activity) fold(ev *Event) {
	a.LastSeq = ev.Seq
	if ev.CallID == "" {
		a.foldDecision(ev)
		return
	}
	set(&a.SessionID, ev.SessionID)
	first(&a.Actor, ev.Actor)
	set(&a.Action, ev.Action)
	a.foldStep(ev)
	if ev.ofExchange() {
		return
	}
	set(&a.Target, ev.Target)
	set(&a.Decision, ev.Decision)
	set(&a.Rule, ev.Rule)
	set(&a.Status, ev.Status)
	set(&a.Sentence, textOf(ev.Detail["sentence"]))
	if a.Detail != nil {
		maps.Copy(a.Detail, ev.Detail)
	}
	a.foldEnd(ev)
	a.State = a.state(ev.Type)
}

// foldEnd follows whether the call is under way and when it ended.
func (a *Activity) foldEnd(ev *Event) {
	switch ev.Type {
	case TypeIntent:
		a.Intents++
		a.Unresolved, a.Ended, a.Resolved = true, time.Time{}, nil // what is sent anew has no end yet
		if e := textOf(ev.Detail["effect"]); e != "" && e != effectRead {
			a.change = true
		}
	case TypeAnswer:
		a.Answers++
	case TypeOutcome, TypeReconcile:
		a.Unresolved, a.Ended = false, ev.Wall
		if ev.Status == statusGoesOn {
			a.Ended = time.Time{}
		}
	case TypeDeny:
		a.Ended = ev.Wall
	}
}

// foldDecision adds what a person said of the call, or that it did not count.
func (a *Activity) foldDecision(ev *Event) {
	a.Resolved = nil
	if ev.Decision == decisionResolve {
		a.Resolved = &Decision{Seq: ev.Seq, At: ev.Wall, By: ev.Actor, Decision: "it did not happen", CallID: a.CallID}
		if ev.Detail["happened"] == true {
			a.Resolved.Decision = "it happened"
		}
	}
	a.State = a.state(ev.Type)
}

// state is where the call stands after an event of the type given.
func (a *Activity) state(last string) string {
	switch {
	case a.Resolved != nil:
		return CallResolved
	case a.Unresolved, a.Status == statusUnknown, a.change && statusUntold[a.Status]:
		return CallUnresolved
	case last == TypeDeny:
		return CallRefused
	case a.Status == statusGoesOn:
		return CallInProgress
	case a.Ended.IsZero() && a.Status == "":
		return CallBegun
	}
	return CallFinished
}

// SessionJournal folds events, in order of sequence, into one entry a session,
// in order of the sessions' first events. Events without a session id are not
// in it.
func SessionJournal(evs []Event) []SessionEntry {
	index := map[string]int{}
	out := []SessionEntry{}
	for i := range evs {
		ev := &evs[i]
		if ev.SessionID == "" {
			continue
		}
		at, ok := index[ev.SessionID]
		if !ok {
			at = len(out)
			index[ev.SessionID] = at
			out = append(out, SessionEntry{SessionID: ev.SessionID, Opened: ev.Wall, Status: "open", Decisions: []Decision{}, Calls: []CallRef{}, Detail: map[string]any{}})
		}
		out[at].fold(ev)
	}
	return out
}

func (s *SessionEntry) fold(ev *Event) {
	switch ev.Type {
	case TypeSessionOpen, TypeSessionClose:
		first(&s.Actor, ev.Actor)
		for k, v := range ev.Detail {
			s.Detail[k] = v
		}
	case TypeDeny:
		s.Denied++
	}
	if ev.Type == TypeSessionClose {
		s.Closed, s.Status = ev.Wall, "closed"
		set(&s.Status, ev.Status)
	}
	if ev.Decision != "" {
		s.Decisions = append(s.Decisions, Decision{
			Seq: ev.Seq, At: ev.Wall, By: ev.Actor, Decision: ev.Decision, Rule: ev.Rule, CallID: ev.CallID,
		})
	}
	if ev.CallID != "" {
		s.foldCall(ev)
	}
}

func (s *SessionEntry) foldCall(ev *Event) {
	if ev.ofExchange() {
		return
	}
	for i := range s.Calls {
		if s.Calls[i].CallID == ev.CallID {
			set(&s.Calls[i].Action, ev.Action)
			set(&s.Calls[i].Status, ev.Status)
			return
		}
	}
	s.Calls = append(s.Calls, CallRef{CallID: ev.CallID, Action: ev.Action, Status: ev.Status})
}

// set keeps the old word when there is no new one.
func set(s *string, v string) {
	if v != "" {
		*s = v
	}
}

// first keeps the old word when there is one.
func first(s *string, v string) {
	if *s == "" {
		*s = v
	}
}
