package contracttest

import (
	"context"
	"errors"
	"maps"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// turn is one fixture being played: the course of a call, decided as the daemon
// decides it (executor/course.go), with waits that take no time.
type turn struct {
	player
	fx fixture
	c  *actions.Contract
	r  *remote
	g  got

	doubted bool // an attempt of a change may have happened
	lost    bool // … and its answer was lost
	status  int  // of the newest answer, 0 where none came
}

// call performs the whole call.
func (t *turn) call(ctx context.Context, looking actions.Looking) {
	for {
		if _, more := looking.Next(); !more {
			break
		}
		step, err := looking.Step(t.fx.now)
		if err != nil {
			t.g.end(err)
			return
		}
		end := t.send(ctx, step, executor.LookupRetry(t.c))
		if code := executor.AfterLookup(end); code != "" {
			t.g.settle(t.c, code)
			return
		}
		looking = looking.With(t.g.captured)
	}
	plan, err := looking.Freeze()
	if err != nil {
		t.g.end(err)
		return
	}
	t.request(ctx, plan)
}

// request sends the request and follows the course.
func (t *turn) request(ctx context.Context, plan actions.Plan) {
	step, err := plan.Step(actions.StepRequest, t.fx.now, nil)
	if err != nil {
		t.g.end(err)
		return
	}
	end := t.send(ctx, step, t.c.Retry())
	next, code := executor.AfterRequest(t.c, end)
	captured := maps.Clone(t.g.captured)
	accepted := next == executor.GoPoll
	if accepted {
		next, code = t.poll(ctx, plan, captured)
	}
	if next == executor.GoReconcile {
		t.g.settle(t.c, code)
		t.reconcile(ctx, plan, captured, executor.Unknown{Code: code, Lost: t.lost, Accepted: accepted})
		return
	}
	t.g.settle(t.c, code)
}

// poll asks until an end, or until the waits add up to the poll's time.
func (t *turn) poll(ctx context.Context, plan actions.Plan, captured map[string]any) (executor.Next, fault.Code) {
	policy, _ := t.c.Poll()
	step, err := plan.Step(actions.StepPoll, t.fx.now, captured)
	if err != nil {
		t.g.end(err)
		return executor.Done, fault.Code(t.g.code())
	}
	left, asked := policy.Within, time.Duration(0)
	for {
		wait, last, send := executor.PollWait(policy.Every, asked, left)
		left -= wait
		end := executor.End{Lost: true}
		if send {
			end, asked = t.attempt(ctx, step)
		}
		end.Doubted = t.doubted
		// A script that has ended is not asked for the rest of the time.
		over := last || t.r.exhausted() || ctx.Err() != nil
		if next, code := executor.AfterPoll(t.c, end, over); next != executor.PollAgain {
			return next, code
		}
	}
}

// reconcile looks whether the request took effect, a second time where its
// answer was lost or its poll had begun. A script with one answer for the step
// gives it to both looks, and the second is no request. What cannot be told leaves
// the call's end as it was.
func (t *turn) reconcile(ctx context.Context, plan actions.Plan, captured map[string]any, u executor.Unknown) {
	before := t.g
	step, err := plan.Step(actions.StepReconcile, t.fx.now, captured)
	if err != nil {
		return // the look cannot be built: nothing can be told
	}
	var first *executor.End
	for {
		end, _ := t.attempt(ctx, step)
		next, code := executor.AfterReconcile(u, first, end)
		if next == executor.LookAgain {
			first = &end
			if !t.r.scriptedOnce(step.Name()) {
				continue
			}
			_, code = executor.AfterReconcile(u, first, end)
		}
		if code == u.Code {
			t.g.restore(before)
			return
		}
		t.g.settle(t.c, code)
		return
	}
}

// send sends a step once, and again as the policy says.
func (t *turn) send(ctx context.Context, step actions.Step, policy actions.RetryPolicy) executor.End {
	var end executor.End
	executor.RetryAtOnce(ctx, policy, func(int) (fault.Code, time.Duration, bool) {
		var after time.Duration
		end, after = t.attempt(ctx, step)
		if step.Request().Change() && end.Code == fault.OutcomeUnknown {
			t.doubted, t.lost = true, t.lost || end.Lost
		}
		if step.Request().Change() && end.Code != "" {
			t.lost = t.lost || executor.AnswerLost(t.status)
		}
		end.Doubted = t.doubted
		return end.Code, after, end.Code != ""
	})
	return end
}

// attempt sends once and proves the answer.
func (t *turn) attempt(ctx context.Context, step actions.Step) (end executor.End, after time.Duration) {
	g := &t.g
	g.ok, g.data, g.display, g.captured, g.fault, g.rejection = false, nil, nil, nil, nil, nil
	t.r.begin(step.Name(), step.Request().Timeout())
	ex := t.r.exec.Send(ctx, g.target.Identity(), step.Request(), g.cred)
	t.status = ex.Status
	layer, rule, refused := ex.Rejected()
	switch found := g.cred.echoed(ex); {
	case len(found) > 0:
		g.reject(echoRejection(found, ex.Status))
	case refused:
		g.reject(&validate.Rejection{Layer: layer, Rule: rule, Message: ex.Err.Error(), Status: ex.Status})
	case ex.Err != nil:
		g.fault = ex.Err
		end.Lost = true
	default:
		end, after = t.prove(step, ex)
	}
	end.Code = fault.Code(g.code())
	return end, after
}

// prove reads the answer with the step's reader.
func (t *turn) prove(step actions.Step, ex executor.Exchange) (end executor.End, after time.Duration) {
	reader := step.Reader().DangerouslyWithKeys(t.signers.sets)
	raw := validate.Raw{Status: ex.Status, Header: ex.Header, Trailer: ex.Trailer, Body: ex.Body}
	proved, rejection := reader.Prove(raw, step.Scope(), t.fx.now)
	t.g.trace = append(t.g.trace, provedAnswer{
		step: step.Name(), reader: reader, scope: step.Scope(), now: t.fx.now, raw: raw, verdict: verdict{proved, rejection},
	})
	if rejection != nil {
		t.g.reject(rejection)
		return end, 0
	}
	end.Pending = proved.Pending()
	end.Effect, end.EffectSaid = proved.TookEffect()
	t.g.captured, end.Captured = proved.Captured()
	if end.Captured && len(t.g.cred.secret.In(validate.Canonical(t.g.captured))) > 0 {
		t.g.reject(&validate.Rejection{Layer: "echo", Rule: "credential-in-capture", Message: "a captured value holds the credential", Status: ex.Status})
		return executor.End{}, 0
	}
	if proved.OK() {
		t.g.succeed(t.c, proved)
		return end, 0
	}
	code, _ := proved.Failure()
	if code != "" {
		t.g.fault = codeFault(t.c, fault.Code(code), errors.New("the answer matched "+proved.Row()))
	}
	return end, t.wanted(ex)
}

// wanted is how long the remote system asks to wait: by the header that the
// contract names, else by Retry-After.
func (t *turn) wanted(ex executor.Exchange) time.Duration {
	p := t.c.Retry()
	if p.RateLimitHeader != "" {
		if d, ok := validate.RateLimit(ex.Header, p.RateLimitHeader, p.RateLimitUnit, t.fx.now); ok {
			return d
		}
	}
	after, _ := validate.RetryAfter(ex.Header, t.fx.now)
	return after
}

// codeFault is the error of a code of the API or of the contract's own.
func codeFault(c *actions.Contract, code fault.Code, cause error) *fault.Error {
	if own, ok := c.OwnCode(string(code)); ok {
		return fault.Own(code, own.Message, own.Retryable, cause)
	}
	return fault.New(code, cause)
}

// settle makes the code that the course decided the end of the call. One that
// an answer gave keeps its cause and its rejection.
func (g *got) settle(c *actions.Contract, code fault.Code) {
	if code == fault.Code(g.code()) {
		return
	}
	g.ok, g.data, g.display = false, nil, nil
	var cause error
	if g.fault != nil {
		cause = g.fault
	}
	g.rejection = nil
	g.fault = codeFault(c, code, cause)
}

// restore gives the call its end from before a look that could not tell.
func (g *got) restore(before got) {
	g.ok, g.data, g.display, g.fault, g.rejection = before.ok, before.data, before.display, before.fault, before.rejection
}

// end keeps an error of ours as the end of the call.
func (g *got) end(err error) {
	g.ok, g.data, g.display, g.rejection, g.fault = false, nil, nil, nil, fault.From(err)
}

func echoRejection(found []string, status int) *validate.Rejection {
	return &validate.Rejection{Layer: "echo", Rule: "credential-in-answer", Message: "the answer holds the credential (" + joined(found) + ")", Status: status}
}
