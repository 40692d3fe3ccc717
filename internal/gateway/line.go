package gateway

import (
	"context"
	"fmt"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// Ask is one decoded call, not yet believed.
type Ask struct {
	Token     string // the session's bearer token
	Peer      Peer
	Action    string
	Input     any    // from validate.Parse
	RequestID string // "" lets the daemon make one
	Wait      time.Duration
}

// Perform takes a call in and answers as http-api says ("Waiting"): when it is
// done, or at once with APPROVAL_REQUIRED when a person must decide and with
// IN_PROGRESS when it polls.
func (g *Gateway) Perform(ctx context.Context, a Ask) Answer {
	c, verdict, err := g.admit(a)
	if err != nil {
		return g.refuse(a, c, err)
	}
	switch verdict {
	case ledger.Fresh:
		g.start(c)
	case ledger.Recorded, ledger.Unresolved:
		return g.replay(c.call)
	}
	return g.await(ctx, c.call, a.Wait, true)
}

// admit is the first half of the line, up to the claim. It returns what it had
// reached when it was refused, so that the refusal can be recorded.
func (g *Gateway) admit(a Ask) (claimed, ledger.Verdict, error) {
	var c claimed
	var err error
	if c.identified, err = g.whoCalls(a); err != nil {
		return c, 0, err
	}
	if c.opened, err = g.vaultOpen(c.identified); err != nil {
		return c, 0, err
	}
	if c.named, err = g.whichContract(c.opened); err != nil {
		return c, 0, err
	}
	if c.valid, err = g.validInput(c.named); err != nil {
		return c, 0, err
	}
	if c.routed, err = g.resolve(c.valid); err != nil {
		return c, 0, err
	}
	return g.claim(c.routed)
}

func (g *Gateway) whoCalls(a Ask) (identified, error) {
	if g.draining.Load() {
		return identified{ask: a}, errDraining()
	}
	s, err := g.sessions.Authenticate(a.Token, a.Peer.caller())
	if err != nil {
		return identified{ask: a}, err
	}
	i := identified{ask: a, session: s}
	return i, s.RequireAuthorised()
}

func (g *Gateway) vaultOpen(i identified) (opened, error) {
	return opened{i}, g.vault.Open()
}

func (g *Gateway) whichContract(o opened) (named, error) {
	set := g.Set()
	c, err := g.serving(set, o.ask.Action)
	if err != nil {
		return named{opened: o, set: set}, err
	}
	return named{opened: o, set: set, contract: c}, nil
}

func (g *Gateway) validInput(n named) (valid, error) {
	in, err := n.contract.ParseInput(n.ask.Input)
	return valid{named: n, input: in}, err
}

// resolve finds the one target. Whether its credential is there is asked after
// the claim: an id that has its outcome gives it again, whatever became of the
// identity since.
func (g *Gateway) resolve(v valid) (routed, error) {
	r, err := v.set.Resolve(v.contract, v.input)
	return routed{valid: v, route: r}, err
}

// generation is the vault's current generation of an identity. The kind none
// has no secret and always generation 0.
func (g *Gateway) generation(ctx context.Context, set *actions.Set, name string) (uint64, error) {
	spec, ok := set.Identity(name)
	if !ok {
		return 0, fault.Newf(fault.IdentityUnavailable, "identity %s is not in the site file", name)
	}
	if spec.Kind() == kindNone {
		return 0, nil
	}
	return g.vault.Generation(ctx, name)
}

// generationFor is the generation that a call uses: the current one, or that of a
// secret which is only tried.
func (g *Gateway) generationFor(ctx context.Context, c claimed, set *actions.Set, name string) (uint64, error) {
	if c.trial != nil {
		return c.trial.Generation(), nil
	}
	return g.generation(ctx, set, name)
}

// bound says whether the target's identity is stored for it. One that is not in
// the set has no generation either, which is asked first.
func (g *Gateway) bound(set *actions.Set, t *actions.Target) error {
	spec, ok := set.Identity(t.Identity())
	if !ok {
		return fault.Newf(fault.IdentityUnavailable, "identity %s is not in the site file", t.Identity())
	}
	return g.vault.Bound(spec, t)
}

// kindNone is the identity kind that an operator writes out where a target
// takes no credential.
const kindNone = "none"

func (g *Gateway) claim(r routed) (claimed, ledger.Verdict, error) {
	c := claimed{routed: r, came: time.Now()}
	if err := g.lives.room(r.session.Name); err != nil {
		return c, 0, err
	}
	owner := ledger.Owner{Agent: r.session.Name, UID: r.session.UID}
	change := r.contract.Effect() != actions.Read
	call, verdict, err := g.ledger.Claim(owner, r.ask.RequestID, r.ask.Action, r.input.Digest(r.ask.Action), change)
	if err != nil {
		return c, 0, fmt.Errorf("claim: %w", err)
	}
	c.call = call
	if verdict == ledger.Fresh {
		c.live = newLive(call, r.session)
		g.lives.add(c.live)
		g.words.drop(owner, call.RequestID())
	}
	return c, verdict, nil
}

// start hands the claimed call to the daemon: from here on it does not depend
// on the connection it came by.
func (g *Gateway) start(c claimed) {
	if !g.running.enter() {
		g.lives.drop(c.call)
		g.stopUnsent(c, errDraining())
		return
	}
	go func() {
		defer g.running.leave()
		defer g.lives.drop(c.call)
		g.run(g.base, c)
	}()
}

// joinLook is how soon a caller that joined looks again for the live call: the
// claim is seen by others a moment before the one who claimed has noted it.
const joinLook = 2 * time.Millisecond

// await answers when the call is done; when it waits for a person or polls, at
// once or, with wait, after at most that long. untilDone goes on past wait for any
// other call, since that one ends within its own limits.
func (g *Gateway) await(ctx context.Context, call *ledger.Call, wait time.Duration, untilDone bool) Answer {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	look := time.NewTicker(joinLook)
	defer look.Stop()
	over, long := false, false
	for {
		var waits, holds, parks <-chan struct{}
		again := look.C
		if l := g.lives.get(call); l != nil {
			waits, holds, parks, again = l.waits, l.holds, l.parks, nil
		}
		if long {
			waits, holds, again = nil, nil, nil
		}
		select {
		case <-call.Done():
			return g.replay(call)
		case <-parks:
			return g.pending(call)
		case <-waits:
			long = true
		case <-holds:
			long = true
		case <-again:
		case <-limit.C:
			over = true
		case <-ctx.Done():
			return g.pending(call)
		}
		if over && (long || !untilDone) {
			return g.pending(call)
		}
	}
}
