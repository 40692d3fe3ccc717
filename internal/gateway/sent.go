package gateway

import (
	"context"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// sent is a call whose request has left, or may have. What follows only asks how
// it went: a poll or a reconcile changes nothing and needs no session. It has the
// contract it began with; what it needs of the world is an open vault and the
// identity's same generation. A call that cannot go on now is parked: the disk
// has all that a later run needs.
type sent struct {
	claimed
	plan     actions.Plan
	identity actions.IdentityFact
	lease    Lease           // nil while none is held
	leased   <-chan struct{} // closed once the vault was locked or unlocked since the lease was taken
	now      time.Time       // call.now
	captured map[string]any
	request  uint64 // the request's intent, 0 where not known

	last   judged // the newest end; the zero value after a restart
	unsent error  // why a further attempt was not sent
	// doubted says that an attempt of a change may have happened, lost that the
	// answer of such a one was lost, accepted that the poll had begun.
	doubted, lost, accepted bool

	until deadline // of the poll
	polls bool     // the poll has begun in an earlier run
}

// took notes how an attempt of the request ended.
func (s *sent) took(j judged) {
	s.last, s.request = j, j.intent.Seq
	if s.changes() && codeOf(j) == fault.OutcomeUnknown {
		s.doubted = true
		s.lost = s.lost || j.end().Lost
		s.call.Doubt()
	}
	if s.changes() && j.fault != nil {
		s.lost = s.lost || executor.AnswerLost(j.exchange.Status)
	}
	s.captured = nil
	if captured, ok := j.proved.Captured(); ok {
		s.captured = captured
	}
}

// close gives the lease back.
func (s *sent) close() {
	if s.lease != nil {
		s.lease.Close()
		s.lease = nil
	}
}

// base is an end of which nothing was read: what settles a call when no send of
// this run has ended.
func (s *sent) base() judged {
	if s.last.call != nil {
		return s.last
	}
	var j judged
	j.turn = turn{claimed: s.claimed, plan: s.plan, identity: s.identity, now: s.now, request: s.request}
	j.lease = noLease{}
	return j
}

// follow goes on from the last attempt of the request to the end of the call.
func (g *Gateway) follow(ctx context.Context, s *sent) {
	if s.last.call == nil { // not one attempt was sent
		g.stopUnsent(s.claimed, s.unsent)
		return
	}
	e := s.last.end()
	e.Doubted = s.doubted
	if s.unsent != nil && s.doubted {
		// An earlier attempt may have happened: that is what the agent must hear.
		e.Code = fault.OutcomeUnknown
	}
	next, code := executor.AfterRequest(s.contract, e)
	g.goOn(ctx, s, next, s.faultOf(code))
}

// goOn does what the course says. f is how the call ends where nothing more is
// found out, nil for a proved success.
func (g *Gateway) goOn(ctx context.Context, s *sent, next executor.Next, f *fault.Error) {
	switch next {
	case executor.GoPoll:
		g.poll(ctx, s)
	case executor.GoReconcile:
		g.reconcile(ctx, s, f)
	default:
		g.settle(s.base(), f)
	}
}

// faultOf is the coded error of an end: that of the last send where it has the
// code, another one with that as its cause otherwise.
func (s *sent) faultOf(code fault.Code) *fault.Error {
	switch {
	case code == "":
		return nil
	case s.last.fault != nil && s.last.fault.Code() == code:
		return s.last.fault
	case s.unsent != nil:
		return fault.New(code, s.unsent)
	case s.last.fault != nil:
		return fault.New(code, s.last.fault)
	}
	return fault.New(code, nil)
}

// pause is how a wait ended.
type pause uint8

const (
	waited  pause = iota // the time is over
	parked               // the daemon stops, or cannot go on in this run
	decided              // a person resolved the call meanwhile
)

// sleep waits that long. While the vault is locked no lease is held: the
// credential is dropped with the vault's keys.
func (g *Gateway) sleep(s *sent, d time.Duration) pause {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	for {
		turned := g.gate.turned()
		if g.vault.Open() != nil {
			s.close()
		}
		select {
		case <-s.call.Done():
			return decided
		case <-g.drained:
			return parked
		case <-t.C:
			return waited
		case <-turned:
			s.close()
		}
	}
}

// opened waits until the vault is open, at most until the limit where there is
// one; it then returns waited although the vault is still locked.
func (g *Gateway) opened(s *sent, limit <-chan time.Time) pause {
	for {
		turned := g.gate.turned()
		switch {
		case g.draining.Load():
			return parked
		case g.vault.Open() == nil:
			return waited
		}
		s.close()
		select {
		case <-s.call.Done():
			return decided
		case <-g.drained:
			return parked
		case <-limit:
			return waited
		case <-turned:
		}
	}
}

// ask sends one poll or one look of a reconcile, with a place of its own. An
// error means that nothing was sent.
func (g *Gateway) ask(ctx context.Context, s *sent, kind actions.StepKind, n int) (judged, error) {
	step, err := s.plan.Step(kind, s.now, s.captured)
	if err != nil {
		return judged{}, err
	}
	wait := g.places.wait
	if kind == actions.StepPoll {
		wait = g.places.waitBehind
	}
	place, err := wait(ctx, s.route.Target().Name(), placeWait)
	if err != nil {
		return judged{}, err
	}
	defer place()
	if err := g.readyToAsk(ctx, s); err != nil {
		return judged{}, err
	}
	return g.attempt(ctx, turn{
		claimed: s.claimed, plan: s.plan, identity: s.identity, lease: s.lease, step: step, attempt: n, now: s.now, request: s.request,
	})
}

// readyToAsk is mayAsk with a good token. Whoever waited for one looks again: a
// lease from before a lock is not used.
func (g *Gateway) readyToAsk(ctx context.Context, s *sent) error {
	if err := g.mayAsk(ctx, s); err != nil || !s.exchanges(s.identity) {
		return err
	}
	if err := g.ready(ctx, s.claimed, s.identity, s.lease); err != nil {
		return err
	}
	select {
	case <-s.leased:
		s.close()
		return fault.Newf(fault.VaultLocked, "the vault was locked while a token was waited for")
	default:
		return g.mayExchange()
	}
}

// mayAsk looks at what a poll or a reconcile needs: the daemon goes on, the vault
// is open, and the identity may be used. A lease that is held stays good where
// the identity was replaced, as for every call that was sent; after a lock it is
// taken again, and then only the same generation will do.
func (g *Gateway) mayAsk(ctx context.Context, s *sent) error {
	if g.draining.Load() {
		return errDraining()
	}
	if err := g.vault.Open(); err != nil {
		s.close()
		return err
	}
	if _, err := g.generationFor(ctx, s.claimed, s.set, s.identity.Name); err != nil {
		return err
	}
	select {
	case <-s.leased:
		s.close()
	default:
	}
	if s.lease != nil {
		return nil
	}
	s.leased = g.gate.turned() // first, so that a lock in between is seen
	lease, err := g.leaseFor(ctx, s.claimed, s.identity)
	if err != nil {
		return err
	}
	s.lease = lease
	return nil
}

// park leaves the call as it is on the disk: the next run takes it up. Who waits
// for it hears IN_PROGRESS.
func (g *Gateway) park(s *sent, why string) {
	g.logger.Info("call goes on after the next start", "request_id", s.call.RequestID(), "action", s.contract.Action(), "state", s.call.State().String(), "why", why)
	s.live.park()
}

// end is how a send ended, as far as the course depends on it.
func (j judged) end() executor.End {
	e := executor.End{Code: codeOf(j)}
	e.Lost = j.exchange.Err != nil && j.rejection == nil
	if j.proved != nil && j.rejection == nil {
		_, captured := j.proved.Captured()
		e.Captured, e.Pending = captured && !j.proved.OK(), j.proved.Pending()
		e.Effect, e.EffectSaid = j.proved.TookEffect()
	}
	return e
}

// standing is how the record names the end of one send: the code of a failure,
// OK for what ends the call in success, and IN_PROGRESS for what lets it go on.
func (j judged) standing() string {
	e := j.end()
	switch j.step.Kind() {
	case actions.StepPoll:
		if e.Pending || e.Lost {
			return string(fault.InProgress)
		}
	case actions.StepReconcile:
		if e.EffectSaid && !e.Effect && e.Code == "" {
			return string(fault.UpstreamUnavailable)
		}
	}
	switch {
	case j.fault != nil:
		return string(j.fault.Code())
	case j.proved.OK():
		return okOr("")
	case j.step.Kind() == actions.StepReconcile:
		return string(fault.OutcomeUnknown)
	}
	return string(fault.InProgress)
}

// mayHaveChanged says whether the call may have changed something when this send
// ended: a lookup comes before that.
func (j *judged) mayHaveChanged() bool {
	return j.changes() && j.step.Kind() != actions.StepLookup
}

// polledOf is what is written down before the first poll.
func polledOf(s *sent) ledger.Polled {
	return ledger.Polled{Captured: canonicalOf(s.captured), Deadline: s.until.end, IntentSeq: s.request}
}
