package contracttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// got is what a fixture led to.
type got struct {
	ok        bool
	data      map[string]any
	display   map[string]any
	captured  map[string]any
	fault     *fault.Error
	rejection *validate.Rejection
	requests  []upstream.Request
	steps     []string // the step of each request
	wanted    []string // addresses that were to be dialled
	unused    int      // answers that nobody asked for
	extra     int      // requests that had no answer
	strays    []string // requests of another step than the answer's
	trace     []provedAnswer
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
	set      *actions.Set
	trust    *trust
	signers  *signers
	outlines map[string]*outline // by action
}

// play performs a fixture as if it were approved. The error is for what is not
// the fixture's doing.
func (p player) play(ctx context.Context, fx fixture) (got, error) {
	looking, target, err := p.begin(fx)
	if err != nil {
		return refusedCall(err, fx)
	}
	spec, ok := p.set.Identity(target.Identity())
	if !ok {
		return got{}, fmt.Errorf("the target %s has no identity", target.Name())
	}
	cred, err := newCredential(p.trust, spec, target)
	if err != nil {
		return got{}, err
	}
	answers, err := p.signers.fill(fx.answers, fx.now)
	if err != nil {
		return got{}, err
	}
	c, _ := p.set.Contract(fx.action)
	r, err := newRemote(p.trust, target, answers, cred.secret)
	if err != nil {
		return got{}, err
	}
	t := turn{player: p, fx: fx, c: c, r: r, g: got{cred: cred, target: target}}
	t.call(ctx, looking)
	r.close() // so that nothing arrives any more
	g := t.g
	g.requests, g.steps, g.wanted, g.extra, g.strays = r.srv.Requests(), r.steps, r.dialled, r.extra, r.strays
	g.unused = r.left()
	return g, nil
}

// refusedCall is the end of a call that was refused before anything was sent.
func refusedCall(err error, fx fixture) (got, error) {
	coded, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return got{}, err
	}
	return got{fault: coded, unused: len(fx.answers)}, nil
}

// begin goes the way of a call up to its lookups.
func (p player) begin(fx fixture) (actions.Looking, *actions.Target, error) {
	c, ok := p.set.Contract(fx.action)
	if !ok {
		return actions.Looking{}, nil, fmt.Errorf("no contract %s", fx.action)
	}
	text, err := json.Marshal(fx.input)
	if err != nil {
		return actions.Looking{}, nil, err
	}
	doc, err := validate.Parse(text, validate.CallerLimits())
	if err != nil {
		return actions.Looking{}, nil, fault.Invalid(err)
	}
	in, err := c.ParseInput(doc)
	if err != nil {
		return actions.Looking{}, nil, err
	}
	route, err := p.set.Resolve(c, in)
	if err != nil {
		return actions.Looking{}, nil, err
	}
	id := actions.IdentityFact{Name: route.Target().Identity(), Generation: 1}
	facts := actions.CallFacts{CallID: orRandom("act_", fx.callID), IdempotencyKey: orRandom("", fx.idempotencyKey), Now: fx.now}
	looking, err := actions.Begin(c, route, in, id, facts)
	if err == nil && len(c.Lookups()) == 0 {
		// What cannot be frozen is refused before anything is listening.
		_, err = looking.Freeze()
	}
	return looking, route.Target(), err
}

func orRandom(prefix, fixed string) string {
	if fixed != "" {
		return fixed
	}
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return prefix + hex.EncodeToString(b[:])
}

func (g *got) reject(r *validate.Rejection) {
	g.rejection, g.fault = r, fault.New(fault.InvalidResponse, r)
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
