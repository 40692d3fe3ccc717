package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/ledger"
)

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
				e = r.end("poll-00001")
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
				r.kept("poll-00001", c.fate, c.want)
			})
		})
	}
}

// end waits until a call has ended.
func (r *rig) end(id string) envelope {
	r.t.Helper()
	e := r.look(id, 50*time.Second)
	for e.code() == "IN_PROGRESS" {
		e = r.look(id, 50*time.Second)
	}
	return e
}

// kept fails unless the ledger holds that end.
func (r *rig) kept(id string, state ledger.State, code string) {
	r.t.Helper()
	info, found, err := r.ledger.Get(id)
	if err != nil || !found || info.State != state || info.Code != strings.TrimPrefix(code, "OK") {
		r.t.Errorf("the ledger: %s %s, %v; want %s %s", info.State, info.Code, err, state, code)
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
