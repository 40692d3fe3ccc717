package auditlog

import (
	"cmp"
	"container/list"
	"slices"
	"time"
)

// DefaultHold is how many calls, and how many sessions, a Journal holds at once: far
// more than are ever under way together, and some tens of megabytes at most.
const DefaultHold = 10_000

// maxNames bounds how many actions, codes and decisions are told apart in one
// session, and maxRefusals the kinds of refusal in one sum. Agents choose the names
// of actions that are not there.
const (
	maxNames    = 64
	maxRefusals = 1000
	// others is counted where a bound is met.
	others = "(others)"
)

// Journal folds the events of a record, as they are read, into calls and sessions. It
// holds the newest ones only: past its bound the oldest leaves first, and what comes
// about it later begins a new entry with Continues.
type Journal struct {
	calls    held[Activity]
	sessions held[SessionSum]
	counts   func(*Activity) bool
}

// NewJournal folds with at most hold calls and hold sessions in memory. Each call
// that leaves goes to call, each session to session; either may be nil. A session
// counts the calls for which counts is true; nil counts all.
func NewJournal(hold int, call func(Activity) error, session func(SessionSum) error, counts func(*Activity) bool) *Journal {
	j := &Journal{counts: counts, calls: newHeld[Activity](hold), sessions: newHeld[SessionSum](hold)}
	j.sessions.leave = func(s *SessionSum) error {
		if session == nil {
			return nil
		}
		return session(*s)
	}
	j.calls.leave = func(a *Activity) error {
		if err := j.count(a); err != nil || call == nil {
			return err
		}
		return call(*a)
	}
	return j
}

// Add folds one event. Events come in order of sequence. An error is one of the
// functions given to NewJournal.
func (j *Journal) Add(ev *Event) error {
	if ev.SessionID != "" {
		s, err := j.session(ev.SessionID, ev)
		if err != nil {
			return err
		}
		s.fold(ev)
		if ev.Type == TypeDeny && ev.CallID == "" { // refused before it had an id
			a := newActivity("", ev)
			a.refuse(ev)
			if j.counts == nil || j.counts(&a) {
				s.refuse(&a)
			}
		}
	}
	id := ev.ofCall()
	if id == "" {
		return nil
	}
	a, err := j.calls.get(id, func() Activity { return newActivity(id, ev) })
	if err != nil {
		return err
	}
	a.fold(ev)
	a.last = ev.Wall
	return nil
}

// End gives out everything that is still held, in order of the first events.
func (j *Journal) End() error {
	if err := j.calls.drain(); err != nil {
		return err
	}
	return j.sessions.drain()
}

func (j *Journal) session(id string, ev *Event) (*SessionSum, error) {
	return j.sessions.get(id, func() SessionSum {
		return SessionSum{
			SessionID: id, State: sessionPending, Opened: ev.Wall, FirstSeq: ev.Seq, Decisions: []Decision{},
			Actions: map[string]int{}, Codes: map[string]int{}, Continues: ev.Type != TypeSessionOpen,
		}
	})
}

// count adds a call that leaves to its session.
func (j *Journal) count(a *Activity) error {
	if a.SessionID == "" || j.counts != nil && !j.counts(a) {
		return nil
	}
	s, err := j.session(a.SessionID, &Event{Wall: a.Started, Seq: a.FirstSeq})
	if err != nil {
		return err
	}
	s.count(a)
	return nil
}

// refuse makes an entry of a refusal that has no call.
func (a *Activity) refuse(ev *Event) {
	a.SessionID, a.Actor, a.Action, a.Target, a.Status, a.Rule = ev.SessionID, ev.Actor, ev.Action, ev.Target, ev.Status, ev.Rule
	a.Ended, a.last, a.State = ev.Wall, ev.Wall, CallRefused
}

// held keeps entries by id, in order of arrival, up to a bound.
type held[T any] struct {
	max   int
	byID  map[string]*list.Element
	order *list.List // of *entry[T]
	leave func(*T) error
}

type entry[T any] struct {
	id string
	v  T
}

func newHeld[T any](hold int) held[T] {
	return held[T]{max: max(hold, 1), byID: map[string]*list.Element{}, order: list.New()}
}

// get finds an entry, or begins it and lets the oldest leave.
func (h *held[T]) get(id string, begin func() T) (*T, error) {
	if el, ok := h.byID[id]; ok {
		return &el.Value.(*entry[T]).v, nil
	}
	for h.order.Len() >= h.max {
		if err := h.first(); err != nil {
			return nil, err
		}
	}
	el := h.order.PushBack(&entry[T]{id: id, v: begin()})
	h.byID[id] = el
	return &el.Value.(*entry[T]).v, nil
}

// first lets the oldest entry leave.
func (h *held[T]) first() error {
	e := h.order.Remove(h.order.Front()).(*entry[T])
	delete(h.byID, e.id)
	return h.leave(&e.v)
}

func (h *held[T]) drain() error {
	for h.order.Len() > 0 {
		if err := h.first(); err != nil {
			return err
		}
	}
	return nil
}

// Last is when the newest event of a call was written, as far as a Journal folded it.
func (a *Activity) Last() time.Time { return a.last }

// Refusal sums up refusals of one kind: nothing was sent.
type Refusal struct {
	Actor  string    `json:"actor"`
	Action string    `json:"action"`
	Code   string    `json:"code"`
	Count  int       `json:"count"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Rule   string    `json:"rule"` // of the newest one
}

// Refusals sums up deny events by who, what and code. The zero value is ready.
type Refusals struct{ of map[[3]string]*Refusal }

// Add counts an event, if it is a refusal.
func (r *Refusals) Add(ev *Event) {
	if ev.Type != TypeDeny {
		return
	}
	if r.of == nil {
		r.of = map[[3]string]*Refusal{}
	}
	key := [3]string{ev.Actor, ev.Action, ev.Status}
	x := r.of[key]
	if x == nil && len(r.of) >= maxRefusals {
		key = [3]string{others, others, others}
		x = r.of[key]
	}
	if x == nil {
		x = &Refusal{Actor: key[0], Action: key[1], Code: key[2], First: ev.Wall}
		r.of[key] = x
	}
	x.Count++
	x.Last, x.Rule = ev.Wall, ev.Rule
}

// List gives the sums, the most frequent first; never nil.
func (r *Refusals) List() []Refusal {
	out := make([]Refusal, 0, len(r.of))
	for _, x := range r.of {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(x, y Refusal) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Actor, y.Actor), cmp.Compare(x.Action, y.Action), cmp.Compare(x.Code, y.Code))
	})
	return out
}
