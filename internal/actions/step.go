package actions

import (
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
		return func(string) (any, bool) { return nil, false }
	}
	return s.scope
}

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
	case id.Name != r.target.identity:
		return Looking{}, fault.Newf(fault.TargetNotAllowed, "the target %q uses the identity %q, not %q", r.target.name, r.target.identity, id.Name)
	}
	return Looking{&plan{contract: c, route: r, input: in, id: id, call: call}}, nil
}

// Next returns the name of the next lookup; false when all are answered.
func (l Looking) Next() (name string, ok bool) { return "", false }

// Step returns the next lookup as a step. now is the moment of the first
// lookup's send; every lookup of a call gets the same.
func (l Looking) Step(now time.Time) (Step, error) {
	return Step{}, fault.New(fault.Internal, errUnusable)
}

// With returns the call with the answer of its next lookup: what the row
// captured.
func (l Looking) With(captured map[string]any) Looking { return l }

// Freeze makes the plan. It is an error while a lookup is missing.
func (l Looking) Freeze() (Plan, error) {
	if l.p == nil {
		return Plan{}, fault.New(fault.Internal, errUnusable)
	}
	return l.p.freeze()
}

// Step returns the request, the poll or the reconcile of a frozen plan.
// captured is what the request's answer gave, nil where it gave nothing. now is
// the time of the request's first send: every step and every attempt gets the
// same.
func (p Plan) Step(kind StepKind, now time.Time, captured map[string]any) (Step, error) {
	if p.p == nil || kind != StepRequest {
		return Step{}, fault.New(fault.Internal, errUnusable)
	}
	r, err := p.Request(now)
	if err != nil {
		return Step{}, err
	}
	return Step{kind: kind, request: r, reader: p.Reader(), scope: p.scope(now)}, nil
}

// Looked returns the values that each lookup captured, by the lookup's name.
func (p Plan) Looked() map[string]map[string]any { return nil }

// Lookups returns the names of the lookups in the order in which they run.
func (c *Contract) Lookups() []string { return nil }

// Poll returns the poll's policy; false where the contract has no poll.
func (c *Contract) Poll() (PollPolicy, bool) { return PollPolicy{}, false }

// HasReconcile says whether the contract can tell afterwards whether its
// request took effect.
func (c *Contract) HasReconcile() bool { return false }
