package main_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/testkit"
)

// Every kind puts exactly one credential in its place; a token endpoint is asked
// once for all who wait; nothing of any secret stays anywhere.
func TestKindsOfIdentity(t *testing.T) {
	t.Parallel()
	k := newKinds(t, "machine", "pager", "mesh", "images", "app", "robot")
	a := k.agent("build-worker")
	t.Run("fifty calls, one exchange", func(t *testing.T) { k.fiftyCalls(t, a) })
	t.Run("a key in the body", func(t *testing.T) { k.keyInTheBody(t, a) })
	t.Run("a certificate in the handshake", func(t *testing.T) { k.certificate(t, a) })
	t.Run("a real registry's token", func(t *testing.T) { k.registryToken(t, a) })
	t.Run("an app's token, narrowed", func(t *testing.T) { k.appTokens(t, a) })
	t.Run("a robot's assertion", func(t *testing.T) { k.robotToken(t, a) })
	t.Run("a refused token", func(t *testing.T) { k.refusedToken(t, a) })
	t.Run("a token ends with the lock", func(t *testing.T) { k.lockedTokens(t, a) })
	t.Run("a token that comes back", func(t *testing.T) { k.echoedToken(t, a) })
	t.Run("constants that were changed", func(t *testing.T) { k.changedConstants(t, a) })
	k.keepsNothing(t)
}

func (k *kinds) fiftyCalls(t *testing.T, a *client.Agent) {
	answers := together(50, func(i int) client.Envelope { return k.call(a, "use_machine", fmt.Sprintf("machine-%04d", i), "{}") })
	for _, e := range answers {
		if !e.OK {
			t.Fatalf("answered %s", e.Raw)
		}
	}
	exchange := k.one(k.tokens, clientSecret)
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:"+clientSecret))
	if exchange.path != "/oauth/token" || exchange.auth != want && !strings.Contains(exchange.body, "client_secret="+clientSecret) || !strings.Contains(exchange.body, "scope=a+b") {
		t.Errorf("exchanged by %+v", exchange)
	}
	sent := k.services.take()
	if len(sent) != 50 {
		t.Errorf("%d calls were sent", len(sent))
	}
	for _, q := range sent {
		if token := k.login.nth(t, 0); q.auth != "Bearer "+token || strings.Count(q.text, token) != 1 || strings.Contains(q.text, "planted") || q.path != "/machine/thing" {
			t.Fatalf("sent %+v", q)
		}
	}
}

func (k *kinds) keyInTheBody(t *testing.T, a *client.Agent) {
	k.fine(a, "pager", "pager-0001")
	q := k.services.take()
	if len(q) != 1 || q[0].auth != "" || strings.Count(q[0].text, "planted") != 1 || !strings.Contains(q[0].body, `"routing_key":"pager-\"key\"-planted-3be44d"`) {
		t.Errorf("sent %+v", q)
	}
}

func (k *kinds) certificate(t *testing.T, a *client.Agent) {
	k.fine(a, "mesh", "mesh-0001")
	if q := k.one(k.guarded, ""); q.client != "mesh-bot" || q.auth != "" {
		t.Errorf("sent %+v", q)
	}
}

func (k *kinds) registryToken(t *testing.T, a *client.Agent) {
	k.fine(a, "images", "images-0001")
	q := k.one(k.realm, imagesPassword)
	if q.path != "/token" || q.r.URL.Query().Get("scope") != "repository:team/app:pull" {
		t.Errorf("exchanged by %+v", q)
	}
	k.fine(a, "images", "images-0002")
	if n := len(k.realm.take()); n != 0 {
		t.Errorf("%d exchanges for a token that is there", n)
	}
}

func (k *kinds) refusedToken(t *testing.T, a *client.Agent) {
	k.set(func() { k.stale = true })
	if e := k.call(a, "use_machine", "machine-stale", "{}"); code(e) != "REMOTE_UNAUTHENTICATED" {
		t.Errorf("answered %s", e.Raw)
	}
	if n, m := len(k.tokens.take()), len(k.services.take()); n != 0 || m != 1 {
		t.Errorf("%d exchanges, %d sends", n, m)
	}
	k.set(func() { k.stale = false })
	k.fine(a, "machine", "machine-again")
	k.one(k.tokens, clientSecret)
	k.one(k.services, k.login.nth(t, 2))
}

