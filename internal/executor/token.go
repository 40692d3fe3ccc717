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
func DestinationOf(p *actions.Place) Destination { return destination(p, p.Path()) }

// DestinationOfTarget is a target as the place of an exchange's first question,
// which carries no secret: what a registry asks for.
func DestinationOfTarget(t *actions.Target) Destination { return destination(t, t.BasePath()) }

func destination(e Endpoint, basePath string) Destination {
	return Destination{
		Scheme: e.Scheme(), Host: e.Host(), Port: e.Port(), BasePath: basePath,
		CAPEM: e.CAPEM(), CADigest: e.CADigest(), Pins: e.Pins(),
		AllowLoopback: e.AllowLoopback(), AllowPrivate: e.AllowPrivate(),
	}
}

// place is the destination as a step has it: HTTP/1.1 only.
func (d Destination) place() place {
	return place{
		scheme: d.Scheme, host: d.Host, port: d.Port, basePath: d.BasePath,
		caPEM: d.CAPEM, caDigest: d.CADigest, pins: slices.Clone(d.Pins),
		allowLoopback: d.AllowLoopback, allowPrivate: d.AllowPrivate,
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
		to:     r.To.place(),
		method: r.Method, path: r.Path, query: r.Query, header: r.Header.Clone(),
		body: r.Body, contentType: r.ContentType, hole: r.Hole, timeout: r.Timeout, exchange: true,
	}
	return x.send(ctx, owner{identity: identity, generation: generationOf(c), token: true}, s, c)
}
