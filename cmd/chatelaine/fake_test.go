package main

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"chatelaine/internal/client"
)

// The passphrases of the fake daemon.
const (
	fakeOperator = "correct horse battery staple"
	fakeVault    = "vault words of the night"
)

// fakeDaemon speaks the two listeners on real sockets. It knows nothing of
// contracts: the input's version says which answer it gives.
type fakeDaemon struct {
	mu       sync.Mutex // guards all below
	options  map[string]string
	sessions map[string]*fakeSession // by token
	cards    map[string]*client.Card
	calls    map[string]string // request id → state or version
	chals    map[string][]byte
	open     bool
	secret   string
	proofs   int
	requests []string
	servers  []*http.Server
	silent   chan struct{} // closed when a call meets silence
}

type fakeSession struct{ id, name, state, code string }

// startFake listens in dir, which must be short enough for a socket.
func startFake(dir string, options map[string]string) (*fakeDaemon, error) {
	d := &fakeDaemon{
		options: options, sessions: map[string]*fakeSession{}, cards: map[string]*client.Card{},
		calls: map[string]string{}, chals: map[string][]byte{}, open: options["vault"] != "sealed", secret: options["secret"], silent: make(chan struct{}),
	}
	for name, h := range map[string]http.Handler{"agent.sock": d.agentRoutes(), "operator.sock": d.operatorRoutes()} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		s := &http.Server{Handler: d.watch(name, h)}
		d.servers = append(d.servers, s)
		go s.Serve(l)
	}
	return d, nil
}

func (d *fakeDaemon) stop() {
	for _, s := range d.servers {
		s.Close()
	}
}

// watch keeps what was asked and holds the lock, so that routes need not.
func (d *fakeDaemon) watch(socket string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.requests = append(d.requests, strings.TrimSuffix(socket, ".sock")+" "+r.Method+" "+r.URL.RequestURI())
		h.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if s, ok := v.(string); ok {
		io.WriteString(w, s)
		return
	}
	json.NewEncoder(w).Encode(v)
}

type obj = map[string]any

func body(r *http.Request) obj {
	var m obj
	json.NewDecoder(r.Body).Decode(&m)
	return m
}

func envelope(action, id, code, message string, more obj) obj {
	e := obj{"code": code, "message": message, "retryable": false, "request_id": id}
	for k, v := range more {
		e[k] = v
	}
	return obj{"ok": false, "action": action, "request_id": id, "error": e}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, envelope("", "act_refused00", code, message, nil))
}

func (d *fakeDaemon) caller(r *http.Request) *fakeSession {
	return d.sessions[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
}

// authorised answers for sessions that may not act.
func (d *fakeDaemon) authorised(w http.ResponseWriter, r *http.Request) bool {
	s := d.caller(r)
	switch {
	case s == nil:
		refuse(w, 401, "SESSION_REQUIRED", "An authorised session is needed.")
	case s.state == "pending":
		refuse(w, 403, "SESSION_PENDING", "The operator has not decided about this session yet.")
	case s.state != "authorised":
		refuse(w, 403, "SESSION_REVOKED", "This session was revoked or has ended; open a new one.")
	default:
		return true
	}
	return false
}

const fakeInput = `{"type":"object","additionalProperties":false,"$defs":{"count":{"type":"integer"}},"properties":{
"service":{"enum":["api","web"]},"environment":{"type":"string"},"version":{"type":"string"},"reason":{"type":"string"},
"count":{"$ref":"#/$defs/count"},"ratio":{"type":"number"},"dry_run":{"type":"boolean"},"tags":{"type":"array"},
"note":{"type":["string","null"]},"level":{"enum":[1,2,null]},"owner":{"type":"object"}}}`

func fakeAction(name, effect string) obj {
	return obj{"name": name, "version": "1.2.0", "summary": "Does " + name, "effect": effect,
		"input_schema": json.RawMessage(fakeInput), "result_schema": obj{"type": "object"}, "asks_person": effect == "change"}
}

var fakeActions = []obj{fakeAction("deploy_release", "change"), fakeAction("read_stock", "read")}

func (d *fakeDaemon) agentRoutes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, obj{"ok": true, "vault": "open", "contracts": 2})
	})
	m.HandleFunc("POST /v1/sessions", d.newSession)
	m.HandleFunc("GET /v1/sessions/current", func(w http.ResponseWriter, r *http.Request) {
		s := d.caller(r)
		if s == nil {
			refuse(w, 401, "SESSION_REQUIRED", "An authorised session is needed.")
			return
		}
		reply(w, 200, obj{"session_id": s.id, "name": s.name, "state": s.state, "expires_at": time.Now().Add(time.Hour)})
	})
	m.HandleFunc("DELETE /v1/sessions/current", func(w http.ResponseWriter, r *http.Request) {
		if d.authorised(w, r) {
			d.caller(r).state = "ended"
			reply(w, 200, obj{})
		}
	})
	m.HandleFunc("GET /v1/actions", func(w http.ResponseWriter, r *http.Request) {
		if d.authorised(w, r) {
			reply(w, 200, obj{"actions": fakeActions})
		}
	})
	m.HandleFunc("GET /v1/actions/{name}", func(w http.ResponseWriter, r *http.Request) {
		if !d.authorised(w, r) {
			return
		}
		for _, a := range fakeActions {
			if a["name"] == r.PathValue("name") {
				reply(w, 200, a)
				return
			}
		}
		refuse(w, 404, "UNKNOWN_ACTION", "There is no such action for this caller.")
	})
	m.HandleFunc("POST /v1/actions/{name}", func(w http.ResponseWriter, r *http.Request) {
		if d.authorised(w, r) {
			b := body(r)
			id, _ := b["request_id"].(string)
			in := b["input"].(obj)
			if in["version"] == "silence" {
				close(d.silent)
				<-r.Context().Done()
				return
			}
			d.answer(w, r.PathValue("name"), id, in)
		}
	})
	m.HandleFunc("GET /v1/calls/{id}", func(w http.ResponseWriter, r *http.Request) {
		if d.authorised(w, r) {
			d.outcome(w, r.PathValue("id"))
		}
	})
	return m
}

