package main

import (
	"context"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/gateway"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// Ready asks the vault for a good token, which asks x for an exchange where it has
// none.
func (p leasePort) Ready(ctx context.Context, n actions.Narrow, x gateway.Exchange) error {
	return p.l.Ready(ctx, vault.Narrow{ReadOnly: n.ReadOnly, Repositories: n.Repositories}, exchangeBy(x))
}

// Rejected drops the token that the target refused.
func (p leasePort) Rejected() { p.l.Rejected() }

func (p linePort) Refresh(ctx context.Context, x gateway.Exchange) {
	p.v.Refresh(ctx, exchangeBy(x))
}

// exchangeBy is the line's recorded send in the vault's words.
func exchangeBy(x gateway.Exchange) vault.Exchange {
	return func(ctx context.Context, r vault.TokenRequest, c vault.TokenCredential, read func(vault.TokenAnswer) error) error {
		s := gateway.TokenSend{
			Identity: r.Identity, Generation: r.Generation, Step: r.Step,
			At: gateway.Place{Scheme: r.To.Scheme, Host: r.To.Host, Port: r.To.Port, Path: r.To.Path, CADigest: r.To.CADigest},
			Request: executor.TokenRequest{
				Method: r.Method, Path: r.Path, Query: r.Query, Header: r.Header,
				Body: r.Body, ContentType: r.MediaType, Timeout: r.Timeout,
			},
		}
		if r.Hole {
			s.Request.Hole = &executor.Hole{Offset: r.HoleAt, Form: true}
		}
		return x(ctx, s, tokenPort{c}, func(a gateway.TokenAnswer) error {
			return read(vault.TokenAnswer{Status: a.Status, Header: a.Header, Body: a.Body})
		})
	}
}

// tokenPort is a secret on its way to where it is exchanged.
type tokenPort struct{ c vault.TokenCredential }

func (p tokenPort) Attach(out executor.Outgoing, c executor.Connection) error {
	return p.c.Attach(out, madeBy(c))
}

func (p tokenPort) Scan(b []byte) []secret.Hit { return p.c.Scan(b) }

// Generation keeps the connections of two generations apart.
func (p tokenPort) Generation() uint64 { return p.c.Generation() }
