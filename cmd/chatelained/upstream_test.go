package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

const jobRun = `{"project":"bluebird","run_id":"run_8f2k1m9q4t7w"}`

func run() upstream.Answer {
	return upstream.JSON(200, fmt.Sprintf(`{"project_id":"bluebird","run_id":"run_8f2k1m9q4t7w","state":"failed","observed_at":%q}`, time.Now().UTC().Format(time.RFC3339)))
}

// Slow, broken and lying peers: a read says that nothing happened, a change
// that it may have; neither is sent again unasked, and the credential turns up
// nowhere.
func TestUpstreamFaults(t *testing.T) {
	t.Parallel()
	up := &switchable{}
	up.set(testkit.Always(run()))
	h := rig(t, up.script)
	h.open()
	h.put("deploy-test-bot", "jobs-reader")
	a := h.agent("build-worker")

	lie := func(a upstream.Answer, length string) upstream.Answer { a.Length = length; return a }
	for i, c := range []struct {
		name         string
		fault        func(upstream.Answer) upstream.Answer
		read, change string
	}{
		{"one byte at a time", func(a upstream.Answer) upstream.Answer { a.Drip = time.Millisecond; return a }, "OK", "OK"},
		{"chunks of one byte", func(a upstream.Answer) upstream.Answer { a.Chunk = 1; return a }, "OK", "OK"},
		{"early hints first", func(a upstream.Answer) upstream.Answer { a.Informational = 3; return a }, "OK", "OK"},
		{"closed before the answer", func(a upstream.Answer) upstream.Answer { a.Close = upstream.BeforeAnswer; return a }, "UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN"},
		{"reset before the answer", func(a upstream.Answer) upstream.Answer {
			a.Close, a.Reset = upstream.BeforeAnswer, true
			return a
		}, "UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN"},
		{"closed in the headers", func(a upstream.Answer) upstream.Answer { a.Close = upstream.MidHeaders; return a }, "UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN"},
		{"closed in the body", func(a upstream.Answer) upstream.Answer { a.Close = upstream.MidBody; return a }, "UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN"},
		{"length too long", func(a upstream.Answer) upstream.Answer {
			a.Close = upstream.Nowhere
			a.Last = true
			return lie(a, "5000")
		}, "UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN"},
		{"a flood of early hints", func(a upstream.Answer) upstream.Answer { a.Informational = 5000; return a }, "INVALID_RESPONSE", "INVALID_RESPONSE"},
		{"too much header", func(a upstream.Answer) upstream.Answer {
			a.Headers = append(a.Headers, upstream.Header{Name: "X-Long", Value: strings.Repeat("a", 100<<10)})
			return a
		}, "INVALID_RESPONSE", "INVALID_RESPONSE"},
		{"gzip", func(a upstream.Answer) upstream.Answer {
			a.Headers = append(a.Headers, upstream.Header{Name: "Content-Encoding", Value: "gzip"})
			return a
		}, "INVALID_RESPONSE", "INVALID_RESPONSE"},
		{"redirect", func(upstream.Answer) upstream.Answer {
			return upstream.Answer{Status: 302, Headers: []upstream.Header{{Name: "Location", Value: "https://evil.example/"}}}
		}, "INVALID_RESPONSE", "INVALID_RESPONSE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up.set(testkit.Always(c.fault(run())))
			before := len(h.up.Requests())
			e := h.call(a, "get_job_run", "", jobRun)
			if code(e) != c.read {
				t.Errorf("the read answered %s, want %s", e.Raw, c.read)
			}
			if n := len(h.up.Requests()) - before; c.read == "INVALID_RESPONSE" && n != 1 {
				t.Errorf("a read with a bad answer was sent %d times", n)
			}
			version := fmt.Sprintf("5.0.%d", i)
			up.set(testkit.Always(c.fault(release("test", version))))
			e = h.call(a, "deploy_release", "", deployVersion(version))
			if code(e) != c.change {
				t.Errorf("the change answered %s, want %s", e.Raw, c.change)
			}
			if n := sentOf(h, version); n != 1 {
				t.Errorf("the change was sent %d times", n)
			}
			testkit.Plant(planted).Refuse(t, "the answer", e.Raw)
		})
	}

	t.Run("nothing listens", func(t *testing.T) {
		h.up.Close()
		if e := h.call(a, "get_job_run", "", jobRun); code(e) != "UPSTREAM_UNAVAILABLE" {
			t.Errorf("the read answered %s", e.Raw)
		}
		e := h.call(a, "deploy_release", "closed-0001", deployVersion("6.0.0"))
		if code(e) != "UPSTREAM_UNAVAILABLE" || !e.Err.Retryable {
			t.Errorf("a change of which no byte left answered %s", e.Raw)
		}
	})
	p := testkit.Plant(planted)
	p.Refuse(t, "the log at debug level", h.log.bytes())
	p.RefuseFiles(t, h.places.State, h.places.Runtime, h.places.Config)
	p.RefuseProcess(t, h.proc.Process.Pid)
}

