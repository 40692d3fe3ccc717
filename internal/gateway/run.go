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
	p, err := g.freeze(ctx, c)
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
	g.attempts(ctx, k)
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

func (g *Gateway) freeze(ctx context.Context, c claimed) (planned, error) {
	name := c.route.Target().Identity()
	gen, err := g.generation(ctx, c.set, name)
	if err == nil {
		// A call that its binding refuses must not ask a person first.
		err = g.vault.Bound(name, c.route.Target())
	}
	if err != nil {
		return planned{}, err
	}
	facts := actions.CallFacts{CallID: c.call.RequestID(), IdempotencyKey: c.call.IdempotencyKey()}
	fact := actions.IdentityFact{Name: name, Generation: gen}
	plan, err := actions.Freeze(c.contract, c.route, c.input, fact, facts)
	if err != nil {
		return planned{}, err
	}
	return planned{claimed: c, plan: plan, identity: fact}, nil
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
	if a.cardID != "" {
		limit = placeWait
	}
	place, err := g.places.wait(ctx, a.route.Target().Name(), limit)
	if err != nil {
		return cleared{}, err
	}
	lease, err := g.lease(ctx, a.planned)
	if err != nil {
		place()
		return cleared{}, err
	}
	err = g.current(ctx, a)
	if err == nil {
		err = a.spend()
	}
	if err != nil {
		lease.Close()
		place()
		return cleared{}, err
	}
	return cleared{approved: a, lease: lease, place: place, now: time.Now()}, nil
}

// current says whether vault, session, contract and target are still as they
// were when the plan was frozen.
func (g *Gateway) current(ctx context.Context, a approved) error {
	if err := g.vault.Open(); err != nil {
		return err
	}
	if err := g.sessions.Alive(a.session.ID); err != nil {
		return err
	}
	return g.fresh(ctx, &a.planned)
}

// fresh is PLAN_STALE when the current set or vault no longer holds what the
// plan's digest covers.
func (g *Gateway) fresh(ctx context.Context, p *planned) error {
	set := g.Set()
	c, ok := set.Contract(p.contract.Action())
	if !ok || g.isHeld(c.Action()) || c.Digest() != p.contract.Digest() {
		return fault.Newf(fault.PlanStale, "the contract %s has changed since", p.contract.Action())
	}
	t, ok := set.Target(p.route.Target().Name())
	if !ok || t.Digest() != p.route.Target().Digest() {
		return fault.Newf(fault.PlanStale, "the target %s has changed since", p.route.Target().Name())
	}
	gen, err := g.generation(ctx, set, t.Identity())
	if err != nil {
		return err
	}
	if gen != p.identity.Generation {
		return fault.Newf(fault.PlanStale, "the identity %s was replaced since", t.Identity())
	}
	return nil
}

func (g *Gateway) lease(ctx context.Context, p planned) (Lease, error) {
	id := p.identity
	if spec, ok := p.set.Identity(id.Name); ok && spec.Kind() == kindNone {
		return noLease{}, nil
	}
	l, err := g.vault.Lease(ctx, id.Name)
	if err != nil {
		return nil, err
	}
	if l.Generation() != id.Generation {
		l.Close()
		return nil, fault.Newf(fault.PlanStale, "the identity %s was replaced since", id.Name)
	}
	return l, nil
}

// attempts sends once, and again only as the contract's retry policy says.
func (g *Gateway) attempts(ctx context.Context, k cleared) {
	var last judged
	var unsent error
	unknown := false
	executor.Retry(ctx, k.contract.Retry(), func(n int) (fault.Code, time.Duration, bool) {
		j, err := g.attempt(ctx, k, n)
		if err != nil {
			unsent = err
			return fault.CodeOf(err), 0, false
		}
		last, unsent = j, nil
		code := codeOf(j)
		if k.changes() && code == fault.OutcomeUnknown {
			unknown = true
			k.call.Doubt()
		}
		if code == "" {
			return "", 0, false
		}
		return code, j.fault.RetryAfter(), g.maySend(ctx, k) == nil
	})
	switch {
	case unsent != nil && unknown:
		// An earlier attempt may have happened: that is what the agent must hear.
		g.settle(last, fault.New(fault.OutcomeUnknown, unsent))
	case unsent != nil && last.attempt > 0:
		// An earlier attempt was sent and ended in a known way; it stands.
		g.settle(last, last.fault)
	case unsent != nil:
		g.stopUnsent(k.claimed, unsent)
	case unknown && last.fault != nil && last.fault.Code() != fault.OutcomeUnknown:
		g.settle(last, fault.New(fault.OutcomeUnknown, last.fault))
	default:
		g.settle(last, last.fault)
	}
}

// maySend keeps a retry from outliving the authority of its call.
func (g *Gateway) maySend(ctx context.Context, k cleared) error {
	if g.draining.Load() {
		return fault.Newf(fault.Overloaded, "the daemon is shutting down")
	}
	return g.current(ctx, k.approved)
}

func (c named) changes() bool { return c.contract.Effect() != actions.Read }

func codeOf(j judged) fault.Code {
	if j.fault == nil {
		return ""
	}
	return j.fault.Code()
}
