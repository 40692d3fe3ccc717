package main_test

import (
	"encoding/json/jsontext"
	"fmt"
	"strings"
	"sync"
	"testing"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// switchable is an upstream whose answer a test changes between calls.
type switchable struct {
	mu sync.Mutex
	f  upstream.Script
}

func (s *switchable) set(f upstream.Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *switchable) script(r upstream.Request) upstream.Answer {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	return f(r)
}

func deployVersion(v string) string {
	return fmt.Sprintf(`{"service":"api","environment":"test","version":%q,"reason":"a reason"}`, v)
}

// TestLine walks the line on one daemon: what is refused before it is sent,
// what leaves, what comes back, and what is never sent twice.
func TestLine(t *testing.T) {
	t.Parallel()
	up := &switchable{}
	up.set(testkit.Always(release("test", "1.0.0")))
	h := rig(t, up.script)
	h.start()

	t.Run("locked", func(t *testing.T) {
		a, err := client.NewAgent(client.AgentOptions{Socket: h.places.AgentSocket(), Owners: client.OwnAndRoot(), UserAgent: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		health, err := a.Health(h.ctx())
		if err != nil || health.Vault != "locked" || health.Contracts != shipped(t) {
			t.Errorf("health says %+v, %v", health, err)
		}
	})
	h.unlock()
	h.put("deploy-test-bot", "deploy-prod-bot", "jobs-reader")
	a := h.agent("build-worker")
	op := h.operator()
	defer op.Close()

	sent := func() int { return len(h.up.Requests()) }
	refuse := func(t *testing.T, want, action, input string) {
		t.Helper()
		before := sent()
		e := h.call(a, action, "", input)
		if code(e) != want {
			t.Errorf("%s %s: answered %s, want %s", action, input, e.Raw, want)
		}
		if sent() != before {
			t.Errorf("%s %s: something left the machine", action, input)
		}
	}

	t.Run("refused before it is sent", func(t *testing.T) {
		for _, input := range []string{
			`{"service":"api","environment":"test","version":"1.0.0","reason":"r","url":"https://evil.example"}`,
			`{"service":"api","environment":"test","version":"1.0.0","reason":"r","headers":{"Authorization":"x"}}`,
			`{"service":"api","environment":"test","version":"1.0.0","reason":"r","command":"id"}`,
			`{"service":"api","environment":"staging","version":"1.0.0","reason":"r"}`,
			`{"service":"ap\u0456","environment":"test","version":"1.0.0","reason":"r"}`,
			`{"service":"api","environment":"test","version":"1.0.0; id","reason":"r"}`,
			`{"service":"api","environment":"test","version":"1.0.0\n","reason":"r"}`,
			`{"service":null,"environment":"test","version":"1.0.0","reason":"r"}`,
			`{"service":["api"],"environment":"test","version":"1.0.0","reason":"r"}`,
			`{"service":"api","environment":"test","version":"1.0.0","reason":"` + strings.Repeat("a", 501) + `"}`,
			`{"service":"api","environment":"test","version":"1.0.0"}`,
			`[]`, `null`, `"deploy"`,
		} {
			refuse(t, "INVALID_ARGUMENT", "deploy_release", input)
		}
		refuse(t, "UNKNOWN_ACTION", "http_request", `{"url":"https://evil.example"}`)
		refuse(t, "IDENTITY_UNAVAILABLE", "review_status", `{"change_id":"CR-1"}`)
	})

	t.Run("duplicate member", func(t *testing.T) {
		// The client would refuse to send it, so it goes by hand.
		status, body := rawCall(t, h, "deploy_release", `{"input":{"service":"api","service":"worker","environment":"test","version":"1.0.0","reason":"r"}}`, "x")
		if status != 401 || strings.Contains(body, "worker") {
			t.Errorf("a stranger's body was answered %d %s", status, body)
		}
	})

	t.Run("success", func(t *testing.T) {
		e := h.call(a, "deploy_release", "", deployVersion("1.0.0"))
		if !e.OK {
			t.Fatalf("answered %s", e.Raw)
		}
	})

	hostile := []struct {
		name, version, layer string
		answer               func() upstream.Answer
	}{
		{"maintenance banner", "2.0.1", "schema", func() upstream.Answer {
			return upstream.JSON(200, strings.Replace(string(release("test", "2.0.1").Body), `{`, `{"maintenance":true,`, 1))
		}},
		{"duplicate member", "2.0.2", "parse", func() upstream.Answer {
			return upstream.JSON(200, strings.Replace(string(release("test", "2.0.2").Body), `{`, `{"state":"healthy",`, 1))
		}},
		{"wrong version", "2.0.3", "check", func() upstream.Answer { return release("test", "9.9.9") }},
		{"stale", "2.0.4", "check", func() upstream.Answer {
			b := string(release("test", "2.0.4").Body)
			i := strings.Index(b, `"observed_at":"`) + len(`"observed_at":"`)
			return upstream.JSON(200, b[:i]+"2020-01-01T00:00:00Z"+b[i+20:])
		}},
		{"token echoed", "2.0.5", "echo", func() upstream.Answer {
			return upstream.JSON(200, strings.Replace(string(release("test", "2.0.5").Body), "queued", planted, 1))
		}},
		{"token echoed in a header", "2.0.6", "echo", func() upstream.Answer {
			r := release("test", "2.0.6")
			r.Headers = append(r.Headers, upstream.Header{Name: "X-Debug", Value: planted})
			return r
		}},
		{"2 MiB", "2.0.7", "transport", func() upstream.Answer {
			return upstream.JSON(200, `{"a":"`+strings.Repeat("a", 2<<20)+`"}`)
		}},
		{"depth 1000", "2.0.8", "parse", func() upstream.Answer {
			return upstream.JSON(200, strings.Repeat(`[`, 1000)+strings.Repeat(`]`, 1000))
		}},
		{"not JSON", "2.0.9", "outcome", func() upstream.Answer {
			return upstream.Answer{Headers: []upstream.Header{{Name: "Content-Type", Value: "text/html"}}, Body: []byte("<b>ok</b>")}
		}},
	}
	reads := h.operator()
	defer reads.Close()
	if err := patiently(func() error { return reads.OpenRead(h.ctx(), h.proof(reads, client.OpRead, "")) }); err != nil {
		t.Fatalf("read session: %v", err)
	}
	for _, c := range hostile {
		t.Run("hostile: "+c.name, func(t *testing.T) {
			up.set(func(upstream.Request) upstream.Answer { return c.answer() })
			before := sent()
			e := h.call(a, "deploy_release", "hostile-"+c.version, deployVersion(c.version))
			if code(e) != "INVALID_RESPONSE" {
				t.Fatalf("answered %s", e.Raw)
			}
			if n := sent() - before; n != 1 {
				t.Errorf("%d requests, want 1: a bad answer is not a reason to send again", n)
			}
			if strings.Contains(e.Err.Message, "maintenance") || !strings.Contains(e.Err.Message, "do not repeat") {
				t.Errorf("the message is %q", e.Err.Message)
			}
			d, err := reads.Call(h.ctx(), "hostile-"+c.version)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(`"layer":%q`, c.layer); !strings.Contains(string(d.More), want) {
				t.Errorf("the operator reads %s, want %s", d.More, want)
			}
			testkit.Plant(planted).Refuse(t, "what the operator reads", d.More)
			// Unresolved: the same input, under another id, is not sent.
			again := h.call(a, "deploy_release", "other-"+c.version, deployVersion(c.version))
			if code(again) != "INVALID_RESPONSE" || again.RequestID != "hostile-"+c.version || sent() != before+1 {
				t.Errorf("the same change under another id answered %s and %d were sent", again.Raw, sent()-before)
			}
		})
	}
	up.set(testkit.Always(release("test", "1.0.0")))

	t.Run("same id, other input", func(t *testing.T) {
		refuseID(t, h, a, "hostile-2.0.1", deployVersion("3.0.0"), "DUPLICATE_REQUEST")
	})

	t.Run("resolve", func(t *testing.T) {
		err := patiently(func() error {
			return op.Resolve(h.ctx(), "hostile-2.0.1", false, h.proof(op, client.OpCallResolve, "hostile-2.0.1", client.ResolveParams(false)))
		})
		if err != nil {
			t.Fatal(err)
		}
		up.set(testkit.Always(release("test", "2.0.1")))
		before := sent()
		e := h.call(a, "deploy_release", "hostile-2.0.1", deployVersion("2.0.1"))
		if !e.OK || sent() != before+1 {
			t.Errorf("after did-not the id answered %s, %d sent", e.Raw, sent()-before)
		}
		up.set(testkit.Always(release("test", "1.0.0")))
	})

	t.Run("deny", func(t *testing.T) {
		before := sent()
		e := h.call(a, "deploy_release", "deny-0001", deployProd)
		if code(e) != "APPROVAL_REQUIRED" {
			t.Fatalf("answered %s", e.Raw)
		}
		card := h.openCard(op)
		if _, err := op.Deny(h.ctx(), card.ID); err != nil {
			t.Fatal(err)
		}
		e, err := h.result(a, "deny-0001")
		if err != nil || code(e) != "APPROVAL_DENIED" || sent() != before {
			t.Errorf("after a denial: %v %s, %d sent", err, e.Raw, sent()-before)
		}
		// Denied is final for this id; it does not become a yes by asking again.
		if e := h.call(a, "deploy_release", "deny-0001", deployProd); code(e) != "APPROVAL_DENIED" {
			t.Errorf("asked again: %s", e.Raw)
		}
	})

	t.Run("cancel", func(t *testing.T) {
		before := sent()
		if e := h.call(a, "deploy_release", "cancel-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
			t.Fatalf("answered %s", e.Raw)
		}
		e, err := a.Withdraw(h.ctx(), "cancel-0001")
		if err != nil || code(e) != "CANCELLED" {
			t.Fatalf("withdraw: %v %s", err, e.Raw)
		}
		if e := h.call(a, "deploy_release", "cancel-0001", deployProd); code(e) != "CANCELLED" || sent() != before {
			t.Errorf("after a withdrawal: %s, %d sent", e.Raw, sent()-before)
		}
	})

	t.Run("approval without a proof or with a wrong one", func(t *testing.T) {
		before := sent()
		if e := h.call(a, "deploy_release", "prove-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
			t.Fatalf("answered %s", e.Raw)
		}
		card := h.openCard(op)
		if _, err := op.Approve(h.ctx(), card.ID, client.Proof{}); err == nil {
			t.Error("approved without a proof")
		}
		err := patiently(func() error {
			ch, err := op.ApprovalChallenge(h.ctx(), card.ID)
			if err != nil {
				return err
			}
			p, err := ch.Prove([]byte(vaultPass)) // the vault's passphrase decides nothing
			if err != nil {
				return err
			}
			_, err = op.Approve(h.ctx(), card.ID, p)
			return err
		})
		if client.CodeOf(err) != client.ProofRefused {
			t.Errorf("a wrong proof: %v", err)
		}
		if e, err := a.Result(h.ctx(), "prove-0001", 0); err != nil || code(e) != "APPROVAL_REQUIRED" || sent() != before {
			t.Errorf("the card was not left open: %v %s", err, e.Raw)
		}
		if _, err := op.Deny(h.ctx(), card.ID); err != nil {
			t.Error(err)
		}
		// Until the denial is recorded the call is alive, and a call with the
		// same input would join it.
		if e, err := h.result(a, "prove-0001"); err != nil || code(e) != "APPROVAL_DENIED" {
			t.Errorf("after the denial: %v %s", err, e.Raw)
		}
	})

	t.Run("lock ends what waits", func(t *testing.T) {
		before := sent()
		if e := h.call(a, "deploy_release", "lock-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
			t.Fatalf("answered %s", e.Raw)
		}
		if _, err := op.Lock(h.ctx()); err != nil {
			t.Fatal(err)
		}
		if e := h.call(a, "deploy_release", "lock-0001", deployProd); code(e) != "VAULT_LOCKED" && code(e) != "SESSION_REQUIRED" {
			t.Errorf("locked: %s", e.Raw)
		}
		h.unlock()
		e := h.call(a, "deploy_release", "lock-0001", deployProd)
		if code(e) != "APPROVAL_REQUIRED" || sent() != before {
			t.Errorf("after unlocking the same id answered %s", e.Raw)
		}
	})

	t.Run("revoke withdraws the card", func(t *testing.T) {
		before := sent()
		list, err := op.Sessions(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.State == "authorised" {
				if err := op.Revoke(h.ctx(), s.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		e := h.call(a, "deploy_release", "lock-0001", deployProd)
		if code(e) != "SESSION_REVOKED" || sent() != before {
			t.Errorf("revoked: %s", e.Raw)
		}
		for _, c := range cards(t, h, op) {
			if c.State == "open" {
				t.Errorf("a card of a revoked session is open: %s", c.Sentence)
			}
		}
	})

	p := testkit.Plant(planted)
	p.Refuse(t, "the log at debug level", h.log.bytes())
	p.RefuseFiles(t, h.places.State, h.places.Runtime, h.places.Config)
	p.RefuseProcess(t, h.proc.Process.Pid)
	for _, r := range h.up.Requests() {
		if n := strings.Count(string(r.Raw), planted); n != 1 {
			t.Errorf("a request held the credential %d times", n)
		}
	}
}

func cards(t *testing.T, h *home, op *client.Operator) []client.Card {
	t.Helper()
	list, err := op.Approvals(h.ctx())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func refuseID(t *testing.T, h *home, a *client.Agent, id, input, want string) {
	t.Helper()
	e, err := a.Call(h.ctx(), "deploy_release", client.CallRequest{Input: jsontext.Value(input), RequestID: id})
	if err != nil || code(e) != want {
		t.Errorf("%s: %v %s, want %s", id, err, e.Raw, want)
	}
}
