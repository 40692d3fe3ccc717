package gateway

import (
	"errors"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
)

// TakeUp goes on with what an earlier run left armed or polling. It runs at each
// unlock, once the set in force was compared. A poll goes on, and what was armed
// is reconciled where its contract can tell; both only if the set would make the
// very same plan. Everything else is unresolved from now on; nothing is ever sent
// again. An entry that cannot be read stays as it is and keeps nobody from the
// others; status and log tell of it.
func (g *Gateway) TakeUp() error {
	left, err := g.ledger.Left()
	if err != nil {
		return err
	}
	for _, d := range g.ledger.Damaged() {
		g.logger.Error("an entry of the ledger cannot be read; its call is neither taken up nor sent again; see \"An entry that cannot be read\" in the operations manual", "entry", d.Entry, "claimed", d.Claimed, "cause", d.Cause.Error())
	}
	return g.takeUpAll(left)
}

func (g *Gateway) takeUpAll(left []ledger.Left) error {
	lost := 0
	for _, x := range left {
		if g.takeUp(x) {
			continue
		}
		switch err := g.ledger.GiveUp(x); {
		case errors.Is(err, ledger.ErrTransition):
			continue // a person has resolved it meanwhile
		case err != nil:
			return err
		}
		g.recordLeft(x, fault.OutcomeUnknown, "armed before a stop, no outcome recorded; not sent again")
		lost++
	}
	if lost > 0 {
		g.logger.Warn("calls of an earlier run may have happened; see `chatelaine calls list --unresolved`", "count", lost)
	}
	return nil
}

// takeUp starts a poll or a reconcile, and says whether it did.
func (g *Gateway) takeUp(x ledger.Left) bool {
	s, err := g.thaw(x)
	if err != nil {
		g.logger.Warn("a call of an earlier run is not taken up", "request_id", x.RequestID, "action", x.Action, "cause", err.Error())
		return false
	}
	if !x.IsPolling && !(s.contract.HasReconcile() && s.changes()) {
		return false
	}
	if !g.running.enter() {
		return true // the daemon stops already; the next run takes it up
	}
	if s.call, err = g.ledger.Resume(x); err != nil {
		g.running.leave()
		g.logger.Warn("a call of an earlier run is not taken up", "request_id", x.RequestID, "action", x.Action, "cause", err.Error())
		return false
	}
	word := "armed before a stop; whether it took effect is looked at"
	if x.IsPolling {
		word = "polled before a stop; the poll goes on"
	}
	g.recordLeft(x, fault.InProgress, word)
	s.doubted = s.call.Doubted()
	s.lost = s.lost || s.doubted // which of its attempts was lost is not on the disk
	s.live = newLive(s.call, s.session)
	s.live.intended(x.IntentSeq)
	g.lives.add(s.live)
	go g.goOnLeft(s, x)
	return true
}

func (g *Gateway) goOnLeft(s *sent, x ledger.Left) {
	defer g.running.leave()
	defer g.lives.drop(s.call)
	defer s.close()
	defer g.survive(s.claimed)
	next, f := executor.GoPoll, (*fault.Error)(nil)
	if !x.IsPolling {
		next, f = executor.GoReconcile, fault.Newf(fault.OutcomeUnknown, "armed before a stop, no outcome recorded").OfChange()
	}
	g.goOn(g.base, s, next, f)
}

// thaw makes the plan again. PLAN_STALE says that the set in force would make
// another one, or that an operator has not accepted it.
func (g *Gateway) thaw(x ledger.Left) (*sent, error) {
	set := g.Set()
	if g.isHeld(x.Action) {
		return nil, fault.Newf(fault.PlanStale, "%s waits for an operator to accept it", x.Action)
	}
	plan, err := actions.Thaw(set, x.Plan)
	if err != nil {
		return nil, err
	}
	s := &sent{plan: plan, identity: plan.Identity(), now: x.Now, request: x.IntentSeq, lost: true, polls: x.IsPolling}
	s.set, s.contract, s.input, s.route = set, plan.Contract(), plan.Input(), plan.Route()
	s.ask = Ask{Action: x.Action, RequestID: x.RequestID}
	s.session = sessions.Session{ID: x.Session, Name: x.Agent, UID: x.UID}
	s.came = x.ClaimedAt
	if !x.IsPolling {
		return s, nil
	}
	policy, polls := s.contract.Poll()
	if !polls {
		return nil, fault.Newf(fault.PlanStale, "the contract %s has no poll", x.Action)
	}
	s.lost = false // the request's answer was read, and captured
	s.until = deadlineAt(x.Now, x.Polled.Deadline, policy.Within)
	s.captured, err = capturedIn(x.Polled.Captured)
	return s, err
}

// recordLeft says in the record what becomes of a call of an earlier run.
func (g *Gateway) recordLeft(x ledger.Left, status fault.Code, word string) {
	e := g.event("reconcile")
	e.CallID, e.Actor, e.Action, e.SessionID, e.IntentSeq = x.RequestID, x.Agent, x.Action, x.Session, x.IntentSeq
	e.Status, e.Rule = string(status), word
	g.log.Append(e)
}
