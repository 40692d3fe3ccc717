package gateway

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// start_job is a change with a lookup before its card, a poll and a reconcile.
const startJob = `contract: v1
action: start_job
version: 1.0.0
summary: Start one job.
owner: tests
effect: change
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: jobs}
approval: {sentence: 'Start {input.key}', show: {Revision: {from: head.rev}}ASK}
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
    - {status: 409, media: none, failure: BUSY}
poll:
  every: 5s
  within: 1m
  method: GET
  path: /runs/{request.run}
  outcomes:
    - status: 200
      when: {equals: [/state, done]}
      expect: {type: object, additionalProperties: false, required: [state, run], properties: {state: {enum: [done, failed, waits]}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {run: /run}
    - {status: 200, when: {equals: [/state, failed]}, failure: JOB_FAILED}
    - {status: 200, when: {equals: [/state, waits]}, pending: true}
    - {status: 410, media: none, failure: UPSTREAM_UNAVAILABLE}
    - {status: 423, media: none, failure: REMOTE_FORBIDDEN}
RECONCILEresult: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
failures:
  BUSY: {message: Another job of this key runs., retryable: true}
  JOB_FAILED: {message: The job failed., retryable: false}
  NEVER_STARTED: {message: The job was never started., retryable: true}
ONCE`

const jobReconcile = `reconcile:
  method: GET
  path: /jobs/{input.key}
  outcomes:
    - status: 200
      when: {equals: [/key, {from: input.key}]}
      expect: {type: object, additionalProperties: false, required: [key, run], properties: {key: {type: string, maxLength: 8}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      took_effect: true
      success: {run: /run}
    - {status: 404, media: none, took_effect: false}
    - {status: 410, media: none, took_effect: false, failure: NEVER_STARTED}
    - {status: 423, media: none, failure: OUTCOME_UNKNOWN}
`

// job fills the text in.
func job(reconciles, everyCall bool) string {
	reconcile, once, ask := jobReconcile, "", ""
	if !reconciles {
		reconcile, once = "", "at_most_once: each call starts one\n"
	}
	if everyCall {
		ask = ", ask: every_call"
	}
	return strings.NewReplacer("RECONCILE", reconcile, "ONCE", once, "ASK", ask).Replace(startJob)
}

const getJob = `contract: v1
action: get_job
version: 1.0.0
summary: Read one job, once it has ended.
owner: tests
effect: read
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: jobs}
lookups:
  head:
    method: GET
    path: /heads/{input.key}
    outcomes:
      - status: 200
        expect: {type: object, additionalProperties: false, required: [rev], properties: {rev: {type: string, pattern: '^[a-f0-9]{4,8}$', maxLength: 8}}}
        capture: {rev: /rev}
request:
  method: GET
  path: /jobs/{input.key}
  query: {rev: {from: head.rev}}
  outcomes:
    - status: 202
      expect: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      capture: {run: /run}
poll:
  every: 5s
  within: 1m
  method: GET
  path: /runs/{request.run}
  outcomes:
    - status: 200
      when: {equals: [/state, done]}
      expect: {type: object, additionalProperties: false, required: [state, run], properties: {state: {enum: [done]}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {run: /run}
    - {status: 200, when: {equals: [/state, waits]}, pending: true}
result: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
retry: {attempts: 2, within: 30s, codes: [UPSTREAM_UNAVAILABLE]}
`

const jobInput = `{"key":"build"}`

// said answers each step in its own way, its replies one after the other, the last
// one again and again.
type said struct {
	head, post, run, job []reply
	mu                   sync.Mutex
}

func (s *said) script() func(method, path, body string) reply {
	next := func(all *[]reply) reply {
		if len(*all) == 0 {
			return reply{status: 500, body: `{}`}
		}
		a := (*all)[0]
		if len(*all) > 1 {
			*all = (*all)[1:]
		}
		return a
	}
	return func(method, path, _ string) reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case strings.HasPrefix(path, "/heads/"):
			return next(&s.head)
		case strings.HasPrefix(path, "/runs/"):
			return next(&s.run)
		case method == http.MethodPost:
			return next(&s.post)
		}
		return next(&s.job)
	}
}

func ok(body string) reply { return reply{status: 200, body: body} }

