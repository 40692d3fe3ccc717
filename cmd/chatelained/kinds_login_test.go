package main_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// login is a real authorization server: its requests, its client authentication and
// its answers are those of a library that is in use. What it stores is here. Each
// refresh token is good once.
type login struct {
	op.Storage // what no grant of these tests asks for

	key      *rsa.PrivateKey
	provider http.Handler

	mu      sync.Mutex
	refresh string   // the one that is good now
	access  []string // every token that it gave, in order
	given   []string // every secret that it and others gave
}

func newLogin(t *testing.T) *login {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &login{key: key, refresh: firstRefresh}
}

// at makes the server answer at an address.
func (l *login) at(t *testing.T, addr string) {
	t.Helper()
	p, err := op.NewProvider(&op.Config{CryptoKey: sha256.Sum256([]byte("test")), AuthMethodPost: true, GrantTypeRefreshToken: true}, l, op.StaticIssuer("https://"+addr))
	if err != nil {
		t.Fatal(err)
	}
	l.provider = p
}

// token answers a request and notes what it gave.
func (l *login) token(w http.ResponseWriter, q sentOne) {
	rec := httptest.NewRecorder()
	l.provider.ServeHTTP(rec, q.r)
	var gave struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	if json.Unmarshal(rec.Body.Bytes(), &gave) == nil && gave.Access != "" {
		l.gave(gave.Access)
		l.mu.Lock()
		l.access = append(l.access, gave.Access)
		l.mu.Unlock()
	}
	if gave.Refresh != "" {
		l.gave(gave.Refresh)
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// gave notes a secret that somebody was given.
func (l *login) gave(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = append(l.given, secret)
}

func (l *login) secrets() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.given)
}

// nth is one of the access tokens that were given.
func (l *login) nth(t *testing.T, n int) string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.access) {
		t.Fatalf("%d tokens were given", len(l.access))
	}
	return l.access[n]
}

// loginClient is one client of the server.
type loginClient struct {
	op.Client
	id   string
	auth oidc.AuthMethod
}

func (c loginClient) GetID() string                      { return c.id }
func (c loginClient) AuthMethod() oidc.AuthMethod        { return c.auth }
func (loginClient) GrantTypes() []oidc.GrantType         { return oidc.AllGrantTypes }
func (loginClient) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (loginClient) IDTokenLifetime() time.Duration       { return time.Hour }
func (loginClient) ClockSkew() time.Duration             { return 0 }
func (loginClient) IDTokenUserinfoClaimsAssertion() bool { return false }
func (loginClient) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}

// loginGrant is one request for a token.
type loginGrant struct {
	client string
	scopes []string
}

func (g *loginGrant) GetSubject() string          { return "somebody" }
func (g *loginGrant) GetAudience() []string       { return []string{g.client} }
func (g *loginGrant) GetScopes() []string         { return g.scopes }
func (g *loginGrant) GetAMR() []string            { return nil }
func (g *loginGrant) GetAuthTime() time.Time      { return time.Now() }
func (g *loginGrant) GetClientID() string         { return g.client }
func (g *loginGrant) SetCurrentScopes(s []string) { g.scopes = s }

var errNoClient = errors.New("no such client")

func (l *login) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	switch id {
	case "bot":
		return loginClient{id: id, auth: oidc.AuthMethodBasic}, nil
	case "desk":
		return loginClient{id: id, auth: oidc.AuthMethodNone}, nil
	}
	return nil, errNoClient
}

func (l *login) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if id != "bot" || secret != clientSecret {
		return errNoClient
	}
	return nil
}

func (l *login) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	if err := l.AuthorizeClientIDSecret(ctx, id, secret); err != nil {
		return nil, err
	}
	return l.GetClientByClientID(ctx, id)
}

func (l *login) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	return &loginGrant{id, scopes}, nil
}

func (l *login) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	return "access", time.Now().Add(time.Hour), nil
}

// CreateAccessAndRefreshTokens replaces the refresh token.
func (l *login) CreateAccessAndRefreshTokens(context.Context, op.TokenRequest, string) (string, string, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refresh = fmt.Sprintf("refresh-%04d-planted-0c3f9a", len(l.access))
	return "access", l.refresh, time.Now().Add(time.Hour), nil
}

func (l *login) TokenRequestByRefreshToken(_ context.Context, refresh string) (op.RefreshTokenRequest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if refresh != l.refresh {
		return nil, oidc.ErrInvalidGrant()
	}
	return &loginGrant{client: "desk"}, nil
}

func (l *login) GetKeyByIDAndClientID(_ context.Context, id, client string) (*jose.JSONWebKey, error) {
	if id != "k1" || client != "robot@example" {
		return nil, errNoClient
	}
	return &jose.JSONWebKey{Key: l.key.Public(), KeyID: id, Use: "sig"}, nil
}

func (l *login) ValidateJWTProfileScopes(_ context.Context, _ string, scopes []string) ([]string, error) {
	return scopes, nil
}

// loginKey signs id tokens, which nobody here reads.
type loginKey struct{ key *rsa.PrivateKey }

func (loginKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k loginKey) Key() any                                  { return k.key }
func (loginKey) ID() string                                  { return "login" }

func (l *login) SigningKey(context.Context) (op.SigningKey, error) { return loginKey{l.key}, nil }

func (l *login) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

func (l *login) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}