// A server that nobody expected: the certificate is another's. Not one byte of
// the request leaves, and the credential least of all.
func TestStrangeServer(t *testing.T) {
	t.Parallel()
	ca, other := testkit.CA(t), testkit.CA(t)
	up := testkit.HTTPS(t, other, goodDeploy)
	h := newHome(t, up, testkit.CAFile(t, ca))
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	e := h.call(a, "deploy_release", "", deployVersion("1.0.0"))
	if code(e) != "UPSTREAM_UNAVAILABLE" && code(e) != "TARGET_NOT_ALLOWED" {
		t.Errorf("answered %s", e.Raw)
	}
	if n := len(up.Requests()); n != 0 {
		t.Errorf("%d requests reached a strange server", n)
	}
}

// The site file changed its address: the secret does not follow. Only a rebind
// with a proof moves it.
func TestBindingHoldsAgainstTheSiteFile(t *testing.T) {
	t.Parallel()
	ca := testkit.CA(t)
	first := testkit.HTTPS(t, ca, goodDeploy)
	second := testkit.HTTPS(t, ca, goodDeploy)
	caFile := testkit.CAFile(t, ca)
	h := newHome(t, first, caFile)
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Fatalf("before: %s", e.Raw)
	}
	h.up = second
	h.write("c/targets.yaml", h.site(caFile))
	op := h.operator()
	defer op.Close()
	err := patiently(func() error {
		p := h.proof(op, client.OpReload, "")
		return op.Reload(h.ctx(), &p)
	})
	if err != nil {
		t.Fatal(err)
	}
	// Nobody is asked about what its binding refuses.
	if e := h.call(a, "deploy_release", "bind-0001", deployVersion("1.0.1")); code(e) != "TARGET_NOT_ALLOWED" {
		t.Fatalf("after the reload: %s", e.Raw)
	}
	if list := cards(t, h, op); len(list) != 0 {
		t.Errorf("a card was opened: %+v", list)
	}
	if n := len(second.Requests()); n != 0 {
		t.Fatalf("%d requests went to the new address", n)
	}
	for _, b := range second.Arrived() {
		testkit.Plant(planted).Refuse(t, "what reached the new address", b)
	}
	err = patiently(func() error {
		_, err := op.RebindIdentity(h.ctx(), "deploy-test-bot", "", h.proof(op, client.OpIdentityRebind, "deploy-test-bot"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The session's card named another target, so a person is asked.
	if e := h.call(a, "deploy_release", "bind-0001", deployVersion("1.0.1")); code(e) != "APPROVAL_REQUIRED" {
		t.Fatalf("after the rebind: %s", e.Raw)
	}
	h.approve()
	e, err := h.result(a, "bind-0001")
	if err != nil || !e.OK || len(second.Requests()) != 1 {
		t.Errorf("after the rebind: %v %s, %d sent", err, e.Raw, len(second.Requests()))
	}
}