var (
	headIs   = []reply{ok(`{"rev":"abcd"}`)}
	taken    = []reply{{status: 202, body: `{"run":"r1"}`}}
	waits    = ok(`{"state":"waits","run":"r1"}`)
	done     = ok(`{"state":"done","run":"r1"}`)
	failed   = ok(`{"state":"failed","run":"r1"}`)
	invalid  = ok(`{"state":"what"}`)
	lostIt   = reply{}
	started  = ok(`{"key":"build","run":"r1"}`)
	noSuch   = reply{status: 404}
	isGone   = reply{status: 410}
	isLocked = reply{status: 423}
)

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// The values that the lookup found are on the card, under the plan's digest, and
// are those that are sent.
func TestWhatIsShownIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, true))
		revs := []string{`{"rev":"abcd"}`, `{"rev":"ffff"}`}
		var posted string
		s := said{head: []reply{ok(revs[0]), ok(revs[1])}, run: []reply{done}}
		script := s.script()
		r.remote.answer(func(method, path, body string) reply {
			if method == http.MethodPost {
				posted = body
				return taken[0]
			}
			return script(method, path, body)
		})
		r.want(r.call("start_job", "shown-0001", jobInput), "APPROVAL_REQUIRED")
		cards := r.desk.Cards()
		if len(cards) != 1 || len(cards[0].Lines) == 0 || !strings.Contains(fmt.Sprint(cards[0].Lines), "abcd") {
			t.Fatalf("the card shows %+v", cards)
		}
		r.sent("GET /heads/build")
		r.approve()
		e := r.look("shown-0001", 30*time.Second)
		r.want(e, "OK")
		if posted != `{"key":"build","rev":"abcd"}` || e.Data["run"] != "r1" {
			t.Errorf("posted %s, data %v", posted, e.Data)
		}
		r.sent("GET /heads/build", "POST /jobs", "GET /runs/r1")
		steps := ""
		for _, ev := range r.events("") {
			if ev.CallID == "shown-0001" {
				steps += fmt.Sprintf("%s %v %s; ", ev.Type, ev.Detail["step"], ev.Status)
			}
		}
		want := "intent head ; answer head ; outcome head IN_PROGRESS; intent request ; answer request ; outcome request IN_PROGRESS; intent poll ; answer poll ; outcome poll OK; "
		if steps != want {
			t.Errorf("the record: %s\nwant:       %s", steps, want)
		}
	})
}

func (r *rig) approve() {
	r.t.Helper()
	for _, c := range r.desk.Cards() {
		if c.State != "open" {
			continue
		}
		ch, err := r.desk.Challenge(approvals.Operation{Kind: approvals.KindApprove, Subject: c.ID})
		r.must(err)
		r.must(r.desk.Approve(c.ID, approvals.Proof{ChallengeID: ch.ID, Kind: "passphrase"}, "the test"))
	}
}

// How a lookup ends a call, and what becomes of the id: as with a read.
func TestLookupsEndACallAsReads(t *testing.T) {
	for name, c := range map[string]struct {
		head []reply
		want string
		next string // the same id, asked again at once
		sent int    // to the remote by both
	}{
		"not found":             {[]reply{noSuch}, "NOT_FOUND", "NOT_FOUND", 1},
		"no row":                {[]reply{ok(`{"rev":1}`)}, "INVALID_RESPONSE", "INVALID_RESPONSE", 1},
		"refused":               {[]reply{{status: 401}}, "REMOTE_UNAUTHENTICATED", "REMOTE_UNAUTHENTICATED", 1},
		"down, then up":         {[]reply{{status: 503}, headIs[0]}, "UPSTREAM_UNAVAILABLE", "OK", 4},
		"lost, then up":         {[]reply{lostIt, headIs[0]}, "UPSTREAM_UNAVAILABLE", "OK", 4},
		"slow down, asked soon": {[]reply{{status: 429, header: http.Header{"Retry-After": {"60"}}}, headIs[0]}, "REMOTE_RATE_LIMITED", "REMOTE_RATE_LIMITED", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(false, false))
				s := said{head: c.head, post: taken, run: []reply{done}}
				r.remote.answer(s.script())
				e := r.call("start_job", "lookup-0001", jobInput)
				r.want(e, c.want)
				if strings.Contains(e.Error.Message, "may have taken effect") {
					t.Errorf("a lookup says %q", e.Error.Message)
				}
				e = r.call("start_job", "lookup-0001", jobInput)
				if e.code() == "IN_PROGRESS" {
					e = r.look("lookup-0001", 30*time.Second)
				}
				r.want(e, c.next)
				if n := len(r.remote.requests()); n != c.sent {
					t.Errorf("%d requests: %v", n, r.remote.requests())
				}
			})
		})
	}
}

