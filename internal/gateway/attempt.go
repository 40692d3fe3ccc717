package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"sync"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/secret"
	"chatelaine/internal/validate"
)

// attempt is one send with its own intent before it, and its own answer and
// outcome after it, in the record. An error means that nothing was sent.
func (g *Gateway) attempt(ctx context.Context, t turn) (judged, error) {
	if t.trial != nil {
		if err := t.trial.begin(); err != nil {
			return judged{}, err
		}
		defer t.trial.end()
	}
	i, err := g.intend(ctx, t)
	if err != nil {
		return judged{}, err
	}
	a := g.send(ctx, i)
	j := g.judge(g.keep(a))
	j.status = j.standing()
	j.recorded = g.log.Append(j.event, g.outcomeEvent(j, j.fault, j.status))
	g.noteAttempt(j)
	g.refusedToken(j)
	return j.light(), nil
}

// light lets go of the raw answer, which is on its way into the record: a call that
// polls is held for up to a day, and there may be many.
func (j judged) light() judged {
	j.exchange.Body, j.event.Body = nil, nil
	return j
}

// attemptRequest is one attempt of the request.
func (g *Gateway) attemptRequest(ctx context.Context, k cleared, n int) (judged, error) {
	done, err := g.admitted(ctx, k, n)
	if err != nil {
		return judged{}, err
	}
	defer done()
	step, err := k.plan.Step(actions.StepRequest, k.now, nil)
	if err != nil {
		return judged{}, err
	}
	return g.attempt(ctx, turn{
		claimed: k.claimed, plan: k.plan, identity: k.identity, lease: k.lease, step: step, attempt: n,
		now: k.now, decision: k.decision, cardID: k.cardID,
	})
}

// admitted gives the attempt its place between arming and answer. The first one
// has it from clear; a further one waits for it, and asks once more, after every
// wait, whether the call may still be sent at all.
func (g *Gateway) admitted(ctx context.Context, k cleared, n int) (done func(), err error) {
	if n == 1 {
		return k.place, nil
	}
	done, err = g.places.wait(ctx, k.route.Target().Name(), placeWait)
	if err != nil {
		return nil, err
	}
	if err := g.readyAgain(ctx, k); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// intend makes the intent durable in the record and, where the step is the
// request, in the ledger at once. If either cannot be written, nothing is sent.
func (g *Gateway) intend(ctx context.Context, t turn) (intended, error) {
	pending := g.log.AppendIntent(g.intentEvent(t), g.limits.Answer+answerHead)
	i := intended{turn: t}
	var unrecorded, unarmed error
	var both sync.WaitGroup
	both.Go(func() { i.intent, unrecorded = pending.Wait(ctx) })
	if t.step.Kind() == actions.StepRequest {
		both.Go(func() { unarmed = t.arm() })
	}
	both.Wait()
	switch {
	case unrecorded != nil:
		return i, fault.New(fault.AuditUnavailable, unrecorded)
	case unarmed != nil:
		f := notArmed(unarmed)
		g.log.Append(g.takenBackEvent(i, f))
		return i, f
	}
	if t.step.Kind() == actions.StepRequest {
		t.live.intended(i.intent.Seq)
	}
	return i, nil
}

// arm writes down that the request may be sent, and all that a later run needs to
// find out what became of it.
func (t turn) arm() error {
	return t.call.Arm(ledger.Armed{
		Attempt: t.attempt, IdempotencyKey: t.call.IdempotencyKey(),
		Plan: t.plan.Canonical(), PlanDigest: t.plan.Digest(),
		Session: t.session.ID, Now: t.now,
	})
}

// notArmed is the code of a call that the ledger did not arm: the vault locked,
// or the caller withdrew it, a moment before; otherwise the disk refused.
func notArmed(err error) *fault.Error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, ledger.ErrTransition):
		return fault.New(fault.Cancelled, err)
	}
	return fault.New(fault.AuditUnavailable, err)
}

// answerHead is what an answer's headers and trailers may add to its body in the
// record: the executor's limit for them, and the event around.
const answerHead = 96 << 10

func (g *Gateway) send(ctx context.Context, i intended) answered {
	if i.step.Kind() == actions.StepRequest {
		_ = i.call.SetState(ledger.Sent)
		defer func() { _ = i.call.SetState(ledger.Proving) }()
	}
	x := g.exec.Send(ctx, i.identity.Name, i.step.Request(), i.lease)
	return answered{intended: i, exchange: x}
}

// keep searches what came for the credential before anything else reads it, and
// makes the event that holds it, masked where it echoed.
func (g *Gateway) keep(a answered) kept {
	head, headHits := searchedHead(a.exchange, a.lease.Scan)
	bodyHits := a.lease.Scan(a.exchange.Body)
	sum := sha256.Sum256(a.exchange.Body)
	k := kept{answered: a, digest: hex.EncodeToString(sum[:]), hits: append(headHits, bodyHits...)}
	raw := append(head, secret.Mask(a.exchange.Body, bodyHits)...)
	k.event = g.answerEvent(k, raw)
	if len(k.hits) > 0 {
		g.echoed(a.turn)
	}
	return k
}

