package gateway

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/actions"
	"chatelaine/internal/approvals"
	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
	"chatelaine/internal/validate"
)

// shippedSet loads the shipped contracts.
func shippedSet(t testing.TB) *actions.Set {
	t.Helper()
	set, problems := actions.LoadSet("../../contracts/targets.yaml", "../../contracts")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set
}

// waiter is a gateway with a real ledger and nothing that sends.
func waiter(t *testing.T, set *actions.Set) *Gateway {
	t.Helper()
	store, err := durable.OpenStore(filepath.Join(t.TempDir(), "ledger.db"), time.Second, ledger.Buckets()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	led, err := ledger.Open(store, ledger.Options{Keep: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := led.Unlock(ledger.Keys{Index: make([]byte, 32), Wrap: append(make([]byte, 31), 1)}); err != nil {
		t.Fatal(err)
	}
	g := &Gateway{ledger: led, metrics: NewMetrics(prometheus.NewRegistry()), logger: slog.New(slog.DiscardHandler)}
	g.set.Store(set)
	g.lives.init(8)
	return g
}

func claimOne(t *testing.T, g *Gateway, id string) *ledger.Call {
	t.Helper()
	c, v, err := g.ledger.Claim(ledger.Owner{Agent: "a"}, id, "deploy_release", [32]byte{byte(len(id))}, true)
	if err != nil || v != ledger.Fresh {
		t.Fatalf("claim: %v %v", v, err)
	}
	return c
}

func codeIn(a Answer) string {
	_, rest, _ := strings.Cut(string(a.Body), `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

// When a caller is answered: at once with a card, after its wait without an end,
// and not before the end where nobody is asked.
func TestAwait(t *testing.T) {
	set := shippedSet(t)
	for _, c := range []struct {
		name      string
		wait      time.Duration
		untilDone bool
		asks      time.Duration // when a card opens; negative: never
		noted     time.Duration // when the live call is in the table
		ends      time.Duration // when it ends; negative: never
		leaves    time.Duration // when the caller hangs up; negative: never
		after     time.Duration
		code      string
	}{
		{"a card at once", 0, true, 0, 0, -1, -1, 0, "APPROVAL_REQUIRED"},
		{"a card later", 0, true, 3 * time.Second, 0, -1, -1, 3 * time.Second, "APPROVAL_REQUIRED"},
		{"a card, and a long poll", 20 * time.Second, true, 0, 0, -1, -1, 20 * time.Second, "APPROVAL_REQUIRED"},
		{"a card, decided during the long poll", 20 * time.Second, true, 0, 0, 7 * time.Second, -1, 7 * time.Second, "CANCELLED"},
		{"nobody is asked", 0, true, -1, 0, 25 * time.Second, -1, 25 * time.Second, "CANCELLED"},
		{"nobody is asked, looked at", 10 * time.Second, false, -1, 0, 25 * time.Second, -1, 10 * time.Second, "IN_PROGRESS"},
		{"the caller hangs up", 0, true, -1, 0, 25 * time.Second, 2 * time.Second, 2 * time.Second, "IN_PROGRESS"},
		{"joined before it was noted", 0, true, 0, time.Second, -1, -1, time.Second, "APPROVAL_REQUIRED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := waiter(t, set)
				call := claimOne(t, g, "await-0001")
				l := newLive(call, sessions.Session{})
				at := func(d time.Duration, f func()) {
					if d >= 0 {
						time.AfterFunc(d, f)
					}
				}
				if c.noted == 0 {
					g.lives.add(l)
				}
				at(c.noted, func() {
					if g.lives.get(call) == nil {
						g.lives.add(l)
					}
				})
				at(c.asks, func() {
					time.Sleep(c.noted)
					l.ask(ticketOf(t, set), &planned{})
				})
				at(c.ends, func() {
					l.asked()
					if err := call.Cancel(nil); err != nil {
						t.Error(err)
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				at(c.leaves, cancel)
				began := time.Now()
				a := g.await(ctx, call, c.wait, c.untilDone)
				if took := time.Since(began); took < c.after || took > c.after+time.Second/10 || codeIn(a) != c.code {
					t.Errorf("after %s: %d %s, want %s after %s", took, a.Status, a.Body, c.code, c.after)
				}
			})
		})
	}
}

// What may leave the table of pins: a digest for every action, another one once
// anything of it changes.
func TestPins(t *testing.T) {
	set := shippedSet(t)
	g := &Gateway{}
	g.set.Store(set)
	pins := g.Pins()
	seen := map[string]string{}
	for _, c := range set.Contracts() {
		p := pins[c.Action()]
		if len(p) != 64 || seen[p] != "" {
			t.Errorf("%s has the pin %q, which is also %s's", c.Action(), p, seen[p])
		}
		seen[p] = c.Action()
	}
	permits, card := g.Permits()
	named := map[string]bool{}
	for _, p := range permits {
		named[p.Action] = true
		c, _ := set.Contract(p.Action)
		target, _ := set.Target(p.Target)
		if c.Effect() == actions.Read || c.AskAt(target) != actions.AskSession || p.Target == "deploy-prod" {
			t.Errorf("a session's card permits %+v", p)
		}
	}
	if len(card) != len(named) || !named["deploy_release"] || !named["create_silence"] || card["deploy_release"] != pins["deploy_release"] {
		t.Errorf("the card's pins are %v", card)
	}
	g.Hold(map[string]bool{"deploy_release": true})
	if _, err := g.serving(set, "deploy_release"); fault.CodeOf(err) != fault.UnknownAction {
		t.Errorf("a held action: %v", err)
	}
	if _, err := g.serving(set, "get_job_run"); err != nil {
		t.Errorf("another action: %v", err)
	}
	if _, held := g.Permits(); len(held) != len(card)-1 || held["deploy_release"] != "" {
		t.Errorf("a card permits a held action: %v", card)
	}
	g.Hold(nil)
	if _, err := g.serving(set, "deploy_release"); err != nil {
		t.Errorf("after the proof: %v", err)
	}
}

// ticketOf opens a real card.
func ticketOf(t *testing.T, set *actions.Set) *approvals.Ticket {
	t.Helper()
	c, _ := set.Contract("deploy_release")
	doc, err := validate.Parse([]byte(`{"service":"api","environment":"production","version":"1.0.0","reason":"r"}`), validate.CallerLimits())
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.ParseInput(doc)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Resolve(c, in)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := actions.Freeze(c, r, in, actions.IdentityFact{Name: r.Target().Identity(), Generation: 1},
		actions.CallFacts{CallID: "await-0001", IdempotencyKey: "3f2b8a8e-8f0a-4b6e-9d7c-5a1f0e2d3c4b"})
	if err != nil {
		t.Fatal(err)
	}
	desk := approvals.NewDesk(approvals.Options{DaemonID: "dmn_test", CardLife: time.Hour, Verify: func(string, [32]byte, []byte) error { return nil }})
	ticket, err := desk.Open(approvals.CardRequest{CallID: "await-0001", SessionID: "ses_a", Agent: "a", CallerLabel: "a", Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}
