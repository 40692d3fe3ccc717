package main_test

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// goodDeploy answers every deployment well, with the version that was asked.
func goodDeploy(r upstream.Request) upstream.Answer {
	return release("test", versionOf(r))
}

// versionOf reads the version out of a request of ours.
func versionOf(r upstream.Request) string {
	_, rest, _ := strings.Cut(string(r.Body), `"version":"`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}

// sentOf counts the requests for one version.
func sentOf(h *home, version string) int {
	n := 0
	for _, r := range h.up.Requests() {
		if versionOf(r) == version {
			n++
		}
	}
	return n
}

// background makes a call whose answer nobody waits for.
func background(h *home, a *client.Agent, id, input string) <-chan client.Envelope {
	out := make(chan client.Envelope, 1)
	go func() {
		defer close(out)
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if e, err := a.Call(ctx, "deploy_release", client.CallRequest{Input: jsontext.Value(input), RequestID: id}); err == nil {
			out <- e
		}
	}()
	return out
}

func waitSent(t *testing.T, h *home, version string) {
	t.Helper()
	testkit.Until(t, "the request for "+version, func() bool { return sentOf(h, version) > 0 })
}

// again starts the daemon after a kill and gives the same agent a new session.
func (h *home) again(name string) *client.Agent {
	h.t.Helper()
	h.open()
	return h.agent(name)
}

// A crash between send and answer: the same id is not sent again, whatever the
// agent does, until a person says what happened.
func TestKillBetweenSendAndAnswer(t *testing.T) {
	t.Parallel()
	up := &switchable{}
	up.set(testkit.Always(upstream.Answer{Hang: upstream.BeforeAnswer}))
	h := rig(t, up.script)
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	lost := background(h, a, "kill-0001", deployVersion("1.0.0"))
	waitSent(t, h, "1.0.0")
	h.kill()
	<-lost
	up.set(goodDeploy)

	a = h.again("build-worker")
	for _, id := range []string{"kill-0001", "kill-0002", ""} {
		e := h.call(a, "deploy_release", id, deployVersion("1.0.0"))
		if code(e) != "OUTCOME_UNKNOWN" || e.RequestID != "kill-0001" {
			t.Errorf("id %q after the crash answered %s", id, e.Raw)
		}
	}
	if n := sentOf(h, "1.0.0"); n != 1 {
		t.Fatalf("sent %d times", n)
	}
	op := h.operator()
	defer op.Close()
	list, err := op.Calls(h.ctx(), "unresolved")
	if err != nil || len(list) != 1 || list[0].RequestID != "kill-0001" {
		t.Errorf("unresolved calls: %+v, %v", list, err)
	}
	err = patiently(func() error {
		return op.Resolve(h.ctx(), "kill-0001", true, h.proof(op, client.OpCallResolve, "kill-0001", client.ResolveParams(true)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := h.call(a, "deploy_release", "kill-0001", deployVersion("1.0.0")); e.OK || sentOf(h, "1.0.0") != 1 {
		t.Errorf("a call that happened was sent again or made up: %s", e.Raw)
	}
	// Another input of the same agent is free.
	if e := h.call(a, "deploy_release", "kill-0003", deployVersion("1.0.1")); !e.OK {
		t.Errorf("another deployment answered %s", e.Raw)
	}
	if err := h.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if r := auditlog.Verify(filepath.Join(h.places.State, "audit")); r.ExitCode() != 0 {
		t.Errorf("the record after a kill: %s", r.Text())
	}
}

// A crash while a person is asked: the daemon starts locked, nothing was sent, the
// card is gone, the same id starts again.
func TestKillWhileWaiting(t *testing.T) {
	t.Parallel()
	h := rig(t, func(r upstream.Request) upstream.Answer { return release("production", versionOf(r)) })
	h.open()
	h.put("deploy-prod-bot")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "wait-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
		t.Fatalf("answered %s", e.Raw)
	}
	h.kill()
	h.start()
	op := h.operator()
	defer op.Close()
	if s, err := op.Status(h.ctx()); err != nil || s.Vault.State != "sealed" {
		t.Errorf("after the kill the vault is %+v, %v", s.Vault, err)
	}
	h.unlock()
	a = h.agent("build-worker")
	if list := cards(t, h, op); len(list) != 0 {
		t.Errorf("a card outlived the crash: %+v", list)
	}
	if e := h.call(a, "deploy_release", "wait-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
		t.Errorf("the same id answered %s", e.Raw)
	}
	h.approve()
	e, err := h.result(a, "wait-0001")
	if err != nil || !e.OK || len(h.up.Requests()) != 1 {
		t.Errorf("after the new approval: %v %s, %d sent", err, e.Raw, len(h.up.Requests()))
	}
}

// An old session's token is of no use after a restart.
func TestRestartRevokesSessions(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "sess-0001", deployVersion("1.0.0")); !e.OK {
		t.Fatalf("answered %s", e.Raw)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	h.open()
	if e := h.call(a, "deploy_release", "sess-0002", deployVersion("1.0.1")); code(e) != "SESSION_REVOKED" {
		t.Errorf("an old token answered %s", e.Raw)
	}
	// The same agent, authorised anew, gets its recorded answer.
	b := h.agent("build-worker")
	if e := h.call(b, "deploy_release", "sess-0001", deployVersion("1.0.0")); !e.OK || len(h.up.Requests()) != 1 {
		t.Errorf("the recorded answer after a restart: %s, %d sent", e.Raw, len(h.up.Requests()))
	}
	// Another agent does not.
	c := h.agent("other-worker")
	if e, err := c.Result(h.ctx(), "sess-0001", 0); err != nil || code(e) != "NOT_FOUND" {
		t.Errorf("another agent read the call: %v %s", err, e.Raw)
	}
}

// killsEnv makes the sweep longer than a test run has time for.
const killsEnv = "CHATELAINE_TEST_KILLS"

// Kill at every moment of a call: at most one request leaves for one id, ever.
// The moments are swept from before the claim to after the answer.
func TestKillSweep(t *testing.T) {
	t.Parallel()
	kills := 12
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s=%q is not a number", killsEnv, s)
		}
		kills = n
	}
	h := rig(t, func(r upstream.Request) upstream.Answer {
		a := release("test", versionOf(r))
		a.Delay = 4 * time.Millisecond
		return a
	})
	h.plain = true
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	met := map[string]int{}
	for i := range kills {
		version, id := fmt.Sprintf("1.0.%d", i), fmt.Sprintf("sweep-%04d", i)
		answer := background(h, a, id, deployVersion(version))
		time.Sleep(time.Duration(i*24/kills) * time.Millisecond)
		h.kill()
		e, answered := <-answer
		before := sentOf(h, version)
		a = h.again("build-worker")
		after := h.call(a, "deploy_release", id, deployVersion(version))
		met[code(after)]++
		n := sentOf(h, version)
		switch {
		case answered && e.OK && (!after.OK || string(after.Raw) != string(e.Raw) || n != 1):
			t.Errorf("kill %d: the agent had %s, then got %s; %d sent", i, e.Raw, after.Raw, n)
		case after.OK && n != 1:
			t.Errorf("kill %d: a success with %d sent", i, n)
		case code(after) == "OUTCOME_UNKNOWN" && n != before:
			t.Errorf("kill %d: unknown, and sent again", i)
		case n > 1:
			t.Errorf("kill %d: %d sent for one id", i, n)
		case !after.OK && code(after) != "OUTCOME_UNKNOWN":
			t.Errorf("kill %d: answered %s", i, after.Raw)
		}
	}
	t.Logf("%d kills, answers after them: %v", kills, met)
	if err := h.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if r := auditlog.Verify(filepath.Join(h.places.State, "audit")); r.ExitCode() != 0 {
		t.Errorf("the record after %d kills:\n%s", kills, r.Text())
	}
}

// SIGTERM lets a sent call end and be answered.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	h := rig(t, func(r upstream.Request) upstream.Answer {
		a := release("test", versionOf(r))
		a.Delay = time.Second
		return a
	})
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	answer := background(h, a, "drain-0001", deployVersion("1.0.0"))
	waitSent(t, h, "1.0.0")
	if err := h.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if e, ok := <-answer; !ok || !e.OK {
		t.Errorf("a sent call was cut: %v %s", ok, e.Raw)
	}
}

