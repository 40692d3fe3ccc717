package operatorapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/sessions"
)

// withoutProof are the only routes that change something on the socket's word
// alone: they narrow, or they only answer. A route that widens and is written
// here by mistake is what this list is for: read it again before adding a line.
var withoutProof = map[string]string{
	"POST /v1/challenges":               "hands out a challenge",
	"POST /v1/approvals/{id}/challenge": "hands out a challenge",
	"POST /v1/approvals/{id}/deny":      "narrows",
	"POST /v1/sessions/{id}/revoke":     "narrows",
	"POST /v1/vault/lock":               "narrows",
	"POST /v1/vault/import/parts":       "only holds sealed bytes for this connection",
	"POST /v1/explain":                  "only answers",
	"POST /v1/identities/{name}/check":  "only answers, and no secret",
}

// inReadSession are the POST routes that widen nothing and need a read session.
var inReadSession = map[string]bool{
	"POST /v1/identities/{name}/prove": true, // sends a read with the stored secret
}

// proveThemselves carry a proof that is checked by the room behind them.
var proveThemselves = map[string]bool{
	"POST /v1/approvals/{id}/approve": true, // the desk, over the card
	"POST /v1/vault/unlock":           true, // the vault's passphrase
}

// Every route that is not a GET needs a proof, unless it stands in the lists
// above; and the handler serves nothing that is not in the table.
func TestEveryWideningRouteNeedsAProof(t *testing.T) {
	seen := map[string]bool{"GET /v1/events": true}
	for _, rt := range routes() {
		name := rt.method + " " + rt.path
		seen[name] = true
		switch {
		case rt.method == http.MethodGet:
			if rt.needs != needsSocket && rt.needs != needsReads {
				t.Errorf("%s: a GET cannot carry a proof", name)
			}
		case proveThemselves[name]:
			if rt.needs != ownProof {
				t.Errorf("%s must prove itself", name)
			}
		case inReadSession[name]:
			if rt.needs != needsReads {
				t.Errorf("%s must need a read session", name)
			}
		case withoutProof[name] != "":
			if rt.needs != needsSocket {
				t.Errorf("%s is listed as free of proofs and is not", name)
			}
		case rt.needs != needsProof || rt.widens == nil || rt.widens.operation == "" || rt.widens.plan == nil || rt.serve != nil:
			t.Errorf("%s widens and needs no proof", name)
		case strings.Contains(rt.path, "{") != (rt.widens.subject != nil):
			t.Errorf("%s: the proof does not name its subject", name)
		}
		if (rt.needs == needsProof) != (rt.widens != nil) || (rt.serve == nil) != (rt.widens != nil) {
			t.Errorf("%s: what it does and what it needs do not fit", name)
		}
	}
	walk := func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !seen[method+" "+path] {
			t.Errorf("%s %s is served but not in the table", method, path)
		}
		return nil
	}
	if err := chi.Walk(New(Deps{}).Handler().(chi.Routes), walk); err != nil {
		t.Fatal(err)
	}
	for name := range withoutProof {
		if !seen[name] {
			t.Errorf("%s is listed and not served", name)
		}
	}
}

// The journals and rejections show what agents asked: never on the socket alone.
func TestReadingNeedsAReadSession(t *testing.T) {
	for _, rt := range routes() {
		inside := strings.HasPrefix(rt.path, "/v1/journal/") || rt.path == "/v1/rejections" || inReadSession[rt.method+" "+rt.path]
		if inside != (rt.needs == needsReads) {
			t.Errorf("%s %s: needs %d", rt.method, rt.path, rt.needs)
		}
	}
}

// A read session belongs to one connection and ends after ten minutes.
func TestReadSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := ConnContext(context.Background(), nil).Value(connectionKey{}).(*connection)
		two := ConnContext(context.Background(), nil).Value(connectionKey{}).(*connection)
		if one.mayRead(time.Now()) {
			t.Error("a new connection may read")
		}
		until := one.open(time.Now())
		if time.Until(until) != 10*time.Minute {
			t.Errorf("it lasts %s", time.Until(until))
		}
		if !one.mayRead(time.Now()) || two.mayRead(time.Now()) {
			t.Error("it is not of its own connection only")
		}
		time.Sleep(10*time.Minute - time.Nanosecond)
		if !one.mayRead(time.Now()) {
			t.Error("it ended early")
		}
		time.Sleep(time.Nanosecond)
		if one.mayRead(time.Now()) {
			t.Error("it did not end")
		}
		var none *connection
		if none.mayRead(time.Now()) {
			t.Error("no connection may read")
		}
	})
}

