package vault

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"

	"chatelaine/internal/fault"
)

// A real authorization server, over TLS on loopback: its parsing of requests, its
// client authentication, its checks of assertions and its answers are those of a
// library that is in use. What it stores is here. golang.org/x/oauth2 asks the same
// server as a second client: it is the judge of what a client should send.

// lodging is what the server keeps.
type lodging struct {
	op.Storage // what no grant of these tests asks for

	mu      sync.Mutex
	refresh []string // every refresh token of the one grant, in order
	revoked bool
	seen    []string // client ids of token requests
}

var errUnknown = errors.New("unknown")

const (
	serverClient = "client: one/&é"
	serverIssuer = "robot@example"
)

// registered is one client of the server.
type registered struct {
	op.Client
	id   string
	auth oidc.AuthMethod
}

func (c registered) GetID() string                      { return c.id }
func (c registered) AuthMethod() oidc.AuthMethod        { return c.auth }
func (registered) GrantTypes() []oidc.GrantType         { return oidc.AllGrantTypes }
func (registered) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (registered) IDTokenLifetime() time.Duration       { return time.Hour }
func (registered) ClockSkew() time.Duration             { return 0 }
func (registered) IDTokenUserinfoClaimsAssertion() bool { return false }
func (registered) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}

// asked is one request for a token.
type asked struct {
	client string
	scopes []string
}

func (a *asked) GetSubject() string          { return "somebody" }
func (a *asked) GetAudience() []string       { return []string{a.client} }
func (a *asked) GetScopes() []string         { return a.scopes }
func (a *asked) GetAMR() []string            { return nil }
func (a *asked) GetAuthTime() time.Time      { return time.Now() }
func (a *asked) GetClientID() string         { return a.client }
func (a *asked) SetCurrentScopes(s []string) { a.scopes = s }

func (l *lodging) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	switch id {
	case serverClient:
		return registered{id: id, auth: oidc.AuthMethodBasic}, nil
	case "public":
		return registered{id: id, auth: oidc.AuthMethodNone}, nil
	}
	return nil, errUnknown
}

func (l *lodging) AuthorizeClientIDSecret(_ context.Context, id, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, id)
	if id != serverClient || text != clientSecret {
		return errUnknown
	}
	return nil
}

func (l *lodging) ClientCredentials(ctx context.Context, id, text string) (op.Client, error) {
	if err := l.AuthorizeClientIDSecret(ctx, id, text); err != nil {
		return nil, err
	}
	return l.GetClientByClientID(ctx, id)
}

func (l *lodging) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	return &asked{id, scopes}, nil
}

func (l *lodging) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	return "access", time.Now().Add(time.Hour), nil
}

// CreateAccessAndRefreshTokens replaces the refresh token.
func (l *lodging) CreateAccessAndRefreshTokens(_ context.Context, _ op.TokenRequest, _ string) (string, string, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refresh = append(l.refresh, refreshOf(len(l.refresh)))
	return "access", l.refresh[len(l.refresh)-1], time.Now().Add(time.Hour), nil
}

// TokenRequestByRefreshToken takes the last one only. One that was used before takes
// the whole grant back (RFC 9700 section 4.14.2).
func (l *lodging) TokenRequestByRefreshToken(_ context.Context, text string) (op.RefreshTokenRequest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.refresh, text)
	if at >= 0 && at < len(l.refresh)-1 {
		l.revoked = true
	}
	if at < 0 || l.revoked {
		return nil, oidc.ErrInvalidGrant()
	}
	client := serverClient
	if strings.HasSuffix(l.refresh[0], "-public") {
		client = "public"
	}
	return &asked{client: client, scopes: []string{"deploy", "read"}}, nil
}

func (l *lodging) GetKeyByIDAndClientID(_ context.Context, id, client string) (*jose.JSONWebKey, error) {
	key := testKeys()[id]
	if client != serverIssuer || key == nil {
		return nil, errUnknown
	}
	return &jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"}, nil
}

func (l *lodging) ValidateJWTProfileScopes(_ context.Context, _ string, scopes []string) ([]string, error) {
	return scopes, nil
}

func (l *lodging) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}

// signs is what the server signs id tokens with, which nobody here reads.
type signs struct{}

func (signs) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (signs) Key() any                                    { return testKeys()["RS256"] }
func (signs) ID() string                                  { return "server" }

