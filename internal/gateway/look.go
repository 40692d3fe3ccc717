package gateway

import (
	"context"
	"errors"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// look sends the lookups of a contract, one after the other, before the plan is
// frozen and a person is asked. Each is a send with an intent and an outcome of
// its own; authority is looked at before each. Nothing is armed: a crash here
// forgets the call, and the same id starts again.
func (g *Gateway) look(ctx context.Context, c claimed) (looked, error) {
	l, err := g.begin(ctx, c)
	if err != nil {
		return l, err
	}
	var now time.Time
	for {
		if _, more := l.looking.Next(); !more {
			return l, g.stillWanted(ctx, l)
		}
		if now.IsZero() {
			if err := c.call.SetState(ledger.Looking); err != nil {
				return l, fault.New(fault.Cancelled, err)
			}
			now = time.Now()
		}
		captured, err := g.lookup(ctx, l, now)
		if err != nil {
			return l, err
		}
		l.looking = l.looking.With(captured)
	}
}

// stillWanted keeps a person from being asked about a call that lost its authority
// while it was looked up.
func (g *Gateway) stillWanted(ctx context.Context, l looked) error {
	if len(l.contract.Lookups()) == 0 {
		return nil
	}
	return g.mayLook(ctx, turn{claimed: l.claimed, identity: l.identity})
}

// begin binds the call to the identity as it is now. A call that its binding
// refuses sends no lookup and asks nobody.
func (g *Gateway) begin(ctx context.Context, c claimed) (looked, error) {
	name := c.route.Target().Identity()
	gen, err := g.generationFor(ctx, c, c.set, name)
	if err == nil {
		err = g.bound(c.set, c.route.Target())
	}
	if err != nil {
		return looked{}, err
	}
	facts := actions.CallFacts{CallID: c.call.RequestID(), IdempotencyKey: c.call.IdempotencyKey()}
	fact := actions.IdentityFact{Name: name, Generation: gen}
	looking, err := actions.Begin(c.contract, c.route, c.input, fact, facts)
	return looked{claimed: c, looking: looking, identity: fact}, err
}

// lookup sends the next lookup, again only as the contract's retry allows for a
// read, and returns what it captured.
func (g *Gateway) lookup(ctx context.Context, l looked, now time.Time) (map[string]any, error) {
	step, err := l.looking.Step(now)
	if err != nil {
		return nil, err
	}
	t := turn{claimed: l.claimed, identity: l.identity, step: step, now: now}
	var last judged
	executor.Retry(ctx, executor.LookupRetry(l.contract), func(n int) (fault.Code, time.Duration, bool) {
		t.attempt = n
		last, err = g.lookOnce(ctx, t)
		if err != nil || last.fault == nil {
			return fault.CodeOf(err), 0, false
		}
		return last.fault.Code(), last.fault.RetryAfter(), true
	})
	if err != nil {
		return nil, err
	}
	code := executor.AfterLookup(last.end())
	if code == "" {
		captured, _ := last.proved.Captured()
		return captured, nil
	}
	f := last.fault
	if code != codeOf(last) {
		f = fault.New(code, f)
	}
	if f.Fate(false, false) == fault.NotConsumed {
		return nil, f // its credential was refused before the first byte
	}
	return nil, lookupEnd{last, f}
}

// lookOnce is one send of a lookup, with a place and a lease of its own.
func (g *Gateway) lookOnce(ctx context.Context, t turn) (judged, error) {
	limit := time.Duration(0) // the first send of a call: OVERLOADED at once, nothing happened
	if t.attempt > 1 {
		limit = placeWait
	}
	place, err := g.places.wait(ctx, t.route.Target().Name(), limit)
	if err != nil {
		return judged{}, err
	}
	defer place()
	if err := g.mayLook(ctx, t); err != nil {
		return judged{}, err
	}
	if t.lease, err = g.leaseFor(ctx, t.claimed, t.identity); err != nil {
		return judged{}, err
	}
	defer t.lease.Close()
	if t.exchanges(t.identity) {
		if err := g.ready(ctx, t.claimed, t.identity, t.lease); err != nil {
			return judged{}, err
		}
		if err := g.mayLook(ctx, t); err != nil { // an exchange takes time
			return judged{}, err
		}
	}
	return g.attempt(ctx, t)
}

// mayLook is the look at authority before a lookup.
func (g *Gateway) mayLook(ctx context.Context, t turn) error {
	if g.draining.Load() {
		return errDraining()
	}
	if t.call.State() != ledger.Looking {
		return fault.Newf(fault.Cancelled, "the caller withdrew it while it was looked up")
	}
	return g.current(ctx, t.claimed, t.identity)
}

// lookupEnd says that a lookup's answer ended the call. Nothing was changed.
type lookupEnd struct {
	judged
	as *fault.Error
}

// Error gives the operator's text of the end.
func (e lookupEnd) Error() string { return e.step.Name() + ": " + e.as.Error() }

// stopLooking ends a call of which only lookups were sent, if any. It has the
// fate of a read.
func (g *Gateway) stopLooking(c claimed, err error) {
	var end lookupEnd
	if errors.As(err, &end) && c.call.State() == ledger.Looking { // else its caller withdrew it
		g.settle(end.judged, end.as)
		return
	}
	g.stopUnsent(c, err)
}