// A lookup is repeated as the contract's retry says, for what a read can end with.
func TestLookupsAreRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, getJob)
		s := said{head: []reply{{status: 503}, headIs[0]}, job: taken, run: []reply{waits, done}}
		r.remote.answer(s.script())
		r.want(r.call("get_job", "retry-0001", jobInput), "IN_PROGRESS")
		r.want(r.look("retry-0001", 30*time.Second), "OK")
		r.sent("GET /heads/build", "GET /heads/build", "GET /jobs/build", "GET /runs/r1", "GET /runs/r1")
	})
}

// Authority is looked at before each send: what changed while a lookup was under
// way stops the next one, and nothing is consumed.
func TestAuthorityBetweenLookupAndRequest(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*rig)
		want string
	}{
		"locked":   {func(r *rig) { r.lock() }, "VAULT_LOCKED"},
		"revoked":  {func(r *rig) { r.revoke() }, "SESSION_REVOKED"},
		"replaced": {func(r *rig) { r.vault.replace(2, nil) }, "PLAN_STALE"},
		"reloaded": {func(r *rig) {
			r.write(strings.Replace(job(false, false), "Start one job.", "Start a job.", 1))
			r.g.set.Store(r.load())
		}, "PLAN_STALE"},
		"withdrawn": {func(r *rig) {
			go r.g.CancelCall(r.token, r.peer, "authority-0001")
			time.Sleep(time.Second)
		}, "CANCELLED"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(false, false))
				r.remote.answer(func(_, path, _ string) reply {
					if !strings.HasPrefix(path, "/heads/") {
						t.Errorf("sent %s", path)
					}
					c.do(r)
					return headIs[0]
				})
				r.want(r.call("start_job", "authority-0001", jobInput), c.want)
				time.Sleep(5 * time.Second) // a call that was withdrawn is answered before its lookup has ended
				r.sent("GET /heads/build")
				if n := r.vault.out(); n != 0 {
					t.Errorf("%d leases are out", n)
				}
				if run, un := r.ledger.Counts(); run+un != 0 {
					t.Errorf("%d run, %d unresolved", run, un)
				}
			})
		})
	}
}

