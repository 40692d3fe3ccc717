package gateway

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/ledger"
)

// What a reconcile finds, after each way in which a request can leave its outcome
// open. The request is never sent a second time by it.
func TestReconcile(t *testing.T) {
	post := map[string]reply{"lost": lostIt, "failed": {status: 500}, "not now": {status: 503}, "invalid": {status: 202, body: `{"run":7}`},
		"timed out": {status: 408}, "bad gateway": {status: 502}, "gateway timed out": {status: 504}}
	lost := map[string]bool{"lost": true, "timed out": true, "bad gateway": true, "gateway timed out": true}
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
					if lost[how] {
						want, looks = c.lost, c.more
					}
					switch {
					case want == "" && how == "invalid":
						want = "INVALID_RESPONSE"
					case want == "":
						want = "OUTCOME_UNKNOWN"
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
					r.looked(looks)
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

// looked fails unless the request was sent once and looked up so often.
func (r *rig) looked(times int) {
	r.t.Helper()
	sent := []string{"GET /heads/build", "POST /jobs"}
	for range times {
		sent = append(sent, "GET /jobs/build")
	}
	r.sent(sent...)
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
				r.looked(c.looks)
			})
		})
	}
}

// Where a person and a look race, the record's last word is the one that stands,
// and the request's intent has an end.
func TestTheRecordSaysWhoWasFaster(t *testing.T) {
	for name, found := range map[string]reply{
		"the look cannot tell":   late(reply{status: 503}),
		"it took effect":         late(started),
		"between two looks":      noSuch,
		"the look finds no such": late(isGone),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				s := said{head: headIs, post: []reply{lostIt}, job: []reply{found}}
				r.remote.answer(s.script())
				go r.g.Perform(r.t.Context(), Ask{Token: r.token, Peer: r.peer, Action: "start_job", Input: map[string]any{"key": "build"}, RequestID: "race-00001"})
				time.Sleep(5 * time.Second)
				r.must(r.g.Resolve(t.Context(), "race-00001", true, "the test"))
				time.Sleep(time.Minute)
				e := r.look("race-00001", 0)
				all := r.events(auditlog.TypeReconcile)
				if len(all) == 0 {
					t.Fatal("the record has no end")
				}
				last := all[len(all)-1]
				if last.Status != e.code() || !strings.Contains(last.Rule, "a person") || last.IntentSeq == 0 || last.IntentSeq != all[0].IntentSeq {
					t.Errorf("the last word is %+v, the call ended with %s", last, e.code())
				}
			})
		})
	}
}

func late(a reply) reply {
	a.after = 10 * time.Second
	return a
}

// A decision that the ledger refuses is closed in the record by what stands.
func TestARefusedResolveIsClosedInTheRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		s := said{head: headIs, post: []reply{{status: 500}}, job: []reply{isLocked}}
		r.remote.answer(s.script())
		r.want(r.call("start_job", "twice-0001", jobInput), "OUTCOME_UNKNOWN")
		info, err := r.g.Unresolved("twice-0001")
		r.must(err)
		r.must(r.g.Resolve(t.Context(), "twice-0001", true, "the first"))
		if err := r.g.resolveSeen(t.Context(), "twice-0001", info, false, "the second"); !errors.Is(err, ErrNotUnresolved) {
			t.Fatalf("%v", err)
		}
		var said []auditlog.Event
		for _, e := range r.events(auditlog.TypeConfig) {
			if strings.HasPrefix(e.Decision, "call.") {
				said = append(said, e)
			}
		}
		if len(said) != 3 || said[2].Decision != decisionNotResolved || said[2].Actor != "the second" || said[2].Target != "twice-0001" ||
			said[2].Detail["state"] != "finished" || said[2].Status != r.look("twice-0001", 0).code() {
			t.Errorf("%+v", said)
		}
	})
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
		run   []reply
		job   []reply
		want  string
		looks int
	}{
		"never, and it took effect":   {[]reply{waits}, []reply{started}, "OK", 1},
		"never, and it did not":       {[]reply{waits}, []reply{noSuch}, "UPSTREAM_UNAVAILABLE", 2},
		"never, and it did after all": {[]reply{waits}, []reply{noSuch, started}, "OK", 2},
		"invalid, and it did not":     {[]reply{invalid}, []reply{noSuch}, "UPSTREAM_UNAVAILABLE", 2},
		"invalid, and cannot tell":    {[]reply{invalid}, []reply{isLocked}, "INVALID_RESPONSE", 1},
		"invalid, it took effect":     {[]reply{invalid}, []reply{started}, "OK", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				s := said{head: headIs, post: taken, run: c.run, job: c.job}
				r.remote.answer(s.script())
				r.want(r.call("start_job", "dark-00001", jobInput), "IN_PROGRESS")
				time.Sleep(2 * time.Minute)
				r.want(r.look("dark-00001", 0), c.want)
				if got := r.remote.requests(); got[len(got)-1] != "GET /jobs/build" || strings.Count(strings.Join(got, " "), "GET /jobs/build") != c.looks {
					t.Errorf("sent %v", got)
				}
			})
		})
	}
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