func (l *lodging) SigningKey(context.Context) (op.SigningKey, error) { return signs{}, nil }

func (l *lodging) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

// serveOAuth starts the server; its token endpoint is /oauth/token.
func serveOAuth(t testing.TB, l *lodging) (*httptest.Server, Place, real) {
	t.Helper()
	var provider http.Handler
	srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { provider.ServeHTTP(w, r) }))
	p, err := op.NewProvider(&op.Config{CryptoKey: sha256.Sum256([]byte("test")), AuthMethodPost: true, GrantTypeRefreshToken: true, AuthMethodPrivateKeyJWT: true}, l, op.StaticIssuer(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	provider = p
	place, ca := placeOf(t, srv, "/oauth/token")
	return srv, place, real{x: patient(), ca: ca, timeout: time.Minute}
}

func TestClientCredentialsWithARealServer(t *testing.T) {
	l := &lodging{}
	srv, place, x := serveOAuth(t, l)
	for _, auth := range []string{authBasic, authBody} {
		b := tokenBinding(KindOAuth2Client, map[string]string{"client_id": serverClient, "scopes": "deploy read", "auth": auth})
		b.Token = &place
		v, _ := create(t, cheap)
		put(t, v, "a", clientSecret, b)
		if got, err := carried(t, v, "a", x.exchange); err != nil || len(got) < 30 {
			t.Errorf("%s: %q, %v", auth, got, err)
		}
		put(t, v, "a", "a wrong client secret", b)
		_, err := carried(t, v, "a", x.exchange)
		wantCode(t, err, fault.RemoteUnauthenticated)
		if !strings.Contains(fmt.Sprint(err), "invalid_client") {
			t.Errorf("%s: the operator is not told why: %v", auth, err)
		}
		refuseTokens(t, err)
	}
	// The second client, in both of its ways.
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		c := clientcredentials.Config{ClientID: serverClient, ClientSecret: clientSecret, TokenURL: place.url(), Scopes: []string{"deploy", "read"}, AuthStyle: style}
		if _, err := c.Token(context.WithValue(t.Context(), oauth2.HTTPClient, srv.Client())); err != nil {
			t.Error(err)
		}
	}
	for _, id := range l.seen {
		if id != serverClient {
			t.Errorf("the server saw the client %q", id)
		}
	}
}

// recording keeps what a client sends.
type recording struct {
	got []sent
}

func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	r.got = append(r.got, sent{authorization: req.Header.Get("Authorization"), whole: req.PostForm.Encode()})
	return nil, errors.New("recorded")
}

// For one configuration both clients send the same.
func TestSameRequestsAsTheSecondClient(t *testing.T) {
	r := &recording{}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: r})
	for auth, style := range map[string]oauth2.AuthStyle{authBasic: oauth2.AuthStyleInHeader, authBody: oauth2.AuthStyleInParams} {
		e := grants()
		b := tokenBinding(KindOAuth2Client, map[string]string{"client_id": serverClient, "scopes": "deploy read", "auth": auth, "audience": "https://api.example"})
		if _, err := exchangingOf(b, clientSecret, e.exchange).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := clientcredentials.Config{ClientID: serverClient, ClientSecret: clientSecret, TokenURL: "https://login.example/oauth2/token", Scopes: []string{"deploy", "read"}, AuthStyle: style, EndpointParams: url.Values{"audience": {"https://api.example"}}}
		_, _ = c.Token(ctx)
		compareSent(t, "client credentials, "+auth, e.last(), r.got[len(r.got)-1])

		b = tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": serverClient, "auth": auth})
		if _, err := exchangingOf(b, `{"refresh_token":"`+firstRefresh+`","client_secret":"`+clientSecret+`"}`, e.exchange).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := oauth2.Config{ClientID: serverClient, ClientSecret: clientSecret, Endpoint: oauth2.Endpoint{TokenURL: "https://login.example/oauth2/token", AuthStyle: style}}
		_, _ = o.TokenSource(ctx, &oauth2.Token{RefreshToken: firstRefresh}).Token()
		compareSent(t, "refresh, "+auth, e.last(), r.got[len(r.got)-1])
	}
}

