package actions

import (
	"maps"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// StepKind says what one send of a call is for. The zero value is none of them.
type StepKind uint8

// The kinds of step, in the order in which a call may come to them.
const (
	StepLookup    StepKind = iota + 1 // reads a fact before the plan is frozen
	StepRequest                       // does the work
	StepPoll                          // asks again until a named end
	StepReconcile                     // tells whether the request took effect
)

// String gives the word that requests, fixtures and records call the step by; a
// lookup has a name of its own beside it.
func (k StepKind) String() string {
	switch k {
	case StepLookup:
		return "lookup"
	case StepRequest:
		return stepRequest
	case StepPoll:
		return stepPoll
	case StepReconcile:
		return stepReconcile
	}
	return "no step"
}

const (
	stepRequest   = "request"
	stepPoll      = "poll"
	stepReconcile = "reconcile"
)

// PollPolicy says how long a poll waits between two sends and how long it goes
// on after the request's answer.
type PollPolicy struct{ Every, Within time.Duration }

// Step is one send and how its answer is read. The zero value sends nothing
// and refuses every answer.
type Step struct {
	kind    StepKind
	request Request
	reader  *validate.Reader
	scope   validate.Scope
}

// Kind returns what the step is for, 0 for the zero value.
func (s Step) Kind() StepKind { return s.kind }

// Name returns "request", "poll", "reconcile" or the lookup's own name.
func (s Step) Name() string { return s.request.step }

// Request returns what is sent.
func (s Step) Request() Request { return s.request }

// Reader returns what reads the answer, nil (which refuses) for the zero value.
func (s Step) Reader() *validate.Reader { return s.reader }

// Scope returns the values that the answer may be compared with.
func (s Step) Scope() validate.Scope {
	if s.scope == nil {
		return nothing
	}
	return s.scope
}

// nothing is the scope of what has no values.
func nothing(string) (any, bool) { return nil, false }

// Looking is a call whose lookups are being made; it never changes. The zero
// value makes no plan.
type Looking struct{ p *plan }

// Begin starts a call. Its lookups, where the contract has any, are sent and
// answered one after the other before Freeze. INVALID_ARGUMENT says that an
// input cannot be part of a path.
func Begin(c *Contract, r Route, in Input, id IdentityFact, call CallFacts) (Looking, error) {
	switch {
	case c == nil || in.contract != c || r.target == nil:
		return Looking{}, fault.New(fault.Internal, errUnusable)
	case !c.envelope.Usable():
		return Looking{}, fault.Newf(fault.Internal, "the schema of the answers of %s cannot be used", c.action)
	case id.Name != r.target.identity:
		return Looking{}, fault.Newf(fault.TargetNotAllowed, "the target %q uses the identity %q, not %q", r.target.name, r.target.identity, id.Name)
	}
	return Looking{&plan{contract: c, route: r, input: in, id: id, call: call}}, nil
}

// Next returns the name of the next lookup; false when all are answered.
func (l Looking) Next() (name string, ok bool) {
	if s := l.next(); s != nil {
		return s.name, true
	}
	return "", false
}

func (l Looking) next() *stepSpec {
	if l.p == nil {
		return nil
	}
	for _, s := range l.p.contract.lookups {
		if _, answered := l.p.looked[s.name]; !answered {
			return s
		}
	}
	return nil
}

// Step returns the next lookup as a step. now is the moment of the first
// lookup's send; every lookup of a call gets the same. INVALID_RESPONSE says
// that what an earlier lookup found cannot be part of this one's path.
func (l Looking) Step(now time.Time) (Step, error) {
	s := l.next()
	if s == nil {
		return Step{}, fault.New(fault.Internal, errUnusable)
	}
	return l.p.step(s, l.p.env(now, false))
}

// With returns the call with the answer of its next lookup: what the row
// captured. A call that has all its answers stays as it is.
func (l Looking) With(captured map[string]any) Looking {
	s := l.next()
	if s == nil {
		return l
	}
	q := *l.p
	q.looked = make(map[string]map[string]any, len(l.p.looked)+1)
	maps.Copy(q.looked, l.p.looked)
	q.looked[s.name] = copied(captured)
	return Looking{&q}
}

// copied keeps captured values apart from what the caller still holds; the
// answer of a row that captures nothing is the empty object, not nil.
func copied(captured map[string]any) map[string]any {
	out, _ := deepCopy(captured).(map[string]any)
	return out
}

// Freeze makes the plan. INTERNAL says that a lookup is missing.
func (l Looking) Freeze() (Plan, error) {
	switch s := l.next(); {
	case l.p == nil:
		return Plan{}, fault.New(fault.Internal, errUnusable)
	case s != nil:
		return Plan{}, fault.Newf(fault.Internal, "the lookup %s has no answer yet", s.name)
	}
	return l.p.freeze()
}

// Step returns the request, the poll or the reconcile of a frozen plan.
// captured is what the request's answer gave, nil where it gave nothing. now is
// the time of the request's first send: every step and every attempt gets the
// same. INTERNAL says that the contract has no such step; INVALID_RESPONSE that
// a captured value cannot be part of its path.
func (p Plan) Step(kind StepKind, now time.Time, captured map[string]any) (Step, error) {
	if p.p == nil {
		return Step{}, fault.New(fault.Internal, errUnusable)
	}
	c := p.p.contract
	s := map[StepKind]*stepSpec{StepRequest: &c.request, StepPoll: c.poll, StepReconcile: c.reconcile}[kind]
	if s == nil {
		return Step{}, fault.Newf(fault.Internal, "the contract %s has no %s to send here", c.action, kind)
	}
	e := p.p.env(now, false)
	if kind != StepRequest {
		e.answered = copied(captured)
	}
	return p.p.step(s, e)
}

func (p *plan) step(s *stepSpec, e env) (Step, error) {
	r, err := p.send(s, e)
	if err != nil {
		return Step{}, err
	}
	return Step{kind: s.kind, request: r, reader: p.reader(s), scope: e.lookup}, nil
}

// Looked returns the values that each lookup captured, by the lookup's name.
func (p Plan) Looked() map[string]map[string]any {
	if p.p == nil {
		return nil
	}
	out := make(map[string]map[string]any, len(p.p.looked))
	for name, captured := range p.p.looked {
		out[name] = copied(captured)
	}
	return out
}

// Lookups returns the names of the lookups in the order in which they run.
func (c *Contract) Lookups() []string {
	var out []string
	for _, s := range c.lookups {
		out = append(out, s.name)
	}
	return out
}

// Poll returns the poll's policy; false where the contract has no poll.
func (c *Contract) Poll() (PollPolicy, bool) {
	if c.poll == nil {
		return PollPolicy{}, false
	}
	return PollPolicy{Every: c.poll.every, Within: c.poll.within}, true
}

// HasReconcile says whether the contract can tell afterwards whether its
// request took effect.
func (c *Contract) HasReconcile() bool { return c.reconcile != nil }