// A disk that others fill: nothing is sent that cannot be recorded, nothing
// that was sent goes unrecorded, and it works again when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	small := filepath.Join(h.dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mountSmall(small); err != nil {
		t.Logf("no right to mount a small disk (%v); the record's own tests fill it through a seam", err)
		return
	}
	t.Cleanup(func() { h.kill(); _ = syscall.Unmount(small, 2) })
	state := filepath.Join(small, "s")
	if err := copyTree(h.places.State, state); err != nil {
		t.Fatal(err)
	}
	h.places.State = state
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Fatalf("before: %s", e.Raw)
	}
	ballast := filepath.Join(small, "ballast")
	fill(t, ballast)

	refused := 0
	for i := 1; i < 4000 && refused < 3; i++ {
		version := fmt.Sprintf("2.%d.%d", i/1000, i%1000)
		e := h.call(a, "deploy_release", "", deployVersion(version))
		n := sentOf(h, version)
		switch code(e) {
		case "OK":
			if n != 1 {
				t.Fatalf("%s: a success with %d sent", version, n)
			}
		case "AUDIT_UNAVAILABLE":
			refused++
			if n != 0 {
				t.Fatalf("%s: refused for the record, but sent", version)
			}
		case "OUTCOME_UNKNOWN":
			if n != 1 {
				t.Fatalf("%s: unknown with %d sent", version, n)
			}
		default:
			t.Fatalf("%s: answered %s", version, e.Raw)
		}
	}
	if refused == 0 {
		t.Fatal("a full disk never stopped a call")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := h.stop(); err != nil {
		t.Logf("stop: %v", err)
	}
	a = h.again("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("9.0.0")); !e.OK {
		t.Errorf("with room again: %s", e.Raw)
	}
	if r := auditlog.Verify(filepath.Join(h.places.State, "audit")); r.ExitCode() != 0 {
		t.Errorf("the record after a full disk:\n%s", r.Text())
	}
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte{1}, 64<<10)
	for {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for { // and the last bytes
		if _, err := io.WriteString(f, "x"); err != nil {
			return
		}
	}
}

// What an id has ended with is given again, whatever became of its identity:
// an agent must not hear that nothing happened of a call that did.
func TestReplayOutlivesTheIdentity(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	first := h.call(a, "deploy_release", "gone-0001", deployVersion("1.0.0"))
	if !first.OK {
		t.Fatalf("answered %s", first.Raw)
	}
	op := h.operator()
	defer op.Close()
	err := patiently(func() error {
		return op.DeleteIdentity(h.ctx(), "deploy-test-bot", h.proof(op, client.OpIdentityDelete, "deploy-test-bot"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := h.call(a, "deploy_release", "gone-0001", deployVersion("1.0.0")); string(e.Raw) != string(first.Raw) {
		t.Errorf("the recorded answer became %s", e.Raw)
	}
	if e := h.call(a, "deploy_release", "gone-0002", deployVersion("1.0.1")); code(e) != "IDENTITY_UNAVAILABLE" {
		t.Errorf("a new call without its identity answered %s", e.Raw)
	}
	if n := len(h.up.Requests()); n != 1 {
		t.Errorf("%d requests left the machine", n)
	}
}
