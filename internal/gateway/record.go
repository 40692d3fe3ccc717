package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
)

// event begins every event of the record: an id of its own and the wall's time.
// The record adds the boot's clock, which goes on over a restart of the daemon.
func (g *Gateway) event(kind string) auditlog.Event {
	var id [12]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return auditlog.Event{
		EventID: "evt_" + base64.RawURLEncoding.EncodeToString(id[:]),
		Type:    kind, Wall: time.Now().UTC(),
	}
}

// callEvent adds who asked for what.
func (g *Gateway) callEvent(kind string, c claimed) auditlog.Event {
	e := g.event(kind)
	e.SessionID, e.Actor = c.session.ID, c.session.Name
	e.Action = c.ask.Action
	if c.call != nil {
		e.CallID = c.call.RequestID()
	}
	if t := c.route.Target(); t != nil {
		e.Target = t.Name()
	}
	return e
}

// intentEvent says what is about to be sent, by whom it was allowed and under
// which contract, never with which secret. What the call is about stands with its
// request and its lookups; a poll or a reconcile belongs to that request.
func (g *Gateway) intentEvent(t turn) auditlog.Event {
	e := g.callEvent("intent", t.claimed)
	contract, r, target := t.contract.Digest(), t.step.Request(), t.route.Target()
	e.Detail = map[string]any{
		"attempt": t.attempt, "step": t.step.Name(), "kind": t.step.Kind().String(),
		"identity": t.identity.Name, "identity_generation": t.identity.Generation,
		"contract_version": t.contract.Version(), "contract_digest": hex.EncodeToString(contract[:]),
		"effect":   t.contract.Effect().String(),
		"endpoint": r.Method() + " " + target.Scheme() + "://" + hostPort(target) + r.WirePath(),
	}
	if t.plan.Contract() != nil {
		digest := t.plan.Digest()
		e.Detail["plan_digest"] = hex.EncodeToString(digest[:])
	}
	switch t.step.Kind() {
	case actions.StepLookup:
		e.Detail["input"] = t.input.Value()
	case actions.StepRequest:
		e.Decision = t.decision
		e.Detail["input"], e.Detail["sentence"], e.Detail["approval"] = t.input.Value(), t.plan.Sentence(), t.cardID
	default:
		e.Detail["request_intent"] = t.request
	}
	return e
}

// answerEvent holds what really came, masked where it echoed the credential.
func (g *Gateway) answerEvent(k kept, raw []byte) auditlog.Event {
	e := g.callEvent("answer", k.claimed)
	e.IntentSeq = k.intent.Seq
	x := k.exchange
	e.Detail = map[string]any{
		"attempt": k.attempt, "step": k.step.Name(), "upstream_status": x.Status, "answered": x.Answered, "body_sha256": k.digest,
		"body_bytes": len(x.Body), "echoes": len(k.hits), "writes": x.Writes,
		"peer": x.Connection.RemoteAddr.String(),
	}
	if len(k.hits) > 0 {
		// The digest of the unmasked bytes would let a guess be checked.
		delete(e.Detail, "body_sha256")
		e.Detail["echo_encoding"], e.Detail["echo_offset"] = k.hits[0].Encoding, k.hits[0].Offset
	}
	e.Body = raw
	return e
}

// outcomeEvent says how a send ended, and with the last one of a call how the call
// did: IN_PROGRESS where the call goes on.
func (g *Gateway) outcomeEvent(j judged, f *fault.Error, status string) auditlog.Event {
	e := g.callEvent("outcome", j.claimed)
	e.IntentSeq = j.intent.Seq
	e.Status = status
	e.Detail = map[string]any{
		"attempt": j.attempt, "step": j.step.Name(), "wrote": j.exchange.Wrote,
		"upstream_ms": j.exchange.Ended.Sub(j.exchange.Started).Milliseconds(),
		"total_ms":    time.Since(j.came).Milliseconds(),
	}
	if j.proved != nil {
		e.Detail["row"] = j.proved.Row()
	}
	if j.rejection != nil {
		e.Rule = j.rejection.Layer + "/" + j.rejection.Rule
		e.Detail["rejection"] = rejectionDetail(j)
	}
	if f != nil {
		e.Detail["cause"] = causeText(f)
	}
	return e
}

// endEvent says how a call ended that ends otherwise than its last send did, or
// that a reconcile looked into. The latter ends the request's own intent.
func (g *Gateway) endEvent(j judged, f *fault.Error) auditlog.Event {
	if j.intent.Seq != 0 && j.step.Kind() != actions.StepReconcile {
		return g.outcomeEvent(j, f, okOr(codeOrNone(f)))
	}
	e := g.callEvent("reconcile", j.claimed)
	e.IntentSeq, e.Status = j.request, okOr(codeOrNone(f))
	e.Rule = "it was looked up: it took effect"
	switch {
	case j.intent.Seq == 0:
		e.Rule = "nothing could be asked any more"
	case f != nil && f.Fate(true, true) == fault.Unresolved:
		e.Rule = "it was looked up, and that cannot tell"
	case f != nil:
		e.Rule = "it was looked up: it did not take effect"
	}
	e.Detail = map[string]any{"total_ms": time.Since(j.came).Milliseconds(), "reconcile_intent": j.intent.Seq}
	if f != nil {
		e.Detail["cause"] = causeText(f)
	}
	return e
}

// overtakenEvent ends the request's intent by what a person said of it.
func (g *Gateway) overtakenEvent(j judged) auditlog.Event {
	e := g.callEvent("reconcile", j.claimed)
	e.IntentSeq, e.Rule = j.request, "a person resolved it before: that stands"
	out, _ := j.call.Outcome()
	e.Status = okOr(fault.Code(out.Code))
	e.Detail = map[string]any{"total_ms": time.Since(j.came).Milliseconds()}
	if j.step.Kind() == actions.StepReconcile {
		e.Detail["reconcile_intent"] = j.intent.Seq
	}
	return e
}

// takenBackEvent ends an intent of which nothing was sent after all.
func (g *Gateway) takenBackEvent(i intended, f *fault.Error) auditlog.Event {
	e := g.callEvent("outcome", i.claimed)
	e.IntentSeq, e.Status = i.intent.Seq, string(f.Code())
	e.Detail = map[string]any{"attempt": i.attempt, "step": i.step.Name(), "wrote": false, "cause": causeText(f)}
	return e
}

// denyEvent says why nothing was sent.
func (g *Gateway) denyEvent(c claimed, f *fault.Error) auditlog.Event {
	e := g.callEvent("deny", c)
	e.Status, e.Rule = string(f.Code()), causeText(f)
	return e
}

// causeLimit bounds the operator's cause in the record.
const causeLimit = 1000

func causeText(f *fault.Error) string {
	s := f.Error()
	if len(s) > causeLimit {
		s = s[:causeLimit]
	}
	return s
}

func hostPort(t *actions.Target) string {
	return joinHostPort(t.Host(), t.Port())
}
