package actions

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

const stepsSite = `targets:
  releases:
    url: https://releases.example/api
    identity: release-bot
    actions: [roll_out]
    effects: [read, change]
    ask: session
    keeps_escaped_slash: true
    read_by_post: [/v1/search]
identities:
  release-bot: {kind: bearer}
`

// stepsContract has every kind of step.
func stepsContract(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "schema", "contract-steps.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const stepsInput = `{"service":"api","version":"2.14","reason":"fixes retries"}`

func TestStepRefusals(t *testing.T) {
	good := stepsContract(t)
	refusals(t, "testdata/step_refusals.txt", func(s slip) Problems {
		_, ps := load(t, stepsSite, edit(t, good, s.old, s.new))
		return ps
	})
}

// begin starts a call of the contract with steps.
func begin(t *testing.T, set *Set, c *Contract, input string) Looking {
	t.Helper()
	in, err := c.ParseInput(parseJSON(t, input))
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Resolve(c, in)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Begin(c, r, in, IdentityFact{r.Target().Identity(), 3}, testCall)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	appAnswer  = map[string]any{"id": decimal("17")}
	headAnswer = map[string]any{"sha": "0a1b2c3d", "version": decimal("41"), "etag": `"0a1b"`, "state": "it is\nquiet"}
	idAnswer   = map[string]any{"id": "r9"}
)

func line(r Request) string {
	s := r.Step() + " " + r.Method() + " " + r.WirePath()
	if r.Query() != "" {
		s += "?" + r.Query()
	}
	if v := r.Header().Get("If-Match"); v != "" {
		s += " If-Match " + v
	}
	return s + " " + string(r.Body())
}

// A call from its first lookup to its reconcile: what each step sends.
func TestEveryStepSends(t *testing.T) {
	set, c := mustLoad(t, stepsSite, stepsContract(t))
	policy, polls := c.Poll()
	same(t, "steps", append(c.Lookups(), policy.Every.String(), policy.Within.String()), []string{"app", "head", "5s", "10m0s"})
	if !polls || !c.HasReconcile() || c.Idempotent() {
		t.Error("the contract's own words")
	}
	l := begin(t, set, c, stepsInput)
	var sent []string
	for _, answer := range []map[string]any{appAnswer, headAnswer} {
		s, err := l.Step(testNow)
		name, more := l.Next()
		if err != nil || !more || s.Kind() != StepLookup || s.Name() != name || s.Request().Change() || !s.Request().ReuseConnection() {
			t.Fatalf("%v %s %v", err, name, s.Kind())
		}
		if _, err := l.Freeze(); fault.CodeOf(err) != fault.Internal {
			t.Error("a plan without its lookups")
		}
		sent = append(sent, line(s.Request()))
		l = l.With(answer)
	}
	p, err := l.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []StepKind{StepRequest, StepPoll, StepReconcile} {
		s, err := p.Step(kind, testNow, map[string]any{"id": "r9"})
		if err != nil {
			t.Fatal(kind, err)
		}
		if s.Kind() != kind || s.Name() != kind.String() || s.Reader() == nil || s.Request().Change() != (kind == StepRequest) {
			t.Errorf("%s: %v %s", kind, s.Kind(), s.Name())
		}
		if s.Request().ReuseConnection() != (kind != StepRequest) {
			t.Errorf("%s may reuse a connection: %v", kind, s.Request().ReuseConnection())
		}
		sent = append(sent, line(s.Request()))
	}
	key := testCall.IdempotencyKey
	same(t, "sent", sent, []string{
		"app GET /api/v1/apps/shop ",
		"head GET /api/v1/apps/17/services/api/head?at=2026-01-05T10%3A00%3A00Z ",
		`request POST /api/v1/apps/17/releases If-Match "0a1b" {"base":"0a1b2c3d","key":"` + key + `","reason":"fixes retries","service":"api","version":"2.14"}`,
		"poll GET /api/v1/apps/17/releases/r9 ",
		"reconcile GET /api/v1/apps/17/releases?key=" + key + "&version=2.14 ",
	})
	card := []string{p.Sentence()}
	for _, l := range p.Lines() {
		card = append(card, l.Label+": "+l.Value)
	}
	same(t, "card", card, []string{
		"Roll 2.14 of api out over 41", `Reason: "fixes retries"`, `Revision: "0a1b2c3d"`, `State: "it is\nquiet"`,
	})
}

// Each step's answer is read by its own rows, against the values known there.
func TestEveryStepReads(t *testing.T) {
	set, c := mustLoad(t, stepsSite, stepsContract(t))
	l := begin(t, set, c, stepsInput)
	p := frozen(t, set, c)
	read := func(s Step, err error, status int, body string) *validate.Proved {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		raw := validate.Raw{Status: status, Header: map[string][]string{"Content-Type": {"application/json"}, "Etag": {`"0a1b"`}}, Body: []byte(body)}
		proved, no := s.Reader().Prove(raw, s.Scope(), testNow)
		if no != nil {
			t.Fatal(s.Name(), no)
		}
		return proved
	}
	app, err := l.Step(testNow)
	got, _ := read(app, err, 200, `{"id":17}`).Captured()
	if !reflect.DeepEqual(got, appAnswer) {
		t.Errorf("%v", got)
	}
	head, err := l.With(appAnswer).Step(testNow)
	got, _ = read(head, err, 200, `{"sha":"0a1b2c3d","version":41,"state":null}`).Captured()
	if want := map[string]any{"sha": "0a1b2c3d", "version": decimal("41"), "etag": `"0a1b"`}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	req, err := p.Step(StepRequest, testNow, nil)
	got, _ = read(req, err, 202, `{"id":"r9"}`).Captured()
	if !reflect.DeepEqual(got, idAnswer) {
		t.Errorf("%v", got)
	}
	poll, err := p.Step(StepPoll, testNow, idAnswer)
	if !read(poll, err, 200, `{"id":"r9","state":"live","version":42}`).OK() || !read(poll, err, 200, `{"id":"r9","state":"x","version":42}`).Pending() || !read(poll, err, 503, ``).Pending() {
		t.Error("the poll")
	}
	raw := validate.Raw{Status: 200, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"id":"r9","state":"live","version":41}`)}
	if _, no := poll.Reader().Prove(raw, poll.Scope(), testNow); no == nil || no.Rule != "increased" {
		t.Errorf("a version that did not rise: %v", no)
	}
	rec, err := p.Step(StepReconcile, testNow, nil)
	if effect, said := read(rec, err, 200, `[{"id":"r9","service":"api","version":42}]`).TookEffect(); !effect || !said {
		t.Error("it took effect")
	}
	if effect, said := read(rec, err, 200, `[{"id":"r9","service":"worker","version":42}]`).TookEffect(); effect || said {
		t.Error("another service's release tells something")
	}
	if effect, said := read(rec, err, 200, `[]`).TookEffect(); effect || !said {
		t.Error("it did not take effect")
	}
}

func frozen(t *testing.T, set *Set, c *Contract) Plan {
	t.Helper()
	p, err := begin(t, set, c, stepsInput).With(appAnswer).With(headAnswer).Freeze()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What the lookups found is under the digest, and nobody can change it.
func TestLookedUpValuesAreUnderTheDigest(t *testing.T) {
	set, c := mustLoad(t, stepsSite, stepsContract(t))
	base := frozen(t, set, c)
	for name, v := range map[string]any{"sha": "0a1b2c3e", "version": decimal("40"), "etag": `"0a1c"`, "state": nil} {
		head := copied(headAnswer)
		head[name] = v
		p, err := begin(t, set, c, stepsInput).With(appAnswer).With(head).Freeze()
		if err != nil {
			t.Fatal(err)
		}
		if p.Digest() == base.Digest() {
			t.Errorf("%s is not under the digest", name)
		}
	}
	own := copied(headAnswer)
	l := begin(t, set, c, stepsInput).With(appAnswer).With(own)
	own["sha"] = "changed"
	p, err := l.Freeze()
	if err != nil || p.Digest() != base.Digest() {
		t.Error("the caller's map is still the plan's", err)
	}
	p.Looked()["head"]["sha"] = "changed"
	if p.Looked()["head"]["sha"] != "0a1b2c3d" || !strings.Contains(string(p.Canonical()), `"looked":{"app":{"id":17},"head":{`) {
		t.Errorf("%v %s", p.Looked(), p.Canonical())
	}
}

// An answer that fits its schema and still cannot be part of a path is an answer
// that the contract does not allow.
func TestCapturedValuesAreHeldToThePathAgain(t *testing.T) {
	set, c := mustLoad(t, stepsSite, stepsContract(t))
	p := frozen(t, set, c)
	for _, id := range []any{"..", ".", "", "a/b", "a%2fb", "r 9", "é", decimal("-1"), decimal("1.5"), true, nil} {
		if s, err := p.Step(StepPoll, testNow, map[string]any{"id": id}); err == nil || s.Request().Method() != "" {
			t.Errorf("%v is part of a path", id)
		} else if code := fault.CodeOf(err); code != fault.InvalidResponse {
			t.Errorf("%v: %s", id, code)
		}
		l := begin(t, set, c, stepsInput).With(map[string]any{"id": id})
		if _, err := l.Step(testNow); fault.CodeOf(err) != fault.InvalidResponse {
			t.Errorf("%v: %v", id, err)
		}
		if _, err := l.With(headAnswer).Freeze(); fault.CodeOf(err) != fault.InvalidResponse {
			t.Errorf("%v: %v", id, err)
		}
	}
	if _, err := p.Step(StepPoll, testNow, nil); fault.CodeOf(err) != fault.InvalidResponse {
		t.Error(err)
	}
}

func TestStepsOfNothing(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	p := mustFreeze(t, set, c, goodInput)
	for _, kind := range []StepKind{0, StepLookup, StepPoll, StepReconcile, 9} {
		if _, err := p.Step(kind, testNow, nil); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: %v", kind, err)
		}
	}
	var l Looking
	if _, more := l.Next(); more {
		t.Error("nothing has a lookup")
	}
	if _, err := l.Step(testNow); err == nil {
		t.Error("nothing sends a lookup")
	}
	if _, err := l.With(nil).Freeze(); fault.CodeOf(err) != fault.Internal {
		t.Error("nothing is frozen")
	}
	if s := (Step{}); s.Kind() != 0 || s.Name() != "" || s.Reader() != nil || s.Request().Method() != "" {
		t.Error("a zero step says something")
	} else if _, known := s.Scope()("call.id"); known {
		t.Error("a zero step has a scope")
	}
	if p.Looked() == nil || len(p.Looked()) != 0 || (Plan{}).Looked() != nil {
		t.Error("looked")
	}
	if _, polls := c.Poll(); polls || c.HasReconcile() || c.Lookups() != nil {
		t.Error("a plain contract has more than a request")
	}
	in, r := p.Input(), p.Route()
	if _, err := Begin(c, r, in, IdentityFact{"prod-bot", 1}, testCall); fault.CodeOf(err) != fault.TargetNotAllowed {
		t.Error(err)
	}
	if l, err := Begin(c, r, in, p.Identity(), testCall); err != nil {
		t.Error(err)
	} else if q, err := l.With(map[string]any{"a": "b"}).Freeze(); err != nil || q.Digest() != p.Digest() {
		t.Error("an answer that nobody asked for counts", err)
	}
}

// call.now of a lookup is its own, of everything after it the request's.
func TestNowOfEachStep(t *testing.T) {
	text := edit(t, stepsContract(t), "  path: /v1/apps/{app.id}/releases/{request.id}\n", "  path: /v1/apps/{app.id}/releases/{request.id}\n  query: {since: {from: call.now}}\n")
	set, c := mustLoad(t, stepsSite, text)
	l := begin(t, set, c, stepsInput).With(appAnswer)
	s, err := l.Step(testNow)
	if err != nil || !strings.Contains(s.Request().Query(), "10%3A00%3A00Z") {
		t.Error(err, s.Request().Query())
	}
	p, err := l.With(headAnswer).Freeze()
	if err != nil {
		t.Fatal(err)
	}
	later := testNow.Add(90 * time.Second)
	s, err = p.Step(StepPoll, later, idAnswer)
	if err != nil || s.Request().Query() != "since=2026-01-05T10%3A01%3A30Z" {
		t.Error(err, s.Request().Query())
	}
	if v, _ := s.Scope()("call.now"); v != "2026-01-05T10:01:30Z" {
		t.Error(v)
	}
}

// Other good contracts: what the rules let through.
func TestGoodSteps(t *testing.T) {
	for name, pairs := range map[string][]string{
		"poll by POST":                {"  within: 10m\n  method: GET\n  path: /v1/apps/{app.id}/releases/{request.id}\n", "  within: 10m\n  method: POST\n  reads: a search\n  path: /v1/search\n  json: {id: {from: request.id}}\n"},
		"reconcile by POST":           {"reconcile:\n  method: GET\n  path: /v1/apps/{app.id}/releases\n  query: {key: {from: call.idempotency_key}, version: {from: input.version}}\n", "reconcile:\n  method: POST\n  reads: a search\n  path: /v1/search\n  json: {version: {from: input.version}, id: {from: request.id, optional: true}}\n"},
		"two rows go on":              {"        failure: NO_HEAD\n", "        capture: {}\n", "headers: {If-Match: {from: head.etag}}", "headers: {If-Match: {from: head.etag, optional: true}}", "base: {from: head.sha}", "base: {from: head.sha, optional: true}", "Revision: {from: head.sha}", "Revision: {from: head.sha, optional: true}"},
		"a header integer in a path":  {"        capture: {id: /id}\n  head:", "        capture: {id: {header: X-App, integer: true}}\n  head:"},
		"a segment of a location":     {"        capture: {id: /id}\n  head:", "        capture: {id: {header: Location, last_segment: true, integer: true}}\n  head:"},
		"a mapped word in a path":     {"        capture: {id: /id}\n  head:", "        capture: {id: {const: shop, map: {shop: '1', market: '2'}}}\n  head:"},
		"text of a number in a path":  {"        capture: {id: /id}\n  head:", "        capture: {id: {at: /id, text: true, prefix: n}}\n  head:"},
		"bound by when":               {"    key: {from: call.idempotency_key}\n", "", "  query: {key: {from: call.idempotency_key}, version: {from: input.version}}\n  outcomes:\n    - status: 200\n      when: {count: ['', '==', 1]}\n", "  outcomes:\n    - status: 200\n      when: {all_of: [{count: ['', '==', 1]}, {some: ['', {equals: [/tag, {from: input.version}]}]}]}\n", "          properties: {id: {type: string}, service: {type: string}, version: {type: integer}}\n      took", "          properties: {id: {type: string}, service: {type: string}, version: {type: integer}, tag: {type: string}}\n      took"},
		"bound by find":               {"    key: {from: call.idempotency_key}\n", "", "  query: {key: {from: call.idempotency_key}, version: {from: input.version}}\n", "", "equals: [/service, {from: input.service}]", "equals: [/id, {from: input.version}]"},
		"bound by the call's own key": {"  query: {key: {from: call.idempotency_key}, version: {from: input.version}}\n", "  query: {key: {from: call.idempotency_key}}\n"},
		"no poll row but pending":     {"    - status: 204\n      media: none\n      pending: true\n", "    - status: [204, 205]\n      media: none\n      pending: true\n"},
		"a poll that fails at 500":    {"      failure: ROLLOUT_FAILED\n", "      failure: ROLLOUT_FAILED\n    - status: 500\n      failure: UPSTREAM_UNAVAILABLE\n"},
		"escaped slash":               {"/releases/{request.id}", "/releases/{request.id%}"},
		"a list from a lookup":        {"          properties: {id: {type: integer, minimum: 1, maximum: 99999999}}\n        capture: {id: /id}", "          properties: {id: {type: integer, minimum: 1, maximum: 99999999}, tags: {type: array, maxItems: 3, items: {type: string, maxLength: 9}}}\n        capture: {id: /id, tags: {at: /tags, optional: true}}", "    base: {from: head.sha}\n", "    base: {from: head.sha}\n    tags: {each: {from: app.tags, optional: true}, as: tag, give: {name: {from: tag}}}\n"},
	} {
		_, ps := load(t, stepsSite, edit(t, stepsContract(t), pairs...))
		if len(ps) > 0 {
			t.Errorf("%s: %v", name, told(ps))
		}
	}
}

// A key that the request did not send marks nothing.
func TestTookEffectNeedsAMarkThatWasSent(t *testing.T) {
	query := "  query: {key: {from: call.idempotency_key}, version: {from: input.version}}\n"
	for _, pairs := range [][]string{
		{"    key: {from: call.idempotency_key}\n", "", query, "  query: {key: {from: call.idempotency_key}}\n"},
		{query, "  query: {key: {from: call.id}}\n"},
		{"    key: {from: call.idempotency_key}\n", "", query, "  query: {key: {from: call.idempotency_key}}\n", "checks:\n", "idempotency: {header: Idempotency-Key}\nchecks:\n"},
	} {
		_, ps := load(t, stepsSite, edit(t, stepsContract(t), pairs...))
		if len(ps) != 1 || ps[0].Rule != "reconcile" || !strings.Contains(ps[0].Message, `"version"`) {
			t.Errorf("%v", told(ps))
		}
	}
	set, _ := mustLoad(t, stepsSite, edit(t, stepsContract(t), "    key: {from: call.idempotency_key}\n", "", query, "  query: {key: {from: call.idempotency_key}}\n", "checks:\n", "idempotency: {json: /key}\nchecks:\n"))
	if len(set.Contracts()) != 1 {
		t.Error("the key that the daemon writes into the body marks the thing")
	}
}
