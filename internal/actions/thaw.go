package actions

import (
	"bytes"
	"errors"
	"strconv"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// KeptLimits fit every plan that Freeze can make, and every object of values that
// an answer gave: what a call keeps over a restart. The request's body and the
// captured values of every lookup's answer stand in it, each with texts in which
// one byte may need six, and those of a lookup lie deeper than in its answer.
// The bytes are our own.
func KeptLimits() validate.Limits {
	const parts, deeper = 2 * (maxLookups + 1), 8
	l := validate.AnswerLimits()
	l.Bytes, l.StringBytes = 6*parts*maxBody, 6*maxBody
	l.Depth, l.Nodes = l.Depth+deeper, parts*l.Nodes
	return l
}

var errNoPlan = errors.New("these are not the bytes of a plan")

// Thaw makes a plan again from its canonical bytes: the same contract, target,
// input, identity facts and looked-up values. PLAN_STALE says that the set s
// would make another plan of them; INTERNAL that the bytes are no plan.
func Thaw(s *Set, canonical []byte) (Plan, error) {
	v, err := validate.Parse(canonical, KeptLimits())
	doc, ok := v.(map[string]any)
	if err != nil || !ok || s == nil {
		return Plan{}, fault.New(fault.Internal, errNoPlan)
	}
	text := func(path string) string { v, _ := walkPath(doc, path); t, _ := v.(string); return t }
	generation, err := strconv.ParseUint(text("identity.generation"), 10, 64)
	if err != nil {
		return Plan{}, fault.New(fault.Internal, errNoPlan)
	}
	id := IdentityFact{Name: text("identity.name"), Generation: generation}
	call := CallFacts{CallID: text("call.id"), IdempotencyKey: text("call.idempotency_key")}
	p, err := s.again(text("contract.action"), doc, id, call)
	switch {
	case err != nil:
		return Plan{}, fault.New(fault.PlanStale, err)
	case !bytes.Equal(p.p.canonical, canonical):
		return Plan{}, fault.New(fault.PlanStale, errors.New("the plan has another digest now"))
	}
	return p, nil
}

// again goes the whole way of a call, from its input to its plan.
func (s *Set) again(action string, doc map[string]any, id IdentityFact, call CallFacts) (Plan, error) {
	c, ok := s.Contract(action)
	if !ok {
		return Plan{}, errors.New("the contract is gone")
	}
	in, err := c.ParseInput(doc["input"])
	if err != nil {
		return Plan{}, err
	}
	r, err := s.Resolve(c, in)
	if err != nil {
		return Plan{}, err
	}
	l, err := Begin(c, r, in, id, call)
	if err != nil {
		return Plan{}, err
	}
	for name, more := l.Next(); more; name, more = l.Next() {
		v, _ := walkPath(doc, "looked."+name)
		captured, ok := v.(map[string]any)
		if !ok {
			return Plan{}, errors.New("a lookup has no answer in the plan")
		}
		l = l.With(captured)
	}
	return l.Freeze()
}