func compareSent(t *testing.T, what string, ours, theirs sent) {
	t.Helper()
	form, err := url.ParseQuery(ours.whole)
	if err != nil || form.Encode() != theirs.whole || ours.authorization != theirs.authorization {
		t.Errorf("%s: we send %q, %q; they send %q, %q", what, ours.authorization, form.Encode(), theirs.authorization, theirs.whole)
	}
}

// Ten renewals over restarts: the server, which takes the grant back when it sees an
// old refresh token, sees none.
func TestRefreshWithARealServer(t *testing.T) {
	for name, c := range map[string]struct{ auth, client, secret, first string }{
		"with a client secret": {authBasic, serverClient, `{"refresh_token":"` + firstRefresh + `","client_secret":"` + clientSecret + `"}`, firstRefresh},
		"a public client":      {authNone, "public", firstRefresh + "-public", firstRefresh + "-public"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lodging{refresh: []string{c.first}}
			srv, place, x := serveOAuth(t, l)
			b := tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": c.client, "auth": c.auth})
			b.Token = &place
			v, path := create(t, cheap)
			put(t, v, "a", c.secret, b)
			for n := range 10 {
				if got, err := carried(t, v, "a", x.exchange); err != nil || len(got) < 30 {
					t.Fatalf("exchange %d: %q, %v", n, got, err)
				}
				if n%3 == 2 {
					v = reopen(t, path, cheap)
				} else {
					v.tokens.drop(allTokens, errLocked())
				}
			}
			if l.revoked || len(l.refresh) != 11 {
				t.Fatalf("revoked %v after %d", l.revoked, len(l.refresh))
			}
			// Somebody else uses an old one: the server takes the grant back, and that is told.
			o := oauth2.Config{ClientID: c.client, Endpoint: oauth2.Endpoint{TokenURL: place.url(), AuthStyle: oauth2.AuthStyleInHeader}}
			if c.auth == authBasic {
				o.ClientSecret = clientSecret
			} else {
				o.Endpoint.AuthStyle = oauth2.AuthStyleInParams
			}
			if _, err := o.TokenSource(context.WithValue(t.Context(), oauth2.HTTPClient, srv.Client()), &oauth2.Token{RefreshToken: l.refresh[3]}).Token(); err == nil || !l.revoked {
				t.Errorf("the server took an old refresh token: %v", err)
			}
			v.tokens.drop(allTokens, errLocked())
			_, err := carried(t, v, "a", x.exchange)
			wantCode(t, err, fault.RemoteUnauthenticated)
			refuseTokens(t, err)
		})
	}
}

func TestJWTBearerWithARealServer(t *testing.T) {
	srv, place, x := serveOAuth(t, &lodging{})
	b := tokenBinding(KindJWTBearer, map[string]string{"issuer": serverIssuer, "audience": srv.URL, "scopes": "deploy", "algorithm": "RS256", "key_id": "RS256"})
	b.Token = &place
	v, _ := create(t, cheap)
	put(t, v, "a", keyPEM(t, testKeys()["RS256"]), b)
	if got, err := carried(t, v, "a", x.exchange); err != nil || len(got) < 30 {
		t.Errorf("%q, %v", got, err)
	}
	c := jwt.Config{Email: serverIssuer, Subject: serverIssuer, PrivateKey: []byte(keyPEM(t, testKeys()["RS256"])), PrivateKeyID: "RS256", Audience: srv.URL, TokenURL: place.url(), Scopes: []string{"deploy"}}
	if _, err := c.TokenSource(context.WithValue(t.Context(), oauth2.HTTPClient, srv.Client())).Token(); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]map[string]string{
		"another issuer":   {"issuer": "nobody", "audience": srv.URL, "algorithm": "RS256", "key_id": "RS256"},
		"another audience": {"issuer": serverIssuer, "audience": "https://other.example", "algorithm": "RS256", "key_id": "RS256"},
		"another key":      {"issuer": serverIssuer, "audience": srv.URL, "algorithm": "RS256", "key_id": "none"},
	} {
		b := tokenBinding(KindJWTBearer, wrong)
		b.Token = &place
		_, err := exchangingOf(b, keyPEM(t, testKeys()["RS256"]), x.exchange).run(t.Context())
		if err == nil {
			t.Errorf("%s: it gave a token", name)
		}
		refuseTokens(t, err)
	}
}
