package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/auditlog"
)

// issuing answers an exchange with numbered tokens, and everything else by rest.
func issuing(rest func(method, path, body string) reply) func(method, path, body string) reply {
	n := 0
	return func(method, path, body string) reply {
		if path != "/oauth2/token" {
			return rest(method, path, body)
		}
		n++
		return reply{status: 200, body: fmt.Sprintf("token-%04d", n)}
	}
}

// opened is the record as its reader has it, with the raw answers.
func (r *rig) opened() (out []auditlog.Event) {
	r.t.Helper()
	synctest.Wait()
	r.must(auditlog.Read(r.path("audit"), r.ids[0], func(_ uint64, e auditlog.Event) error {
		out = append(out, e)
		return nil
	}))
	return out
}

// exchangesOf are the record's events of exchanges.
func (r *rig) exchangesOf(kind string) (out []auditlog.Event) {
	for _, e := range r.events(kind) {
		if isExchange(e) {
			out = append(out, e)
		}
	}
	return out
}

// hides fails where a token or the client's secret stands in record, log or answer.
func (r *rig) hides(more ...string) {
	r.t.Helper()
	all := append(more, r.told.String())
	for _, e := range r.opened() {
		all = append(all, string(e.Body), fmt.Sprint(e.Detail), e.Rule)
	}
	for _, text := range all {
		for _, planted := range []string{"token-0", clientSecret} {
			if strings.Contains(text, planted) {
				r.t.Errorf("%s shows in %s", planted, text)
			}
		}
	}
}

// Each send of a call waits for its token: the exchange is a send of its own before
// it, and where the token ends in between there is another one.
func TestExchangeBeforeEachSend(t *testing.T) {
	const exchange = "POST /oauth2/token"
	for name, c := range map[string]struct {
		ends string // after this request the token is over
		want []string
	}{
		"one token":       {"", []string{exchange, "GET /heads/build", "POST /jobs", "GET /runs/r1", "GET /runs/r1"}},
		"for the request": {"/heads/build", []string{exchange, "GET /heads/build", exchange, "POST /jobs", "GET /runs/r1", "GET /runs/r1"}},
		"for the poll":    {"/jobs", []string{exchange, "GET /heads/build", "POST /jobs", exchange, "GET /runs/r1", "GET /runs/r1"}},
		"for each poll":   {"/runs/r1", []string{exchange, "GET /heads/build", "POST /jobs", "GET /runs/r1", exchange, "GET /runs/r1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				k := r.withTokens()
				s := said{head: headIs, post: taken, run: []reply{waits, done}}
				rest := s.script()
				r.remote.answer(issuing(func(method, path, body string) reply {
					if path == c.ends {
						k.drop()
					}
					return rest(method, path, body)
				}))
				r.want(r.call("start_job", "asked-0001", jobInput), "IN_PROGRESS")
				e := r.look("asked-0001", 50*time.Second)
				r.want(e, "OK")
				r.sent(c.want...)
				r.inOrder()
				r.hides(e.raw)
				for i, a := range r.remote.auth {
					if (r.remote.got[i] == exchange) != (a == "") {
						t.Errorf("%s went out with %q", r.remote.got[i], a)
					}
				}
			})
		})
	}
}

// A reconcile waits for its token like everything else.
func TestExchangeBeforeAReconcile(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		k := r.withTokens()
		s := said{head: headIs, post: []reply{{status: 500}}, job: []reply{started}}
		rest := s.script()
		r.remote.answer(issuing(func(method, path, body string) reply {
			if path == "/jobs" {
				k.drop()
			}
			return rest(method, path, body)
		}))
		r.want(r.call("start_job", "asked-0002", jobInput), "OK")
		r.sent("POST /oauth2/token", "GET /heads/build", "POST /jobs", "POST /oauth2/token", "GET /jobs/build")
		r.inOrder()
	})
}

// inOrder holds the record to intent, answer, outcome of one send after the other.
func (r *rig) inOrder() {
	r.t.Helper()
	open := uint64(0)
	for _, e := range r.events("") {
		switch e.Type {
		case auditlog.TypeIntent:
			if open != 0 {
				r.t.Errorf("intent %d while %d is open", e.Seq, open)
			}
			open = e.Seq
		case auditlog.TypeAnswer, auditlog.TypeOutcome:
			if e.IntentSeq != open {
				r.t.Errorf("%s of intent %d while %d is open", e.Type, e.IntentSeq, open)
			}
			if e.Type == auditlog.TypeOutcome {
				open = 0
			}
		}
	}
}

