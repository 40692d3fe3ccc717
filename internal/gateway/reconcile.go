package gateway

import (
	"context"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// reconcile looks whether a request of which nobody knows took effect. f is how
// the call ends where it cannot be told. It is a read: it writes nothing to the
// ledger before it knows, so that after a crash in it the next run looks again. A
// person who resolves the call meanwhile is faster, and stands.
func (g *Gateway) reconcile(ctx context.Context, s *sent, f *fault.Error) {
	_ = s.call.SetState(ledger.Reconciling) // one that was left behind is in it already
	u := executor.Unknown{Code: f.Code(), Lost: s.lost, Accepted: s.accepted}
	var first *executor.End
	for n := 1; ; n++ {
		e, how := g.lookBack(ctx, s, n)
		if how == waited {
			next, code := executor.AfterReconcile(u, first, e)
			if next != executor.LookAgain {
				g.reconciled(s, u, code, f)
				return
			}
			first = &e
			s.live.hold(executor.SecondLook)
			how = g.sleep(s, executor.SecondLook)
		}
		switch how {
		case parked:
			g.park(s, "not reconciled")
			return
		case decided:
			g.overtaken(s.base())
			return
		}
	}
}

// lookBack is one look, once the vault is open. A look that cannot be sent cannot
// tell.
func (g *Gateway) lookBack(ctx context.Context, s *sent, n int) (executor.End, pause) {
	for {
		if g.vault.Open() != nil {
			s.live.hold(pollAfter)
		}
		if how := g.opened(s, nil); how != waited {
			return executor.End{}, how
		}
		j, err := g.ask(ctx, s, actions.StepReconcile, n)
		switch {
		case err == nil:
			s.last = j
			return j.end(), waited
		case g.log.State().Latched != nil:
			return executor.End{}, parked
		case g.draining.Load(), fault.CodeOf(err) == fault.VaultLocked:
			continue // the wait above meets the reason
		}
		g.logger.Warn("a reconcile was not sent", "request_id", s.call.RequestID(), "action", s.contract.Action(), "cause", err.Error())
		return executor.End{Lost: true}, waited
	}
}

// reconciled ends the call with what the looks found: code is "" for a success,
// the request's own where they cannot tell.
func (g *Gateway) reconciled(s *sent, u executor.Unknown, code fault.Code, f *fault.Error) {
	if code == u.Code {
		g.settle(s.base(), f)
		return
	}
	if s.call.Told() != nil {
		g.overtaken(s.base())
		return
	}
	switch {
	case code == "":
		f = nil
	case code == fault.UpstreamUnavailable: // the usual sentence would say that nobody was reached
		f = fault.DidNotHappen(rowCause(s.last.proved))
		if s.last.fault != nil {
			f = f.After(s.last.fault.RetryAfter())
		}
	default:
		f = s.last.fault
	}
	g.settle(s.last, f)
}

// overtaken notes that a person said how the call ended, before the reconcile did.
// The record may hold already what the look found: its last word on the request is
// what stands.
func (g *Gateway) overtaken(j judged) {
	g.log.Append(g.overtakenEvent(j))
	g.logger.Info("a person resolved the call before it was reconciled", "request_id", j.call.RequestID(), "action", j.contract.Action())
}
