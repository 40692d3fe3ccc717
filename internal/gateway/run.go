package gateway

import (
	"context"
	"fmt"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
)

// run is the second half of the line, from the claim to the finished answer.
// Nothing after the send leads to a second send but the contract's own retry.
func (g *Gateway) run(ctx context.Context, c claimed) {
	defer g.survive(c)
	l, err := g.look(ctx, c)
	if err != nil {
		g.stopLooking(c, err)
		return
	}
	p, err := g.freeze(l)
	if err != nil {
		g.stopUnsent(c, err)
		return
	}
	a, err := g.decide(ctx, p)
	if err != nil {
		g.stopUnsent(c, err)
		return
	}
	k, err := g.clear(ctx, a)
	if err != nil {
		g.stopUnsent(c, err)
		return
	}
	defer k.lease.Close()
	defer k.place()
	s := g.attempts(ctx, k)
	defer s.close() // a poll may hold another lease by then
	g.follow(ctx, s)
}

// survive turns a panic of ours into a recorded INTERNAL. What was armed stays
// armed in the ledger and so comes back as unresolved, never as a second send.
func (g *Gateway) survive(c claimed) {
	v := recover()
	if v == nil {
		return
	}
	g.logger.Error("panic in a call", "request_id", c.call.RequestID(), "action", c.ask.Action, "panic", fmt.Sprintf("%T", v))
	g.metrics.panics.Inc()
	g.stopAfterPanic(c)
}

// freeze makes the plan, with the values that the lookups found: what is shown is
// what is sent.
func (g *Gateway) freeze(l looked) (planned, error) {
	plan, err := l.looking.Freeze()
	if err != nil {
		return planned{}, err
	}
	return planned{claimed: l.claimed, plan: plan, identity: l.identity, looked: len(l.contract.Lookups()) > 0}, nil
}

// placeWait is how long an approved call, or a retry, waits for a place: less
// than the ten seconds within which an approval must be spent, so that a yes is
// not wasted on a busy target.
const placeWait = 8 * time.Second

// clear checks authority again, right before arming: what was shown must still
// be what is in force. What can take time comes first, the look at authority
// after it, and the approval is spent last.
func (g *Gateway) clear(ctx context.Context, a approved) (cleared, error) {
	limit := time.Duration(0) // nobody was asked: OVERLOADED at once tells the agent that nothing happened
	if a.cardID != "" || a.looked {
		limit = placeWait
	}
	came := time.Now()
	place, err := g.places.wait(ctx, a.route.Target().Name(), limit)
	if err != nil {
		return cleared{}, err
	}
	turned := g.gate.turned()
	inTime, cancel := a.inTime(ctx, came)
	defer cancel()
	lease, err := g.leaseFor(inTime, a.claimed, a.identity)
	if err != nil {
		place()
		return cleared{}, err
	}
	err = g.readyFirst(inTime, a, lease)
	if err == nil {
		err = g.current(ctx, a.claimed, a.identity)
	}
	if err == nil {
		err = a.spend()
	}
	if err != nil {
		lease.Close()
		place()
		return cleared{}, err
	}
	return cleared{approved: a, lease: lease, turned: turned, place: place, now: time.Now()}, nil
}

// current says whether vault, session, contract, target and identity are still as
// they were when the call began.
func (g *Gateway) current(ctx context.Context, c claimed, id actions.IdentityFact) error {
	if err := g.vault.Open(); err != nil {
		return err
	}
	if !c.byOperator() {
		if err := g.sessions.Alive(c.session.ID); err != nil {
			return err
		}
	}
	return g.fresh(ctx, c, id)
}

