package auditlog

import "time"

// statusGoesOn is the status of an outcome after which the call goes on: a lookup
// or a poll has ended, the call has not.
const statusGoesOn = "IN_PROGRESS"

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
	Detail     map[string]any `json:"detail"`
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
		if ev.CallID == "" {
			continue
		}
		at, ok := index[ev.CallID]
		if !ok {
			at = len(out)
			index[ev.CallID] = at
			out = append(out, Activity{CallID: ev.CallID, FirstSeq: ev.Seq, Started: ev.Wall, Detail: map[string]any{}})
		}
		out[at].fold(ev)
	}
	return out
}

// fold adds one event to its call. A later event's word stands, but for the
// actor: who asked, not who decided.
func (a *Activity) fold(ev *Event) {
	set(&a.SessionID, ev.SessionID)
	first(&a.Actor, ev.Actor)
	set(&a.Action, ev.Action)
	if ev.ofExchange() {
		a.LastSeq = ev.Seq
		return
	}
	set(&a.Target, ev.Target)
	set(&a.Decision, ev.Decision)
	set(&a.Rule, ev.Rule)
	set(&a.Status, ev.Status)
	a.LastSeq = ev.Seq
	for k, v := range ev.Detail {
		a.Detail[k] = v
	}
	switch ev.Type {
	case TypeIntent:
		a.Intents++
		a.Unresolved = true
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
