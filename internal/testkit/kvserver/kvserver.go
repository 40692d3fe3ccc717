// Package kvserver is a small stand-in for an OpenBao or HashiCorp Vault server,
// for tests only. No server of either can be had as a Go module, so this one keeps
// to what their documentation says of three things: the key/value engine version 2
// (data, versions, check-and-set, soft delete, destroy), the AppRole login, and the
// token calls lookup-self and renew-self; with the statuses of a sealed server, a
// standby and a refused request.
//
// It must share no code with internal/vault/kv, which is tested against it. Nothing
// outside tests may import it.
package kvserver

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is one server over TLS on a loopback address.
type Server struct {
	*httptest.Server

	mu       sync.Mutex // guards all below
	entries  map[string]*entry
	mounts   map[string]bool
	roles    map[string]string // role id → secret id
	tokens   map[string]*token
	login    time.Duration
	renewTo  time.Duration
	sealed   bool
	standby  string
	fault    func(w http.ResponseWriter, r *http.Request) bool
	requests []Request
	made     int
}

// Request is what one request had; a body is not kept.
type Request struct {
	Method, Path, Query string
	Header              http.Header
}

type token struct {
	ends      time.Time // zero: never
	ttl       time.Duration
	renewable bool
	paths     []string // the beginnings of the data paths that it may use; nil: all
}

type entry struct {
	versions []version
	required bool // cas_required
}

type version struct {
	data      map[string]any
	created   time.Time
	deleted   time.Time
	destroyed bool
}

