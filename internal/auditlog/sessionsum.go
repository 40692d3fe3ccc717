package auditlog

import "time"

// SessionSum is one session as a Journal sums it up: who, which process, from when to
// when, who decided about it, and its calls by action and code.
type SessionSum struct {
	SessionID string    `json:"session_id"`
	Actor     string    `json:"actor"`
	State     string    `json:"state"` // pending, authorised, or the reason of its end
	Opened    time.Time `json:"opened"`
	Closed    time.Time `json:"closed,omitzero"`
	Last      time.Time `json:"last"` // of its newest event
	FirstSeq  uint64    `json:"first_seq"`
	LastSeq   uint64    `json:"last_seq"`

	Executable string `json:"executable,omitzero"`
	Listener   string `json:"listener,omitzero"`
	PID        int    `json:"pid,omitzero"`
	UID        *int   `json:"uid,omitzero"` // 0 is root

	Decisions  []Decision     `json:"decisions"` // about the session itself
	Calls      int            `json:"calls"`
	Refused    int            `json:"refused"` // calls, and what was refused before it had an id
	Unresolved int            `json:"unresolved"`
	Actions    map[string]int `json:"actions"`
	Codes      map[string]int `json:"codes"`              // the last one of each call
	Continues  bool           `json:"continues,omitzero"` // its beginning is not among the events that were folded
}

// States of a session besides the reasons of its end.
const (
	sessionPending    = "pending"
	sessionAuthorised = "authorised"
	decisionAuthorize = "session.authorize"
)

// fold adds one event to its session. A session in which a call was sent is an
// authorised one, also where that decision is not among the events.
func (s *SessionSum) fold(ev *Event) {
	s.Last, s.LastSeq = ev.Wall, ev.Seq
	switch {
	case ev.Type == TypeSessionOpen:
		first(&s.Actor, ev.Actor)
		first(&s.Executable, textOf(ev.Detail["executable"]))
		first(&s.Listener, textOf(ev.Detail["listener"]))
		s.PID = intOf(ev.Detail["pid"])
		if v, ok := ev.Detail["uid"]; ok {
			uid := intOf(v)
			s.UID = &uid
		}
	case ev.Type == TypeSessionClose:
		first(&s.Actor, ev.Actor)
		s.Closed, s.State = ev.Wall, "closed"
		set(&s.State, ev.Status)
	case ev.CallID != "":
		first(&s.Actor, ev.Actor)
		if ev.Type == TypeIntent && s.Closed.IsZero() {
			s.State = sessionAuthorised
		}
	case ev.Decision != "":
		s.decide(ev)
	}
}

func (s *SessionSum) decide(ev *Event) {
	if ev.Decision == decisionAuthorize && s.Closed.IsZero() {
		s.State = sessionAuthorised
	}
	if len(s.Decisions) < maxNames {
		s.Decisions = append(s.Decisions, Decision{Seq: ev.Seq, At: ev.Wall, By: ev.Actor, Decision: ev.Decision, Rule: ev.Rule})
	}
}

// count adds a call that has left the fold.
func (s *SessionSum) count(a *Activity) {
	first(&s.Actor, a.Actor)
	s.Calls++
	switch a.State {
	case CallRefused:
		s.Refused++
	case CallUnresolved:
		s.Unresolved++
	}
	addName(s.Actions, a.Action)
	addName(s.Codes, a.Status)
}

// refuse adds what was refused before it was a call.
func (s *SessionSum) refuse(a *Activity) {
	first(&s.Actor, a.Actor)
	s.Refused++
	addName(s.Actions, a.Action)
	addName(s.Codes, a.Status)
}

// addName counts a name, as long as there are not too many.
func addName(m map[string]int, name string) {
	if name == "" {
		return
	}
	if _, ok := m[name]; !ok && len(m) >= maxNames {
		name = others
	}
	m[name]++
}
