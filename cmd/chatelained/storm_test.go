package main_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
)

// TestStorm runs many calls at once on one daemon, of two agents. Under -race
// the daemon is a race build, and a race it reports fails the test.
func TestStorm(t *testing.T) {
	t.Parallel()
	h := rig(t, func(r upstream.Request) upstream.Answer {
		env := "test"
		if strings.HasPrefix(versionOf(r), "9") {
			env = "production"
		}
		a := release(env, versionOf(r))
		a.Delay = 2 * time.Millisecond
		return a
	})
	h.env = []string{"GORACE=halt_on_error=0"}
	h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nlimits: {calls: 64, calls_per_target: 64}\nlog: {level: debug}\n")
	h.open()
	h.put("deploy-test-bot", "deploy-prod-bot")
	agents := []*client.Agent{h.agent("worker-one"), h.agent("worker-two")}
	op := h.operator()
	defer op.Close()

	t.Run("32 calls of two agents", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				version := fmt.Sprintf("1.0.%d", i)
				e := h.call(agents[i%2], "deploy_release", fmt.Sprintf("storm-%04d", i), deployVersion(version))
				if !e.OK || !strings.Contains(string(e.Raw), version) {
					t.Errorf("call %d answered %s", i, e.Raw)
				}
			}()
		}
		wg.Wait()
		for i := range 32 {
			if n := sentOf(h, fmt.Sprintf("1.0.%d", i)); n != 1 {
				t.Errorf("call %d was sent %d times", i, n)
			}
		}
	})

	t.Run("one id, many times", func(t *testing.T) {
		for i := range 4 {
			version, id := fmt.Sprintf("2.0.%d", i), fmt.Sprintf("same-%04d", i)
			answers := together(12, func(int) client.Envelope { return h.call(agents[0], "deploy_release", id, deployVersion(version)) })
			for _, e := range answers {
				if !e.OK || !bytes.Equal(e.Raw, answers[0].Raw) {
					t.Errorf("one id got %s and %s", answers[0].Raw, e.Raw)
				}
			}
			if n := sentOf(h, version); n != 1 {
				t.Errorf("one id was sent %d times", n)
			}
		}
	})

	t.Run("one id that waits, many times", func(t *testing.T) {
		for i := range 4 {
			version, id := fmt.Sprintf("9.0.%d", i), fmt.Sprintf("wait-%04d", i)
			input := strings.Replace(deployVersion(version), `"test"`, `"production"`, 1)
			answers := together(12, func(int) client.Envelope { return h.call(agents[0], "deploy_release", id, input) })
			for _, e := range answers {
				if code(e) != "APPROVAL_REQUIRED" {
					t.Errorf("one who joined got %s", e.Raw)
				}
			}
			card := h.openCard(op)
			if i == 0 { // one approval is one send
				h.approve()
				if e, err := h.result(agents[0], id); err != nil || !e.OK || sentOf(h, version) != 1 {
					t.Errorf("after the approval: %v %s, %d sent", err, e.Raw, sentOf(h, version))
				}
				continue
			}
			if _, err := op.Deny(h.ctx(), card.ID); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("approve and deny at once", func(t *testing.T) {
		for i := range 5 {
			approveRacesDeny(t, h, agents[0], i)
		}
	})

	t.Run("lock and calls at once", func(t *testing.T) {
		for i := range 3 {
			answers := make(chan client.Envelope, 16)
			for n := range 16 {
				go func() {
					answers <- h.call(agents[n%2], "deploy_release", fmt.Sprintf("lock-%d-%04d", i, n), deployVersion(fmt.Sprintf("4.%d.%d", i, n)))
				}()
			}
			time.Sleep(time.Duration(3*i) * time.Millisecond)
			if _, err := op.Lock(h.ctx()); err != nil {
				t.Fatal(err)
			}
			for range 16 {
				if e := <-answers; !e.OK && code(e) != "VAULT_LOCKED" && code(e) != "OUTCOME_UNKNOWN" && code(e) != "AUDIT_UNAVAILABLE" {
					t.Errorf("a call that met a lock answered %s", e.Raw)
				}
			}
			h.unlock()
			for n := range 16 {
				id, version := fmt.Sprintf("lock-%d-%04d", i, n), fmt.Sprintf("4.%d.%d", i, n)
				e := h.call(agents[n%2], "deploy_release", id, deployVersion(version))
				if sent := sentOf(h, version); sent > 1 || e.OK && sent != 1 || !e.OK && code(e) != "OUTCOME_UNKNOWN" {
					t.Errorf("%s after the lock: %s, %d sent", id, e.Raw, sent)
				}
			}
		}
	})

	if err := h.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if bytes.Contains(h.log.bytes(), []byte("DATA RACE")) {
		t.Error("the daemon reports a data race")
	}
	if r := auditlog.Verify(filepath.Join(h.places.State, "audit")); r.ExitCode() != 0 {
		t.Errorf("the record: %s", r.Text())
	}
}

// together runs f n times at once.
func together(n int, f func(i int) client.Envelope) []client.Envelope {
	out := make([]client.Envelope, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			out[i] = f(i)
		}()
	}
	close(start)
	wg.Wait()
	return out
}

// approveRacesDeny: whoever wins, the answer, the card and what was sent agree.
func approveRacesDeny(t *testing.T, h *home, a *client.Agent, i int) {
	t.Helper()
	version, id := fmt.Sprintf("9.1.%d", i), fmt.Sprintf("race-%04d", i)
	if e := h.call(a, "deploy_release", id, strings.Replace(deployVersion(version), `"test"`, `"production"`, 1)); code(e) != "APPROVAL_REQUIRED" {
		t.Fatalf("answered %s", e.Raw)
	}
	yes, no := h.operator(), h.operator()
	defer yes.Close()
	defer no.Close()
	card := h.openCard(yes)
	ch, err := yes.ApprovalChallenge(h.ctx(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := ch.Prove([]byte(operatorPass))
	if err != nil {
		t.Fatal(err)
	}
	var approved, denied error
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		approved = patiently(func() error { _, err := yes.Approve(h.ctx(), card.ID, proof); return err })
	}()
	go func() {
		defer wg.Done()
		time.Sleep(time.Duration(i) * 200 * time.Microsecond)
		_, denied = no.Deny(h.ctx(), card.ID)
	}()
	wg.Wait()
	e, err := h.result(a, id)
	sent := sentOf(h, version)
	switch {
	case err != nil:
		t.Error(err)
	case e.OK && (sent != 1 || approved != nil):
		t.Errorf("a success with %d sent, approve %v, deny %v", sent, approved, denied)
	case !e.OK && (code(e) != "APPROVAL_DENIED" || sent != 0 || denied != nil):
		t.Errorf("%s with %d sent, approve %v, deny %v", e.Raw, sent, approved, denied)
	case approved != nil && denied != nil:
		t.Errorf("nobody won: approve %v, deny %v", approved, denied)
	}
}
