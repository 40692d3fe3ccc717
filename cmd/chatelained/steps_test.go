package main_test

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"net/http"
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

// A change with a lookup before its card, a poll after it and a reconcile.
const jobContract = `contract: v1
action: start_job
version: 1.0.0
summary: Start one job.
owner: tests
effect: change
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: runner}
approval: {sentence: 'Start {input.key}', show: {Revision: {from: head.rev}}, ask: ASK}
lookups:
  head:
    method: GET
    path: /heads/{input.key}
    outcomes:
      - status: 200
        expect: {type: object, additionalProperties: false, required: [rev], properties: {rev: {type: string, pattern: '^[a-f0-9]{4,8}$', maxLength: 8}}}
        capture: {rev: /rev}
request:
  method: POST
  path: /jobs
  json: {key: {from: input.key}, rev: {from: head.rev}}
  outcomes:
    - status: 202
      expect: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      capture: {run: /run}
poll:
  every: 1s
  within: 10m
  method: GET
  path: /runs/{request.run}
  outcomes:
    - status: 200
      when: {equals: [/state, done]}
      expect: {type: object, additionalProperties: false, required: [state, run], properties: {state: {const: done}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {run: /run}
    - {status: 200, when: {equals: [/state, waits]}, pending: true}
reconcile:
  method: GET
  path: /jobs/{input.key}
  outcomes:
    - status: 200
      when: {equals: [/key, {from: input.key}]}
      expect: {type: object, additionalProperties: false, required: [key, run], properties: {key: {type: string, maxLength: 8}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      took_effect: true
      success: {run: /run}
    - {status: 404, media: none, took_effect: false}
result: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
`

// runner is a service that starts jobs. What it answers to each step is the
// test's to say.
type runner struct {
	mu             sync.Mutex
	head, post     upstream.Answer
	run, job       upstream.Answer
	posted, polled int
	body           string // of the newest request
}

func newRunner() *runner {
	return &runner{
		head: upstream.JSON(200, `{"rev":"abcd"}`), post: upstream.JSON(202, `{"run":"r1"}`),
		run: upstream.JSON(200, `{"state":"waits"}`), job: upstream.JSON(200, `{"key":"build","run":"r1"}`),
	}
}

func (r *runner) script(q upstream.Request) upstream.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := string(q.Raw[:strings.IndexByte(string(q.Raw), '\r')])
	switch {
	case strings.Contains(path, "/heads/"):
		return r.head
	case strings.HasPrefix(path, http.MethodPost):
		r.posted, r.body = r.posted+1, string(q.Body)
		return r.post
	case strings.Contains(path, "/runs/"):
		r.polled++
		return r.run
	}
	return r.job
}

func (r *runner) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *runner) counts() (posted, polled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.posted, r.polled
}

// jobHome is a home whose only action is start_job, with an agent.
func jobHome(t *testing.T, r *runner, ask string) (*home, *client.Agent) {
	t.Helper()
	ca := testkit.CA(t)
	caFile := testkit.CAFile(t, ca)
	h := newHome(t, testkit.HTTPS(t, ca, r.script), caFile)
	if err := os.RemoveAll(filepath.Join(h.places.Config, "contracts")); err != nil {
		t.Fatal(err)
	}
	h.write("c/contracts/start_job/contract.yaml", strings.Replace(jobContract, "ASK", ask, 1))
	h.write("c/targets.yaml", fmt.Sprintf(`targets:
  runner: {url: 'https://%s', ca: %s, allow: [loopback], identity: runner-bot, actions: [start_job], effects: [read, change], ask: session}
identities: {runner-bot: {kind: bearer}}
`, h.up.Addr(), caFile))
	h.open()
	h.put("runner-bot")
	return h, h.agent("build-worker")
}

const jobInput = `{"key":"build"}`

func (r *runner) wantPosted(t *testing.T, want int) {
	t.Helper()
	if posted, _ := r.counts(); posted != want {
		t.Fatalf("the request was sent %d times, want %d", posted, want)
	}
}

// polls waits until the service is asked once more.
func (r *runner) polls(t *testing.T) {
	t.Helper()
	_, before := r.counts()
	testkit.Until(t, "a poll", func() bool { _, n := r.counts(); return n > before })
}

