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
// which contract, never with which secret.
func (g *Gateway) intentEvent(k cleared, n int, r actions.Request) auditlog.Event {
	e := g.callEvent("intent", k.claimed)
	e.Decision = k.decision
	digest, contract := k.plan.Digest(), k.contract.Digest()
	t := k.route.Target()
	e.Detail = map[string]any{
		"attempt": n, "input": k.input.Value(), "sentence": k.plan.Sentence(),
		"identity": k.identity.Name, "identity_generation": k.identity.Generation,
		"contract_version": k.contract.Version(), "contract_digest": hex.EncodeToString(contract[:]),
		"plan_digest": hex.EncodeToString(digest[:]), "approval": k.cardID,
		"effect": k.contract.Effect().String(), "step": r.Step(),
		"endpoint": r.Method() + " " + t.Scheme() + "://" + hostPort(t) + r.WirePath(),
	}
	return e
}

// answerEvent holds what really came, masked where it echoed the credential.
func (g *Gateway) answerEvent(k kept, raw []byte) auditlog.Event {
	e := g.callEvent("answer", k.claimed)
	e.IntentSeq = k.intent.Seq
	x := k.exchange
	e.Detail = map[string]any{
		"attempt": k.attempt, "upstream_status": x.Status, "answered": x.Answered, "body_sha256": k.digest,
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

// outcomeEvent says how the call ended.
func (g *Gateway) outcomeEvent(j judged, f *fault.Error) auditlog.Event {
	e := g.callEvent("outcome", j.claimed)
	e.IntentSeq = j.intent.Seq
	e.Status = okOr(codeOrNone(f))
	e.Detail = map[string]any{
		"attempt": j.attempt, "wrote": j.exchange.Wrote,
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

// takenBackEvent ends an intent of which nothing was sent after all.
func (g *Gateway) takenBackEvent(i intended, f *fault.Error) auditlog.Event {
	e := g.callEvent("outcome", i.claimed)
	e.IntentSeq, e.Status = i.intent.Seq, string(f.Code())
	e.Detail = map[string]any{"attempt": i.attempt, "wrote": false, "cause": causeText(f)}
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