func (k *kinds) lockedTokens(t *testing.T, a *client.Agent) {
	op := k.operator()
	defer op.Close()
	if _, err := op.Lock(k.ctx()); err != nil {
		t.Fatal(err)
	}
	if e := k.call(a, "use_machine", "machine-locked", "{}"); code(e) != "VAULT_LOCKED" {
		t.Errorf("answered %s", e.Raw)
	}
	if n := len(k.tokens.take()); n != 0 {
		t.Errorf("%d exchanges of a locked vault", n)
	}
	k.unlock()
	k.fine(a, "machine", "machine-open")
	k.one(k.tokens, clientSecret)
	k.one(k.services, k.login.nth(t, 3))
}

func (k *kinds) echoedToken(t *testing.T, a *client.Agent) {
	k.set(func() { k.echo = true })
	for i := range 3 {
		if e := k.call(a, "use_machine", fmt.Sprintf("machine-echo-%d", i), "{}"); code(e) != "INVALID_RESPONSE" {
			t.Errorf("answered %s", e.Raw)
		}
	}
	k.set(func() { k.echo = false })
	if e := k.call(a, "use_machine", "machine-suspended", "{}"); code(e) != "IDENTITY_UNAVAILABLE" {
		t.Errorf("answered %s", e.Raw)
	}
}

func (k *kinds) changedConstants(t *testing.T, a *client.Agent) {
	op := k.operator()
	defer op.Close()
	k.change("c/targets.yaml", "repository:team/app:pull", "repository:team/app:pull,push")
	if err := k.reload(op); err != nil {
		t.Fatal(err)
	}
	if e := k.call(a, "use_images", "images-wider", "{}"); code(e) != "TARGET_NOT_ALLOWED" {
		t.Errorf("answered %s", e.Raw)
	}
	if n := len(k.realm.take()); n != 0 {
		t.Errorf("%d exchanges", n)
	}
}

// keepsNothing searches files, log, process, metrics, the operator's views and the
// opened record for every secret and every token.
func (k *kinds) keepsNothing(t *testing.T) {
	t.Helper()
	views := k.log.bytes()
	for _, path := range []string{"/v1/status", "/v1/identities", "/v1/identities/machine-bot", "/v1/identities/mesh-bot", "/v1/calls"} {
		status, body := rawGet(t, k.places.OperatorSocket(), path)
		if status != 200 && path != "/v1/calls" { // those want a read session
			t.Errorf("%s: %d", path, status)
		}
		views = append(views, body...)
	}
	_, metrics := rawGet(t, filepath.Join(k.places.Runtime, "metrics.sock"), "/metrics")
	views = append(views, metrics...)
	steps := map[any]int{}
	if err := auditlog.Read(filepath.Join(k.places.State, "audit"), k.recovery(), func(_ uint64, e auditlog.Event) error {
		views = append(append(views, e.Body...), fmt.Sprint(e.Detail, e.Rule)...)
		if e.Type == auditlog.TypeIntent {
			steps[e.Detail["step"]]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if steps["token"] != 7 || steps["challenge"] != 1 || steps["request"] < 50 {
		t.Errorf("the record has %v", steps)
	}
	if !bytes.Contains(views, []byte(`chatelaine_token_exchanges_total{kind="oauth2_client",result="OK"} 3`)) {
		t.Error("the metrics do not count the exchanges")
	}
	for _, p := range k.planted() {
		s := testkit.Plant(p)
		s.Refuse(t, "log, views, metrics or record", views)
		s.RefuseFiles(t, k.places.State, k.places.Config, k.places.Runtime)
		s.RefuseProcess(t, k.proc.Process.Pid)
	}
}

// A server that replaces the refresh token with each use takes the old one no more.
// Whoever has seen an access token knows that the new one is on disk: kill -9 at that
// moment loses nothing.
func TestKillAfterARotatedRefreshToken(t *testing.T) {
	t.Parallel()
	k := newKinds(t, "person")
	a := k.agent("build-worker")
	proc := k.proc.Process
	k.set(func() { k.before = func() { _ = proc.Kill() } })
	if _, err := a.Call(k.ctx(), "use_person", client.CallRequest{Input: []byte("{}"), RequestID: "person-0001"}); err == nil {
		t.Fatal("a daemon that was killed answered")
	}
	k.kill()
	if q := k.one(k.tokens, firstRefresh); !strings.Contains(q.body, "client_id=desk") {
		t.Errorf("exchanged by %+v", q)
	}
	k.one(k.services, k.login.nth(t, 0))

	k.set(func() { k.before = nil })
	a = k.again("build-worker")
	k.fine(a, "person", "person-0002")
	k.one(k.tokens, "refresh-0000-planted-0c3f9a")
	k.one(k.services, k.login.nth(t, 1))
	for _, p := range k.planted() {
		testkit.Plant(p).RefuseFiles(t, k.places.State)
	}
}
