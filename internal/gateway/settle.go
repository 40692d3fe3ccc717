package gateway

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// recordLimit bounds the wait for the record once something was sent. The
// record has its own commit deadline; this is the outer end of it.
const recordLimit = 30 * time.Second

// settle records the outcome of a call that was sent, finishes its id, and only
// then lets the answer be seen. f is nil for a proved success.
func (g *Gateway) settle(j judged, f *fault.Error) {
	id := j.call.RequestID()
	var envelope []byte
	var err error
	if f == nil && !j.proved.OK() {
		f = fault.Newf(fault.Internal, "the call ends without a failure and without a success")
	}
	if f == nil {
		envelope, err = g.envelopeOK(j.contract, id, j.proved)
		if err != nil {
			f = fault.New(fault.Internal, err)
		}
	}
	if f != nil {
		f = j.told(f)
		envelope = g.envelopeError(j.contract, id, f)
	}
	out := ledger.Outcome{Envelope: envelope, Code: string(codeOrNone(f)), Fate: fateOf(j, f), Sentence: j.plan.Sentence()}
	switch err := g.seal(j, f, out); {
	case errors.Is(err, ledger.ErrTransition) && isOver(j.call):
		g.overtaken(j)
		return
	case err != nil && !j.mayHaveChanged() && j.call.State() == ledger.Looking:
		g.stopUnsent(j.claimed, fault.New(fault.AuditUnavailable, err))
		return
	case err != nil:
		g.unsealed(j, err)
	}
	g.observe(j, f)
}

// seal waits until the answer and the outcome are durable, and makes the
// finished id so at the same time.
func (g *Gateway) seal(j judged, f *fault.Error, out ledger.Outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordLimit)
	defer cancel()
	pending := j.recorded
	if okOr(codeOrNone(f)) != j.status || j.step.Kind() == actions.StepReconcile {
		pending = g.log.Append(g.endEvent(j, f))
	}
	if out.Fate == fault.Rearmed || out.Fate == fault.NotConsumed {
		// Nothing happened and the same id may be sent again: the order is
		// record first, so that a crash in between leaves the id unresolved.
		if _, err := pending.Wait(ctx); err != nil {
			return err
		}
		return j.call.Rearm(out, rearmAfter(f))
	}
	place, err := pending.Sealed(ctx)
	if err != nil {
		return err
	}
	// The finished id carries its outcome's place in the record. Where a crash
	// keeps the id and loses the outcome, the next start sees it there.
	out.RecordSeq = place.Seq
	var both errgroup.Group
	both.Go(func() error { _, err := pending.Wait(ctx); return err })
	both.Go(func() error { return j.call.Prepare(out) })
	if err := both.Wait(); err != nil {
		return err
	}
	j.call.Publish()
	return nil
}

func isOver(c *ledger.Call) bool {
	_, over := c.Outcome()
	return over
}

func rearmAfter(f *fault.Error) time.Duration {
	if f == nil {
		return 0
	}
	return f.RetryAfter()
}

// unsealed ends a call whose outcome cannot be recorded: the agent hears that
// it may have happened, never the data.
func (g *Gateway) unsealed(j judged, cause error) {
	f := fault.New(fault.OutcomeUnknown, cause)
	g.logger.Error("outcome not recorded", "request_id", j.call.RequestID(), "action", j.contract.Action(), "cause", cause.Error())
	out := ledger.Outcome{Envelope: g.envelopeError(j.contract, j.call.RequestID(), f), Code: string(f.Code()), Fate: fault.Unresolved, Sentence: j.plan.Sentence()}
	if err := j.call.Finish(out); err != nil {
		g.logger.Error("ledger not written; the call is unresolved at the next start", "request_id", j.call.RequestID(), "cause", err.Error())
	}
}

// fateOf says what becomes of the id. A credential refusal at the connection
// comes before the first byte and so consumes nothing.
func fateOf(j judged, f *fault.Error) fault.Fate {
	if f == nil {
		return fault.Final
	}
	// A poll or a reconcile comes after a request that was sent, also when it was
	// not sent itself.
	sent := j.exchange.Wrote || j.step.Kind() != actions.StepRequest
	return f.Fate(j.mayHaveChanged(), sent)
}