// How polls end. The request is sent once, whatever comes.
func TestPollEnds(t *testing.T) {
	many := func(a reply, n int, then ...reply) []reply {
		out := []reply{}
		for range n {
			out = append(out, a)
		}
		return append(out, then...)
	}
	for name, c := range map[string]struct {
		run   []reply
		want  string
		after time.Duration // from the request's answer
		polls int
		fate  ledger.State
	}{
		"done at once":                 {[]reply{done}, "OK", 5 * time.Second, 1, ledger.Finished},
		"done later":                   {many(waits, 3, done), "OK", 20 * time.Second, 4, ledger.Finished},
		"failed":                       {many(waits, 1, failed), "JOB_FAILED", 10 * time.Second, 2, ledger.Finished},
		"faults are pending":           {[]reply{{status: 500}, {status: 408}, {status: 429}, lostIt, done}, "OK", 25 * time.Second, 5, ledger.Finished},
		"asks to wait":                 {[]reply{{status: 429, header: http.Header{"Retry-After": {"20"}}}, done}, "OK", 25 * time.Second, 2, ledger.Finished},
		"asks to wait forever":         {[]reply{{status: 429, header: http.Header{"Retry-After": {"3600"}}}, done}, "OUTCOME_UNKNOWN", time.Minute, 1, ledger.StateUnresolved},
		"never":                        {[]reply{waits}, "OUTCOME_UNKNOWN", time.Minute, 12, ledger.StateUnresolved},
		"done at the deadline":         {many(waits, 11, done), "OK", time.Minute, 12, ledger.Finished},
		"invalid":                      {[]reply{invalid}, "INVALID_RESPONSE", 5 * time.Second, 1, ledger.StateUnresolved},
		"our account may not":          {[]reply{{status: 403}}, "OUTCOME_UNKNOWN", 5 * time.Second, 1, ledger.StateUnresolved},
		"gone":                         {[]reply{noSuch}, "OUTCOME_UNKNOWN", 5 * time.Second, 1, ledger.StateUnresolved},
		"an author's word":             {[]reply{isLocked}, "REMOTE_FORBIDDEN", 5 * time.Second, 1, ledger.Finished},
		"a row that would free the id": {[]reply{isGone}, "OUTCOME_UNKNOWN", 5 * time.Second, 1, ledger.StateUnresolved},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(false, false))
				s := said{head: headIs, post: taken, run: c.run}
				r.remote.answer(s.script())
				e := r.call("start_job", "poll-00001", jobInput)
				r.want(e, "IN_PROGRESS")
				if e.status != 202 || !e.Error.Retryable || e.Error.RetryAfter != 5 {
					t.Errorf("while it polls: %d %s", e.status, e.raw)
				}
				began := time.Now()
				r.revoke() // a revoked session stops no poll of what was sent
				r.agent()
				for e = r.look("poll-00001", 50*time.Second); e.code() == "IN_PROGRESS"; e = r.look("poll-00001", 50*time.Second) {
				}
				r.want(e, c.want)
				if took := time.Since(began); took < c.after || took > c.after+time.Second {
					t.Errorf("after %s, want %s", took, c.after)
				}
				r.want(r.call("start_job", "poll-00001", jobInput), c.want)
				if c.want != "OK" && !e.Error.Retryable && !strings.Contains(e.Error.Message, "do not repeat it") && c.want != "JOB_FAILED" {
					t.Errorf("an accepted change ends with %q", e.Error.Message)
				}
				if got := r.remote.requests(); len(got) != 2+c.polls || got[1] != "POST /jobs" {
					t.Errorf("sent %v", got)
				}
				r.crash() // the outcome outlives the run
				info, found, err := r.ledger.Get("poll-00001")
				if err != nil || !found || info.State != c.fate || info.Code != strings.TrimPrefix(c.want, "OK") {
					t.Errorf("the ledger: %s %s, %v", info.State, info.Code, err)
				}
			})
		})
	}
}

// A read that polls in vain may be asked again.
func TestPollOfAReadFreesTheID(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, getJob)
		s := said{head: headIs, job: taken, run: []reply{waits}}
		r.remote.answer(s.script())
		r.want(r.call("get_job", "read-00001", jobInput), "IN_PROGRESS")
		time.Sleep(2 * time.Minute)
		r.want(r.look("read-00001", 0), "UPSTREAM_UNAVAILABLE")
		r.want(r.call("get_job", "read-00001", jobInput), "IN_PROGRESS")
	})
}

// A lock pauses a poll and gives its credential back; it goes on after the unlock,
// until its deadline, with the same generation of the identity only.
func TestPollOverLock(t *testing.T) {
	for name, c := range map[string]struct {
		locked time.Duration
		change func(*rig)
		want   string
		polls  int
	}{
		"a while":              {20 * time.Second, nil, "OK", 2},
		"beyond the deadline":  {2 * time.Minute, nil, "OUTCOME_UNKNOWN", 1},
		"the identity changed": {20 * time.Second, func(r *rig) { r.vault.replace(2, nil) }, "OUTCOME_UNKNOWN", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(false, false))
				s := said{head: headIs, post: taken, run: []reply{waits, done}}
				r.remote.answer(s.script())
				r.want(r.call("start_job", "lock-00001", jobInput), "IN_PROGRESS")
				time.Sleep(6 * time.Second)
				r.lock()
				synctest.Wait()
				if n := r.vault.out(); n != 0 {
					t.Errorf("%d leases outlive the lock", n)
				}
				r.want(r.call("start_job", "lock-00001", jobInput), "VAULT_LOCKED")
				time.Sleep(c.locked)
				if c.change != nil {
					c.change(r)
				}
				r.unlock()
				time.Sleep(5 * time.Second)
				r.want(r.look("lock-00001", 0), c.want)
				if got := r.remote.requests(); len(got) != 2+c.polls {
					t.Errorf("sent %v", got)
				}
			})
		})
	}
}

