package main_test

import (
	"strings"
	"testing"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// The main job: an agent deploys a release without ever holding a credential.
func TestMainJob(t *testing.T) {
	t.Parallel()
	h := rig(t, func(r upstream.Request) upstream.Answer {
		if strings.Contains(string(r.Body), `"2.14.4"`) {
			return release("test", "2.14.4")
		}
		if strings.HasPrefix(r.Path, "/v1/apps/api/") {
			return release("production", "2.14.3")
		}
		return upstream.JSON(404, `{}`)
	})
	h.open()
	h.put("deploy-test-bot", "deploy-prod-bot")
	a := h.agent("build-worker")

	e := h.call(a, "deploy_release", "req-prod-0001", deployProd)
	if code(e) != "APPROVAL_REQUIRED" {
		t.Fatalf("a production deploy answered %s", e.Raw)
	}
	card := h.approve()
	if want := "Deploy version 2.14.3 of api to production"; !strings.HasPrefix(card.Sentence, "Deploy version") || !strings.Contains(card.Sentence, "production") {
		t.Errorf("the card says %q, want like %q", card.Sentence, want)
	}
	e, err := h.result(a, "req-prod-0001")
	if err != nil || !e.OK {
		t.Fatalf("after the approval: %v %s", err, e.Raw)
	}
	if n := len(h.up.Requests()); n != 1 {
		t.Fatalf("%d requests left the machine, want 1", n)
	}
	r := h.up.Requests()[0]
	if got := r.Header().Get("Authorization"); got != "Bearer "+planted {
		t.Errorf("Authorization was %q", got)
	}
	// The same id gives the recorded answer and sends nothing.
	again := h.call(a, "deploy_release", "req-prod-0001", deployProd)
	if string(again.Raw) != string(e.Raw) || len(h.up.Requests()) != 1 {
		t.Errorf("the replay differs or was sent: %s", again.Raw)
	}
	testkit.Plant(planted).Refuse(t, "the agent's answer", e.Raw)
	testkit.Plant(planted).Refuse(t, "the log", h.log.bytes())
	testkit.Plant(planted).RefuseFiles(t, h.places.State, h.places.Runtime, h.places.Config)
	testkit.Plant(planted).RefuseProcess(t, h.proc.Process.Pid)

	// The test environment asks once a session.
	e = h.call(a, "deploy_release", "", `{"service":"api","environment":"test","version":"2.14.4","reason":"second"}`)
	if !e.OK {
		t.Fatalf("a test deploy answered %s", e.Raw)
	}
	if err := h.stop(); err != nil {
		t.Errorf("SIGTERM ended the daemon with %v", err)
	}
}
