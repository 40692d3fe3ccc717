package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
)

// change rewrites a file of the configuration, in one place.
func (h *home) change(name, from, to string) {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	text := strings.Replace(string(b), from, to, 1)
	if text == string(b) {
		h.t.Fatalf("%q is not in %s", from, name)
	}
	h.write(name, text)
}

// reload asks for the files to be read again, with a proof.
func (h *home) reload(op *client.Operator) error {
	return patiently(func() error {
		ch, err := op.Challenge(h.ctx(), client.OpReload, "", nil)
		if err != nil {
			return err // also of files that do not load
		}
		p, err := prove(ch)
		if err != nil {
			return err
		}
		return op.Reload(h.ctx(), &p)
	})
}

const deployContract = "c/contracts/deploy_release/contract.yaml"

// TestReload: whole sets or nothing, and nobody is widened without a proof.
func TestReload(t *testing.T) {
	t.Parallel()
	up := &switchable{}
	up.set(goodDeploy)
	h := rig(t, up.script)
	h.open()
	h.put("deploy-test-bot", "deploy-prod-bot", "jobs-reader")
	a := h.agent("build-worker")
	op := h.operator()
	defer op.Close()

	t.Run("a broken contract", func(t *testing.T) {
		h.change(deployContract, "effect: change", "effect: chaange")
		err := h.reload(op)
		if client.CodeOf(err) != "INVALID_ARGUMENT" || !strings.Contains(fmt.Sprint(err), "deploy_release/contract.yaml:") {
			t.Errorf("the reload answered %v", err)
		}
		s, err := op.Status(h.ctx())
		if err != nil || s.Contracts.Loaded != shipped(t) || len(s.Contracts.Problems) == 0 || !strings.Contains(s.Contracts.Problems[0], "contract.yaml:") {
			t.Errorf("status says %+v, %v", s.Contracts, err)
		}
		if !strings.Contains(string(h.log.bytes()), "chaange") && !strings.Contains(string(h.log.bytes()), "contract.yaml:") {
			t.Error("the log does not say why")
		}
		if _, m := rawGet(t, filepath.Join(h.places.Runtime, "metrics.sock"), "/metrics"); !strings.Contains(m, `chatelaine_reloads_total{result="refused"} 1`) {
			t.Error("the metric does not count it")
		}
		if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
			t.Errorf("the old set does not serve: %s", e.Raw)
		}
		h.change(deployContract, "effect: chaange", "effect: change")
	})

	t.Run("without a proof", func(t *testing.T) {
		h.change("c/targets.yaml", "actions: [get_job_run]", "actions: [get_job_run, review_status]")
		if status, body := rawDo(t, h.places.OperatorSocket(), http.MethodPost, "/v1/reload", `{}`); status != http.StatusForbidden {
			t.Errorf("answered %d %s", status, body)
		}
		list, err := op.Contracts(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		after, err := op.Contracts(h.ctx())
		if err != nil || after.Digest == list.Digest {
			t.Errorf("with a proof the set is the same: %v", err)
		}
	})

	t.Run("a running call keeps its contract", func(t *testing.T) {
		for i := range 10 {
			if h.keepsItsContract(t, up, a, op, i) {
				return
			}
		}
		t.Fatalf("this machine never reloaded within %s", heldFor)
	})

	t.Run("a waiting card is stale", func(t *testing.T) {
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		before := len(h.up.Requests())
		if e := h.call(a, "deploy_release", "stale-0001", deployProd); code(e) != "APPROVAL_REQUIRED" {
			t.Fatalf("answered %s", e.Raw)
		}
		card := h.openCard(op)
		h.change(deployContract, "version: 1.0.1", "version: 1.0.2")
		done := make(chan client.Envelope, 1)
		go func() {
			e, _ := h.result(a, "stale-0001")
			done <- e
		}()
		time.Sleep(100 * time.Millisecond) // the long poll is under way, or will read the end at once
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		if e := <-done; code(e) != "PLAN_STALE" && code(e) != "NOT_FOUND" || code(e) == "PLAN_STALE" && !e.Err.Retryable {
			t.Errorf("the waiting call ended %s", e.Raw)
		}
		if c, err := op.Approval(h.ctx(), card.ID); err == nil && c.State != "withdrawn" {
			t.Errorf("the card is %s", c.State)
		}
		// Not consumed: the same id asks again, under the new contract.
		up.set(func(r upstream.Request) upstream.Answer { return release("production", versionOf(r)) })
		if e := h.call(a, "deploy_release", "stale-0001", deployProd); code(e) != "APPROVAL_REQUIRED" || len(h.up.Requests()) != before {
			t.Fatalf("the same id answered %s", e.Raw)
		}
		h.approve()
		if e, err := h.result(a, "stale-0001"); err != nil || !e.OK || len(h.up.Requests()) != before+1 {
			t.Errorf("after the new approval: %v %s", err, e.Raw)
		}
		up.set(goodDeploy)
	})

	t.Run("a session's card does not cover a changed contract", func(t *testing.T) {
		if e := h.call(a, "deploy_release", "cover-0001", deployVersion("1.2.0")); code(e) != "APPROVAL_REQUIRED" {
			t.Errorf("answered %s", e.Raw)
		}
		if _, err := a.Withdraw(h.ctx(), "cover-0001"); err != nil {
			t.Error(err)
		}
	})

	t.Run("changed while the daemon was down", func(t *testing.T) {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
		h.change(deployContract, "version: 1.0.2", "version: 1.0.3")
		a := h.again("build-worker")
		op := h.operator()
		defer op.Close()
		s, err := op.Status(h.ctx())
		if err != nil || len(s.Contracts.Problems) != 1 || !strings.Contains(s.Contracts.Problems[0], "deploy_release is not served") {
			t.Errorf("status says %+v, %v", s.Contracts, err)
		}
		if e := h.call(a, "deploy_release", "", deployVersion("1.3.0")); code(e) != "UNKNOWN_ACTION" {
			t.Errorf("a changed action answered %s", e.Raw)
		}
		up.set(func(upstream.Request) upstream.Answer { return run() })
		if e := h.call(a, "get_job_run", "", jobRun); !e.OK {
			t.Errorf("an unchanged action answered %s", e.Raw)
		}
		if list, err := a.Actions(h.ctx()); err != nil || len(list) != shipped(t)-1 {
			t.Errorf("%d actions are told, %v", len(list), err)
		}
		// A lock and an unlock accept nothing.
		if _, err := op.Lock(h.ctx()); err != nil {
			t.Fatal(err)
		}
		h.unlock()
		if e := h.call(a, "deploy_release", "", deployVersion("1.3.0")); code(e) != "UNKNOWN_ACTION" {
			t.Errorf("after a lock a changed action answered %s", e.Raw)
		}
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		if e := h.call(a, "deploy_release", "down-0001", deployVersion("1.3.0")); code(e) != "APPROVAL_REQUIRED" {
			t.Errorf("after the proof it answered %s", e.Raw)
		}
	})
}

