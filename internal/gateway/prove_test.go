package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
)

const whoAmI = `contract: v1
action: who_am_i
version: 1.0.0
summary: Say whose account this is.
owner: tests
effect: read
input: {type: object, additionalProperties: false, properties: {}}
route: {target: jobs}
request:
  method: GET
  path: /user
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [login], properties: {login: {type: string, pattern: '^[a-z]{1,16}$', maxLength: 16}}}
      success: {account: /login}
      display: {scopes: {header: X-Scopes, optional: true}}
display: {scopes: {max: 100, lines: 1}}
result: {type: object, additionalProperties: false, required: [account], properties: {account: {type: string, pattern: '^[a-z]{1,16}$', maxLength: 16}}}
approval: {sentence: 'Say whose account this is'}
`

// An operator's proof takes the whole line, with the record's own entries, and
// needs no session; no agent can have its name.
func TestProveIdentity(t *testing.T) {
	r := newRig(t, whoAmI, getJob, job(false, false))
	var used []Used
	r.g.used = func(u Used) { used = append(used, u) }
	r.revoke()
	status, body := 200, `{"login":"robot"}`
	r.remote.answer(func(string, string, string) reply {
		return reply{status: status, body: body, header: http.Header{"X-Scopes": {"read write"}}}
	})

	ask := Proving{Identity: "bot", Action: "who_am_i", By: "uid 7"}
	p, err := r.g.ProveIdentity(t.Context(), ask)
	r.must(err)
	if !p.OK || p.Data["account"] != "robot" || p.Target != "jobs" || p.Display["scopes"].Text != "read write" || !strings.HasPrefix(p.RequestID, "act_") {
		t.Fatalf("%+v", p)
	}
	var kinds []string
	for _, e := range r.events("") {
		if e.CallID == p.RequestID {
			kinds = append(kinds, e.Type)
			if e.Actor != "(operator)" || e.SessionID != "" {
				t.Errorf("%s: actor %q, session %q", e.Type, e.Actor, e.SessionID)
			}
		}
	}
	if !slices.Equal(kinds, []string{auditlog.TypeIntent, auditlog.TypeAnswer, auditlog.TypeOutcome}) {
		t.Errorf("events: %v", kinds)
	}
	if !slices.ContainsFunc(r.events("config"), func(e auditlog.Event) bool {
		return e.Decision == "identity.check" && e.Target == "bot" && e.Actor == "uid 7"
	}) {
		t.Error("the record does not say who asked")
	}

	status, body = 401, `{}`
	p, err = r.g.ProveIdentity(t.Context(), ask)
	r.must(err)
	if p.OK || p.Code != fault.RemoteUnauthenticated || p.Message == "" || !strings.Contains(p.Cause, "the status of the answer says so") {
		t.Errorf("%+v", p)
	}
	if len(used) != 2 || used[0].Code != "" || !used[0].Sent || used[1].Code != fault.RemoteUnauthenticated || used[1].Generation != 1 {
		t.Errorf("used: %+v", used)
	}
	r.want(r.look(p.RequestID, 0), "SESSION_REVOKED")
	if r.vault.out() != 0 {
		t.Error("a lease is still out")
	}
}

// A secret that is only tried is sent in place of the stored one, also of one that
// is suspended, and leaves no trace on the identity.
func TestProveATrial(t *testing.T) {
	r := newRig(t, whoAmI)
	r.g.used = func(u Used) { t.Errorf("told: %+v", u) }
	r.remote.answer(func(string, string, string) reply { return reply{status: 200, body: `{"login":"robot"}`} })
	trial := &fakeLease{v: r.vault, generation: 9}
	r.vault.mu.Lock()
	r.vault.leases++
	r.vault.mu.Unlock()
	p, err := r.g.ProveIdentity(t.Context(), Proving{Identity: "bot", Action: "who_am_i", By: "uid 7", Trial: trial})
	r.must(err)
	if !p.OK {
		t.Fatalf("%+v", p)
	}
	for _, e := range r.events(auditlog.TypeIntent) {
		if e.CallID == p.RequestID && e.Detail["identity_generation"] != uint64(9) {
			t.Errorf("sent under generation %v", e.Detail["identity_generation"])
		}
	}
	if r.vault.out() != 1 {
		t.Error("the line closed a lease that was not its own")
	}
	trial.Close()
}

// An operator who goes away before the answer comes takes the tried secret along only
// when the answer was searched for it.
func TestProofThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, whoAmI)
		r.vault.secret = "robot"
		r.remote.answer(func(string, string, string) reply {
			return reply{status: 200, body: `{"login":"robot"}`, after: 10 * time.Second}
		})
		trial := &fakeLease{v: r.vault, generation: 9}
		r.vault.mu.Lock()
		r.vault.leases++
		r.vault.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		var proof sync.WaitGroup
		proof.Go(func() {
			defer trial.Close()
			if p, err := r.g.ProveIdentity(ctx, Proving{Identity: "bot", Action: "who_am_i", By: "uid 7", Trial: trial}); err != nil || p.OK {
				t.Errorf("%+v, %v", p, err)
			}
		})
		synctest.Wait()
		r.sent("GET /user")
		cancel()
		proof.Wait()
		synctest.Wait()
		outcomes := r.events(auditlog.TypeOutcome)
		if len(outcomes) != 1 || outcomes[0].Status != "INVALID_RESPONSE" || r.vault.suspects != 0 {
			t.Errorf("recorded %+v; %d suspicions", outcomes, r.vault.suspects)
		}
		if err := (&heldLease{Lease: trial, over: true}).begin(); fault.CodeOf(err) != fault.IdentityUnavailable {
			t.Errorf("a send after the proof: %v", err)
		}
	})
}

func TestWhatCannotProve(t *testing.T) {
	r := newRig(t, whoAmI, getJob, job(false, false))
	for _, c := range []struct {
		identity, action string
		code             fault.Code
		says             string
	}{
		{"bot", "start_job", fault.InvalidArgument, "changes something"},
		{"bot", "get_job", fault.InvalidArgument, "needs an input"},
		{"other", "who_am_i", fault.InvalidArgument, "which uses identity bot"},
		{"bot", "nothing", fault.UnknownAction, "no contract of that name"},
	} {
		err := r.g.CanProve(c.identity, c.action)
		if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s by %s: %v", c.identity, c.action, err)
		}
		if _, err := r.g.ProveIdentity(t.Context(), Proving{Identity: c.identity, Action: c.action}); fault.CodeOf(err) != c.code {
			t.Errorf("%s by %s was begun: %v", c.identity, c.action, err)
		}
	}
	if err := r.g.CanProve("bot", "who_am_i"); err != nil {
		t.Error(err)
	}
	r.lock()
	if _, err := r.g.ProveIdentity(t.Context(), Proving{Identity: "bot", Action: "who_am_i"}); fault.CodeOf(err) != fault.VaultLocked {
		t.Errorf("a locked vault: %v", err)
	}
	r.unlock()
	r.must(r.g.Drain(context.WithoutCancel(t.Context())))
	if _, err := r.g.ProveIdentity(t.Context(), Proving{Identity: "bot", Action: "who_am_i"}); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("a daemon that stops: %v", err)
	}
	r.sent()
}