// What a lookup found stands on the card and is what is sent; what each step did
// stands in the record, the details of the call and the metrics.
func TestWhatTheLookupFoundIsShownAndSent(t *testing.T) {
	t.Parallel()
	r := newRunner()
	h, a := jobHome(t, r, "every_call")
	op := h.operator()
	defer op.Close()
	x, err := op.Explain(h.ctx(), "start_job", []byte(jobInput))
	if err != nil || x.Would != "ask" || len(x.Lookups) != 1 || len(h.up.Requests()) != 0 {
		t.Errorf("explain says %+v, %v, and %d requests were sent", x, err, len(h.up.Requests()))
	}
	if e := h.call(a, "start_job", "shown-0001", jobInput); code(e) != "APPROVAL_REQUIRED" {
		t.Fatalf("answered %s", e.Raw)
	}
	card := h.openCard(op)
	if !strings.Contains(fmt.Sprint(card.Lines), "abcd") {
		t.Errorf("the card shows %+v", card.Lines)
	}
	r.set(func() {
		r.head = upstream.JSON(200, `{"rev":"ffff"}`) // it moved on since: the card stands
		r.run = upstream.JSON(200, `{"state":"done","run":"r1"}`)
	})
	h.approve()
	e, err := a.Result(h.ctx(), "shown-0001", client.MaxWait)
	for ; err == nil && code(e) == "IN_PROGRESS"; e, err = a.Result(h.ctx(), "shown-0001", client.MaxWait) {
	}
	if err != nil || !e.OK || r.body != `{"key":"build","rev":"abcd"}` {
		t.Errorf("ended %v %s, posted %s", err, e.Raw, r.body)
	}
	r.wantPosted(t, 1)
	_, metrics := rawGet(t, filepath.Join(h.places.Runtime, "metrics.sock"), "/metrics")
	for _, step := range []string{"lookup", "request", "poll"} {
		if !strings.Contains(metrics, fmt.Sprintf(`chatelaine_upstream_seconds_count{action="start_job",step=%q} 1`, step)) {
			t.Errorf("the metrics do not count the %s", step)
		}
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	if steps := h.stepsOf("shown-0001"); steps != "intent head, answer head, outcome head IN_PROGRESS, intent request, answer request, outcome request IN_PROGRESS, intent poll, answer poll, outcome poll OK" {
		t.Errorf("the record: %s", steps)
	}
	testkit.Plant(planted).RefuseFiles(t, h.places.State, h.places.Config)
}

// stepsOf are the events of one call in the record, read with the recovery key.
func (h *home) stepsOf(id string) string {
	h.t.Helper()
	var out []string
	err := auditlog.Read(filepath.Join(h.places.State, "audit"), h.recovery(), func(_ uint64, e auditlog.Event) error {
		if step, ok := e.Detail["step"].(string); ok && e.CallID == id {
			out = append(out, strings.TrimSpace(e.Type+" "+step+" "+e.Status))
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(out, ", ")
}

// A poll goes on over a stop, a kill -9 and a lock, in whatever it was, and the
// request is sent once.
func TestPollGoesOn(t *testing.T) {
	t.Parallel()
	r := newRunner()
	h, a := jobHome(t, r, "session")
	e := h.call(a, "start_job", "poll-00001", jobInput)
	if code(e) != "IN_PROGRESS" || !e.Err.Retryable || e.Err.RetryAfter != time.Second {
		t.Fatalf("answered %s", e.Raw)
	}
	r.polls(t)
	if err := h.stop(); err != nil {
		t.Errorf("a stop while it polls: %v", err)
	}
	_ = h.again("build-worker")
	r.polls(t)
	h.kill()
	a = h.again("build-worker")
	r.polls(t)
	for _, id := range []string{"poll-00001", "poll-00002", ""} {
		if e = h.call(a, "start_job", id, jobInput); code(e) != "IN_PROGRESS" || e.RequestID != "poll-00001" {
			t.Errorf("id %q meanwhile answered %s", id, e.Raw)
		}
	}
	op := h.operator()
	defer op.Close()
	if _, err := op.Lock(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if e = h.call(a, "start_job", "poll-00001", jobInput); code(e) != "VAULT_LOCKED" {
		t.Errorf("locked: %s", e.Raw)
	}
	h.unlock()
	r.polls(t)
	r.set(func() { r.run = upstream.JSON(200, `{"state":"done","run":"r1"}`) })
	e, err := a.Result(h.ctx(), "poll-00001", client.MaxWait)
	if err != nil || !e.OK {
		t.Fatalf("ended %v %s", err, e.Raw)
	}
	r.wantPosted(t, 1)
	if again := h.call(a, "start_job", "poll-00002", jobInput); !again.OK || again.RequestID != "poll-00001" {
		t.Errorf("an id that joined answers %s", again.Raw)
	}
	h.kill()
	a = h.again("build-worker")
	if again := h.call(a, "start_job", "poll-00001", jobInput); string(again.Raw) != string(e.Raw) {
		t.Errorf("after another kill it answers %s", again.Raw)
	}
	r.wantPosted(t, 1)
	h.recordHolds()
}

// recordHolds stops the daemon and verifies its record.
func (h *home) recordHolds() {
	h.t.Helper()
	if err := h.stop(); err != nil {
		h.t.Errorf("stop: %v", err)
	}
	if v := auditlog.Verify(filepath.Join(h.places.State, "audit")); v.ExitCode() != 0 {
		h.t.Errorf("the record:\n%s", v.Text())
	}
	testkit.Plant(planted).Refuse(h.t, "the log", h.log.bytes())
}

// A request of which nobody knows is looked up: what took effect is a success,
// what did not is free again, and what cannot be told stays with a person.
func TestReconcileTells(t *testing.T) {
	t.Parallel()
	r := newRunner()
	r.set(func() { r.post = upstream.JSON(500, `{}`) })
	h, a := jobHome(t, r, "session")
	if e := h.call(a, "start_job", "true-00001", jobInput); !e.OK || !strings.Contains(string(e.Raw), `"run":"r1"`) {
		t.Errorf("it took effect: %s", e.Raw)
	}
	r.wantPosted(t, 1)

	r.set(func() { r.job = upstream.Answer{Status: 404} })
	e := h.call(a, "start_job", "false-0001", jobInput)
	if code(e) != "UPSTREAM_UNAVAILABLE" || !e.Err.Retryable {
		t.Errorf("it did not: %s", e.Raw)
	}
	r.wantPosted(t, 2)
	r.set(func() { r.job = upstream.JSON(200, `{"key":"build","run":"r1"}`) })
	if e = h.call(a, "start_job", "false-0001", jobInput); !e.OK {
		t.Errorf("asked again: %s", e.Raw)
	}
	r.wantPosted(t, 3)

	r.set(func() { r.job = upstream.JSON(500, `{}`) })
	if e = h.call(a, "start_job", "dark-00001", jobInput); code(e) != "OUTCOME_UNKNOWN" {
		t.Errorf("it cannot be told: %s", e.Raw)
	}
	op := h.operator()
	defer op.Close()
	err := patiently(func() error {
		return op.Resolve(h.ctx(), "dark-00001", false, h.proof(op, client.OpCallResolve, "dark-00001", client.ResolveParams(false)))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.set(func() { r.job = upstream.JSON(200, `{"key":"build","run":"r1"}`) })
	if e = h.call(a, "start_job", "dark-00001", jobInput); !e.OK {
		t.Errorf("after a person's word: %s", e.Raw)
	}
	r.wantPosted(t, 5)
	h.recordHolds()
}

// A crash between send and answer, with a reconcile: the next run finds out that
// it took effect, and nothing is sent a second time.
func TestKillBetweenSendAndAnswerIsReconciled(t *testing.T) {
	t.Parallel()
	r := newRunner()
	r.set(func() { r.post = upstream.Answer{Hang: upstream.BeforeAnswer} })
	h, a := jobHome(t, r, "session")
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		_, _ = a.Call(ctx, "start_job", client.CallRequest{Input: jsontext.Value(jobInput), RequestID: "crash-0001"})
	}()
	testkit.Until(t, "the request", func() bool { n, _ := r.counts(); return n > 0 })
	h.kill()
	<-lost
	a = h.again("build-worker")
	if e := h.call(a, "start_job", "crash-0001", jobInput); !e.OK || !strings.Contains(string(e.Raw), `"run":"r1"`) {
		t.Errorf("after the crash: %s", e.Raw)
	}
	r.wantPosted(t, 1)
	h.recordHolds()
}
