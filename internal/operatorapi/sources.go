package operatorapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"chatelaine/internal/approvals"
)

// Sources is what an operator may do with the places outside the vault where
// secrets lie. Nothing here returns a secret.
type Sources interface {
	Sources() []SourceView
	// CheckSource says what is wrong with a NAME:REFERENCE without asking anybody.
	CheckSource(text string) error
	// SourcePlace names where the source's own credential would be bound to.
	SourcePlace(name string) (string, error)
	// PutSource writes that credential for the place that a person proved, and for
	// no other.
	PutSource(ctx context.Context, name, place string, credential []byte) error
	DeleteSource(ctx context.Context, name string) error
}

// SourceView is what may be told of a source.
type SourceView struct {
	Name        string     `json:"name"`
	Kind        string     `json:"kind"`
	Place       string     `json:"place"`
	Keep        string     `json:"keep"` // how long a fetched value is used
	Credential  string     `json:"credential"`
	LastFetched *time.Time `json:"last_fetched,omitempty"`
	LastFailed  *time.Time `json:"last_failed,omitempty"` // where that was later
	Failure     string     `json:"failure,omitempty"`     // in one word
	// CredentialStored says whether the vault holds one, for whatever place.
	CredentialStored bool `json:"-"`
}

// The operations of this file.
const (
	opPutSource    = "vault.source-put"
	opDeleteSource = "vault.source-delete"
)

// sourceRoutes are part of the table in operatorapi.go.
func sourceRoutes() []route {
	proved := func(method, path string, w widening) route { return route{method: method, path: path, widens: &w} }
	return []route{
		{http.MethodGet, "/v1/vault/sources", needsSocket, (*API).sources, nil},
		proved(http.MethodPut, "/v1/vault/sources/{name}", widening{operation: opPutSource, subject: nameParam, aside: []string{memberSecret}, plan: (*API).planPutSource}),
		proved(http.MethodDelete, "/v1/vault/sources/{name}", widening{operation: opDeleteSource, subject: nameParam, plan: (*API).planDeleteSource}),
	}
}

func (a *API) sources(*call) (any, error) {
	return map[string]any{"sources": a.vault.Sources()}, nil
}

// planPutSource takes in what the daemon logs in with at a source.
func (a *API) planPutSource(name string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	place, err := a.vault.SourcePlace(name)
	if err != nil {
		return statement{}, err
	}
	return statement{
		covers: fmt.Sprintf("store what the daemon logs in with at the source %s, bound to %s", name, place),
		facts:  []approvals.Part{factOf("the place of the source "+name, place)},
		do: func(c *call) (any, error) {
			b, err := c.secret()
			if err != nil {
				return nil, err
			}
			defer clear(b)
			if err := a.g.Record(c.r.Context(), opPutSource, name, c.by, map[string]any{"place": place}); err != nil {
				return nil, err
			}
			if err := a.vault.PutSource(c.r.Context(), name, place, b); err != nil {
				return nil, err
			}
			return map[string]any{"name": name, "place": place, "stored": true}, nil
		},
	}, nil
}

// source finds one whose credential is in the vault.
func (a *API) source(name string) (SourceView, error) {
	for _, s := range a.vault.Sources() {
		if s.Name == name && s.CredentialStored {
			return s, nil
		}
	}
	return SourceView{}, notFound("no credential is stored for a source of that name")
}

func (a *API) planDeleteSource(name string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	was, err := a.source(name)
	if err != nil {
		return statement{}, err
	}
	return statement{
		facts:  []approvals.Part{factOf("the place of the source "+name, was.Place)},
		covers: fmt.Sprintf("delete what the daemon logs in with at the source %s; identities whose secrets lie there work no more", name),
		do: func(c *call) (any, error) {
			if err := a.g.Record(c.r.Context(), opDeleteSource, name, c.by, nil); err != nil {
				return nil, err
			}
			if err := a.vault.DeleteSource(c.r.Context(), name); err != nil {
				return nil, err
			}
			return map[string]any{"name": name, "deleted": true}, nil
		},
	}, nil
}