// A restart in the middle of a poll, by a stop or a crash: it goes on until the
// same deadline, if the set would make the same plan.
func TestPollOverRestart(t *testing.T) {
	for name, c := range map[string]struct {
		how    func(*rig)
		before func(*rig)
		down   time.Duration
		want   string
	}{
		"stopped":               {func(r *rig) { r.stop(); r.start() }, nil, 0, "OK"},
		"killed":                {(*rig).crash, nil, 0, "OK"},
		"killed twice":          {func(r *rig) { r.crash(); synctest.Wait(); r.crash() }, nil, 0, "OK"},
		"down for too long":     {func(r *rig) { r.stop(); time.Sleep(2 * time.Minute); r.start() }, nil, 0, "OUTCOME_UNKNOWN"},
		"the contract changed":  {(*rig).crash, func(r *rig) { r.write(strings.Replace(job(false, false), "Start one", "Start a", 1)) }, 0, "OUTCOME_UNKNOWN"},
		"the target changed":    {(*rig).crash, func(r *rig) { r.writeSite(", http2: true") }, 0, "OUTCOME_UNKNOWN"},
		"the identity replaced": {(*rig).crash, func(r *rig) { r.vault.replace(2, nil) }, 0, "OUTCOME_UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(false, false))
				s := said{head: headIs, post: taken, run: []reply{waits}}
				r.remote.answer(s.script())
				r.want(r.call("start_job", "start-0001", jobInput), "IN_PROGRESS")
				time.Sleep(12 * time.Second)
				if c.before != nil {
					c.before(r)
				}
				s.mu.Lock()
				s.run = []reply{waits, done}
				s.mu.Unlock()
				c.how(r)
				time.Sleep(12 * time.Second)
				e := r.look("start-0001", 0)
				r.want(e, c.want)
				r.want(r.call("start_job", "start-0002", jobInput), map[bool]string{true: "IN_PROGRESS", false: c.want}[e.OK])
				if n := strings.Count(strings.Join(r.remote.requests(), " "), "POST"); n != 1+map[bool]int{true: 1}[e.OK] {
					t.Errorf("sent %v", r.remote.requests())
				}
			})
		})
	}
}

// What a reconcile finds, after each way in which a request can leave its outcome
// open. The request is never sent a second time by it.
func TestReconcile(t *testing.T) {
	post := map[string]reply{"lost": lostIt, "failed": {status: 502}, "invalid": {status: 202, body: `{"run":7}`}}
	stays := map[string]string{"lost": "OUTCOME_UNKNOWN", "failed": "OUTCOME_UNKNOWN", "invalid": "INVALID_RESPONSE"}
	for name, c := range map[string]struct {
		job         []reply
		read, lost  string // the end where an answer was read, and where it was lost; "" stays
		looks, more int    // how often it looked, and how often after a lost answer
		freed       bool
	}{
		"it took effect":            {[]reply{started}, "OK", "OK", 1, 1, false},
		"it did not":                {[]reply{noSuch}, "UPSTREAM_UNAVAILABLE", "UPSTREAM_UNAVAILABLE", 1, 2, true},
		"it did not, an own code":   {[]reply{isGone}, "NEVER_STARTED", "NEVER_STARTED", 1, 2, false},
		"it did in the second look": {[]reply{noSuch, started}, "UPSTREAM_UNAVAILABLE", "OK", 1, 2, true},
		"two looks differ":          {[]reply{noSuch, isGone}, "UPSTREAM_UNAVAILABLE", "", 1, 2, true},
		"the second cannot tell":    {[]reply{noSuch, {status: 503}}, "UPSTREAM_UNAVAILABLE", "", 1, 2, true},
		"no answer":                 {[]reply{lostIt}, "", "", 1, 1, false},
		"no row":                    {[]reply{ok(`{"key":"other","run":"r1"}`)}, "", "", 1, 1, false},
		"a failing server":          {[]reply{{status: 503}}, "", "", 1, 1, false},
		"our account may not":       {[]reply{{status: 403}}, "", "", 1, 1, false},
		"a row that cannot tell":    {[]reply{isLocked}, "", "", 1, 1, false},
		"success without its data":  {[]reply{ok(`{"key":"build","run":"NOT-A-RUN"}`)}, "", "", 1, 1, false},
	} {
		for how, answer := range post {
			t.Run(name+", "+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					r := newRig(t, job(true, false))
					s := said{head: headIs, post: []reply{answer}, job: c.job, run: []reply{done}}
					r.remote.answer(s.script())
					want, looks := c.read, c.looks
					if how == "lost" {
						want, looks = c.lost, c.more
					}
					if want == "" {
						want = stays[how]
					}
					began := time.Now()
					e := r.call("start_job", "once-00001", jobInput)
					if looks == 2 {
						r.want(e, "IN_PROGRESS")
						e = r.look("once-00001", 50*time.Second)
						if took := time.Since(began); took < 30*time.Second || took > 40*time.Second {
							t.Errorf("the second look came after %s", took)
						}
					}
					r.want(e, want)
					sent := []string{"GET /heads/build", "POST /jobs"}
					for range looks {
						sent = append(sent, "GET /jobs/build")
					}
					r.sent(sent...)
					r.checkReconciled(e)
					r.stop()
					r.start()
					r.remote.answer(func(_, path, _ string) reply { return reply{status: 409} })
					e = r.call("start_job", "once-00001", jobInput)
					if freed := e.code() == "INVALID_RESPONSE" && !r.wasUnresolved("once-00001"); freed != (want == "UPSTREAM_UNAVAILABLE") && e.code() != want {
						t.Errorf("asked again: %s", e.raw)
					}
				})
			})
		}
	}
}