// heldFor is how long a service may keep a call waiting here: the daemon gives it
// ten seconds until its head.
const heldFor = 8 * time.Second

// keepsItsContract reloads while a call runs. It says false where the machine was
// too slow for that: the call ended by itself, and all is as before.
func (h *home) keepsItsContract(t *testing.T, up *switchable, a *client.Agent, op *client.Operator, try int) bool {
	t.Helper()
	edits := [][2]string{
		{"version: 1.0.0", "version: 1.0.1"},
		{"success:\n        deployment_id: /deployment_id", "success:\n        deployment_id: /project_id"},
	}
	let, version := make(chan struct{}), fmt.Sprintf("1.1.%d", try)
	up.set(func(r upstream.Request) upstream.Answer { <-let; return goodDeploy(r) })
	defer up.set(goodDeploy)
	began := time.Now()
	answer := background(h, a, fmt.Sprintf("running-%04d", try), deployVersion(version))
	waitSent(t, h, version)
	for _, e := range edits {
		h.change(deployContract, e[0], e[1])
	}
	err := h.reload(op)
	close(let)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := <-answer
	slow := !e.OK && time.Since(began) > heldFor // else it was held all the while
	h.change(deployContract, edits[1][1], edits[1][0])
	if slow {
		h.change(deployContract, edits[0][1], edits[0][0])
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		return false
	}
	if !ok || !e.OK || !strings.Contains(string(e.Raw), "dep_8f2k1m9q") {
		t.Errorf("the running call ended %v %s", ok, e.Raw)
	}
	return true
}

