package gateway

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// poll asks again and again how the request ended, until a row says so or the
// poll's time is up. What a later run needs to go on is on the disk before the
// first one is sent. Callers are answered IN_PROGRESS meanwhile.
//
// Crash: between two turns the disk says polling; after a turn's intent the record
// holds an intent of a read without an outcome, which changes nothing. Either way
// the next run polls on until the same deadline.
func (g *Gateway) poll(ctx context.Context, s *sent) {
	policy, _ := s.contract.Poll()
	s.accepted = true
	due, asked := time.Duration(0), time.Duration(0) // one that was left behind is asked at once
	if !s.polls {
		if f := g.beginPoll(s, policy); f != nil {
			g.settle(s.last, f)
			return
		}
		due = policy.Every
	}
	s.live.hold(policy.Every)
	g.events.publish("call", s.call.RequestID())
	for n := 1; ; n++ {
		t := g.pollOnce(ctx, s, n, due, asked)
		switch t.how {
		case parked:
			g.park(s, "it polls")
			return
		case decided:
			return
		}
		next, code := executor.AfterPoll(s.contract, t.end, t.over)
		if next == executor.PollAgain {
			due, asked = policy.Every, t.asked
			continue
		}
		f := s.faultOf(code)
		if f != nil && s.changes() {
			f = f.Accepted()
		}
		g.goOn(ctx, s, next, f)
		return
	}
}

// beginPoll makes what was captured, and that the request's answer was recorded,
// durable.
func (g *Gateway) beginPoll(s *sent, policy actions.PollPolicy) *fault.Error {
	s.until = deadlineIn(policy.Within)
	ctx, cancel := context.WithTimeout(context.Background(), recordLimit)
	defer cancel()
	var both errgroup.Group
	both.Go(func() error { _, err := s.last.recorded.Wait(ctx); return err })
	both.Go(func() error { return s.call.Poll(polledOf(s)) })
	err := both.Wait()
	switch {
	case err == nil:
		return nil
	case s.changes():
		return fault.New(fault.OutcomeUnknown, err)
	}
	return fault.New(fault.AuditUnavailable, err)
}

// polled is how one turn of a poll went.
type polled struct {
	end   executor.End
	over  bool          // it was the last one
	asked time.Duration // how long the remote asks to wait; zero where it does not say
	how   pause
}

// pollOnce waits for a turn and takes it. A turn in which nothing could be sent
// counts as pending.
func (g *Gateway) pollOnce(ctx context.Context, s *sent, n int, due, asked time.Duration) polled {
	t := polled{end: executor.End{Lost: true, Doubted: s.doubted}}
	left := s.until.left()
	if t.over = left <= 0; t.over {
		return t
	}
	wait, last, send := executor.PollWait(due, asked, left)
	if t.how = g.sleep(s, wait); t.how != waited {
		return t
	}
	if t.over = last; last && !send {
		return t
	}
	if g.vault.Open() != nil {
		limit := time.NewTimer(max(0, s.until.left()))
		defer limit.Stop()
		if t.how = g.opened(s, limit.C); t.how != waited {
			return t
		}
		if t.over = s.until.left() <= 0; t.over {
			return t
		}
	}
	j, err := g.ask(ctx, s, actions.StepPoll, n)
	if err != nil {
		g.notAsked(s, &t, err)
		return t
	}
	s.last = j
	t.end = j.end()
	t.end.Doubted = s.doubted
	t.asked, _ = waitWanted(&j, time.Now())
	return t
}

// notAsked is a turn in which nothing was sent. Once the record has latched
// nothing is sent in this run any more, and no end could be recorded: the next run
// goes on. An identity that was replaced while the vault was locked ends the poll,
// and so does a captured value that cannot be part of its path.
func (g *Gateway) notAsked(s *sent, t *polled, err error) {
	if g.draining.Load() || fault.CodeOf(err) == fault.VaultLocked {
		t.over = false // the next turn meets the reason, and waits
		return
	}
	g.logger.Warn("a poll was not sent", "request_id", s.call.RequestID(), "action", s.contract.Action(), "cause", err.Error())
	switch _, tokenless := errors.AsType[notReady](err); {
	case g.log.State().Latched != nil:
		t.how = parked
	case tokenless: // no more than a connection that was lost
	case fault.CodeOf(err) == fault.PlanStale:
		s.unsent, t.over = err, true
	case fault.CodeOf(err) == fault.InvalidResponse, fault.CodeOf(err) == fault.Internal: // there is no such poll
		s.unsent, t.end.Code, t.end.Lost = err, fault.CodeOf(err), false
	}
}

// canonicalOf are the bytes that the ledger keeps of captured values.
func canonicalOf(captured map[string]any) []byte {
	if captured == nil {
		captured = map[string]any{}
	}
	return validate.Canonical(captured)
}

// capturedIn reads them again.
func capturedIn(b []byte) (map[string]any, error) {
	v, err := validate.Parse(b, actions.KeptLimits())
	if err != nil {
		return nil, fault.New(fault.Internal, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fault.Newf(fault.Internal, "the captured values are no object")
	}
	return m, nil
}