// wasUnresolved is true of a call that the ledger holds as unresolved.
func (r *rig) wasUnresolved(id string) bool {
	info, found, err := r.ledger.Get(id)
	r.must(err)
	return found && info.State == ledger.StateUnresolved
}

// checkReconciled holds the record: the reconcile is a send with its own intent,
// and the request's intent has an end.
func (r *rig) checkReconciled(e envelope) {
	r.t.Helper()
	var request uint64
	for _, ev := range r.events(auditlog.TypeIntent) {
		if ev.Detail["step"] == "request" {
			request = ev.Seq
		}
	}
	all := r.events(auditlog.TypeReconcile)
	if len(all) != 1 || all[0].IntentSeq != request || all[0].Status != e.code() || all[0].Rule == "" {
		r.t.Errorf("the record's reconcile: %+v, want the intent %d and %s", all, request, e.code())
	}
}

// What an earlier run left armed is reconciled after the unlock, as after a lost
// answer; it is never sent again.
func TestReconcileAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		reconciles bool
		job        []reply
		change     func(*rig)
		want       string
		looks      int
	}{
		"it took effect":       {true, []reply{started}, nil, "OK", 1},
		"it did not":           {true, []reply{noSuch}, nil, "UPSTREAM_UNAVAILABLE", 2},
		"it cannot tell":       {true, []reply{isLocked}, nil, "OUTCOME_UNKNOWN", 1},
		"no reconcile":         {false, []reply{started}, nil, "OUTCOME_UNKNOWN", 0},
		"another contract":     {true, []reply{started}, func(r *rig) { r.write(strings.Replace(job(true, false), "Start one", "Start a", 1)) }, "OUTCOME_UNKNOWN", 0},
		"another identity":     {true, []reply{started}, func(r *rig) { r.vault.replace(2, nil) }, "OUTCOME_UNKNOWN", 0},
		"a person was quicker": {true, []reply{noSuch}, func(r *rig) {}, "OUTCOME_UNKNOWN", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(c.reconciles, false))
				s := said{head: headIs, post: []reply{{after: time.Minute}}, job: c.job}
				r.remote.answer(s.script())
				go r.g.Perform(r.t.Context(), Ask{Token: r.token, Peer: r.peer, Action: "start_job", Input: map[string]any{"key": "build"}, RequestID: "crash-0001"})
				time.Sleep(time.Second)
				r.sent("GET /heads/build", "POST /jobs")
				if c.change != nil {
					c.change(r)
				}
				r.crash()
				time.Sleep(10 * time.Second)
				if name == "a person was quicker" {
					r.want(r.look("crash-0001", 0), "IN_PROGRESS")
					r.must(r.g.Resolve(t.Context(), "crash-0001", true, "the test"))
				}
				time.Sleep(time.Minute)
				e := r.look("crash-0001", 0)
				r.want(e, c.want)
				sent := []string{"GET /heads/build", "POST /jobs"}
				for range c.looks {
					sent = append(sent, "GET /jobs/build")
				}
				r.sent(sent...)
			})
		})
	}
}

