package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/testkit"
)

// sends is a server that keeps all that it was sent, head and body.
type sends struct {
	mu   sync.Mutex
	all  []sentOne
	addr string
}

type sentOne struct {
	path, auth, body, client string
	text                     string // all of it
	r                        *http.Request
}

func (s *sends) take() []sentOne {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.all
	s.all = nil
	return out
}

// counting starts a server over TLS that keeps what it is sent. trust makes it ask
// every client for a certificate of that authority.
func counting(t *testing.T, leaf tls.Certificate, trust *x509.CertPool, answer func(w http.ResponseWriter, q sentOne)) *sends {
	t.Helper()
	s := &sends{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q := sentOne{path: r.URL.Path, auth: strings.Join(r.Header["Authorization"], "|"), body: string(body), text: r.RequestURI + fmt.Sprint(r.Header) + string(body), r: r}
		if _, pair, ok := r.BasicAuth(); ok {
			q.text += pair
		}
		if len(r.TLS.PeerCertificates) > 0 {
			q.client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		s.mu.Lock()
		s.all = append(s.all, q)
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Set("Content-Type", "application/json")
		answer(w, q)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{leaf}}
	if trust != nil {
		srv.TLS.ClientAuth, srv.TLS.ClientCAs = tls.RequireAndVerifyClientCert, trust
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	s.addr = srv.Listener.Addr().String()
	return s
}

// The secrets of the kinds, each planted.
const (
	clientSecret = "client-secret-planted-5ac81f"
	firstRefresh = "refresh-first-planted-91d07b"
	pagerKey     = `pager-"key"-planted-3be44d`
)

// kindContract is one read of a target, or one change whose body has a hole.
func kindContract(name string) string {
	effect, request := "effect: read", "  method: GET\n  path: /thing"
	if name == "pager" {
		effect, request = "effect: change\nat_most_once: each call is one page\napproval: {sentence: 'Page somebody'}", "  method: POST\n  path: /page\n  json: {text: \"hello\"}"
	}
	return fmt.Sprintf(`contract: v1
action: use_%[1]s
version: 1.0.0
summary: Use %[1]s.
owner: tests
%[2]s
input: {type: object, additionalProperties: false, properties: {}}
route: {target: %[1]s}
request:
%[3]s
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [state], properties: {state: {const: fine}}}
      success: {state: /state}
result: {type: object, additionalProperties: false, required: [state], properties: {state: {const: fine}}}
`, name, effect, request)
}

// kinds is one daemon with an identity of several kinds.
type kinds struct {
	*home
	login            *login
	tokens, services *sends
	guarded          *sends
	issuer           *issuer
	realm, github    *sends
	key              []byte // the client's private key, PEM

	mu     sync.Mutex
	before func() // run when a service is asked; guarded by mu
	stale  bool   // the services refuse every token; guarded by mu
	echo   bool   // they repeat what they were sent; guarded by mu
}

// set changes what the services do.
func (k *kinds) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// newKinds stores the secrets of the identities named: a proof takes a second.
func newKinds(t *testing.T, names ...string) *kinds {
	t.Helper()
	ca := testkit.CA(t)
	caFile := testkit.CAFile(t, ca)
	k := &kinds{home: newHome(t, testkit.HTTPS(t, ca, nil), caFile), login: newLogin(t)}
	certificate, key, trust := clientOf(t, "mesh-bot")
	k.key = key
	k.tokens = counting(t, testkit.Leaf(t, ca), nil, k.login.token)
	k.login.at(t, k.tokens.addr)
	k.github = counting(t, testkit.Leaf(t, ca), nil, k.login.installation)
	k.services = counting(t, testkit.Leaf(t, ca), nil, k.answer)
	k.guarded = counting(t, testkit.Leaf(t, ca), trust, k.answer)
	k.issuer = &issuer{leaf: testkit.Leaf(t, ca), given: k.login.gave}
	k.realm = counting(t, testkit.Leaf(t, ca), nil, func(w http.ResponseWriter, q sentOne) { k.issuer.token(w, q.r) })
	images := k.services.addr // which nobody calls as a registry
	if slices.Contains(names, "images") {
		images = startImages(t, ca, "https://"+k.realm.addr+"/token", k.issuer.leaf)
	}
	k.writeKinds(caFile, images)
	k.open()
	secrets := map[string]string{
		"machine": clientSecret, "person": firstRefresh, "pager": pagerKey, "mesh": string(certificate) + string(key),
		"images": imagesPassword, "app": k.login.keyPEM(t), "robot": k.login.keyPEM(t),
	}
	for _, name := range names {
		k.putSecret(name+"-bot", secrets[name])
	}
	return k
}

// writeKinds writes a contract, a target and an identity of each kind.
func (k *kinds) writeKinds(caFile, images string) {
	k.t.Helper()
	if err := os.RemoveAll(filepath.Join(k.places.Config, "contracts")); err != nil {
		k.t.Fatal(err)
	}
	targets := ""
	target := func(name, addr, base string) {
		targets += fmt.Sprintf("  %[1]s: {url: 'https://%[2]s/%[4]s', ca: %[3]s, allow: [loopback], identity: %[1]s-bot, actions: [use_%[1]s], effects: [read, change], ask: session}\n", name, addr, caFile, base)
	}
	for _, name := range []string{"machine", "person", "pager", "mesh", "robot"} {
		k.write("c/contracts/use_"+name+"/contract.yaml", kindContract(name))
		addr := k.services.addr
		if name == "mesh" {
			addr = k.guarded.addr
		}
		target(name, addr, name)
	}
	k.write("c/contracts/use_images/contract.yaml", imagesContract)
	k.write("c/contracts/use_app/contract.yaml", appContract)
	target("images", images, "v2")
	target("app", k.services.addr, "app")
	place := func(url string) string {
		return fmt.Sprintf("token: {url: 'https://%s', ca: %s, allow: [loopback]}", url, caFile)
	}
	login := place(k.tokens.addr + "/oauth/token")
	k.write("c/targets.yaml", "targets:\n"+targets+
		"lists: {repositories: {api: {target: app, with: {repo: api}}, web: {target: app, with: {repo: web}}}}\n"+
		"identities:\n"+
		"  machine-bot: {kind: oauth2_client, client_id: bot, scopes: [a, b], "+login+"}\n"+
		"  person-bot: {kind: oauth2_refresh, client_id: desk, auth: none, "+login+"}\n"+
		"  robot-bot: {kind: jwt_bearer, issuer: robot@example, audience: 'https://"+k.tokens.addr+"', scopes: [deploy], algorithm: RS256, key_id: k1, "+login+"}\n"+
		"  app-bot: {kind: github_app, app_id: '12345', installation: '678', repositories: {from: target.repo}, permissions: {contents: write}, "+place(k.github.addr)+"}\n"+
		"  images-bot: {kind: registry_token, username: bot, service: registry.test, scopes: ['repository:team/app:pull'], "+place(k.realm.addr+"/token")+"}\n"+
		"  pager-bot: {kind: body, json: /routing_key}\n  mesh-bot: {kind: client_certificate}\n")
	k.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nlog: {level: debug}\nlimits: {calls: 64, calls_per_target: 64}\n")
}

// clientOf is a certificate of a client, its key, and who trusts it.
func clientOf(t *testing.T, name string) (certificate, key []byte, trust *x509.CertPool) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pair.Public(), pair)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(leaf)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), trust
}

// planted are all secrets that were given or came in this home.
func (k *kinds) planted() []string {
	all := append([]string{clientSecret, firstRefresh, pagerKey, imagesPassword}, k.login.secrets()...)
	for _, key := range []string{string(k.key), k.login.keyPEM(k.t)} {
		found := 0
		for line := range strings.Lines(key) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-") && len(line) > 40 && found < 2 {
				all = append(all, line)
				found++
			}
		}
	}
	return all
}

// one fails unless exactly one request came, with one secret in it, once, and
// returns it.
func (k *kinds) one(s *sends, secret string) sentOne {
	k.t.Helper()
	all := s.take()
	if len(all) != 1 {
		k.t.Fatalf("%d requests: %+v", len(all), all)
	}
	for _, p := range k.planted() {
		if n := strings.Count(all[0].text, p); (p == secret) != (n == 1) {
			k.t.Errorf("%q stands %d times in %s", p, n, all[0].text)
		}
	}
	return all[0]
}

// fine performs an action and wants its success.
func (k *kinds) fine(a *client.Agent, name, id string) {
	k.t.Helper()
	if e := k.call(a, "use_"+name, id, "{}"); !e.OK {
		k.t.Fatalf("use_%s answered %s", name, e.Raw)
	}
}
