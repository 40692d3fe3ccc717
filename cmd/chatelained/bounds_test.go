package main_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// recovery is the key of the record that init wrote out.
func (h *home) recovery() auditlog.Identity {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, "recovery.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	id, err := auditlog.ParseIdentity(strings.TrimSpace(string(b)))
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// An upstream that is down for a while, with retries, must not use up the room
// of the record: every attempt ends its own intent.
func TestRetriesEndTheirIntents(t *testing.T) {
	t.Parallel()
	down := upstream.JSON(503, `{}`)
	up := &switchable{}
	up.set(func(upstream.Request) upstream.Answer { return down })
	h := rig(t, up.script)
	h.open()
	h.put("jobs-reader")
	a := h.agent("reader")
	for i := range 12 {
		if e := h.call(a, "get_job_run", fmt.Sprintf("down-%04d", i), jobRun); code(e) != "UPSTREAM_UNAVAILABLE" {
			t.Fatalf("answered %s", e.Raw)
		}
	}
	sent := len(h.up.Requests())
	if sent != 24 {
		t.Errorf("%d attempts, want two a call", sent)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	open := map[uint64]bool{}
	err := auditlog.Read(filepath.Join(h.places.State, "audit"), h.recovery(), func(seq uint64, e auditlog.Event) error {
		counts[e.Type]++
		switch e.Type {
		case auditlog.TypeIntent:
			open[seq] = true
		case auditlog.TypeOutcome, auditlog.TypeReconcile:
			delete(open, e.IntentSeq)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(open) != 0 || counts["intent"] != sent || counts["answer"] != sent {
		t.Errorf("%d attempts: %d intents, %d answers, %d intents without an outcome", sent, counts["intent"], counts["answer"], len(open))
	}
}

// retryAfter is when the remote wants to be asked again.
const retryAfter = 2 * time.Second

// A retry waits; what happened meanwhile counts: a revoked session sends nothing
// more.
func TestRevokedWhileARetryWaits(t *testing.T) {
	t.Parallel()
	asked := make(chan time.Time, 100)
	h := rig(t, func(upstream.Request) upstream.Answer {
		asked <- time.Now()
		a := upstream.JSON(429, `{}`)
		a.Headers = append(a.Headers, upstream.Header{Name: "Retry-After", Value: fmt.Sprint(retryAfter.Seconds())})
		return a
	})
	h.open()
	h.put("deploy-test-bot")
	for i := range 10 {
		version := fmt.Sprintf("1.0.%d", i)
		answer := background(h, h.agent("build-worker"), "retry-000"+fmt.Sprint(i), deployVersion(version))
		first := <-asked
		h.revokeAll()
		if time.Since(first) >= retryAfter {
			<-answer
			for len(asked) > 0 {
				<-asked
			}
			continue // this machine was too slow: the retry may have come before
		}
		<-answer
		time.Sleep(retryAfter + 500*time.Millisecond)
		if n := sentOf(h, version); n != 1 {
			t.Errorf("%d requests left, the second after the session was revoked", n)
		}
		return
	}
	t.Fatalf("this machine never revoked a session within %s", retryAfter)
}

// revokeAll ends every session that may act.
func (h *home) revokeAll() {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	list, err := op.Sessions(h.ctx())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range list {
		if s.State == "authorised" {
			if err := op.Revoke(h.ctx(), s.ID); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// What a caller hears is final is in the record, also when the daemon dies at
// that very moment.
func TestCancelledIsRecorded(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	h.put("deploy-prod-bot")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "gone-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
		t.Fatalf("answered %s", e.Raw)
	}
	if e, err := a.Withdraw(h.ctx(), "gone-0001"); err != nil || code(e) != "CANCELLED" {
		t.Fatalf("withdraw: %v %s", err, e.Raw)
	}
	h.kill()
	found := false
	err := auditlog.Read(filepath.Join(h.places.State, "audit"), h.recovery(), func(_ uint64, e auditlog.Event) error {
		found = found || (e.CallID == "gone-0001" && e.Status == "CANCELLED")
		return nil
	})
	if err != nil || !found {
		t.Errorf("the withdrawal is not in the record: %v", err)
	}
}

// A client that announces a body and never sends it holds no connection for
// long, and cannot lock an operator out.
func TestUnsentBodiesAreCut(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	var cut sync.WaitGroup
	defer cut.Wait()
	for name, raw := range map[string]string{
		"DELETE with a body":        "DELETE /v1/calls/nothing-0001 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n",
		"GET with a body (refused)": "GET /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n",
	} {
		for _, socket := range []string{h.places.AgentSocket(), h.places.OperatorSocket()} {
			cut.Go(func() {
				c, err := net.Dial("unix", socket)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				if _, err := io.WriteString(c, raw); err != nil {
					t.Error(err)
				}
				_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
				if _, err := io.ReadAll(c); err != nil {
					t.Errorf("%s on %s: still open: %v", name, filepath.Base(socket), err)
				}
			})
		}
	}
}

// Asking for sessions and dropping them in a loop fills neither the record nor
// the operator's list.
func TestSessionFloodIsBounded(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	op := h.operator()
	defer op.Close()
	before, err := op.Status(h.ctx())
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 100 {
		a, err := client.NewAgent(client.AgentOptions{Socket: h.places.AgentSocket(), Owners: client.OwnAndRoot(), UserAgent: "test"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.OpenSession(h.ctx(), fmt.Sprintf("flood-%d", i), "self")
		if err != nil {
			if !strings.Contains(err.Error(), "OVERLOADED") {
				t.Errorf("session %d: %v", i, err)
			}
			refused++
		} else {
			a.SetToken(s.Token)
			if err := a.EndSession(h.ctx()); err != nil {
				t.Error(err)
			}
		}
		a.Close()
	}
	after, err := op.Status(h.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after.Record.NextSeq - before.Record.NextSeq; refused < 50 || grown > 60 {
		t.Errorf("100 requests: %d refused, %d records", refused, grown)
	}
}
