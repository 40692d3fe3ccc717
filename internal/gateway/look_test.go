package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
)

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
