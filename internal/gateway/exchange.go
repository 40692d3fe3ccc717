package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// kindExchange is the kind of step that the record gives to an exchange: a lookup
// may have the name of one of its steps.
const kindExchange = auditlog.KindExchange

// theDaemon is who asks for an exchange that no call waits for.
const theDaemon = "the daemon"

// ready makes sure that the lease can be attached. An exchange belongs to the call
// that began it, also where others wait for the same token.
func (g *Gateway) ready(ctx context.Context, c claimed, id actions.IdentityFact, l Lease) error {
	spec, ok := c.set.Identity(id.Name)
	if !ok || !spec.Exchanges() {
		return nil
	}
	return g.readyFor(ctx, c, spec, l)
}

// readyFor is ready for an identity that is exchanged.
func (g *Gateway) readyFor(ctx context.Context, c claimed, spec *actions.IdentitySpec, l Lease) error {
	err := l.Ready(ctx, spec.Narrow(c.contract, c.route), func(ctx context.Context, s TokenSend, cred TokenCredential, read func(TokenAnswer) error) error {
		return g.exchange(ctx, &c, s, cred, read)
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && fault.CodeOf(err) == fault.Internal:
		err = fault.New(fault.UpstreamUnavailable, err) // the call could not wait any longer
	}
	return notReady{err}
}

// exchanges says whether the call's identity is exchanged for a token.
func (c claimed) exchanges(id actions.IdentityFact) bool {
	spec, ok := c.set.Identity(id.Name)
	return ok && spec.Exchanges()
}

// notReady is why an identity could not be attached: nothing of the call was sent.
type notReady struct{ error }

// Unwrap gives the coded end of the exchange.
func (n notReady) Unwrap() error { return n.error }

// KeepFresh renews tokens off the path of calls until ctx ends or the daemon stops.
// While the vault is locked there is nothing to renew.
func (g *Gateway) KeepFresh(ctx context.Context) {
	t := time.NewTicker(refreshEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.drained:
			return
		case <-t.C:
		}
		if g.vault.Open() == nil {
			g.vault.Refresh(ctx, func(ctx context.Context, s TokenSend, cred TokenCredential, read func(TokenAnswer) error) error {
				return g.exchange(ctx, nil, s, cred, read)
			})
		}
	}
}

// refreshEvery is a fraction of the shortest time that a token is near its end
// before it is no longer given out.
const refreshEvery = 5 * time.Second

// exchange is one request of an exchange: intent, send, answer and outcome, each in
// the record. c is the call that it is for, nil for none. The token itself is the
// vault's; what came is let go of here.
func (g *Gateway) exchange(ctx context.Context, c *claimed, s TokenSend, cred TokenCredential, read func(TokenAnswer) error) error {
	if !g.running.enter() {
		return errDraining()
	}
	defer g.running.leave()
	to, err := g.exchangedAt(s)
	if err == nil {
		err = g.mayExchange()
	}
	if err != nil {
		return err
	}
	x := exchanged{call: c, send: s, to: to}
	receipt, err := g.log.AppendIntent(g.exchangeIntent(x), g.limits.Answer+answerHead).Wait(ctx)
	if err != nil {
		return fault.New(fault.AuditUnavailable, err)
	}
	x.intent = receipt
	if err := g.mayExchange(); err != nil { // turned while the record was written
		x.fault = fault.From(err)
		g.log.Append(g.exchangeOutcome(x))
		return err
	}
	r := s.Request
	r.To = to
	x.got = g.exec.SendToken(ctx, s.Identity, r, cred)
	g.judgeExchange(&x, cred, read)
	g.log.Append(g.exchangeAnswer(x), g.exchangeOutcome(x))
	g.noteExchange(x)
	if x.fault == nil {
		return nil
	}
	return x.fault
}

// exchanged is one request of an exchange under way.
type exchanged struct {
	call   *claimed
	send   TokenSend
	to     executor.Destination
	intent auditlog.Receipt
	got    executor.Exchange
	head   []byte // what the record keeps of the answer
	body   []byte
	size   int // of the answer's body
	digest string
	echoes int
	fault  *fault.Error
}

// mayExchange is the look before a secret goes out: a locked vault and a daemon
// that stops exchange nothing.
func (g *Gateway) mayExchange() error {
	if g.draining.Load() {
		return errDraining()
	}
	return g.vault.Open()
}