// headBytes renders status, headers and trailers for the search and the record.
func headBytes(status int, header, trailer http.Header) []byte {
	var b []byte
	if status > 0 {
		b = append(b, http.StatusText(status)...)
		b = append(b, '\n')
	}
	for _, h := range []http.Header{header, trailer} {
		names := make([]string, 0, len(h))
		for n := range h {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			for _, v := range h[n] {
				b = append(b, n+": "+v+"\n"...)
			}
		}
		b = append(b, '\n')
	}
	return b
}

// judge turns what came into a proved answer or a refusal. Only a proved answer
// that is no failure has no fault. A panic on the way is a refusal too.
func (g *Gateway) judge(k kept) (j judged) {
	j = judged{kept: k}
	defer g.caught(&j)
	layer, rule, bad := k.exchange.Rejected()
	switch {
	case len(k.hits) > 0:
		j.reject(&validate.Rejection{Layer: "echo", Rule: "credential-in-answer", Message: "the answer holds the credential (" + k.hits[0].Encoding + ")", Status: k.exchange.Status})
	case bad:
		j.reject(&validate.Rejection{Layer: layer, Rule: rule, Message: k.exchange.Why(), Status: k.exchange.Status})
	case k.exchange.Err != nil:
		j.fault = k.exchange.Err
	default:
		g.prove(&j)
	}
	return j
}

// caught makes a panic of ours in judging an INTERNAL of a call that was sent.
func (g *Gateway) caught(j *judged) {
	v := recover()
	if v == nil {
		return
	}
	g.metrics.panics.Inc()
	g.logger.Error("panic while proving an answer", "request_id", j.call.RequestID(), "action", j.contract.Action(), "panic", fmt.Sprintf("%T", v))
	j.proved, j.rejection = nil, nil
	j.fault = j.told(fault.Newf(fault.Internal, "panic while proving the answer"))
}

// told is f in the words for a call that may have changed something. A lookup
// comes before that.
func (j *judged) told(f *fault.Error) *fault.Error {
	if j.mayHaveChanged() {
		return f.OfChange()
	}
	return f
}

func (j *judged) reject(r *validate.Rejection) {
	j.rejection, j.proved = r, nil
	j.fault = j.told(fault.New(fault.InvalidResponse, r))
}

func (g *Gateway) prove(j *judged) {
	now := time.Now()
	raw := validate.Raw{Status: j.exchange.Status, Header: j.exchange.Header, Trailer: j.exchange.Trailer, Body: j.exchange.Body}
	p, rej := j.step.Reader().Prove(raw, j.step.Scope(), now)
	if rej != nil {
		j.reject(rej)
		return
	}
	j.proved = p
	if p.OK() {
		g.noSecretInside(j)
		return
	}
	if captured, ok := p.Captured(); ok {
		g.noSecret(j, canonicalOf(captured), "credential-in-capture", "a captured value")
		return
	}
	if code, _ := p.Failure(); code != "" {
		j.fault = g.failure(j, p, now)
	}
}

// noSecretInside is the last look: the answer that would leave must not hold
// the credential either, however it was put together.
func (g *Gateway) noSecretInside(j *judged) {
	body, err := g.envelopeOK(j.contract, j.call.RequestID(), j.proved)
	if err != nil {
		j.fault = j.told(fault.New(fault.Internal, err))
		return
	}
	g.noSecret(j, body, "credential-in-result", "the result")
}

// noSecret refuses an answer of which something that was made holds the credential:
// what goes back to the agent, or what is shown to a person and sent on.
func (g *Gateway) noSecret(j *judged, made []byte, rule, what string) {
	if hits := j.lease.Scan(made); len(hits) > 0 {
		g.echoed(j.turn)
		j.reject(&validate.Rejection{Layer: "echo", Rule: rule, Message: what + " holds the credential (" + hits[0].Encoding + ")", Status: j.exchange.Status})
	}
}

// failure is the coded error of a declared failure row.
func (g *Gateway) failure(j *judged, p *validate.Proved, now time.Time) *fault.Error {
	code, _ := p.Failure()
	if own, ok := j.contract.OwnCode(code); ok {
		return fault.Own(fault.Code(code), own.Message, own.Retryable, rowCause(p))
	}
	if p.Missed() && j.mayHaveChanged() {
		return fault.NotInAnswer(rowCause(p))
	}
	f := fault.New(fault.Code(code), rowCause(p))
	if after, ok := waitWanted(j, now); ok && f.Retryable() {
		f = f.After(after)
	}
	return f
}

// waitWanted is how long the remote system asks to wait: by the header that the
// contract names, else by Retry-After.
func waitWanted(j *judged, now time.Time) (time.Duration, bool) {
	p := j.contract.Retry()
	if p.RateLimitHeader != "" {
		if d, ok := validate.RateLimit(j.exchange.Header, p.RateLimitHeader, p.RateLimitUnit, now); ok {
			return d, true
		}
	}
	return validate.RetryAfter(j.exchange.Header, now)
}

type rowError string

func (r rowError) Error() string { return "the answer matched " + string(r) }

// errCommonStatus is for an operator, who has the status in the log beside it.
var errCommonStatus = errors.New("the status of the answer says so; no row of the contract names it")

func rowCause(p *validate.Proved) error {
	if _, common := p.Failure(); common {
		return errCommonStatus
	}
	return rowError(p.Row())
}
