package actions

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

func TestPlanRequest(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	p := mustFreeze(t, set, c, `{"service":"api","environment":"test","version":"2.14","reason":"fixes \"retries\"","note":"a b&c=d+e"}`)
	r, err := p.Request(testNow)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "request", []string{
		r.Step(), r.Method(), r.Target().Name(), r.WirePath(), r.Query(), string(r.Body()), r.ContentType(), r.Timeout().String(),
	}, []string{
		"request", "POST", "deploy-test", "/api/v1/apps/shop%20api/releases/2.14", "note=a%20b%26c%3Dd%2Be",
		`{"at":"2026-01-05T10:00:00Z","reason":"fixes \"retries\""}`, "application/json", "10s",
	})
	want := map[string][]string{
		"Accept": {"application/json"}, "User-Agent": {"chatelaine"}, "Idempotency-Key": {testCall.IdempotencyKey},
	}
	if !reflect.DeepEqual(map[string][]string(r.Header()), want) {
		t.Errorf("headers %v", r.Header())
	}
	if !r.Change() || !r.ReuseConnection() {
		t.Error("a change with idempotency may reuse a connection")
	}
	same(t, "card", append([]string{p.Sentence(), p.DaemonLine()}, p.Lines()[0].Label, p.Lines()[0].Value), []string{
		"Start 2.14 of api in test", "change on deploy-test as test-bot, by contract start_release 1.2.0", "Reason", `"fixes \"retries\""`,
	})
	if v, ok := p.Scope(testNow)("target.app"); !ok || v != "shop api" {
		t.Error("scope")
	}
	if _, ok := p.Scope(testNow)("env.HOME"); ok {
		t.Error("the scope knows too much")
	}
}

// Whatever is sent or shown is under the digest; what is not sent is not.
func TestPlanDigestCovers(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	base := mustFreeze(t, set, c, goodInput)
	again := mustFreeze(t, set, c, goodInput)
	if base.Digest() != again.Digest() || base.Digest() == [32]byte{} {
		t.Fatal("the same call has two digests")
	}
	in := base.Input()
	differ := func(name string, p Plan, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(name, err)
		}
		if p.Digest() == base.Digest() {
			t.Errorf("%s is not under the digest", name)
		}
	}
	p, err := Freeze(c, base.Route(), in, IdentityFact{"test-bot", 4}, testCall)
	differ("the identity's generation", p, err)
	p, err = Freeze(c, base.Route(), in, IdentityFact{"test-bot", 3}, CallFacts{CallID: testCall.CallID, IdempotencyKey: "other"})
	differ("the idempotency key", p, err)
	for _, input := range []string{
		strings.Replace(goodInput, "2.14", "2.15", 1), strings.Replace(goodInput, "retries", "retry", 1),
		strings.Replace(goodInput, "test", "production", 1), strings.Replace(goodInput, "{", `{"note":"x",`, 1),
	} {
		p, err := freeze(t, set, c, input)
		differ(input, p, err)
	}
	for name, pair := range map[string][2]string{
		"address":   {"https://deploy.test.example/api", "https://deploy2.test.example/api"},
		"base path": {"https://deploy.test.example/api", "https://deploy.test.example/apj"},
		"port":      {"https://deploy.test.example/api", "https://deploy.test.example:444/api"},
		"pins":      {"    ask: session\n", "    ask: session\n    pin: [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=, sha256/BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]\n"},
		"kind":      {"test-bot: {kind: bearer}", "test-bot: {kind: basic, username: a}"},
	} {
		set, c := mustLoad(t, edit(t, goodSite, pair[0], pair[1]), goodContract)
		p, err := freeze(t, set, c, goodInput)
		differ(name, p, err)
	}
	for _, pair := range [][2]string{{"timeout: 10s", "timeout: 11s"}, {"app: shop api", "app: shop-api"}} {
		set, c := mustLoad(t, goodSite, edit(t, goodContract, pair[0], pair[1]))
		p, err := freeze(t, set, c, goodInput)
		differ(pair[1], p, err)
	}
}

// call.now is set at the first send, so the digest holds a marker for it, and
// every attempt of one call sends the same time.
func TestPlanNow(t *testing.T) {
	set, c := mustLoad(t, goodSite, edit(t, goodContract, "{from: call.now}", "{add_seconds: [{from: call.now}, 90]}"))
	p := mustFreeze(t, set, c, goodInput)
	if !strings.Contains(string(p.Canonical()), `call.now+90`) {
		t.Errorf("%s", p.Canonical())
	}
	for _, now := range []time.Time{testNow, testNow.Add(time.Hour)} {
		r, err := p.Request(now)
		if err != nil {
			t.Fatal(err)
		}
		if want := now.Add(90 * time.Second).Format(time.RFC3339); !strings.Contains(string(r.Body()), want) {
			t.Errorf("%s does not hold %s", r.Body(), want)
		}
	}
}