// fresh is PLAN_STALE when the current set or vault no longer holds what the
// plan's digest covers.
func (g *Gateway) fresh(ctx context.Context, c claimed, id actions.IdentityFact) error {
	set := g.Set()
	now, ok := set.Contract(c.contract.Action())
	if !ok || g.isHeld(now.Action()) || now.Digest() != c.contract.Digest() {
		return fault.Newf(fault.PlanStale, "the contract %s has changed since", c.contract.Action())
	}
	t, ok := set.Target(c.route.Target().Name())
	if !ok || t.Digest() != c.route.Target().Digest() {
		return fault.Newf(fault.PlanStale, "the target %s has changed since", c.route.Target().Name())
	}
	gen, err := g.generationFor(ctx, c, set, t.Identity())
	if err != nil {
		return err
	}
	if gen != id.Generation {
		return fault.Newf(fault.PlanStale, "the identity %s was replaced since", t.Identity())
	}
	return nil
}

func (g *Gateway) leaseFor(ctx context.Context, c claimed, id actions.IdentityFact) (Lease, error) {
	if spec, ok := c.set.Identity(id.Name); ok && spec.Kind() == kindNone {
		return noLease{}, nil
	}
	if c.trial != nil {
		return c.trial, nil
	}
	l, err := g.vault.Lease(ctx, id.Name)
	if err != nil {
		g.noteUnusable(id, err)
		return nil, err
	}
	if l.Generation() != id.Generation {
		l.Close()
		return nil, fault.Newf(fault.PlanStale, "the identity %s was replaced since", id.Name)
	}
	return l, nil
}

// attempts sends the request once, and again only as the contract's retry policy
// says. It returns what is known of it then.
func (g *Gateway) attempts(ctx context.Context, k cleared) *sent {
	s := &sent{claimed: k.claimed, plan: k.plan, identity: k.identity, lease: k.lease, leased: k.turned, now: k.now}
	var unsent error
	executor.Retry(ctx, k.contract.Retry(), func(n int) (fault.Code, time.Duration, bool) {
		j, err := g.attemptRequest(ctx, k, n)
		if err != nil {
			unsent = err
			return fault.CodeOf(err), 0, false
		}
		unsent = nil
		s.took(j)
		if j.fault == nil {
			return "", 0, false
		}
		return j.fault.Code(), j.fault.RetryAfter(), g.mayRetry(ctx, k) == nil
	})
	s.unsent = unsent
	return s
}

// inTime ends what an approved call waits for as long as its approval can still be
// spent afterwards: a secret that is fetched, a token.
func (a approved) inTime(ctx context.Context, came time.Time) (context.Context, context.CancelFunc) {
	if a.cardID == "" {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, max(leastForIdentity, placeWait-time.Since(came)))
}

// leastForIdentity is what is left of an approval's ten seconds, with some to spare,
// where the place was waited for to the last.
const leastForIdentity = 1500 * time.Millisecond

// readyFirst gets a token for the first attempt of a request, if it takes one, and
// only for a call that still has its authority.
func (g *Gateway) readyFirst(ctx context.Context, a approved, lease Lease) error {
	if !a.exchanges(a.identity) {
		return nil
	}
	if err := g.current(ctx, a.claimed, a.identity); err != nil {
		return err
	}
	return g.ready(ctx, a.claimed, a.identity, lease)
}

// readyAgain is what a further attempt needs: authority, and a token that is still
// good, or a new one.
func (g *Gateway) readyAgain(ctx context.Context, k cleared) error {
	if err := g.mayRetry(ctx, k); err != nil || !k.exchanges(k.identity) {
		return err
	}
	if err := g.ready(ctx, k.claimed, k.identity, k.lease); err != nil {
		return err
	}
	return g.mayRetry(ctx, k) // an exchange takes time
}

// mayRetry keeps a retry from outliving the authority of its call.
func (g *Gateway) mayRetry(ctx context.Context, k cleared) error {
	if g.draining.Load() {
		return errDraining()
	}
	return g.current(ctx, k.claimed, k.identity)
}

func errDraining() error { return fault.Newf(fault.Overloaded, "the daemon is shutting down") }

func (c named) changes() bool { return c.contract.Effect() != actions.Read }

func codeOf(j judged) fault.Code {
	if j.fault == nil {
		return ""
	}
	return j.fault.Code()
}