// A reconcile is never sent while the daemon stops, or while the vault is locked:
// it waits, and the next run does it.
func TestReconcileWaits(t *testing.T) {
	for name, c := range map[string]struct {
		while func(*rig)
		then  func(*rig)
	}{
		"for the unlock":    {(*rig).lock, (*rig).unlock},
		"for the next run":  {func(r *rig) { r.g.draining.Store(true); r.g.drain.Do(func() { close(r.g.drained) }) }, func(r *rig) { r.stop(); r.start() }},
		"for both, one run": {func(r *rig) { r.lock() }, func(r *rig) { r.crash() }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				s := said{head: headIs, job: []reply{started}}
				script := s.script()
				r.remote.answer(func(method, path, body string) reply {
					if method == http.MethodPost {
						c.while(r)
						return reply{status: 502}
					}
					return script(method, path, body)
				})
				r.want(r.call("start_job", "waits-0001", jobInput), "IN_PROGRESS")
				time.Sleep(5 * time.Minute)
				r.sent("GET /heads/build", "POST /jobs")
				c.then(r)
				time.Sleep(time.Second)
				if r.token == "" {
					r.agent()
				}
				r.want(r.look("waits-0001", 0), "OK")
				r.sent("GET /heads/build", "POST /jobs", "GET /jobs/build")
			})
		})
	}
}

// A poll that ends in the dark is reconciled too.
func TestReconcileAfterPoll(t *testing.T) {
	for name, c := range map[string]struct {
		run  []reply
		job  reply
		want string
	}{
		"never, and it took effect": {[]reply{waits}, started, "OK"},
		"never, and it did not":     {[]reply{waits}, noSuch, "UPSTREAM_UNAVAILABLE"},
		"invalid, and cannot tell":  {[]reply{invalid}, isLocked, "INVALID_RESPONSE"},
		"invalid, it took effect":   {[]reply{invalid}, started, "OK"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				s := said{head: headIs, post: taken, run: c.run, job: []reply{c.job}}
				r.remote.answer(s.script())
				r.want(r.call("start_job", "dark-00001", jobInput), "IN_PROGRESS")
				time.Sleep(2 * time.Minute)
				r.want(r.look("dark-00001", 0), c.want)
				if got := r.remote.requests(); got[len(got)-1] != "GET /jobs/build" || strings.Count(strings.Join(got, " "), "GET /jobs/build") != 1 {
					t.Errorf("sent %v", got)
				}
			})
		})
	}
}

// Explain names the lookups that would be sent, and sends none.
func TestExplainSendsNoLookup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		x := r.g.Explain(t.Context(), "start_job", map[string]any{"key": "build"})
		if x.StoppedBy != nil || x.Would != "send" || len(x.Lookups) != 1 || x.Lookups[0] != "head" || !strings.Contains(x.Sentence, "key") {
			t.Errorf("%+v", x)
		}
		if x = r.g.Explain(t.Context(), "start_job", map[string]any{"key": "../up"}); x.StoppedBy == nil || x.StoppedBy.Code != fault.InvalidArgument {
			t.Errorf("%+v", x)
		}
		r.sent()
	})
}