func TestZeroValuesRefuse(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	var p Plan
	if _, err := p.Request(testNow); fault.CodeOf(err) != fault.Internal {
		t.Error("a zero plan builds a request")
	}
	if p.Ask() != AskEveryCall || p.Reader() != nil || p.Contract() != nil || p.Canonical() != nil {
		t.Error("a zero plan says something")
	}
	if _, err := set.Resolve(c, Input{}); fault.CodeOf(err) != fault.Internal {
		t.Error("a zero input has a route")
	}
	good := mustFreeze(t, set, c, goodInput)
	if _, err := Freeze(c, Route{}, good.Input(), IdentityFact{"test-bot", 1}, testCall); err == nil {
		t.Error("a zero route is frozen")
	}
	if _, err := Freeze(c, good.Route(), good.Input(), IdentityFact{"prod-bot", 1}, testCall); fault.CodeOf(err) != fault.TargetNotAllowed {
		t.Error("another identity is frozen")
	}
	other, _ := LoadContract(c.Dir())
	if _, err := set.Resolve(other, good.Input()); err == nil {
		t.Error("an input of another contract has a route")
	}
}

func TestResolveRefuses(t *testing.T) {
	site := edit(t, goodSite, "    actions: [start_release]\n    effects: [change]", "    actions: [another_action]\n    effects: [change]")
	set, c := mustLoad(t, site, goodContract)
	same(t, "reach", c.Targets(), []string{"deploy-test"})
	_, err := freeze(t, set, c, strings.Replace(goodInput, "test", "production", 1))
	if fault.CodeOf(err) != fault.TargetNotAllowed || !strings.Contains(err.Error(), `"deploy-prod" does not list the action start_release`) {
		t.Error(err)
	}
}

