package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
)

// usualHeaders are what token endpoints send. A name outside of them is not kept: a
// credential can stand there too, and its capitals are gone by then, so that no search
// finds it.
var usualHeaders = []string{
	"Cache-Control", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Expires", "Pragma", "Retry-After", "Server",
	"Set-Cookie", "Strict-Transport-Security", "Vary", "Via", "X-Github-Request-Id", "X-Ratelimit-Remaining", "X-Request-Id",
}

// headerNames are the usual names alone, one a line, in order, and how many others
// there are.
func headerNames(all ...http.Header) []byte {
	var b []byte
	others := 0
	for _, h := range all {
		for _, n := range slices.Sorted(maps.Keys(h)) {
			if slices.Contains(usualHeaders, n) {
				b = append(append(b, n...), '\n')
			} else {
				others++
			}
		}
	}
	if others > 0 {
		b = fmt.Appendf(b, "and %d others\n", others)
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