// TestExplainAgrees asks explain first and then really calls: both must name
// the same code, for everything that stops a call before it is sent.
func TestExplainAgrees(t *testing.T) {
	t.Parallel()
	up := &switchable{}
	up.set(goodDeploy)
	h := rig(t, up.script)
	h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nlimits: {calls_per_target: 1}\n")
	h.open()
	h.put("deploy-test-bot", "deploy-prod-bot", "jobs-reader")
	a := h.agent("build-worker")
	op := h.operator()
	defer op.Close()
	agree := func(t *testing.T, want, action, input string) {
		t.Helper()
		before := len(h.up.Requests())
		x, err := op.Explain(h.ctx(), action, []byte(input))
		if err != nil {
			t.Fatal(err)
		}
		if len(h.up.Requests()) != before || len(cards(t, h, op)) != 0 && want != "APPROVAL_REQUIRED" {
			t.Error("explain sent something or opened a card")
		}
		told := "OK"
		switch {
		case x.StoppedBy != nil:
			told = x.StoppedBy.Code
		case x.Would == "ask":
			told = "APPROVAL_REQUIRED"
		}
		e := h.call(a, action, "", input)
		if told != want || code(e) != want {
			t.Errorf("%s: explain says %s (%+v), the call answered %s, want %s", action, told, x.StoppedBy, e.Raw, want)
		}
	}
	agree(t, "OK", "deploy_release", deployVersion("1.0.0"))
	agree(t, "UNKNOWN_ACTION", "http_request", `{}`)
	agree(t, "INVALID_ARGUMENT", "deploy_release", `{"service":"api"}`)
	agree(t, "INVALID_ARGUMENT", "deploy_release", `[]`)
	agree(t, "IDENTITY_UNAVAILABLE", "review_status", `{"change_id":"CR-1"}`)
	agree(t, "APPROVAL_REQUIRED", "deploy_release", deployProd)
	card := h.openCard(op)
	if _, err := op.Deny(h.ctx(), card.ID); err != nil {
		t.Fatal(err)
	}

	t.Run("overloaded", func(t *testing.T) {
		release := make(chan struct{})
		up.set(func(r upstream.Request) upstream.Answer { <-release; return goodDeploy(r) })
		answer := background(h, a, "slow-0001", deployVersion("2.0.0"))
		waitSent(t, h, "2.0.0")
		x, err := op.Explain(h.ctx(), "deploy_release", []byte(deployVersion("2.0.1")))
		e := h.call(a, "deploy_release", "", deployVersion("2.0.1"))
		close(release)
		<-answer
		if err != nil || x.StoppedBy == nil || x.StoppedBy.Code != "OVERLOADED" || code(e) != "OVERLOADED" {
			t.Errorf("explain says %+v, %v; the call %s", x.StoppedBy, err, e.Raw)
		}
		up.set(goodDeploy)
	})

	t.Run("target", func(t *testing.T) {
		h.change("c/targets.yaml", "actions: [deploy_release]", "actions: [get_deployment]")
		h.change("c/targets.yaml", "url: https://"+h.up.Addr()+"/api\n    ca", "url: https://localhost:"+fmt.Sprint(h.up.Port())+"/other\n    ca")
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		agree(t, "TARGET_NOT_ALLOWED", "deploy_release", deployVersion("3.0.0"))
	})
	t.Run("binding", func(t *testing.T) {
		h.change("c/targets.yaml", "/api\n    ca", "/elsewhere\n    ca") // jobs
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		agree(t, "TARGET_NOT_ALLOWED", "get_job_run", jobRun)
	})
	t.Run("deleted", func(t *testing.T) {
		err := patiently(func() error {
			return op.DeleteIdentity(h.ctx(), "jobs-reader", h.proof(op, client.OpIdentityDelete, "jobs-reader"))
		})
		if err != nil {
			t.Fatal(err)
		}
		agree(t, "IDENTITY_UNAVAILABLE", "get_job_run", jobRun)
	})
	t.Run("locked", func(t *testing.T) {
		if _, err := op.Lock(h.ctx()); err != nil {
			t.Fatal(err)
		}
		agree(t, "VAULT_LOCKED", "get_job_run", jobRun)
	})
}
