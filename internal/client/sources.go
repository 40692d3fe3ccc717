package client

import (
	"context"
	"net/url"
	"time"
)

// Operations on sources that need a proof, as the daemon names them.
const (
	OpPutSource    = "vault.source-put"
	OpDeleteSource = "vault.source-delete"
)

// Source is a place outside the vault where secrets of identities lie.
type Source struct {
	Name        string    `json:"name"`
	Kind        string    `json:"kind"` // kv, exec, credentials
	Place       string    `json:"place"`
	Keep        string    `json:"keep"`       // how long a fetched value is used
	Credential  string    `json:"credential"` // whether the daemon has what it logs in with there
	LastFetched time.Time `json:"last_fetched,omitzero"`
	LastFailed  time.Time `json:"last_failed,omitzero"` // where that was later
	Failure     string    `json:"failure,omitzero"`     // in one word
}

// Sources lists them.
func (o *Operator) Sources(ctx context.Context) ([]Source, error) {
	out, err := ask[struct {
		Sources []Source `json:"sources"`
	}](ctx, o, "GET", "/v1/vault/sources", nil)
	return out.Sources, err
}

// PutSource stores what the daemon logs in with at a source. The secret is cleared
// by the caller.
func (o *Operator) PutSource(ctx context.Context, name string, secret []byte, p Proof) error {
	return o.act(ctx, "PUT", "/v1/vault/sources/"+url.PathEscape(name), secretBody(nil, secret, p))
}

// DeleteSource removes it.
func (o *Operator) DeleteSource(ctx context.Context, name string, p Proof) error {
	return o.act(ctx, "DELETE", "/v1/vault/sources/"+url.PathEscape(name), withProof{p})
}
