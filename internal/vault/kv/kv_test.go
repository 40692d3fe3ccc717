package kv

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/secret"
	"chatelaine/internal/testkit/kvserver"
	"chatelaine/internal/vault"
)

const (
	planted  = "Xq7-planted-at-the-manager-9Zt"
	roleID   = "3f0a-role"
	secretID = "planted-secret-id-of-the-role"
	where    = "secret/deploy/bot"
)

func sec(text string) secret.Secret { return secret.New([]byte(text)) }

func given(text string) func(context.Context) (secret.Secret, error) {
	return func(context.Context) (secret.Secret, error) { return sec(text), nil }
}

// options log in by AppRole at the server.
func options(s *kvserver.Server) Options {
	s.Role(roleID, secretID)
	return Options{Name: "bao", Address: s.URL, CAPEM: s.CA(), RoleID: roleID, Timeout: 20 * time.Second, Credential: given(secretID)}
}

func open(t testing.TB, o Options) *Source {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// server has one entry with the planted secret.
func server(t testing.TB) *kvserver.Server {
	s := kvserver.New(t)
	s.Write(where, map[string]any{"token": planted, "user": "bot"})
	return s
}

func wantFetch(t testing.TB, s *Source, reference, want string) {
	t.Helper()
	got, err := s.Fetch(t.Context(), reference)
	if err != nil {
		t.Fatalf("fetch %s: %v", reference, err)
	}
	defer got.Wipe()
	if !got.Equal(sec(want)) {
		t.Fatalf("fetch %s: another value than the one that is there", reference)
	}
}

// wantFail checks the kind and that nothing secret is in the text.
func wantFail(t testing.TB, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want %v with %q", err, kind, text)
	}
	for _, leak := range []string{planted, secretID, "hvs.", "permission denied", "invalid role", "did not match", "127.0.0.1:1"} {
		if strings.Contains(err.Error(), leak) {
			t.Errorf("the error has %q of somebody else's: %v", leak, err)
		}
	}
}

func TestFetchOneField(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	wantFetch(t, s, where+"#token", planted)
	wantFetch(t, s, where+"#user", "bot")
	if n := srv.Count("/login"); n != 1 {
		t.Errorf("%d logins for two fetches, want 1", n)
	}
	srv.Write(where, map[string]any{"token": "the second version of it", "user": "bot"})
	wantFetch(t, s, where+"#token", "the second version of it")
	wantFetch(t, s, where+"#token?version=1", planted)
}

func TestMountOfSeveralSegmentsAndNamespace(t *testing.T) {
	srv := server(t)
	srv.Mount("team/kv")
	srv.Write("team/kv/a/b", map[string]any{"f": planted})
	o := options(srv)
	o.Mount, o.Namespace = "team/kv", "eu/ops"
	s := open(t, o)
	wantFetch(t, s, "team/kv/a/b#f", planted)
	for _, r := range srv.Requests() {
		if r.Header.Get("X-Vault-Namespace") != "eu/ops" {
			t.Errorf("%s %s has no namespace", r.Method, r.Path)
		}
	}
	_, err := s.Fetch(t.Context(), where+"#token")
	wantFail(t, err, vault.ErrBadReference, "the mount of this source is team/kv")
}