func TestListRoute(t *testing.T) {
	contract := edit(t, goodContract,
		"  by: [environment]\n  cases:\n    - {environment: test, target: deploy-test, with: {app: shop api}}\n    - {environment: production, target: deploy-prod, with: {app: shop}}\n",
		"  by: environment\n  list: projects\n",
		"environment: {type: string, enum: [test, production]}", "environment: {type: string}")
	set, c := mustLoad(t, goodSite, contract)
	doc, _ := c.InputSchema().Doc().(map[string]any)
	enum, _ := walkPath(doc, "properties.environment.enum")
	if !reflect.DeepEqual(enum, []any{"alpha", "beta"}) {
		t.Errorf("published enum %v", enum)
	}
	p := mustFreeze(t, set, c, strings.Replace(goodInput, "test", "beta", 1))
	r, err := p.Request(testNow)
	if err != nil || r.Target().Name() != "deploy-prod" || r.WirePath() != "/v1/apps/beta/releases/2.14" {
		t.Error(err, r.WirePath())
	}
	for _, name := range []string{"gamma", "Alpha", "alpha ", "\u0430lpha", "../alpha", "https://alpha"} {
		_, err := freeze(t, set, c, strings.Replace(goodInput, "test", name, 1))
		if fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%q: %v", name, err)
		}
	}
	before := c.Digest()
	_, c2 := mustLoad(t, edit(t, goodSite, "alpha: {target: deploy-test,", "alpha: {target: deploy-prod,"), contract)
	if c2.Digest() == before {
		t.Error("a list that points elsewhere leaves the contract's digest as it was")
	}
	_, ps := load(t, edit(t, goodSite, "  projects:\n", "  project:\n"), contract)
	if len(ps) != 1 || ps[0].Message != `the site file has no list "projects"` || ps[0].Hint != `did you mean "project"?` {
		t.Error(ps)
	}
}

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name, site, contract, input string
		want                        Ask
	}{
		{"session everywhere", goodSite, goodContract, goodInput, AskSession},
		{"the target is stricter", goodSite, goodContract, strings.Replace(goodInput, "test", "production", 1), AskEveryCall},
		{"the identity is stricter", strings.Replace(goodSite, "test-bot: {kind: bearer}", "test-bot: {kind: bearer, ask: every_call}", 1), goodContract, goodInput, AskEveryCall},
		{"the contract is stricter", goodSite, strings.Replace(goodContract, "  show: {R", "  ask: every_call\n  show: {R", 1), goodInput, AskEveryCall},
		{"destroy", strings.Replace(strings.Replace(goodSite, "effects: [read, change]", "effects: [destroy]", 1), "effects: [change]", "effects: [destroy]", 1), strings.Replace(goodContract, "effect: change", "effect: destroy", 1), goodInput, AskEveryCall},
	} {
		set, k := mustLoad(t, c.site, c.contract)
		if got := mustFreeze(t, set, k, c.input).Ask(); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

const readText = `{"contract": "v1", "action": "get_thing", "version": "1.0.0", "summary": "Look at a thing.", "owner": "us", "effect": "read",
 "input": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {"name": {"type": "string", "enum": ["a", "b c"]}, "text": {"type": "string", "maxLength": 20}}},
 "route": {"target": "deploy-test"},
 "request": {"method": "GET", "path": "/things", "query": {"name": {"from": "input.name"}}, "outcomes": [{"status": 200, "media": "none", "success": {}}]},
 "result": {"type": "object", "additionalProperties": false, "properties": {}}}`

// A contract may be written as JSON; a read without approval shows its summary
// and all inputs.
func TestReadContract(t *testing.T) {
	site, dir := write(t, edit(t, goodSite, "    actions: [start_release]\n    effects: [read, change]", "    actions: [get_thing]\n    effects: [read, change]"), "action: get_thing\n")
	replaceFile(t, dir+"/get_thing/contract.yaml", readText)
	set, ps := LoadSet(site, dir)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	c, _ := set.Contract("get_thing")
	p := mustFreeze(t, set, c, `{"name":"b c","text":"x\u202ey"}`)
	got := []string{p.Sentence()}
	for _, l := range p.Lines() {
		got = append(got, l.Label+": "+l.Value)
	}
	same(t, "card", got, []string{"Look at a thing.", `name: "b c"`, `text: "x\u202ey"`})
	if p.Ask() != AskNever || c.atMostOnce != "" || !c.Idempotent() || c.Retry().Attempts != 1 {
		t.Error("a read is asked about or sent twice")
	}
	r, err := p.Request(testNow)
	if err != nil || r.Change() || !r.ReuseConnection() || r.Query() != "name=b%20c" || r.Body() != nil || r.ContentType() != "" {
		t.Error(err, r.Query())
	}
}

func TestSentenceRendering(t *testing.T) {
	for _, c := range []struct {
		v    any
		bare bool
		want string
	}{
		{"2.14.3", true, "2.14.3"},
		{"2.14.3", false, `"2.14.3"`},
		{"two words", true, `"two words"`},
		{"a\nb\tc", false, `"a\nb\tc"`},
		{"\u202egnp.exe", false, `"\u202egnp.exe"`},
		{"zero\u200bwidth", false, `"zero\u200bwidth"`},
		{`say "yes"`, false, `"say \"yes\""`},
		{strings.Repeat("é", 201), false, `"` + strings.Repeat("é", 200) + `"… (201 characters)`},
		{json.Number("1e3"), true, "1000"},
		{json.Number("-2.50"), true, "-2.5"},
		{true, true, "true"},
		{nil, true, "(not given)"},
		{[]any{"a", json.Number("1")}, true, `"[\"a\",1]"`},
	} {
		if got := rendered(c.v, c.bare); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

func TestSentenceForm(t *testing.T) {
	_, c := mustLoad(t, goodSite, goodContract)
	if got := c.SentenceForm(); got != "Start {version} of {service} in {environment}" {
		t.Error(got)
	}
}

// The bytes under the digest have one spelling.
func TestPlanCanonicalHasOneSpelling(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	b := mustFreeze(t, set, c, strings.Replace(goodInput, "{", `{"size":7.0,"labels":["é","\u0001"],`, 1)).Canonical()
	v, err := validate.Parse(b, validate.AnswerLimits())
	if err != nil || string(validate.Canonical(v)) != string(b) {
		t.Errorf("%v: %s", err, b)
	}
}

// A line that shows the time of sending says so: it is not known yet.
func TestShownNow(t *testing.T) {
	set, c := mustLoad(t, goodSite, edit(t, goodContract, "show: {Reason: {from: input.reason}}", "show: {Ends: {add_seconds: [{from: call.now}, 60]}, Id: {from: call.id}}"))
	p := mustFreeze(t, set, c, goodInput)
	same(t, "lines", []string{p.Lines()[0].Value, p.Lines()[1].Value}, []string{"(set when it is sent: call.now+60)", "act_01J0000000"})
}
