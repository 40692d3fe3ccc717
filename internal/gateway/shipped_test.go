package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/durable"
	"chatelaine/internal/executor"
	"chatelaine/internal/ledger"
	"chatelaine/internal/validate"
)

const shippedContracts = "../../contracts"

// shippedAnswer is one answer of a fixture, and the step that it answers.
type shippedAnswer struct {
	step actions.Step
	now  time.Time
	executor.Exchange
}

// shippedAnswers is one contract with a plan of it and the answers of its
// fixtures.
type shippedAnswers struct {
	contract *actions.Contract
	plan     actions.Plan
	call     *ledger.Call
	now      time.Time
	rows     map[string]map[string]any // by row: result or display member → pick, as the contract writes it
	answers  []shippedAnswer
}

func loadAnswers(t testing.TB) []shippedAnswers {
	t.Helper()
	set, problems := actions.LoadSet(shippedContracts+"/targets.yaml", shippedContracts)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	store, err := durable.OpenStore(filepath.Join(t.TempDir(), "ledger.db"), time.Second, ledger.Buckets()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	calls, err := ledger.Open(store, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := calls.Unlock(ledger.Keys{Index: make([]byte, durable.SealKeySize), Wrap: make([]byte, durable.SealKeySize)}); err != nil {
		t.Fatal(err)
	}
	var out []shippedAnswers
	for _, c := range set.Contracts() {
		s := shippedAnswers{contract: c, rows: rowPicks(t, c)}
		files, err := filepath.Glob(filepath.Join(shippedContracts, c.Action(), "fixtures", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files { // the accepted ones come first by name
			s.read(t, set, file)
		}
		if s.plan.Contract() == nil || len(s.answers) == 0 {
			t.Fatalf("%s: no fixture could be read", c.Action())
		}
		if s.call, _, err = calls.Claim(ledger.Owner{Agent: "tests"}, "", c.Action(), s.plan.Input().Digest(c.Action()), false); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func parseYAML(t testing.TB, path string) *strictyaml.Node {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := strictyaml.Parse(path, b, strictyaml.Limits{Bytes: 4 << 20, Nodes: 100_000})
	if f.Root() == nil {
		t.Fatal(f.Problems())
	}
	return f.Root()
}

// rowPicks reads the picks of every row from the contract's text.
func rowPicks(t testing.TB, c *actions.Contract) map[string]map[string]any {
	t.Helper()
	root := parseYAML(t, filepath.Join(shippedContracts, c.Action(), "contract.yaml"))
	out := map[string]map[string]any{}
	for _, step := range []string{"request", "poll", "reconcile"} {
		if root.Get(step) == nil {
			continue
		}
		for i, row := range root.Get(step).Get("outcomes").Items {
			picks := map[string]any{}
			for _, part := range []string{"success", "display"} {
				if n := row.Get(part); n != nil {
					m, _ := n.Value().(map[string]any)
					maps.Copy(picks, m)
				}
			}
			out[fmt.Sprintf("%s.outcomes[%d]", step, i)] = picks
		}
	}
	return out
}

// read takes a fixture's answers, each with the step of a call as the fixture has
// it. A fixture whose call is not sent at all has none.
func (s *shippedAnswers) read(t testing.TB, set *actions.Set, file string) {
	t.Helper()
	root := parseYAML(t, file)
	if root.Get("answers") == nil {
		return
	}
	plan, now, ok := s.freeze(t, set, root)
	if !ok {
		return
	}
	request, err := plan.Step(actions.StepRequest, now, nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	captured := capturedBy(request, now, root)
	if s.plan.Contract() == nil {
		s.plan, s.now = plan, now
	}
	for _, a := range root.Get("answers").Items {
		kind, known := map[string]actions.StepKind{
			"request": actions.StepRequest, "poll": actions.StepPoll, "reconcile": actions.StepReconcile,
		}[a.Get("step").Text]
		if !known {
			continue // a lookup comes before anything that an agent reads
		}
		step, err := plan.Step(kind, now, captured)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s.answers = append(s.answers, shippedAnswer{step, now, exchangeOf(a)})
	}
}

// freeze goes the way of a call up to its plan, with the fixture's answers to the
// lookups. It fails where the call ends before that.
func (s *shippedAnswers) freeze(t testing.TB, set *actions.Set, root *strictyaml.Node) (plan actions.Plan, now time.Time, ok bool) {
	t.Helper()
	in, err := s.contract.ParseInput(root.Get("input").Value())
	if err != nil {
		return plan, now, false
	}
	route, err := set.Resolve(s.contract, in)
	if err != nil {
		return plan, now, false
	}
	if n := root.Get("now"); n != nil {
		if now, err = time.Parse(time.RFC3339, n.Text); err != nil {
			t.Fatal(err)
		}
	}
	id := actions.IdentityFact{Name: route.Target().Identity(), Generation: 1}
	facts := actions.CallFacts{CallID: "act_boundary0001", IdempotencyKey: "3f0c8a52-6f0d-4a53-9d1c-0d5e0f1f5a11"}
	for key, into := range map[string]*string{"call_id": &facts.CallID, "idempotency_key": &facts.IdempotencyKey} {
		if n := root.Get(key); n != nil {
			*into = n.Text
		}
	}
	l, err := actions.Begin(s.contract, route, in, id, facts)
	if err != nil {
		return plan, now, false
	}
	for _, more := l.Next(); more; _, more = l.Next() {
		step, err := l.Step(now)
		if err != nil {
			return plan, now, false
		}
		captured := capturedBy(step, now, root)
		if captured == nil {
			return plan, now, false
		}
		l = l.With(captured)
	}
	plan, err = l.Freeze()
	return plan, now, err == nil
}

// capturedBy is what a fixture's answers to a step give, nil where nothing.
func capturedBy(step actions.Step, now time.Time, root *strictyaml.Node) map[string]any {
	for _, a := range root.Get("answers").Items {
		if a.Get("step").Text != step.Name() {
			continue
		}
		x := exchangeOf(a)
		raw := validate.Raw{Status: x.Status, Header: x.Header, Body: x.Body}
		if p, no := step.Reader().Prove(raw, step.Scope(), now); no == nil {
			if captured, ok := p.Captured(); ok {
				return captured
			}
		}
	}
	return nil
}

func exchangeOf(a *strictyaml.Node) executor.Exchange {
	x := executor.Exchange{Answered: true, Wrote: true, Status: 200, Header: http.Header{}}
	if n := a.Get("status"); n != nil {
		fmt.Sscan(n.Text, &x.Status)
	}
	if h := a.Get("headers"); h != nil {
		for _, m := range h.Members {
			x.Header.Set(m.Key, m.Value.Text)
		}
	}
	if b := a.Get("body"); b != nil {
		x.Body = []byte(b.Text)
	}
	return x
}

// answer goes the way of attempt.go from what came to the envelope, at the time
// of the fixtures. The envelope is nil where the answer ends nothing.
func (s shippedAnswers) answer(t testing.TB, g *Gateway, a shippedAnswer) (judged, []byte) {
	t.Helper()
	x := a.Exchange
	var j judged
	j.contract, j.plan, j.call, j.exchange, j.lease, j.step = s.contract, s.plan, s.call, x, noLease{}, a.step
	raw := validate.Raw{Status: x.Status, Header: x.Header, Trailer: x.Trailer, Body: x.Body}
	p, no := a.step.Reader().Prove(raw, a.step.Scope(), a.now)
	j.proved = p
	switch {
	case no != nil:
		j.reject(no)
	case p.OK():
		g.noSecretInside(&j)
	default:
		code, _ := p.Failure()
		if code == "" {
			return j, nil
		}
		j.fault = g.failure(&j, p, a.now)
	}
	if j.fault != nil {
		return j, g.envelopeError(s.contract, s.call.RequestID(), j.fault)
	}
	body, err := g.envelopeOK(s.contract, s.call.RequestID(), p)
	if err != nil {
		t.Fatalf("%s: a proved answer does not fit its envelope: %v\n%s", s.contract.Action(), err, body)
	}
	return j, body
}
