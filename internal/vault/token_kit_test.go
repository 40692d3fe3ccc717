package vault

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// The secrets and tokens of these tests; none of them may be in an error.
const (
	clientSecret  = "Cs-7Fjfp0ZBr1KtDRbnfVdmIw/+ &%é"
	firstRefresh  = "rt-000-tGzv3JOkF0XG5Qx2TlKWIA"
	firstToken    = "at-000-2YotnFZFEjr1zCsicMWpAA"
	plantedAnswer = "PLANTED-BY-THE-ENDPOINT"
)

// exchanged kinds need a place for the secret and one for the token.
func tokenBinding(kind string, params map[string]string) Binding {
	b := bearer()
	b.Kind = kind
	b.Token = &Place{Scheme: "https", Host: "login.example", Port: 443, Path: "/oauth2/token"}
	b.Params = ParamsOf(params)
	switch kind {
	case KindGitHubApp:
		b.Token = &Place{Scheme: "https", Host: "api.github.example", Port: 443}
	case KindRegistryToken:
		b.BasePath = "/v2"
		b.Token.Path = "/token"
	}
	return b.normal()
}

func clientBinding() Binding {
	return tokenBinding(KindOAuth2Client, map[string]string{"client_id": "client one", "scopes": "deploy read", "auth": "basic"})
}

func refreshBinding() Binding {
	return tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": "client one", "auth": "none"})
}

// madeAt is the connection to a place that was really made.
func madeAt(p Place) Made {
	return Made{Scheme: p.Scheme, Host: p.Host, Port: p.Port, BasePath: p.Path, CADigest: p.CADigest, Pins: p.Pins, PeerSPKI: p.Pins}
}

// sent is one request as it would have left this machine.
type sent struct {
	TokenRequest
	authorization string
	whole         string // the body with the secret in it
}

// SetHeader is of Outgoing.
func (s *sent) SetHeader(name, value string) error {
	if name != "Authorization" || s.authorization != "" {
		return fmt.Errorf("%s", name)
	}
	s.authorization = value
	return nil
}

// FillBody is of Outgoing.
func (s *sent) FillBody(write func([]byte) []byte) error {
	if !s.TokenRequest.Hole || s.HoleAt != len(s.Body) {
		return fmt.Errorf("no hole at the end")
	}
	s.whole = string(write(slices.Clone(s.Body)))
	return nil
}

// Hole is of Outgoing.
func (s *sent) Hole() (form, ok bool) { return true, s.TokenRequest.Hole }

// endpoint is a token endpoint without a network: it answers each request by a
// function, and writes down what it got.
type endpoint struct {
	mu     sync.Mutex
	got    []sent
	answer func(n int, s sent) (TokenAnswer, error)
	made   func(TokenRequest) Made // nil: the place that is meant
}

func (e *endpoint) exchange(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
	s := sent{TokenRequest: r, whole: string(r.Body)}
	made := madeAt(r.To)
	if e.made != nil {
		made = e.made(r)
	}
	if err := c.Attach(&s, made); err != nil {
		return err
	}
	e.mu.Lock()
	e.got = append(e.got, s)
	n := len(e.got)
	e.mu.Unlock()
	a, err := e.answer(n, s)
	if err != nil {
		return err
	}
	return read(a)
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.got)
}

func (e *endpoint) last() sent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got[len(e.got)-1]
}

// says answers every request alike.
func says(a TokenAnswer) *endpoint {
	return &endpoint{answer: func(int, sent) (TokenAnswer, error) { return a, nil }}
}

func jsonAnswer(status int, body string) TokenAnswer {
	return TokenAnswer{Status: status, Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}}, Body: []byte(body)}
}

// grants answers each request with a token of its own that lives an hour.
func grants() *endpoint {
	return &endpoint{answer: func(n int, _ sent) (TokenAnswer, error) {
		return jsonAnswer(200, fmt.Sprintf(`{"access_token":"%s","token_type":"Bearer","expires_in":3600}`, tokenOf(n))), nil
	}}
}

// rotates also replaces the refresh token with each answer.
func rotates() *endpoint {
	return &endpoint{answer: func(n int, _ sent) (TokenAnswer, error) {
		return jsonAnswer(200, fmt.Sprintf(`{"access_token":"%s","token_type":"bearer","expires_in":3600,"refresh_token":"%s"}`, tokenOf(n), refreshOf(n))), nil
	}}
}

func tokenOf(n int) string   { return fmt.Sprintf("at-%03d-2YotnFZFEjr1zCsicMWpAA", n) }
func refreshOf(n int) string { return fmt.Sprintf("rt-%03d-tGzv3JOkF0XG5Qx2TlKWIA", n) }

// tokenLease takes a lease that the test closes.
func tokenLease(t testing.TB, v *Vault, name string) *Lease {
	t.Helper()
	l, err := v.Lease(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// carried returns what one call's lease would send to the target, or the error of
// Ready.
func carried(t testing.TB, v *Vault, name string, x Exchange) (string, error) {
	t.Helper()
	l, err := v.Lease(t.Context(), name)
	if err != nil {
		return "", err
	}
	defer l.Close()
	if err := l.Ready(t.Context(), Narrow{}, x); err != nil {
		refuseTokens(t, err)
		return "", err
	}
	h := headers{}
	if err := l.Attach(h, madeFor(l.binding)); err != nil {
		t.Fatal(err)
	}
	return http.Header(h).Get("Authorization"), nil
}

// wantCarried fails where the call does not send this very token.
func wantCarried(t testing.TB, v *Vault, name string, x Exchange, token string) {
	t.Helper()
	got, err := carried(t, v, name, x)
	if err != nil || got != "Bearer "+token {
		t.Fatalf("the call sends %q, %v; want the token %s", got, err, token)
	}
}

// refuseTokens fails where an error quotes a secret, a token or an answer.
func refuseTokens(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, s := range []string{clientSecret[:9], "rt-0", "at-0", "rt-1", "at-1", "PLANTED", "eyJ"} {
		if strings.Contains(err.Error(), s) || strings.Contains(fault.From(err).Message(), s) {
			t.Errorf("the error quotes %q: %v", s, err)
		}
	}
}

// stored reads the secret that lies in the file now.
func stored(t testing.TB, v *Vault, name string) string {
	t.Helper()
	o, err := v.current()
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.unsealItem(t.Context(), o, o.contents.items[name])
	if err != nil {
		t.Fatal(err)
	}
	var text string
	s.Use(func(b []byte) { text = string(b) })
	return text
}

// testKeys are one private key of each kind.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return map[string]crypto.Signer{"RS256": r, "ES256": e, "EdDSA": d}
})

func keyPEM(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// exchangingOf is one exchange outside a vault.
func exchangingOf(b Binding, text string, x Exchange) exchanging {
	return exchanging{name: "a", generation: 7, binding: b, secret: secret.New([]byte(text)), send: x}
}