// New starts a server with a mount "secret". A login lives for an hour and may be
// renewed. It stops with the test.
func New(t testing.TB) *Server {
	s := &Server{
		entries: map[string]*entry{}, mounts: map[string]bool{"secret": true}, roles: map[string]string{},
		tokens: map[string]*token{}, login: time.Hour, renewTo: time.Hour,
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// CA returns the server's own certificate in PEM form.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Mount adds another key/value engine.
func (s *Server) Mount(name string) { s.with(func() { s.mounts[name] = true }) }

// Role lets a role id log in with a secret id.
func (s *Server) Role(role, secretID string) { s.with(func() { s.roles[role] = secretID }) }

// Token makes a token good for ttl (0: for ever), for the paths that begin with one
// of these, or for all.
func (s *Server) Token(text string, ttl time.Duration, renewable bool, paths ...string) {
	s.with(func() { s.tokens[text] = newToken(ttl, renewable, paths) })
}

// Logins sets how long a login lives, and how long after a renewal.
func (s *Server) Logins(life, renewed time.Duration) {
	s.with(func() { s.login, s.renewTo = life, renewed })
}

// RevokeAll ends every token.
func (s *Server) RevokeAll() { s.with(func() { clear(s.tokens) }) }

// Write adds a version to mount/path and returns its number.
func (s *Server) Write(path string, data map[string]any) (n int) {
	s.with(func() { n = s.write(path, data) })
	return n
}

// RequireCAS makes an entry take only writes with check-and-set.
func (s *Server) RequireCAS(path string) { s.with(func() { s.entries[path].required = true }) }

// Delete deletes a version softly; Destroy destroys it.
func (s *Server) Delete(path string, n int) {
	s.with(func() { s.entries[path].versions[n-1].deleted = time.Now() })
}

// Destroy destroys the data of a version.
func (s *Server) Destroy(path string, n int) {
	s.with(func() { s.entries[path].versions[n-1].destroyed = true })
}

// Field returns a field of the newest version.
func (s *Server) Field(path, field string) (v any) {
	s.with(func() {
		e := s.entries[path]
		v = e.versions[len(e.versions)-1].data[field]
	})
	return v
}

// Seal seals or unseals the server.
func (s *Server) Seal(yes bool) { s.with(func() { s.sealed = yes }) }

// Standby makes the server send every request to the one at the address.
func (s *Server) Standby(address string) { s.with(func() { s.standby = address }) }

// Fault lets f answer a request instead, where it says so.
func (s *Server) Fault(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.with(func() { s.fault = f })
}

// Requests returns what came so far.
func (s *Server) Requests() (all []Request) {
	s.with(func() { all = append(all, s.requests...) })
	return all
}

// Count counts the requests whose path ends so.
func (s *Server) Count(suffix string) (n int) {
	for _, r := range s.Requests() {
		if strings.HasSuffix(r.Path, suffix) {
			n++
		}
	}
	return n
}

func (s *Server) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func newToken(ttl time.Duration, renewable bool, paths []string) *token {
	t := &token{ttl: ttl, renewable: renewable, paths: paths}
	if ttl > 0 {
		t.ends = time.Now().Add(ttl)
	}
	return t
}

func (s *Server) write(path string, data map[string]any) int {
	e := s.entries[path]
	if e == nil {
		e = &entry{}
		s.entries[path] = e
	}
	e.versions = append(e.versions, version{data: data, created: time.Now()})
	return len(e.versions)
}

// serve is the whole API.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone()})
	fault, sealed, standby := s.fault, s.sealed, s.standby
	s.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/")
	switch {
	case fault != nil && fault(w, r):
	case sealed:
		fail(w, http.StatusServiceUnavailable, "Vault is sealed")
	case standby != "":
		w.Header().Set("Location", standby+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	case r.Header.Get("X-Vault-Request") != "true":
		fail(w, http.StatusPreconditionFailed, "missing required 'X-Vault-Request' header")
	case !ok:
		fail(w, http.StatusNotFound)
	case strings.HasPrefix(path, "auth/token/"):
		s.tokenCall(w, r, strings.TrimPrefix(path, "auth/token/"))
	case strings.HasPrefix(path, "auth/") && strings.HasSuffix(path, "/login"):
		s.appRole(w, r)
	default:
		s.keyValue(w, r, path)
	}
}

func (s *Server) appRole(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Role   string `json:"role_id"`
		Secret string `json:"secret_id"`
	}
	if !isWrite(r) || json.NewDecoder(r.Body).Decode(&in) != nil {
		fail(w, http.StatusBadRequest, "failed to parse JSON input")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	want, known := s.roles[in.Role]
	if !known || want != in.Secret || in.Secret == "" {
		fail(w, http.StatusBadRequest, "invalid role or secret ID")
		return
	}
	s.made++
	text := fmt.Sprintf("hvs.login-%d-of-the-stand-in", s.made)
	t := newToken(s.login, true, nil)
	s.tokens[text] = t
	answer(w, http.StatusOK, nil, authOf(text, t))
}

func authOf(text string, t *token) map[string]any {
	return map[string]any{
		"client_token": text, "accessor": "accessor-of-it", "policies": []string{"default"}, "token_policies": []string{"default"},
		"metadata": map[string]any{"role_name": "chatelaine"}, "lease_duration": int(t.ttl / time.Second), "renewable": t.renewable,
		"entity_id": "", "token_type": "service", "orphan": true,
	}
}

// held returns the token of a request that is good.
func (s *Server) held(r *http.Request) *token {
	t := s.tokens[r.Header.Get("X-Vault-Token")]
	if t == nil || !t.ends.IsZero() && time.Now().After(t.ends) {
		return nil
	}
	return t
}

func (s *Server) tokenCall(w http.ResponseWriter, r *http.Request, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.held(r)
	switch {
	case t == nil:
		fail(w, http.StatusForbidden, "permission denied")
	case what == "lookup-self" && r.Method == http.MethodGet:
		answer(w, http.StatusOK, map[string]any{"ttl": t.left(), "renewable": t.renewable, "type": "service"}, nil)
	case what == "renew-self" && isWrite(r):
		if !t.renewable {
			fail(w, http.StatusBadRequest, "lease is not renewable")
			return
		}
		t.ttl = s.renewTo
		t.ends = time.Now().Add(t.ttl)
		answer(w, http.StatusOK, nil, authOf(r.Header.Get("X-Vault-Token"), t))
	default:
		fail(w, http.StatusNotFound)
	}
}

// left is the rest of a token's life in seconds, 0 for one that does not end.
func (t *token) left() int {
	if t.ends.IsZero() {
		return 0
	}
	return int(time.Until(t.ends) / time.Second)
}

// keyValue serves MOUNT/data/PATH.
func (s *Server) keyValue(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.held(r)
	if t == nil || !t.may(path) {
		fail(w, http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n")
		return
	}
	for mount := range s.mounts {
		if rest, ok := strings.CutPrefix(path, mount+"/data/"); ok {
			if isWrite(r) {
				s.put(w, r, mount+"/"+rest)
			} else {
				s.get(w, r, mount+"/"+rest)
			}
			return
		}
	}
	fail(w, http.StatusNotFound, "no handler for route \""+path+"\". route entry not found.")
}

func (t *token) may(path string) bool {
	for _, p := range t.paths {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return t.paths == nil
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, path string) {
	e := s.entries[path]
	if e == nil {
		fail(w, http.StatusNotFound)
		return
	}
	n := len(e.versions)
	if text := r.URL.Query().Get("version"); text != "" && text != "0" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > len(e.versions) {
			fail(w, http.StatusNotFound)
			return
		}
	}
	v := e.versions[n-1]
	meta := metaOf(v, n)
	if v.destroyed || !v.deleted.IsZero() {
		answer(w, http.StatusNotFound, map[string]any{"data": nil, "metadata": meta}, nil)
		return
	}
	answer(w, http.StatusOK, map[string]any{"data": v.data, "metadata": meta}, nil)
}

func metaOf(v version, n int) map[string]any {
	deleted := ""
	if !v.deleted.IsZero() {
		deleted = v.deleted.UTC().Format(time.RFC3339Nano)
	}
	return map[string]any{
		"created_time": v.created.UTC().Format(time.RFC3339Nano), "custom_metadata": nil,
		"deletion_time": deleted, "destroyed": v.destroyed, "version": n,
	}
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, path string) {
	var in struct {
		Options struct {
			CAS *int `json:"cas"`
		} `json:"options"`
		Data map[string]any `json:"data"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Data == nil {
		fail(w, http.StatusBadRequest, "no data provided")
		return
	}
	now, e := 0, s.entries[path]
	if e != nil {
		now = len(e.versions)
	}
	switch {
	case in.Options.CAS == nil && e != nil && e.required:
		fail(w, http.StatusBadRequest, "check-and-set parameter required for this call")
		return
	case in.Options.CAS != nil && *in.Options.CAS != now:
		fail(w, http.StatusBadRequest, "check-and-set parameter did not match the current version")
		return
	}
	n := s.write(path, in.Data)
	answer(w, http.StatusOK, metaOf(s.entries[path].versions[n-1], n), nil)
}

func isWrite(r *http.Request) bool { return r.Method == http.MethodPost || r.Method == http.MethodPut }

// answer writes the envelope of every successful answer.
func answer(w http.ResponseWriter, status int, data, auth any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"request_id": "5a2e1c1e-0000-4000-8000-000000000000", "lease_id": "", "renewable": false, "lease_duration": 0,
		"data": data, "wrap_info": nil, "warnings": nil, "auth": auth, "mount_type": "kv",
	})
}

// fail writes an error as the servers do: a list of texts.
func fail(w http.ResponseWriter, status int, texts ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": append([]string{}, texts...)})
}
