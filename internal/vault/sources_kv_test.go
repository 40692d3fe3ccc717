package vault_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/secret"
	"chatelaine/internal/testkit/kvserver"
	"chatelaine/internal/vault"
	"chatelaine/internal/vault/kv"
)

const (
	managerRole   = "3f0a-role"
	managerSecret = "planted-secret-id-of-the-role"
	managerPath   = "secret/deploy/bot"
)

// manager is a server with one entry, and a source over it.
type manager struct {
	*kvserver.Server
	o kv.Options
}

func newManager(t testing.TB) *manager {
	s := kvserver.New(t)
	s.Role(managerRole, managerSecret)
	s.Write(managerPath, map[string]any{"token": planted, "number": 7, "empty": "", "none": nil, "list": []string{"a"}})
	return &manager{s, kv.Options{
		Name: "bao", Address: s.URL, CAPEM: s.CA(), RoleID: managerRole, Timeout: patient,
		Credential: func(context.Context) (secret.Secret, error) { return secret.New([]byte(managerSecret)), nil },
	}}
}

func (m *manager) fetch(ctx context.Context, reference string) error {
	s, err := kv.New(m.o)
	if err != nil {
		return err
	}
	got, err := s.Fetch(ctx, reference)
	got.Wipe()
	return err
}

// answers lets the server answer every read of an entry so; login says the same of
// logins.
func (m *manager) answers(status int, kind, body string) {
	m.on("/data/", func(w http.ResponseWriter) { say(w, status, kind, body) })
}

func (m *manager) login(body string) {
	m.on("/login", func(w http.ResponseWriter) { say(w, http.StatusOK, "application/json", body) })
}

func (m *manager) on(part string, f func(w http.ResponseWriter)) {
	m.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, part) {
			return false
		}
		f(w)
		return true
	})
}

func say(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

const asJSON = "application/json"

// kvFailures is every way that a secret manager can be missing, locked, slow or
// lying.
func kvFailures() []failure {
	row := func(name string, kind error, text, field string, spoil func(t *testing.T, m *manager)) failure {
		return failure{"kv: " + name, kind, text, func(t *testing.T) error {
			m := newManager(t)
			spoil(t, m)
			return m.fetch(t.Context(), managerPath+field)
		}}
	}
	answered := func(name string, kind error, text string, status int, media, body string) failure {
		return row(name, kind, text, "#token", func(_ *testing.T, m *manager) { m.answers(status, media, body) })
	}
	login := func(name string, kind error, text, body string) failure {
		return row(name, kind, text, "#token", func(_ *testing.T, m *manager) { m.login(body) })
	}
	nothing := func(*testing.T, *manager) {}
	good := fmt.Sprintf(`{"data":{"data":{"token":%q},"metadata":{"version":1,"deletion_time":"","destroyed":false}}}`, planted)
	return append(kvSilences(row), []failure{
		row("sealed", vault.ErrSourceLocked, "sealed", "#token", func(_ *testing.T, m *manager) { m.Seal(true) }),
		row("a standby", vault.ErrSourceUnavailable, "standby", "#token", func(t *testing.T, m *manager) {
			m.Standby(newManager(t).URL)
		}),
		row("no entry", vault.ErrSourceAbsent, "nothing is at that path", "/other#token", nothing),
		row("no mount", vault.ErrSourceAbsent, "mount does not exist", "#token", func(_ *testing.T, m *manager) {
			m.answers(404, asJSON, `{"errors":["no handler for route"]}`)
		}),
		row("deleted", vault.ErrSourceAbsent, "was deleted", "#token", func(_ *testing.T, m *manager) { m.Delete(managerPath, 1) }),
		row("destroyed", vault.ErrSourceAbsent, "was destroyed", "#token", func(_ *testing.T, m *manager) { m.Destroy(managerPath, 1) }),
		row("no such version", vault.ErrSourceAbsent, "nothing is at that path", "#token?version=9", nothing),
		row("no such field", vault.ErrSourceAbsent, "no field", "#tokne", nothing),
		row("a number", vault.ErrSourceLying, "not text", "#number", nothing),
		row("null", vault.ErrSourceLying, "not text", "#none", nothing),
		row("a list", vault.ErrSourceLying, "not text", "#list", nothing),
		row("an empty field", vault.ErrSourceLying, "empty", "#empty", nothing),

		answered("forbidden", vault.ErrSourceDenied, "policy", 403, asJSON, `{"errors":["permission denied"]}`),
		answered("a bad request", vault.ErrSourceDenied, "400", 400, asJSON, `{"errors":["`+planted+`"]}`),
		answered("a balancer without servers", vault.ErrSourceUnavailable, "503", 503, "text/html", planted),
		answered("asked too often", vault.ErrSourceUnavailable, "429", 429, asJSON, `{}`),
		answered("behind its replica", vault.ErrSourceUnavailable, "412", 412, asJSON, `{}`),
		answered("a standby for performance", vault.ErrSourceUnavailable, "473", 473, asJSON, `{}`),
		answered("a failure", vault.ErrSourceUnavailable, "500", 500, asJSON, `{"errors":["`+planted+`"]}`),
		answered("a teapot", vault.ErrSourceLying, "418", 418, asJSON, planted),
		answered("no content", vault.ErrSourceLying, "JSON", 204, asJSON, ""),

		answered("a page", vault.ErrSourceLying, "something else", 200, "text/html", "<html>"+planted),
		answered("no JSON", vault.ErrSourceLying, "not the JSON", 200, asJSON, planted),
		answered("a member twice", vault.ErrSourceLying, "not the JSON", 200, asJSON, strings.Replace(good, `"token":`, `"token":"x","token":`, 1)),
		answered("bytes behind the end", vault.ErrSourceLying, "not the JSON", 200, asJSON, good+"{}"),
		answered("cut JSON", vault.ErrSourceLying, "not the JSON", 200, asJSON, good[:len(good)-4]),
		answered("bad UTF-8", vault.ErrSourceLying, "not the JSON", 200, asJSON, strings.Replace(good, planted, "\xff", 1)),
		answered("a list for an entry", vault.ErrSourceLying, "not the JSON", 200, asJSON, `{"data":[]}`),
		answered("an engine of version 1", vault.ErrSourceLying, "version 2", 200, asJSON, `{"data":{"token":"`+planted+`"}}`),
		answered("no version", vault.ErrSourceLying, "version 2", 200, asJSON, `{"data":{"data":{"token":"x"},"metadata":{}}}`),
		answered("no data", vault.ErrSourceAbsent, "nothing", 200, asJSON, `{"data":{"data":null,"metadata":{"version":1}}}`),
		row("another version", vault.ErrSourceLying, "another version", "#token?version=2", func(_ *testing.T, m *manager) { m.answers(200, asJSON, good) }),
		row("too large", vault.ErrSourceLying, "more than", "#token", func(_ *testing.T, m *manager) {
			m.answers(200, asJSON, `{"data":"`+strings.Repeat("x", 1<<20)+`"}`)
		}),
		row("compressed", vault.ErrSourceLying, "not JSON", "#token", func(_ *testing.T, m *manager) {
			m.on("/data/", func(w http.ResponseWriter) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, good)
				_ = z.Close()
			})
		}),

		row("a wrong secret id", vault.ErrSourceDenied, "secret id", "#token", func(_ *testing.T, m *manager) { m.Role(managerRole, "another") }),
		row("a wrong token", vault.ErrSourceDenied, "not valid", "#token", func(_ *testing.T, m *manager) {
			m.o.RoleID = "" // the secret id is no token
		}),
		login("a login without a token", vault.ErrSourceLying, "no token", `{"auth":null}`),
		login("a token that is none", vault.ErrSourceLying, "not one", `{"auth":{"client_token":"a\nX-Evil: 1"}}`),
		login("a token that is a number", vault.ErrSourceLying, "no token", `{"auth":{"client_token":7}}`),
		login("a life before now", vault.ErrSourceLying, "cannot be true", `{"auth":{"client_token":"hvs.x","lease_duration":-1}}`),
		login("a life without measure", vault.ErrSourceLying, "cannot be true", `{"auth":{"client_token":"hvs.x","lease_duration":9000000000000}}`),
	}...)
}