func codeOrNone(f *fault.Error) fault.Code {
	if f == nil {
		return ""
	}
	return f.Code()
}

// stopUnsent ends a claimed call of which nothing was sent. What is final is
// durable, in the record and in the ledger, before anybody hears of it.
func (g *Gateway) stopUnsent(c claimed, err error) {
	f := fault.From(err)
	envelope := g.envelopeError(c.contract, c.call.RequestID(), f)
	pending := g.log.Append(g.denyEvent(c, f))
	g.metrics.calls.WithLabelValues(c.contract.Action(), string(f.Code())).Inc()
	g.logger.Info("call stopped before it was sent", "request_id", c.call.RequestID(), "action", c.contract.Action(), "agent", c.session.Name, "code", f.Code(), "cause", f.Error())
	g.events.publish("call", c.call.RequestID())
	if f.Fate(false, false) == fault.Final {
		if err = g.finishUnsent(c, pending, ledger.Outcome{Envelope: envelope, Code: string(f.Code()), Fate: fault.Final}); err == nil {
			return
		}
		f = fault.New(fault.AuditUnavailable, err)
		envelope = g.envelopeError(c.contract, c.call.RequestID(), f)
	}
	g.words.note(ownerOf(c.session), c.call.RequestID(), f, answer(envelope, f))
	if err := c.call.Release(envelope, string(f.Code())); err != nil {
		g.logger.Error("the ledger did not forget a call that was not sent", "request_id", c.call.RequestID(), "cause", err.Error())
	}
}

// finishUnsent makes a refusal final. A call that its caller withdrew is final
// already; then only the record is waited for.
func (g *Gateway) finishUnsent(c claimed, pending *auditlog.Pending, out ledger.Outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordLimit)
	defer cancel()
	var both errgroup.Group
	both.Go(func() error { _, err := pending.Wait(ctx); return err })
	withdrawn := c.call.State() == ledger.Finished
	if !withdrawn {
		both.Go(func() error { return c.call.Prepare(out) })
	}
	if err := both.Wait(); err != nil {
		return err
	}
	if !withdrawn {
		c.call.Publish()
	}
	return nil
}

// stopAfterPanic ends a call that panicked: with an outcome to its intent, and
// unresolved if it may change something, once it was armed; released otherwise.
func (g *Gateway) stopAfterPanic(c claimed) {
	f := fault.Newf(fault.Internal, "panic")
	seq, armed := c.live.intent(), true
	switch c.call.State() {
	case ledger.Claimed, ledger.Looking, ledger.Waiting:
		armed = false
	}
	if armed && c.changes() {
		f = f.OfChange()
	}
	envelope := g.envelopeError(c.contract, c.call.RequestID(), f)
	out := ledger.Outcome{Envelope: envelope, Code: string(f.Code()), Fate: f.Fate(c.changes(), armed)}
	e := g.denyEvent(c, f)
	if armed {
		e.Type, e.IntentSeq = "outcome", seq
	}
	g.log.Append(e)
	if err := c.call.Finish(out); err != nil {
		_ = c.call.Release(envelope, string(f.Code())) // does nothing to a call that has ended
	}
}

// observe counts and logs a call that was sent. No upstream byte goes here: a
// rejection is told by layer, rule and the contract's own schema path.
func (g *Gateway) observe(j judged, f *fault.Error) {
	code := codeOrNone(f)
	action := j.contract.Action()
	g.metrics.calls.WithLabelValues(action, okOr(code)).Inc()
	args := []any{"request_id", j.call.RequestID(), "action", action, "agent", j.session.Name, "target", j.route.Target().Name(), "code", okOr(code), "step", j.step.Name(), "attempt", j.attempt, "upstream_status", j.exchange.Status}
	if r := j.rejection; r != nil {
		args = append(args, "layer", r.Layer, "rule", r.Rule, "schema_path", r.SchemaPath)
	} else if f != nil {
		args = append(args, "cause", f.Error())
	}
	g.logger.Info("call finished", args...)
	g.events.publish("call", j.call.RequestID())
}

func okOr(c fault.Code) string {
	if c == "" {
		return "OK"
	}
	return string(c)
}