// A request whose peer the kernel has not named is nobody's.
func TestUnknownPeerIsRefused(t *testing.T) {
	h := New(Deps{}).Handler()
	for _, rt := range routes() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(rt.method, strings.NewReplacer("{id}", "x", "{name}", "x").Replace(rt.path), nil))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "FORBIDDEN") {
			t.Errorf("%s %s: %d %s", rt.method, rt.path, w.Code, w.Body)
		}
	}
}

type soon struct{ error }

func (soon) Wait() time.Duration { return 1500 * time.Millisecond }

type wrong struct{ error }

func (wrong) ProofRefused() bool { return true }

func TestTranslate(t *testing.T) {
	plain := errors.New("a cause")
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{soon{plain}, 429, "PROOF_TOO_SOON"},
		{fmt.Errorf("wrapped: %w", soon{plain}), 429, "PROOF_TOO_SOON"},
		{wrong{plain}, 403, "PROOF_REFUSED"},
		{proofRequired(), 403, "PROOF_REQUIRED"},
		{needsReadSession(), 403, "PROOF_REQUIRED"},
		{invalid("/x", "is wrong"), 400, "INVALID_ARGUMENT"},
		{approvals.ErrNotFound, 404, "NOT_FOUND"},
		{gateway.ErrNoCall, 404, "NOT_FOUND"},
		{fmt.Errorf("session: %w", sessions.ErrNotFound), 404, "NOT_FOUND"},
		{approvals.ErrDecided, 409, "ALREADY_DECIDED"},
		{sessions.ErrDecided, 409, "ALREADY_DECIDED"},
		{fmt.Errorf("%w (revoked)", sessions.ErrEnded), 409, "ALREADY_DECIDED"},
		{sessions.ErrNameTaken, 409, "NAME_TAKEN"},
		{approvals.ErrNewChallenge, 409, "CHALLENGE_EXPIRED"},
		{gateway.ErrNotUnresolved, 409, "NOT_UNRESOLVED"},
		{fault.New(fault.VaultLocked, nil), 423, "VAULT_LOCKED"},
		{fault.New(fault.AuditUnavailable, plain), 503, "AUDIT_UNAVAILABLE"},
		{plain, 500, "INTERNAL"},
	} {
		e := translate(c.err)
		if e.status != c.status || e.Code != c.code || e.Message == "" {
			t.Errorf("%v: %d %s %q, want %d %s", c.err, e.status, e.Code, e.Message, c.status, c.code)
		}
	}
	if e := translate(soon{plain}); e.RetryAfter != 2 {
		t.Errorf("1.5 s is told as %d", e.RetryAfter)
	}
}

func TestProofForm(t *testing.T) {
	good := map[string]any{"challenge_id": "c", "kind": "passphrase", "mac": "AAAA"}
	with := func(k string, v any) map[string]any {
		m := map[string]any{}
		for n, x := range good {
			m[n] = x
		}
		m[k] = v
		return m
	}
	for name, proof := range map[string]any{
		"a text": "yes", "null": nil, "a list": []any{}, "half": map[string]any{"challenge_id": "c"},
		"id is a number": with("challenge_id", 1), "kind is null": with("kind", nil), "mac is no text": with("mac", true),
		"mac is no base64": with("mac", "%%%%"), "mac is url base64": with("mac", "__8="), "one more": with("by", "root"),
	} {
		c := &call{body: object{members: map[string]any{"proof": proof}}}
		if _, err := c.proof(); translate(err).status != http.StatusBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, none := range map[string]map[string]any{
		"none": {}, "empty": {"proof": map[string]any{}}, "empty members": {"proof": map[string]any{"challenge_id": "", "kind": "", "mac": ""}},
	} {
		if _, err := (&call{body: object{members: none}}).proof(); translate(err).Code != "PROOF_REQUIRED" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := (&call{body: object{members: map[string]any{"proof": good}}}).proof(); err != nil || p.ChallengeID != "c" || len(p.MAC) != 3 {
		t.Errorf("a good one: %+v, %v", p, err)
	}
}