// kvSilences are the ways in which no whole answer comes.
func kvSilences(row func(string, error, string, string, func(*testing.T, *manager)) failure) []failure {
	hang := func(m *manager, before func(w http.ResponseWriter)) {
		m.o.Timeout = impatient
		m.Fault(func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client goes
			before(w)
			<-r.Context().Done() // the client has gone
			return true
		})
	}
	return []failure{
		row("nobody there", vault.ErrSourceUnavailable, "cannot be reached", "#token", func(_ *testing.T, m *manager) { m.Close() }),
		row("no TLS", vault.ErrSourceUnavailable, "cannot be reached", "#token", func(t *testing.T, m *manager) {
			plain := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(plain.Close)
			m.o.Address = strings.Replace(plain.URL, "http:", "https:", 1)
		}),
		row("another CA", vault.ErrSourceLying, "certificate", "#token", func(_ *testing.T, m *manager) { m.o.CAPEM = nil }),
		row("another name", vault.ErrSourceLying, "certificate", "#token", func(_ *testing.T, m *manager) {
			m.o.Address = strings.Replace(m.URL, "127.0.0.1", "localhost", 1) // its certificate does not have it
		}),
		row("no head", vault.ErrSourceUnavailable, "no answer within", "#token", func(_ *testing.T, m *manager) {
			hang(m, func(http.ResponseWriter) {})
		}),
		row("a body that stops", vault.ErrSourceUnavailable, "no answer within", "#token", func(_ *testing.T, m *manager) {
			hang(m, func(w http.ResponseWriter) {
				say(w, http.StatusOK, asJSON, `{"data":`)
				_ = http.NewResponseController(w).Flush()
			})
		}),
		row("a body that is cut", vault.ErrSourceUnavailable, "cut", "#token", func(_ *testing.T, m *manager) {
			m.on("/data/", func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "1000")
				say(w, http.StatusOK, asJSON, `{"data":`)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
		}),
	}
}

// The times that a source is given: long enough for a busy machine, and short
// where it is to run out.
const (
	patient   = 30 * time.Second
	impatient = 500 * time.Millisecond
)