func (d *fakeDaemon) newSession(w http.ResponseWriter, r *http.Request) {
	b := body(r)
	n := len(d.sessions) + 1
	s := &fakeSession{id: fmt.Sprintf("ses_%08d", n), name: b["name"].(string), state: "pending", code: fmt.Sprintf("4821-%04d", n)}
	if d.options["sessions"] == "authorised" {
		s.state = "authorised"
	}
	token := "tok-planted-" + rand.Text()
	d.sessions[token] = s
	reply(w, 201, obj{"session_id": s.id, "token": token, "pairing_code": s.code, "state": s.state, "expires_at": time.Now().Add(10 * time.Minute)})
}

// answer is chosen by the input's version.
func (d *fakeDaemon) answer(w http.ResponseWriter, action, id string, in obj) {
	version, _ := in["version"].(string)
	d.calls[id] = version
	refuse := func(status int, code, message string, more obj) {
		reply(w, status, envelope(action, id, code, message, more))
	}
	switch version {
	case "approval":
		d.openCard(id, in)
		refuse(202, "APPROVAL_REQUIRED", "A person must approve this; ask again with the same request id.", obj{"retryable": true, "retry_after_seconds": 5})
	case "progress":
		refuse(202, "IN_PROGRESS", "This is still running; ask again with the same request id.", obj{"retryable": true})
	case "unknown":
		refuse(504, "OUTCOME_UNKNOWN", "It may or may not have happened; do not repeat it.", nil)
	case "invalid":
		refuse(502, "INVALID_RESPONSE", "The answer is not what the contract allows.", nil)
	case "locked":
		refuse(423, "VAULT_LOCKED", "The vault is locked; the operator must unlock it.", obj{"retryable": true})
	case "busy":
		refuse(503, "OVERLOADED", "Too many calls at once; try again.", obj{"retryable": true, "retry_after_seconds": 7})
	case "own":
		refuse(409, "VERSION_TAKEN", "That version exists already.", nil)
	case "field":
		refuse(400, "INVALID_ARGUMENT", "The input does not fit the contract of this action.", obj{"fields": []obj{{"pointer": "/service", "reason": "is not one of the listed values"}}})
	case "revoked":
		refuse(403, "SESSION_REVOKED", "This session was revoked or has ended; open a new one.", nil)
	case "hang":
		hijackClose(w)
	case "duplicate":
		reply(w, 200, `{"ok":true,"ok":false,"action":"x","request_id":"y","data":{}}`)
	case "both":
		reply(w, 200, `{"ok":true,"action":"x","request_id":"y","data":{},"error":{"code":"INTERNAL","message":"m","retryable":false,"request_id":"y"}}`)
	case "huge":
		reply(w, 200, `{"ok":true,"action":"x","request_id":"y","data":{"a":"`+strings.Repeat("x", 5<<20)+`"}}`)
	case "html":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<p>planted page</p>")
	case "evil":
		reply(w, 200, obj{"ok": true, "action": action, "request_id": id, "data": obj{"state": "qu\x1b[31meued\nforged: line"},
			"display": obj{"log": obj{"text": "one\n\x1b]0;title\x07two \u202egpj", "truncated": true}}})
	default:
		reply(w, 200, obj{"ok": true, "action": action, "request_id": id, "data": in})
	}
}

func hijackClose(w http.ResponseWriter) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		c.Close()
	}
}