// The record of an exchange: of a success neither body nor header values, of a
// refusal the answer.
func TestExchangeIsRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		k := r.withTokens()
		s := said{head: headIs, post: taken, run: []reply{done}}
		rest := s.script()
		tokens := []reply{{status: 401, body: `{"error":"invalid_client"}`, header: http.Header{"X-Hint": {"who are you"}}}, {status: 200, body: "token-0001", header: http.Header{"X-Session": {"token-0001"}, "X-" + clientSecret: {"x"}}}}
		r.remote.answer(func(method, path, body string) reply {
			if path != "/oauth2/token" {
				return rest(method, path, body)
			}
			a := tokens[0]
			tokens = tokens[1:]
			return a
		})
		e := r.call("start_job", "asked-0003", jobInput)
		r.want(e, "REMOTE_UNAUTHENTICATED")
		r.sent("POST /oauth2/token")
		r.want(r.call("start_job", "asked-0004", jobInput), "IN_PROGRESS")
		r.want(r.look("asked-0004", 20*time.Second), "OK")
		r.hides(e.raw)

		intents, answers, outcomes := r.exchangesOf(auditlog.TypeIntent), r.exchangesOf(auditlog.TypeAnswer), r.exchangesOf(auditlog.TypeOutcome)
		if len(intents) != 2 || len(answers) != 2 || len(outcomes) != 2 {
			t.Fatalf("%d intents, %d answers, %d outcomes", len(intents), len(answers), len(outcomes))
		}
		if d := intents[0].Detail; d["step"] != "token" || d["identity"] != "bot" || d["endpoint"] != "POST http://127.0.0.1:7/oauth2/token" || intents[0].CallID != "asked-0003" || intents[0].Actor != rigAgent {
			t.Errorf("intent %+v", intents[0])
		}
		bodies := map[string]string{}
		for _, e := range r.opened() {
			bodies[e.EventID] = string(e.Body)
		}
		if b := bodies[answers[0].EventID]; !strings.Contains(b, "invalid_client") || !strings.Contains(b, "who are you") || outcomes[0].Status != "REMOTE_UNAUTHENTICATED" {
			t.Errorf("refused: %q, %s", b, outcomes[0].Status)
		}
		if b := bodies[answers[1].EventID]; b != "Content-Length\nContent-Type\nand 2 others\n" || answers[1].Detail["body_bytes"] != 10 || outcomes[1].Status != "IN_PROGRESS" {
			t.Errorf("done: %q, %v, %s", b, answers[1].Detail, outcomes[1].Status)
		}
		detail := r.g.CallDetail(CallInfo{RequestID: "asked-0004", Agent: rigAgent})
		steps := detail["steps"].([]StepDetail)
		if steps[0].Step != "token" || steps[0].Sends != 1 || steps[0].UpstreamStatus != 200 || detail["endpoint"] != "POST http://127.0.0.1:7/jobs" || detail["sentence"] == nil {
			t.Errorf("detail %+v", detail)
		}
		for result, want := range map[string]float64{"OK": 1, "REMOTE_UNAUTHENTICATED": 1} {
			if n := r.count("chatelaine_token_exchanges_total", result); n != want {
				t.Errorf("%v exchanges ended %s", n, result)
			}
		}
		if k.count != 1 {
			t.Errorf("%d tokens", k.count)
		}
	})
}

