package release

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json/v2"
	"io"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
	"time"
)

// projects are the applications that the service knows, with their projects.
var projects = map[string]string{"api": "shop-api", "worker": "shop-worker"}

var versionForm = regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$`)

// deployment is one remembered deployment.
type deployment struct {
	id, app, environment, version, reason, state string
}

// order is what a client sends for a new deployment.
type order struct {
	Version string `json:"version"`
	Reason  string `json:"reason"`
}

// report is what a client is told of a deployment.
type report struct {
	ID          string `json:"deployment_id"`
	Project     string `json:"project_id"`
	Environment string `json:"environment"`
	Version     string `json:"version"`
	State       string `json:"state"`
	Observed    string `json:"observed_at"`
	Message     string `json:"message,omitzero"`
}

func (d deployment) report(now time.Time) report {
	return report{ID: d.id, Project: projects[d.app], Environment: d.environment, Version: d.version, State: d.state, Observed: stamp(now)}
}

func (r report) encode() []byte {
	b, _ := json.Marshal(r) // strings only
	return b
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// create starts a deployment, or tells again of the one that the same
// idempotency key has started.
func (s *Service) create(w http.ResponseWriter, r *http.Request) {
	note, body := s.arrived(r)
	if refusal := s.refuse(r, note); refusal != 0 {
		s.fail(w, note, refusal, "refused")
		return
	}
	var o order
	switch err := json.Unmarshal(body, &o, json.RejectUnknownMembers(true)); {
	case r.Header.Get("Content-Type") != "application/json" || err != nil:
		s.fail(w, note, http.StatusBadRequest, "not_an_order")
		return
	case note.Key == "" || len(note.Key) > keyLimit:
		s.fail(w, note, http.StatusBadRequest, "no_idempotency_key")
		return
	case !versionForm.MatchString(o.Version):
		s.fail(w, note, http.StatusUnprocessableEntity, "unknown_version")
		return
	}
	d, known := s.remember(note, r.PathValue("app"), o)
	switch {
	case d.version != o.Version || d.reason != o.Reason || d.app != r.PathValue("app"):
		s.fail(w, note, http.StatusUnprocessableEntity, "idempotency_key_reused")
	case known:
		s.answer(w, r, note, http.StatusOK, d)
	default:
		s.answer(w, r, note, http.StatusCreated, d)
	}
}

// look tells of a deployment. Here a deployment is done by the time that anyone
// looks.
func (s *Service) look(w http.ResponseWriter, r *http.Request) {
	note, _ := s.arrived(r)
	if refusal := s.refuse(r, note); refusal != 0 {
		s.fail(w, note, refusal, "refused")
		return
	}
	s.mu.Lock()
	d := s.byID[r.PathValue("id")]
	found := d != nil && d.environment == note.Environment && d.app == r.PathValue("app")
	var known deployment
	if found {
		d.state = "healthy"
		known = *d
	}
	s.mu.Unlock()
	if !found {
		s.fail(w, note, http.StatusNotFound, "no_such_deployment")
		return
	}
	s.answer(w, r, note, http.StatusOK, known)
}

// arrived notes a request before anything is done about it.
func (s *Service) arrived(r *http.Request) (*Request, []byte) {
	head, _ := httputil.DumpRequest(r, false)
	body, _ := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
	note := &Request{
		Method: r.Method, Path: r.URL.EscapedPath(), Environment: r.PathValue("environment"),
		Key: r.Header.Get("Idempotency-Key"), Raw: append(head, body...),
	}
	var o order
	if json.Unmarshal(body, &o) == nil {
		note.Version = o.Version
	}
	token, known := s.tokens[note.Environment]
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	note.Authorised = known && bearer && subtle.ConstantTimeCompare([]byte(token), []byte(given)) == 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, note)
	return note, body
}

// refuse is the status of a request that may do nothing here, 0 for others.
func (s *Service) refuse(r *http.Request, note *Request) int {
	switch {
	case !note.Authorised:
		return http.StatusUnauthorized
	case projects[r.PathValue("app")] == "":
		return http.StatusNotFound
	}
	return 0
}

// remember returns the deployment that a key has started, or starts one.
func (s *Service) remember(note *Request, app string, o order) (d deployment, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := note.Environment + "\x00" + note.Key
	if d := s.byKey[key]; d != nil {
		return *d, true
	}
	made := &deployment{
		id: "dep_" + strings.ToLower(rand.Text()[:12]), app: app, environment: note.Environment,
		version: o.Version, reason: o.Reason, state: "queued",
	}
	s.byKey[key], s.byID[made.id] = made, made
	return *made, false
}

// answer tells of a deployment, in the way that the service is switched to.
func (s *Service) answer(w http.ResponseWriter, r *http.Request, note *Request, status int, d deployment) {
	s.mu.Lock()
	lie := s.lie
	s.mu.Unlock()
	if lie == Silent {
		select {
		case <-r.Context().Done():
		case <-s.quit:
		}
		panic(http.ErrAbortHandler) // the connection is cut, without an answer
	}
	s.write(w, note, status, tell(lie, d, s.tokens[note.Environment], time.Now()))
}

func (s *Service) fail(w http.ResponseWriter, note *Request, status int, code string) {
	s.write(w, note, status, []byte(`{"error":{"code":"`+code+`"}}`))
}

func (s *Service) write(w http.ResponseWriter, note *Request, status int, body []byte) {
	s.mu.Lock()
	note.Status, note.Answer = status, bytes.Clone(body)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is not our trouble
}