// A record that refuses: a lookup's end is not told, nothing is consumed; a poll
// sends nothing more in this run, and the next one goes on.
func TestTheRecordRefuses(t *testing.T) {
	t.Run("while looking", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newRig(t, job(false, false))
			r.remote.answer(func(string, string, string) reply {
				r.spoil()
				return noSuch
			})
			r.want(r.call("start_job", "latch-0001", jobInput), "AUDIT_UNAVAILABLE")
			r.sent("GET /heads/build")
			if run, un := r.ledger.Counts(); run+un != 0 {
				t.Errorf("%d run, %d unresolved", run, un)
			}
			r.restart()
			s := said{head: headIs, post: taken, run: []reply{done}}
			r.remote.answer(s.script())
			r.want(r.call("start_job", "latch-0001", jobInput), "IN_PROGRESS")
			r.want(r.look("latch-0001", 30*time.Second), "OK")
		})
	})
	t.Run("while polling", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newRig(t, job(false, false))
			s := said{head: headIs, post: taken, run: []reply{waits}}
			r.remote.answer(s.script())
			r.want(r.call("start_job", "latch-0002", jobInput), "IN_PROGRESS")
			time.Sleep(6 * time.Second)
			r.spoil()
			time.Sleep(20 * time.Second)
			polls := len(r.remote.requests())
			for _, wait := range []time.Duration{0, 30 * time.Second} {
				r.want(r.look("latch-0002", wait), "IN_PROGRESS")
			}
			r.want(r.call("start_job", "latch-0002", jobInput), "IN_PROGRESS")
			if n := len(r.remote.requests()); n != polls {
				t.Errorf("%d requests were sent without a record", n-polls)
			}
			s.mu.Lock()
			s.run = []reply{done}
			s.mu.Unlock()
			r.restart()
			r.want(r.look("latch-0002", 10*time.Second), "OK")
			if n := strings.Count(strings.Join(r.remote.requests(), " "), "POST"); n != 1 {
				t.Errorf("sent %v", r.remote.requests())
			}
		})
	})
}

// A panic of ours in a call that an earlier run left behind leaves it unresolved:
// it may have happened.
func TestPanicWhileTakenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		s := said{head: headIs, post: []reply{{after: time.Minute}}, job: []reply{started}}
		r.remote.answer(s.script())
		go r.g.Perform(r.t.Context(), Ask{Token: r.token, Peer: r.peer, Action: "start_job", Input: map[string]any{"key": "build"}, RequestID: "panic-0001"})
		time.Sleep(time.Second)
		r.vault.mu.Lock()
		r.vault.broken = true // from the next run on
		r.vault.mu.Unlock()
		r.crash()
		time.Sleep(time.Second)
		r.want(r.look("panic-0001", 0), "INTERNAL")
		if !r.wasUnresolved("panic-0001") {
			t.Error("it is not unresolved")
		}
		r.sent("GET /heads/build", "POST /jobs")
	})
}

// restart ends a run whose record has latched, and begins the next.
func (r *rig) restart() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	r.must(r.g.Drain(ctx))
	r.g.stop()
	r.sessions.Close()
	r.exec.Close()
	r.must(r.store.Close())
	_ = r.log.Close() // says why it latched
	r.start()
}

// spoil makes the record's next write fail: someone else cut the file that it
// appends to.
func (r *rig) spoil() {
	files, err := filepath.Glob(r.path("audit/seg-*.alog"))
	if err != nil || len(files) == 0 {
		r.t.Errorf("no record: %v", err)
		return
	}
	newest := files[len(files)-1]
	info, err := os.Stat(newest)
	if err == nil {
		err = os.Truncate(newest, info.Size()-1)
	}
	if err != nil {
		r.t.Error(err)
	}
}

// A lock and an unlock between two looks take the credential back too, also where
// the identity was replaced meanwhile.
func TestALockTakesTheLeaseBackAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(false, false))
		s := said{head: headIs, post: taken, run: []reply{waits}}
		script := s.script()
		locked := false
		r.remote.answer(func(method, path, body string) reply {
			if strings.HasPrefix(path, "/runs/") && !locked {
				locked = true // while a poll is under way
				r.lock()
				r.vault.replace(2, nil)
				r.unlock()
			}
			return script(method, path, body)
		})
		r.want(r.call("start_job", "lease-0001", jobInput), "IN_PROGRESS")
		time.Sleep(20 * time.Second)
		r.want(r.look("lease-0001", 0), "OUTCOME_UNKNOWN")
		r.sent("GET /heads/build", "POST /jobs", "GET /runs/r1")
		if n := r.vault.out(); n != 0 {
			t.Errorf("%d leases are out", n)
		}
	})
}

// Without a lock what was sent keeps the generation that it was sent with.
func TestAPollKeepsItsGeneration(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(false, false))
		s := said{head: headIs, post: taken, run: []reply{waits, done}}
		r.remote.answer(s.script())
		r.want(r.call("start_job", "keeps-0001", jobInput), "IN_PROGRESS")
		r.vault.replace(2, nil)
		r.want(r.look("keeps-0001", 30*time.Second), "OK")
	})
}
