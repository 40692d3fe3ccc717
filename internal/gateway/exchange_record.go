package gateway

import (
	"net/http"
	"slices"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
)

// headerNames are the names alone, one a line, in order.
func headerNames(all ...http.Header) []byte {
	var b []byte
	for _, h := range all {
		names := make([]string, 0, len(h))
		for n := range h {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			b = append(append(b, n...), '\n')
		}
	}
	return b
}

// exchangeEvent begins an event of an exchange: that of the call it is for, or the
// daemon's own.
func (g *Gateway) exchangeEvent(kind string, x exchanged) auditlog.Event {
	e := g.event(kind)
	e.Actor = theDaemon
	if x.call != nil {
		e = g.callEvent(kind, *x.call)
	}
	e.IntentSeq = x.intent.Seq
	e.Detail = map[string]any{"step": x.send.Step, "kind": kindExchange, "identity": x.send.Identity}
	return e
}

// exchangeIntent says which secret is about to go where, never the secret.
func (g *Gateway) exchangeIntent(x exchanged) auditlog.Event {
	e := g.exchangeEvent(auditlog.TypeIntent, x)
	e.Detail["identity_generation"], e.Detail["endpoint"], e.Detail["attempt"] = x.send.Generation, x.endpoint(), 1
	return e
}

// exchangeAnswer holds what came as far as it is no credential.
func (g *Gateway) exchangeAnswer(x exchanged) auditlog.Event {
	e := g.exchangeEvent(auditlog.TypeAnswer, x)
	got := x.got
	e.Detail["answered"], e.Detail["upstream_status"], e.Detail["writes"] = got.Answered, got.Status, got.Writes
	e.Detail["body_bytes"], e.Detail["peer"], e.Detail["echoes"] = x.size, got.Connection.RemoteAddr.String(), x.echoes
	if x.echoes == 0 {
		e.Detail["body_sha256"] = x.digest
	}
	e.Body = append(slices.Clip(x.head), x.body...)
	return e
}

// exchangeOutcome says how it ended. A call goes on after a token came.
func (g *Gateway) exchangeOutcome(x exchanged) auditlog.Event {
	e := g.exchangeEvent(auditlog.TypeOutcome, x)
	e.Detail["wrote"] = x.got.Wrote
	e.Detail["upstream_ms"] = x.got.Ended.Sub(x.got.Started).Milliseconds()
	e.Status = okOr(codeOrNone(x.fault))
	switch {
	case x.fault != nil:
		e.Detail["cause"] = causeText(x.fault)
	case x.call != nil:
		e.Status = string(fault.InProgress)
	}
	return e
}