func (d *fakeDaemon) openCard(id string, in obj) {
	d.cards["apr_"+id] = &client.Card{
		ID: "apr_" + id, State: "open", Sentence: "Deploy version 2.14.3 of api to production",
		Lines:      []client.CardLine{{Label: "Reason", Value: fmt.Sprintf("%q", in["reason"])}},
		DaemonLine: "change on deploy-prod as deploy-prod-bot, deploy_release 1.2.0", RequestedBy: "cli-test, uid 0",
		Action: "deploy_release", RequestID: id, SessionID: "ses_00000001", OpenedAt: time.Now(), ExpiresAt: time.Now().Add(5 * time.Minute),
		Exceptions: []string{"fixtures: the vendor has no sandbox"},
	}
}

// outcome is what GET /v1/calls tells.
func (d *fakeDaemon) outcome(w http.ResponseWriter, id string) {
	done := obj{"ok": true, "action": "deploy_release", "request_id": id, "data": obj{"state": "queued"}}
	card := d.cards["apr_"+id]
	switch {
	case d.calls[id] == "rearmed":
		reply(w, 503, envelope("deploy_release", id, "UPSTREAM_UNAVAILABLE", "The remote system could not be reached; nothing happened.", obj{"retryable": true}))
	case d.calls[id] == "":
		refuse(w, 404, "NOT_FOUND", "The remote object is not there.")
	case card == nil:
		reply(w, 200, done)
	case card.State == "open":
		reply(w, 202, envelope("deploy_release", id, "APPROVAL_REQUIRED", "A person must approve this; ask again with the same request id.", obj{"retryable": true}))
	case card.State == "denied":
		reply(w, 403, envelope("deploy_release", id, "APPROVAL_DENIED", "A person said no.", nil))
	default:
		reply(w, 200, done)
	}
}

func opError(w http.ResponseWriter, status int, code, message, detail string, after int) {
	e := obj{"code": code, "message": message}
	if detail != "" {
		e["detail"] = detail
	}
	if after > 0 {
		e["retry_after_seconds"] = after
	}
	reply(w, status, obj{"error": e})
}

// proven checks the proof in b as the daemon does.
func (d *fakeDaemon) proven(w http.ResponseWriter, b obj) bool {
	p, _ := b["proof"].(obj)
	if p == nil {
		opError(w, 403, "PROOF_REQUIRED", "This needs the operator's proof.", "fetch a challenge and send a proof over it", 0)
		return false
	}
	d.proofs++
	if first := d.options["first"]; d.proofs == 1 && (first == "lapsed" || first == "changed") {
		opError(w, 409, "CHALLENGE_EXPIRED", "The challenge was used or has lapsed.", "", 0)
		return false
	}
	if d.proofs == 1 && d.options["first"] == "soon" {
		opError(w, 429, "PROOF_TOO_SOON", "Too many tries; wait a little.", "", 1)
		return false
	}
	ch := d.chals[p["challenge_id"].(string)]
	delete(d.chals, p["challenge_id"].(string))
	want, err := client.ProofMAC([]byte(fakeOperator), fakeKDF, ch)
	if err != nil {
		opError(w, 409, "CHALLENGE_EXPIRED", "The challenge was used or has lapsed.", "", 0)
		return false
	}
	var got []byte
	json.Unmarshal([]byte(`"`+p["mac"].(string)+`"`), &got)
	if !hmac.Equal(got, want) {
		opError(w, 403, "PROOF_REFUSED", "The passphrase is wrong.", "", 0)
		return false
	}
	return true
}

var fakeKDF = client.KDF{Name: "argon2id", Salt: []byte("0123456789abcdef"), Time: 1, MemoryKiB: 8192, Threads: 1}

func (d *fakeDaemon) challenge(w http.ResponseWriter, r *http.Request) {
	asked, _ := json.Marshal(body(r))
	covers := "do what was asked: " + string(asked)
	if d.options["first"] == "changed" && d.proofs > 0 {
		covers = "do something else"
	}
	ch := make([]byte, 32)
	rand.Read(ch)
	id := "chl_" + rand.Text()
	d.chals[id] = ch
	kdf := fakeKDF
	if d.options["kdf"] == "absurd" {
		kdf.MemoryKiB = 1<<32 - 1
	}
	reply(w, 200, client.Challenge{ID: id, Challenge: ch, Covers: covers, Digest: covers, ExpiresAt: time.Now().Add(2 * time.Minute), Proofs: []client.ProofKind{{Kind: "passphrase", KDF: &kdf}}})
}

// wrote is what the fake was asked, for the scripts.
func (d *fakeDaemon) wrote(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.requests {
		fmt.Fprintln(w, r)
	}
	fmt.Fprintf(w, "secret %q\n", d.secret)
	d.requests = nil
}

func tempRuntime() (string, error) { return os.MkdirTemp("/tmp", "cl") }
