package executor

import (
	"context"
	"net/http"
	"slices"
	"time"

	"chatelaine/internal/actions"
)

// Destination is a fixed place that a secret is exchanged at, and what is believed
// about it.
type Destination struct {
	Scheme, Host string
	Port         int
	BasePath     string // every path of the exchange lies under it
	CAPEM        []byte // nil for the system's roots
	CADigest     string
	Pins         []string
	AllowLoopback,
	AllowPrivate bool
}

// DestinationOf is the place that an identity's secret is exchanged at.
func DestinationOf(p *actions.Place) Destination {
	return Destination{
		Scheme: p.Scheme(), Host: p.Host(), Port: p.Port(), BasePath: p.Path(),
		CAPEM: p.CAPEM(), CADigest: p.CADigest(), Pins: p.Pins(),
		AllowLoopback: p.AllowLoopback(), AllowPrivate: p.AllowPrivate(),
	}
}

// DestinationOfTarget is a target as the place of an exchange's first question,
// which carries no secret: what a registry asks for.
func DestinationOfTarget(t *actions.Target) Destination {
	return Destination{
		Scheme: t.Scheme(), Host: t.Host(), Port: t.Port(), BasePath: t.BasePath(),
		CAPEM: t.CAPEM(), CADigest: t.CADigest(), Pins: t.Pins(),
		AllowLoopback: t.AllowLoopback(), AllowPrivate: t.AllowPrivate(),
	}
}

// TokenRequest is one request of an exchange, complete but for the secret. What goes
// into a form's hole may be the value and further members.
type TokenRequest struct {
	To          Destination
	Method      string
	Path, Query string // escaped; encoded, without "?"
	Header      http.Header
	Body        []byte
	ContentType string
	Hole        *Hole         // where in Body the secret goes, nil for a header or none
	Timeout     time.Duration // of the whole request; DefaultStepTimeout where it is zero
}

// SendToken makes one attempt of an exchange, with the dialer, the trust, the limits
// and the phases of Send: no redirect, no proxy, no second send. It changes nothing
// that a call asked for, so that a lost answer is UPSTREAM_UNAVAILABLE. It has a
// connection of its own, which ends with it. Unlike that of Send, the credential may
// be two: the client's secret in a header and a grant in the body.
func (x *Executor) SendToken(ctx context.Context, identity string, r TokenRequest, c Credential) Exchange {
	s := step{
		to: place{
			scheme: r.To.Scheme, host: r.To.Host, port: r.To.Port, basePath: r.To.BasePath,
			caPEM: r.To.CAPEM, caDigest: r.To.CADigest, pins: slices.Clone(r.To.Pins),
			allowLoopback: r.To.AllowLoopback, allowPrivate: r.To.AllowPrivate,
		},
		method: r.Method, path: r.Path, query: r.Query, header: r.Header.Clone(),
		body: r.Body, contentType: r.ContentType, hole: r.Hole, timeout: r.Timeout, exchange: true,
	}
	return x.send(ctx, owner{identity: identity, generation: generationOf(c), token: true}, s, c)
}