// exchangedAt is the place of the site file that the vault means.
func (g *Gateway) exchangedAt(s TokenSend) (executor.Destination, error) {
	set := g.Set()
	no := func() (executor.Destination, error) {
		return executor.Destination{}, fault.Newf(fault.TargetNotAllowed, "identity %s: targets.yaml does not name the place that its secret is bound to (%s://%s%s)", s.Identity, s.At.Scheme, joinHostPort(s.At.Host, s.At.Port), s.At.Path)
	}
	if s.Step == StepChallenge {
		for _, t := range set.Targets() {
			d := executor.DestinationOfTarget(t)
			d.BasePath = s.At.Path // which a target may narrow; nothing secret goes there
			if t.Identity() == s.Identity && placeOf(d) == s.At {
				return d, nil
			}
		}
		return no()
	}
	spec, ok := set.Identity(s.Identity)
	if !ok || spec.Token() == nil {
		return no()
	}
	d := executor.DestinationOf(spec.Token())
	if placeOf(d) != s.At {
		return no()
	}
	return d, nil
}

func placeOf(d executor.Destination) Place {
	return Place{Scheme: d.Scheme, Host: d.Host, Port: d.Port, Path: d.BasePath, CADigest: d.CADigest}
}

// judgeExchange lets the vault read a whole answer. An answer that is no success is
// searched for what was sent before anything reads it, and kept, masked. Of a
// success only the names of usual headers are kept: the rest may be a credential,
// whatever became of it.
func (g *Gateway) judgeExchange(x *exchanged, cred TokenCredential, read func(TokenAnswer) error) {
	got := x.got
	sum := sha256.Sum256(got.Body)
	x.size, x.digest = len(got.Body), hex.EncodeToString(sum[:])
	defer clear(got.Body) // whoever needs a part of it has a copy
	defer func() {
		if v := recover(); v != nil { // a remote's bytes take no daemon down
			g.metrics.panics.Inc()
			g.logger.Error("panic while reading the answer of an exchange", "identity", x.send.Identity, "panic", fmt.Sprintf("%T", v))
			x.head, x.body = nil, nil
			x.fault = fault.Newf(fault.Internal, "panic while reading the answer of an exchange")
		}
	}()
	if success := got.Answered && got.Status/100 == 2; success {
		x.head = headerNames(got.Header, got.Trailer)
	} else {
		head, headHits := searchedHead(got, cred.Scan)
		bodyHits := cred.Scan(got.Body)
		x.head, x.body = head, secret.Mask(got.Body, bodyHits)
		x.echoes = len(headHits) + len(bodyHits)
	}
	switch _, rule, bad := got.Rejected(); {
	case x.echoes > 0:
		g.echoedBy(x.trial(), x.send.Identity)
		x.fault = fault.Newf(fault.InvalidResponse, "the answer of %s holds the secret that was sent", x.endpoint())
	case bad:
		x.fault = fault.Newf(fault.InvalidResponse, "the answer of %s: %s (%s)", x.endpoint(), got.Why(), rule)
	case got.Err != nil:
		x.fault = got.Err
	default:
		if err := read(TokenAnswer{Status: got.Status, Header: got.Header, Body: got.Body}); err != nil {
			x.fault = fault.From(err)
		}
	}
}

// trial says whether a secret is exchanged that is only tried: it is not the
// identity's yet.
func (x exchanged) trial() bool {
	return x.send.Generation >= onTrial || x.call != nil && x.call.trial != nil
}

func (x exchanged) endpoint() string {
	return x.send.Request.Method + " " + x.to.Scheme + "://" + joinHostPort(x.to.Host, x.to.Port) + x.send.Request.Path
}

// noteExchange counts and logs it. No byte of the answer goes here.
func (g *Gateway) noteExchange(x exchanged) {
	kind := "unknown"
	if spec, ok := g.Set().Identity(x.send.Identity); ok {
		kind = spec.Kind()
	}
	result := okOr(codeOrNone(x.fault))
	g.metrics.exchanges.WithLabelValues(kind, result).Inc()
	g.metrics.exchanged.WithLabelValues(kind).Observe(x.got.Ended.Sub(x.got.Started).Seconds())
	args := []any{"identity", x.send.Identity, "kind", kind, "step", x.send.Step, "code", result, "upstream_status", x.got.Status}
	if x.call != nil {
		args = append(args, "request_id", x.call.call.RequestID())
	}
	if x.fault != nil {
		g.logger.Warn("no token", append(args, "cause", x.fault.Error())...)
		if x.trial() {
			return
		}
		g.noteUnusable(actions.IdentityFact{Name: x.send.Identity, Generation: x.send.Generation}, x.fault)
		return
	}
	g.logger.Info("token exchanged", args...)
}

// refusedToken tells the vault that the target refused what was attached, so that a
// token is not used again until its end. The call itself is not sent twice.
func (g *Gateway) refusedToken(j judged) {
	if j.exchange.Answered && j.exchange.Status == http.StatusUnauthorized {
		j.lease.Rejected()
	}
}
