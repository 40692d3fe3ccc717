package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// What turns while a call waits for its token is seen before anything of it is sent.
func TestTurnsWhileATokenComes(t *testing.T) {
	for name, c := range map[string]struct {
		turn func(*rig)
		want string
		then string // the same id afterwards
	}{
		"a lock":                  {func(r *rig) { r.lock() }, "VAULT_LOCKED", "IN_PROGRESS"},
		"a lock and an unlock":    {func(r *rig) { r.lock(); r.unlock() }, "VAULT_LOCKED", "IN_PROGRESS"},
		"a new secret":            {func(r *rig) { r.vault.replace(2, nil) }, "PLAN_STALE", "IN_PROGRESS"},
		"the session ends":        {func(r *rig) { r.revoke() }, "SESSION_REVOKED", ""},
		"the identity is refused": {func(r *rig) { r.vault.replace(1, fault.Newf(fault.IdentityUnavailable, "suspended")) }, "IDENTITY_UNAVAILABLE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				r.withTokens()
				s := said{head: headIs, post: taken, run: []reply{waits}}
				rest, slow := s.script(), 10*time.Second
				r.remote.answer(func(method, path, body string) reply {
					if path == "/oauth2/token" {
						return reply{status: 200, body: "token-0001", after: slow}
					}
					return rest(method, path, body)
				})
				var heard envelope
				var call sync.WaitGroup
				call.Go(func() { heard = r.call("start_job", "asked-0008", jobInput) })
				synctest.Wait()
				r.sent("POST /oauth2/token")
				c.turn(r)
				call.Wait()
				r.want(heard, c.want)
				r.sent("POST /oauth2/token")
				r.inOrder()
				if r.vault.out() != 0 {
					t.Errorf("%d leases are out", r.vault.out())
				}
				if c.then == "" {
					return
				}
				if r.vault.Open() != nil {
					r.unlock()
				}
				slow = 0
				r.want(r.call("start_job", "asked-0008", jobInput), c.then)
			})
		})
	}
}

// A poll whose token cannot be had goes on: it is as if its connection was lost. A
// lock in between ends no poll either.
func TestPollWithoutAToken(t *testing.T) {
	for name, turn := range map[string]func(*rig){
		"the endpoint is down": func(*rig) {},
		"a lock meanwhile":     func(r *rig) { r.lock(); time.Sleep(2 * time.Second); r.unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				k := r.withTokens()
				s := said{head: headIs, post: taken, run: []reply{done}}
				rest, tries := s.script(), 0
				r.remote.answer(func(method, path, body string) reply {
					if path != "/oauth2/token" {
						return rest(method, path, body)
					}
					if tries++; tries == 2 || tries == 3 {
						return reply{status: 401, after: time.Second}
					}
					return reply{status: 200, body: "token-0001"}
				})
				r.want(r.call("start_job", "asked-0009", jobInput), "IN_PROGRESS")
				k.drop()
				time.Sleep(5500 * time.Millisecond) // the first poll's exchange is under way
				turn(r)
				r.want(r.look("asked-0009", 50*time.Second), "OK")
				if n := strings.Count(strings.Join(r.remote.requests(), " "), "POST /jobs"); n != 1 {
					t.Errorf("sent %v", r.remote.requests())
				}
				r.inOrder()
			})
		})
	}
}

// A 401 of the target tells the vault, and sends nothing again.
func TestTargetRefusesTheToken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		k := r.withTokens()
		s := said{head: []reply{{status: 401}, headIs[0]}, post: taken, run: []reply{done}}
		r.remote.answer(issuing(s.script()))
		r.want(r.call("start_job", "asked-0010", jobInput), "REMOTE_UNAUTHENTICATED")
		r.sent("POST /oauth2/token", "GET /heads/build")
		r.want(r.call("start_job", "asked-0011", jobInput), "IN_PROGRESS")
		r.want(r.look("asked-0011", 20*time.Second), "OK")
		r.sent("POST /oauth2/token", "GET /heads/build", "POST /oauth2/token", "GET /heads/build", "POST /jobs", "GET /runs/r1")
		if k.gone != 1 {
			t.Errorf("%d refusals were told", k.gone)
		}
	})
}