// How an exchange ends is how the call ends, of which nothing was sent.
func TestExchangeFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer reply
		want   string
		again  bool // the same id starts afresh
	}{
		"our secret is refused": {reply{status: 401}, "REMOTE_UNAUTHENTICATED", false},
		"too often":             {reply{status: 429}, "REMOTE_RATE_LIMITED", true},
		"down":                  {reply{status: 503}, "UPSTREAM_UNAVAILABLE", true},
		"no answer":             {lostIt, "UPSTREAM_UNAVAILABLE", true},
		"a redirect":            {reply{status: 302, header: http.Header{"Location": {"http://127.0.0.1:7/other"}}}, "INVALID_RESPONSE", false},
		"nonsense":              {reply{status: 200, body: "[]"}, "INVALID_RESPONSE", false},
		"too large":             {reply{status: 200, body: "token-" + strings.Repeat("x", 2<<20)}, "INVALID_RESPONSE", false},
		"too late":              {reply{status: 200, body: "token-0001", after: 16 * time.Second}, "UPSTREAM_UNAVAILABLE", true},
		"our secret comes back": {reply{status: 400, body: `{"error":"` + clientSecret + `"}`}, "INVALID_RESPONSE", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				r.withTokens()
				s := said{head: headIs, post: taken, run: []reply{done}}
				rest, good := s.script(), false
				r.remote.answer(func(method, path, body string) reply {
					switch {
					case path != "/oauth2/token":
						return rest(method, path, body)
					case good:
						return reply{status: 200, body: "token-0009"}
					}
					return c.answer
				})
				e := r.call("start_job", "asked-0005", jobInput)
				r.want(e, c.want)
				r.sent("POST /oauth2/token")
				r.hides(e.raw)
				r.inOrder()
				if run, un := r.ledger.Counts(); run+un != 0 || r.vault.out() != 0 {
					t.Errorf("%d run, %d unresolved, %d leases", run, un, r.vault.out())
				}
				if suspect := name == "our secret comes back"; (r.vault.suspects == 1) != suspect {
					t.Errorf("%d suspicions", r.vault.suspects)
				}
				good = true
				if !c.again {
					r.want(r.call("start_job", "asked-0005", jobInput), c.want)
					r.sent("POST /oauth2/token")
					return
				}
				r.want(r.call("start_job", "asked-0005", jobInput), "IN_PROGRESS")
				r.want(r.look("asked-0005", 20*time.Second), "OK")
			})
		})
	}
}

// A panic over the bytes of a token endpoint ends one exchange.
func TestExchangePanics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		r.withTokens().panics = true
		r.remote.answer(issuing(noneOf(t)))
		r.want(r.call("start_job", "asked-0006", jobInput), "INTERNAL")
		r.hides()
		r.inOrder()
		if n := r.count("chatelaine_panics_total", ""); n != 1 {
			t.Errorf("%v panics were counted", n)
		}
	})
}

// noneOf is a remote that nothing of a call may reach.
func noneOf(t *testing.T) func(method, path, body string) reply {
	return func(method, path, _ string) reply {
		t.Errorf("%s %s was sent", method, path)
		return reply{status: 500}
	}
}

// What cannot be recorded is not exchanged, and the secret goes only where the site
// file says.
func TestExchangeIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*rig, *fakeTokens)
		want  string
	}{
		"the record refuses":  {func(r *rig, _ *fakeTokens) { r.spoil() }, "AUDIT_UNAVAILABLE"},
		"another host":        {func(_ *rig, k *fakeTokens) { k.at.Host = "127.0.0.2" }, "TARGET_NOT_ALLOWED"},
		"another port":        {func(_ *rig, k *fakeTokens) { k.at.Port = 8 }, "TARGET_NOT_ALLOWED"},
		"another path":        {func(_ *rig, k *fakeTokens) { k.at.Path = "/other" }, "TARGET_NOT_ALLOWED"},
		"another scheme":      {func(_ *rig, k *fakeTokens) { k.at.Scheme = "https" }, "TARGET_NOT_ALLOWED"},
		"another authority":   {func(_ *rig, k *fakeTokens) { k.at.CADigest = "sha256:00" }, "TARGET_NOT_ALLOWED"},
		"the session is over": {func(r *rig, _ *fakeTokens) { r.revoke() }, "SESSION_REVOKED"},
		"the vault is locked": {func(r *rig, _ *fakeTokens) { r.lock() }, "VAULT_LOCKED"},
		"the daemon stops":    {func(r *rig, _ *fakeTokens) { r.g.draining.Store(true) }, "OVERLOADED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				r := newRig(t, job(true, false))
				k := r.withTokens()
				r.remote.answer(issuing(noneOf(t)))
				c.spoil(r, k)
				r.want(r.call("start_job", "asked-0007", jobInput), c.want)
				r.sent()
				if n := len(r.exchangesOf("")); n != 0 && c.want != "AUDIT_UNAVAILABLE" {
					t.Errorf("%d events of an exchange", n)
				}
				if c.want == "AUDIT_UNAVAILABLE" {
					r.restart()
				}
			})
		})
	}
}
