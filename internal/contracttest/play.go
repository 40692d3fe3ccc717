package contracttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/planted"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// got is what a fixture led to.
type got struct {
	ok        bool
	data      map[string]any
	display   map[string]any
	fault     *fault.Error
	rejection *validate.Rejection
	requests  []upstream.Request
	wanted    []string // addresses that were to be dialled
	unused    int      // answers that nobody asked for
	extra     int      // requests that had no answer
	cred      credential
	target    *actions.Target
}

func (g got) code() string {
	if g.fault == nil {
		return ""
	}
	return string(g.fault.Code())
}

func (g got) layer() string {
	if g.rejection == nil {
		return ""
	}
	return g.rejection.Layer
}

// player plays the fixtures of one set.
type player struct {
	set     *actions.Set
	trust   *trust
	signers *signers
}

// play performs a fixture as if it were approved. The error is for what is not
// the fixture's doing.
func (p player) play(ctx context.Context, fx fixture) (got, error) {
	plan, target, err := p.plan(fx)
	if err != nil {
		coded, ok := errors.AsType[*fault.Error](err)
		if !ok {
			return got{}, err
		}
		return got{fault: coded, unused: len(fx.answers)}, nil
	}
	spec, ok := p.set.Identity(target.Identity())
	if !ok {
		return got{}, fmt.Errorf("the target %s has no identity", target.Name())
	}
	secret := planted.Random()
	answers, err := p.signers.fill(fx.answers, fx.now)
	if err != nil {
		return got{}, err
	}
	r, err := newRemote(p.trust, target, answers, secret, plan.Contract().Timeout())
	if err != nil {
		return got{}, err
	}
	g := got{cred: credential{secret, spec, target}, target: target}
	p.attempts(ctx, &g, r, plan, fx.now)
	r.close() // so that nothing arrives any more
	g.requests, g.wanted, g.extra = r.srv.Requests(), r.dialled, r.extra
	g.unused = max(0, len(fx.answers)-r.asked)
	return g, nil
}

// plan goes the way of a call up to its frozen plan.
func (p player) plan(fx fixture) (actions.Plan, *actions.Target, error) {
	c, ok := p.set.Contract(fx.action)
	if !ok {
		return actions.Plan{}, nil, fmt.Errorf("no contract %s", fx.action)
	}
	text, err := json.Marshal(fx.input)
	if err != nil {
		return actions.Plan{}, nil, err
	}
	doc, err := validate.Parse(text, validate.CallerLimits())
	if err != nil {
		return actions.Plan{}, nil, fault.Invalid(err)
	}
	in, err := c.ParseInput(doc)
	if err != nil {
		return actions.Plan{}, nil, err
	}
	route, err := p.set.Resolve(c, in)
	if err != nil {
		return actions.Plan{}, nil, err
	}
	id := actions.IdentityFact{Name: route.Target().Identity(), Generation: 1}
	facts := actions.CallFacts{CallID: orRandom("act_", fx.callID), IdempotencyKey: orRandom("", fx.idempotencyKey), Now: fx.now}
	plan, err := actions.Freeze(c, route, in, id, facts)
	return plan, route.Target(), err
}

func orRandom(prefix, fixed string) string {
	if fixed != "" {
		return fixed
	}
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return prefix + hex.EncodeToString(b[:])
}

// attempts sends once, and again as the contract's retry says; waits take no
// time. Once an attempt of a change may have happened, only a success says
// otherwise.
func (p player) attempts(ctx context.Context, g *got, r *remote, plan actions.Plan, now time.Time) {
	c := plan.Contract()
	unknown := false
	executor.RetryAtOnce(ctx, c.Retry(), func(int) (fault.Code, time.Duration, bool) {
		after := p.attempt(ctx, g, r, plan, now)
		code := fault.Code(g.code())
		unknown = unknown || c.Effect() != actions.Read && code == fault.OutcomeUnknown
		return code, after, code != ""
	})
	if unknown && g.fault != nil && g.fault.Code() != fault.OutcomeUnknown {
		g.fault, g.rejection = fault.New(fault.OutcomeUnknown, g.fault), nil
	}
}