// A person's yes is not spent on a call that waits too long for its token.
func TestApprovedAndNoToken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, true))
		k := r.withTokens()
		s := said{head: headIs, post: taken, run: []reply{done}}
		rest := s.script()
		tokens := 0
		r.remote.answer(func(method, path, body string) reply {
			if path != "/oauth2/token" {
				return rest(method, path, body)
			}
			if tokens++; tokens == 2 {
				return reply{status: 200, body: "token-0002", after: 14 * time.Second}
			}
			return reply{status: 200, body: "token-0001"}
		})
		r.want(r.call("start_job", "asked-0012", jobInput), "APPROVAL_REQUIRED")
		k.drop()
		r.approve()
		began := time.Now()
		r.want(r.look("asked-0012", 30*time.Second), "UPSTREAM_UNAVAILABLE")
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("told after %s", took)
		}
		r.sent("POST /oauth2/token", "GET /heads/build", "POST /oauth2/token")
		time.Sleep(10 * time.Second) // the token came after all
		r.want(r.call("start_job", "asked-0012", jobInput), "APPROVAL_REQUIRED")
		r.approve()
		r.want(r.look("asked-0012", 30*time.Second), "OK")
	})
}

// After a crash between exchange and send nothing of the call was sent: the same id
// starts afresh.
func TestCrashAfterAnExchange(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		r.withTokens()
		s := said{head: headIs, post: taken, run: []reply{done}}
		rest, slow := s.script(), 10*time.Second
		r.remote.answer(func(method, path, body string) reply {
			if path == "/oauth2/token" {
				return reply{status: 200, body: "token-0001", after: slow}
			}
			return rest(method, path, body)
		})
		go func() { _ = r.g.Perform(context.Background(), r.asks("start_job", "asked-0013", jobInput)) }()
		synctest.Wait()
		r.sent("POST /oauth2/token")
		r.crash()
		slow = 0
		if all, err := r.g.Calls(false); err != nil || len(all) != 0 {
			t.Errorf("the ledger knows %v, %v", all, err)
		}
		r.want(r.call("start_job", "asked-0013", jobInput), "IN_PROGRESS")
		r.want(r.look("asked-0013", 20*time.Second), "OK")
		r.sent("POST /oauth2/token", "POST /oauth2/token", "GET /heads/build", "POST /jobs", "GET /runs/r1")
		r.kept("asked-0013", ledger.Finished, "OK")
	})
}

// A stop lets an exchange that was sent end, and begins none.
func TestDrainWaitsForAnExchange(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		k := r.withTokens()
		r.remote.answer(func(method, path, body string) reply {
			if path == "/oauth2/token" {
				return reply{status: 200, body: "token-0001", after: 10 * time.Second}
			}
			return noneOf(t)(method, path, body)
		})
		var heard envelope
		var call sync.WaitGroup
		call.Go(func() { heard = r.call("start_job", "asked-0014", jobInput) })
		synctest.Wait()
		r.must(r.g.Drain(t.Context()))
		call.Wait()
		r.want(heard, "OVERLOADED")
		synctest.Wait() // until the record is written
		r.inOrder()
		if k.count != 1 || len(r.exchangesOf(auditlog.TypeOutcome)) != 1 {
			t.Errorf("%d tokens, %d outcomes", k.count, len(r.exchangesOf(auditlog.TypeOutcome)))
		}
	})
}

// Tokens are renewed off the path of calls: in the daemon's own name, never while the
// vault is locked, and not once the daemon stops.
func TestKeepFresh(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		k := r.withTokens()
		r.remote.answer(issuing(noneOf(t)))
		var loop sync.WaitGroup
		loop.Go(func() { r.g.KeepFresh(t.Context()) })
		time.Sleep(refreshEvery + time.Second)
		synctest.Wait()
		if r.vault.refreshes != 1 || k.count != 1 {
			t.Errorf("%d turns, %d tokens", r.vault.refreshes, k.count)
		}
		r.lock()
		time.Sleep(4 * refreshEvery)
		synctest.Wait()
		if r.vault.refreshes != 1 {
			t.Error("a locked vault was asked")
		}
		r.unlock()
		time.Sleep(refreshEvery)
		synctest.Wait()
		all := r.exchangesOf("")
		if len(all) != 6 || slices.ContainsFunc(all, func(e auditlog.Event) bool { return e.CallID != "" || e.Actor != theDaemon }) {
			t.Errorf("recorded %+v", all)
		}
		if last := all[5]; last.Type != auditlog.TypeOutcome || last.Status != "OK" {
			t.Errorf("last %+v", last)
		}
		r.hides()
		r.must(r.g.Drain(t.Context()))
		loop.Wait()
	})
}