func TestReferences(t *testing.T) {
	s := open(t, Options{Name: "bao", Address: "https://bao.example", Timeout: time.Second, Credential: given("x")})
	for _, good := range []string{"secret/a#f", "secret/a/b.c/d-e_f@g:h+i#f g", "secret/a#f?version=12"} {
		if err := s.Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "secret", "secret/a", "secret#f", "secret/a#", "/secret/a#f", "secret//a#f", "secret/a/#f", "secret/../sys#f", "secret/.#f",
		"secret/a%2fb#f", "secret/a b#f", "secret/a?list=true#f", "secret/a#f?version=0", "secret/a#f?version=01", "secret/a#f?version=-1",
		"secret/a#f?version=", "secret/a#f?versions=1", "secret/a#f?version=1&x=2", "secret/a#f#g", "-secret/a#f", "secret/ä#f",
		"secret/a#f\"", "secret/a#f\n", "secret/a#" + strings.Repeat("f", 600), "secret/a#f?version=99999999999",
	} {
		if err := s.Check(bad); !errors.Is(err, vault.ErrBadReference) {
			t.Errorf("%q was taken: %v", bad, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, good := range []string{"https://bao.example", "https://bao.example:8200", "https://bao.example:8200/", "https://[::1]:8200"} {
		if _, err := CheckAddress(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "bao.example", "http://bao.example", "https://", "https://u:p@bao.example", "https://bao.example/v1", "https://bao.example?x=1",
		"https://bao.example#f", "https://bao.example?", "https://bao.example:0", "https://bao.example:70000", "unix:///run/bao.sock", "https://" + strings.Repeat("a", 400),
	} {
		if _, err := CheckAddress(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestRequestsHaveOnlyWhatWasMeant(t *testing.T) {
	for name, value := range map[string]string{
		"VAULT_ADDR": "https://elsewhere.example:1", "VAULT_AGENT_ADDR": "https://elsewhere.example:2", "VAULT_TOKEN": "hvs.of-the-environment",
		"VAULT_NAMESPACE": "elsewhere", "VAULT_SKIP_VERIFY": "true", "VAULT_HEADERS": `{"X-Extra":"1"}`, "VAULT_WRAP_TTL": "60s",
		"VAULT_MAX_RETRIES": "9", "VAULT_CLIENT_TIMEOUT": "1s", "VAULT_RATE_LIMIT": "1:1", "VAULT_SRV_LOOKUP": "true", "VAULT_TLS_SERVER_NAME": "elsewhere.example",
		"VAULT_HTTP_PROXY": "http://127.0.0.1:1", "VAULT_PROXY_ADDR": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	srv := server(t)
	s := open(t, options(srv))
	wantFetch(t, s, where+"#token", planted)
	all := srv.Requests()
	if len(all) != 2 {
		t.Fatalf("%d requests, want a login and a read", len(all))
	}
	allowed := map[string]bool{"X-Vault-Request": true, "X-Vault-Token": true, "Accept": true, "Content-Type": true, "Content-Length": true, "User-Agent": true, "Connection": true}
	for _, r := range all {
		for name := range r.Header {
			if !allowed[name] {
				t.Errorf("%s %s has a header %s", r.Method, r.Path, name)
			}
		}
	}
	if got := all[0].Header.Get("X-Vault-Token"); got != "" {
		t.Error("the login has a token")
	}
	if got := all[1].Header.Get("X-Vault-Token"); !strings.HasPrefix(got, "hvs.login-") {
		t.Error("the read has another token than the login's")
	}

	// VAULT_SKIP_VERIFY has no effect either.
	o := options(srv)
	o.CAPEM = nil // the system's roots do not know it
	_, err := open(t, o).Fetch(t.Context(), where+"#token")
	wantFail(t, err, vault.ErrSourceLying, "certificate")
}

func TestEnvironmentThatTheLibraryCannotRead(t *testing.T) {
	t.Setenv("VAULT_SKIP_VERIFY", "perhaps")
	_, err := New(Options{Name: "bao", Address: "https://bao.example", Timeout: time.Second, Credential: given("x")})
	if err == nil || !strings.Contains(err.Error(), "VAULT_") || strings.Contains(err.Error(), "perhaps") {
		t.Fatalf("got %v", err)
	}
}

func TestGuardRefusesAnotherPlace(t *testing.T) {
	g := &guard{host: "bao.example:8200", next: http.DefaultTransport}
	for _, url := range []string{"https://elsewhere.example:8200/v1/x", "http://bao.example:8200/v1/x", "https://u@bao.example:8200/v1/x", "https://bao.example/v1/x"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := g.RoundTrip(r); !errors.Is(err, errElsewhere) {
			t.Errorf("%s: %v", url, err)
			if err == nil {
				resp.Body.Close()
			}
		}
	}
}

func TestTransportIsItsOwn(t *testing.T) {
	tr := transport(nil)
	if tr.Proxy != nil || tr.TLSClientConfig.MinVersion < tls.VersionTLS12 || tr.TLSClientConfig.InsecureSkipVerify || !tr.DisableKeepAlives || !tr.DisableCompression {
		t.Errorf("the transport is open where it should not be: %+v", tr)
	}
}

func TestLoginIsMadeOnceForAllWhoWait(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if got, err := s.Fetch(t.Context(), where+"#token"); err != nil {
				t.Error(err)
			} else {
				got.Wipe()
			}
		})
	}
	wg.Wait()
	if n := srv.Count("/login"); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// age makes the login as old as d, as if it had been made then.
func age(s *Source, d time.Duration) {
	s.login.mu.Lock()
	defer s.login.mu.Unlock()
	s.login.since = s.login.since.Add(-d)
}

func TestLoginIsRenewedBeforeItsEndAndMadeAnewAfter(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	wantFetch(t, s, where+"#token", planted)
	age(s, 30*time.Minute) // of an hour
	s.Tend(t.Context())
	if n := srv.Count("/renew-self"); n != 0 {
		t.Errorf("renewed %d times at half its life", n)
	}
	age(s, 15*time.Minute)
	s.Tend(t.Context())
	wantFetch(t, s, where+"#token", planted)
	if r, l := srv.Count("/renew-self"), srv.Count("/login"); r != 1 || l != 1 {
		t.Errorf("%d renewals and %d logins, want 1 and 1", r, l)
	}
	age(s, 59*time.Minute+58*time.Second) // too near its end to be sent
	wantFetch(t, s, where+"#token", planted)
	if r, l := srv.Count("/renew-self"), srv.Count("/login"); r != 1 || l != 2 {
		t.Errorf("%d renewals and %d logins, want 1 and 2", r, l)
	}
}

func TestRenewalThatIsRefusedCostsNothing(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	wantFetch(t, s, where+"#token", planted)
	srv.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/renew-self") {
			http.Error(w, "{}", http.StatusBadGateway)
			return true
		}
		return false
	})
	age(s, 50*time.Minute)
	wantFetch(t, s, where+"#token", planted)
	if r, l := srv.Count("/renew-self"), srv.Count("/login"); r != 1 || l != 1 {
		t.Errorf("%d renewals and %d logins, want 1 and 1", r, l)
	}
}

func TestRevokedLoginIsReplacedOnce(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	wantFetch(t, s, where+"#token", planted)
	srv.RevokeAll()
	wantFetch(t, s, where+"#token", planted)
	if n := srv.Count("/login"); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
	// A policy that refuses is no reason to log in again and again.
	srv.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/data/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"errors":["permission denied"]}`)
			return true
		}
		return false
	})
	_, err := s.Fetch(t.Context(), where+"#token")
	wantFail(t, err, vault.ErrSourceDenied, "policy")
	if n := srv.Count("/login"); n != 3 {
		t.Errorf("%d logins, want one more for the refusal", n)
	}
}

func TestDropForgetsTheLogin(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	wantFetch(t, s, where+"#token", planted)
	held := s.login.token
	s.Drop()
	if !held.IsZero() {
		t.Error("the token is still in memory after the drop")
	}
	wantFetch(t, s, where+"#token", planted)
	if n := srv.Count("/login"); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestDropDuringALoginKeepsNothing(t *testing.T) {
	srv := server(t)
	o := options(srv)
	var s *Source
	o.Credential = func(context.Context) (secret.Secret, error) {
		s.Drop() // the vault locks while the login is under way
		return sec(secretID), nil
	}
	s = open(t, o)
	_, err := s.Fetch(t.Context(), where+"#token")
	wantFail(t, err, vault.ErrSourceUnavailable, "locked during the login")
	if !s.login.token.IsZero() {
		t.Error("the token was kept")
	}
}

func TestTokenInsteadOfARole(t *testing.T) {
	srv := server(t)
	o := options(srv)
	o.RoleID, o.Credential = "", given("hvs.given-by-a-person")
	srv.Token("hvs.given-by-a-person", time.Hour, true)
	s := open(t, o)
	wantFetch(t, s, where+"#token", planted)
	age(s, 45*time.Minute)
	s.Tend(t.Context())
	if l, u, r := srv.Count("/login"), srv.Count("/lookup-self"), srv.Count("/renew-self"); l != 0 || u != 1 || r != 1 {
		t.Errorf("%d logins, %d lookups, %d renewals, want 0, 1, 1", l, u, r)
	}
	srv.RevokeAll()
	_, err := s.Fetch(t.Context(), where+"#token")
	wantFail(t, err, vault.ErrSourceDenied, "not valid")
}

func TestTokenThatMayOnlyRead(t *testing.T) {
	srv := server(t)
	o := options(srv)
	o.RoleID, o.Credential = "", given("hvs.narrow")
	srv.Token("hvs.narrow", 0, false, "secret/data/deploy")
	s := open(t, o)
	wantFetch(t, s, where+"#token", planted)
	srv.Write("secret/other", map[string]any{"f": "x"})
	_, err := s.Fetch(t.Context(), "secret/other#f")
	wantFail(t, err, vault.ErrSourceDenied, "policy")
}
