package gateway

import (
	"context"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

// ExplainStep is one step of the line and whether it would pass.
type ExplainStep struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Stop is the first thing that would stop a call.
type Stop struct {
	Step   string     `json:"step"`
	Code   fault.Code `json:"code"`
	Reason string     `json:"reason"`
}

// Explanation is what a call would meet, without making it.
type Explanation struct {
	Would     string        `json:"would"` // send, ask or refuse
	Steps     []ExplainStep `json:"steps"`
	StoppedBy *Stop         `json:"stopped_by,omitempty"`
	Sentence  string        `json:"sentence,omitempty"`
	Target    string        `json:"target,omitempty"`
	Identity  string        `json:"identity,omitempty"`
	Lookups   []string      `json:"lookups,omitempty"` // reads that would be sent before the plan is made
}

// Explain runs the same steps as a call, up to the claim, and names the first
// that would stop it. It asks the same rooms in the same order. Nothing is claimed, recorded or sent.
func (g *Gateway) Explain(ctx context.Context, action string, input any) Explanation {
	x := Explanation{Would: "refuse"}
	o, err := g.vaultOpen(identified{ask: Ask{Action: action, Input: input}})
	if x.stopped("vault", "open", err) {
		return x
	}
	n, err := g.whichContract(o)
	if x.stopped("contract", action, err) {
		return x
	}
	v, err := g.validInput(n)
	if x.stopped("input", "fits the contract", err) {
		return x
	}
	r, err := v.set.Resolve(v.contract, v.input)
	if x.stopped("route", "", err) {
		return x
	}
	x.Target, x.Identity = r.Target().Name(), r.Target().Identity()
	x.Steps[len(x.Steps)-1].Detail = x.Target
	gen, err := g.generation(ctx, v.set, x.Identity)
	if x.stopped("identity", x.Identity, err) {
		return x
	}
	if x.stopped("binding", "the secret is stored for this destination", g.bound(v.set, r.Target())) {
		return x
	}
	x.Lookups = v.contract.Lookups()
	facts := actions.CallFacts{CallID: "act_explain", IdempotencyKey: "00000000-0000-4000-8000-000000000000"}
	if x.planned(r, v, actions.IdentityFact{Name: x.Identity, Generation: gen}, facts) {
		return x
	}
	if x.stopped("record", "can be written", g.recordReady()) {
		return x
	}
	if x.stopped("places", "one is free", g.placeFree(x.Target)) {
		return x
	}
	x.Would = "send"
	detail := "nobody is asked"
	switch v.contract.AskAt(r.Target()) {
	case actions.AskSession:
		detail = "asked unless the session's card covers it"
	case actions.AskEveryCall:
		x.Would, detail = "ask", "a person is asked each time"
	}
	x.Steps = append(x.Steps, ExplainStep{Step: "approval", OK: true, Detail: detail})
	return x
}

// planned goes as far towards the plan as nothing need be sent, and says whether
// that stops the call. Where there are lookups, what they find is part of the
// plan: each would be sent first, and explain sends none.
func (x *Explanation) planned(r actions.Route, v valid, id actions.IdentityFact, facts actions.CallFacts) bool {
	looking, err := actions.Begin(v.contract, r, v.input, id, facts)
	if err == nil && len(x.Lookups) > 0 {
		_, err = looking.Step(time.Now())
		x.Sentence = v.contract.SentenceForm()
		return x.stopped("lookups", "would be sent first, before anybody is asked: "+strings.Join(x.Lookups, ", "), err)
	}
	var p actions.Plan
	if err == nil {
		p, err = looking.Freeze()
	}
	if x.stopped("plan", "complete", err) {
		return true
	}
	x.Sentence = p.Sentence()
	return false
}

// recordReady is AUDIT_UNAVAILABLE once the record has latched.
func (g *Gateway) recordReady() error {
	if err := g.log.State().Latched; err != nil {
		return fault.New(fault.AuditUnavailable, err)
	}
	return nil
}

// placeFree is OVERLOADED while limits.calls or limits.calls_per_target is met,
// or the daemon stops.
func (g *Gateway) placeFree(target string) error {
	if g.draining.Load() {
		return fault.Newf(fault.Overloaded, "the daemon is shutting down")
	}
	return g.places.full(target)
}

func (x *Explanation) stopped(step, detail string, err error) bool {
	if err == nil {
		x.Steps = append(x.Steps, ExplainStep{Step: step, OK: true, Detail: detail})
		return false
	}
	f := fault.From(err)
	reason := f.Error()
	for _, fd := range f.Fields() {
		reason += "; " + fd.Pointer + ": " + fd.Reason
	}
	x.Steps = append(x.Steps, ExplainStep{Step: step, OK: false, Detail: reason})
	x.StoppedBy = &Stop{Step: step, Code: f.Code(), Reason: reason}
	return true
}