// attempt sends once and proves the answer.
func (p player) attempt(ctx context.Context, g *got, r *remote, plan actions.Plan, now time.Time) (after time.Duration) {
	g.ok, g.data, g.display, g.fault, g.rejection = false, nil, nil, nil, nil
	req, err := plan.Request(now)
	if err != nil {
		g.fault = fault.From(err)
		return 0
	}
	ex := r.exec.Send(ctx, g.target.Identity(), req, g.cred)
	layer, rule, refused := ex.Rejected()
	switch found := g.cred.echoed(ex); {
	case len(found) > 0:
		g.reject(&validate.Rejection{Layer: "echo", Rule: "credential-in-answer", Message: "the answer holds the credential (" + strings.Join(found, ", ") + ")", Status: ex.Status})
	case refused:
		g.reject(&validate.Rejection{Layer: layer, Rule: rule, Message: ex.Err.Error(), Status: ex.Status})
	case ex.Err != nil:
		g.fault = ex.Err
	default:
		after = g.prove(plan, plan.Reader().DangerouslyWithKeys(p.signers.sets), ex, now)
	}
	return after
}

func (g *got) reject(r *validate.Rejection) {
	g.rejection, g.fault = r, fault.New(fault.InvalidResponse, r)
}

// prove reads the answer with the contract's reader.
func (g *got) prove(plan actions.Plan, reader *validate.Reader, ex executor.Exchange, now time.Time) time.Duration {
	raw := validate.Raw{Status: ex.Status, Header: ex.Header, Trailer: ex.Trailer, Body: ex.Body}
	proved, rejection := reader.Prove(raw, plan.Scope(now), now)
	if rejection != nil {
		g.reject(rejection)
		return 0
	}
	if proved.OK() {
		g.succeed(plan.Contract(), proved)
		return 0
	}
	code, _ := proved.Failure()
	if own, ok := plan.Contract().OwnCode(code); ok {
		g.fault = fault.Own(fault.Code(code), own.Message, own.Retryable, errors.New("the answer matched "+proved.Row()))
	} else {
		g.fault = fault.Newf(fault.Code(code), "the answer matched %s", proved.Row())
	}
	after, _ := validate.RetryAfter(ex.Header, now)
	return after
}

// succeed checks what would leave against the schema that the action publishes.
func (g *got) succeed(c *actions.Contract, proved *validate.Proved) {
	g.ok, g.data, g.display = true, proved.Data(), texts(proved.Display())
	envelope := map[string]any{"ok": true, "action": c.Action(), "request_id": "act_fixture0001", "data": g.data}
	if len(g.display) > 0 {
		envelope["display"] = g.display
	}
	doc, text, err := plain(envelope)
	switch v := c.EnvelopeSchema().Validate(doc); {
	case err != nil:
		g.fail(err)
	case v != nil:
		g.fail(fmt.Errorf("the answer does not fit the published envelope: %s at %s", v.Rule, v.InstancePath))
	case len(g.cred.secret.In(text)) > 0:
		g.ok = false
		g.reject(&validate.Rejection{Layer: "echo", Rule: "credential-in-result", Message: "the result holds the credential"})
	}
}

// texts is display as the envelope has it.
func texts(display map[string]validate.DisplayText) map[string]any {
	out := map[string]any{}
	for name, d := range display {
		out[name] = map[string]any{"text": d.Text, "truncated": d.Truncated}
	}
	return out
}

func (g *got) fail(err error) {
	g.ok, g.fault = false, fault.New(fault.Internal, err)
}

// plain makes a value as a reader of JSON has it, and its text.
func plain(v any) (any, []byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, nil, err
	}
	doc, err := validate.Parse(bytes.TrimSpace(b.Bytes()), validate.AnswerLimits())
	return doc, b.Bytes(), err
}
