package actions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shownContract is the good contract with every input on its card.
func shownContract(t *testing.T) string {
	return edit(t, goodContract, "show: {Reason: {from: input.reason}}",
		"show: {Reason: {from: input.reason}, Note: {from: input.note, optional: true}, Size: {from: input.size, optional: true}, Labels: {from: input.labels, optional: true}}")
}

var goodFixtures = map[string]string{
	"accepted.yaml":  "want: {ok: true}\n",
	"near-miss.yaml": "want: {ok: false, code: INVALID_RESPONSE}\n",
	"failure.yaml":   "answers: [{step: request, status: 409}]\nwant: {ok: false, code: BUSY}\n",
}

// lint loads a contract with fixtures and gives what the lint says.
func lint(t *testing.T, site, contract string, fixtures map[string]string) []string {
	t.Helper()
	sitePath, dir := write(t, site, contract)
	folder := filepath.Join(dir, "start_release", "fixtures")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range fixtures {
		replaceFile(t, filepath.Join(folder, name), text)
	}
	set, ps := LoadSet(sitePath, dir)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	agrees(t, site, contract)
	var out []string
	for _, f := range Lint(set.Contracts()[0], set) {
		if f.Page == "" || f.Hint == "" || f.File == "" {
			t.Errorf("%s says too little: %+v", f.Rule, f)
		}
		out = append(out, fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Rule, f.Message))
	}
	return out
}

// The oldest rules in one contract: where each is found, and that the nearest
// good contract is silent. Every rule has its own examples in testdata/rules.
func TestLintRules(t *testing.T) {
	good := shownContract(t)
	if got := lint(t, goodSite, good, goodFixtures); len(got) > 0 {
		t.Fatalf("the good contract: %v", got)
	}
	without := func(name string) map[string]string {
		out := map[string]string{}
		for k, v := range goodFixtures {
			if k != name {
				out[k] = v
			}
		}
		return out
	}
	notDone := edit(t, good, "      failure: BUSY\n", "      failure: BUSY\n    - status: 503\n      failure: UPSTREAM_UNAVAILABLE\n      not_done: true\n")
	keyFile := filepath.Join(t.TempDir(), "signer.json")
	keys, _ := edKeys("k1")
	replaceFile(t, keyFile, keys)
	signed := func(claims string) string {
		return edit(t, good, "required: [id], properties: {id: {type: string, maxLength: 20}}}\n      success", "required: [id, evidence], properties: {id: {type: string, maxLength: 20}, evidence: {type: string, maxLength: 4000}}}\n      success",
			"idempotency: {header", "checks: [{signed: {jws: /evidence, keys: signer, issuer: a, audience: b, claims: "+claims+"}}]\nidempotency: {header")
	}
	signedSite := goodSite + "keys: {signer: {jwks: " + keyFile + "}}\n"
	bad := map[string]struct {
		site, contract string
		fixtures       map[string]string
		want           string
	}{
		"fixtures":         {goodSite, good, without("near-miss.yaml"), "1:1 fixtures there is no fixture of the kind near-miss"},
		"fixture-not-done": {goodSite, notDone, goodFixtures, "40:7 fixture-not-done a row says that nothing was done, and no fixture shows it"},
		"sentence-selects": {goodSite, edit(t, good, " in {input.environment}", " somewhere", "show: {Reason", "show: {Where: {from: input.environment}, Reason"), goodFixtures,
			`25:13 sentence-selects the sentence does not name "environment", which chooses the target`},
		"input-not-shown": {goodSite, edit(t, good, "Size: {from: input.size, optional: true}, ", ""), goodFixtures,
			`17:5 input-not-shown the person who approves does not see the input "size"`},
		"result-not-bound": {goodSite, edit(t, good, "success: {id: /id}", "success: {id: /id, version: {const: '1'}}", "maxLength: 9}}}\nidem", "maxLength: 9}, version: {const: '1'}}}\nidem"), goodFixtures,
			`40:142 result-not-bound nothing says that the "version" of the answer is the one asked about`},
		"expect-missing": {goodSite, edit(t, good, "      expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, maxLength: 20}}}\n", ""), goodFixtures,
			"35:7 expect-missing a success row reads a body that no schema describes"},
		"code-unused": {goodSite, edit(t, good, "      failure: BUSY\n", "      failure: NOT_FOUND\n"), goodFixtures,
			"43:3 code-unused no row gives the code BUSY"},
		"target-not-listed": {edit(t, goodSite, "    actions: [start_release]\n    effects: [read", "    actions: [other_one]\n    effects: [read", "    actions: [start_release]\n    effects: [change]", "    actions: [other_one]\n    effects: [change]"), good, goodFixtures,
			"1:1 target-not-listed no target lists the action start_release, so every call is refused"},
		"signed-not-bound": {signedSite, signed("{app: target.app}"), goodFixtures,
			"41:11 signed-not-bound no claim of the evidence is compared with an input, so that evidence about something else would do"},
		"exception-unused": {goodSite, edit(t, good, "failures:\n", "exceptions: [{rule: expect-missing, because: it was long}]\nfailures:\n"), goodFixtures,
			"42:14 exception-unused nothing breaks the rule expect-missing any more"},
	}
	for rule, c := range bad {
		same(t, rule, lint(t, c.site, c.contract, c.fixtures), []string{c.want})
	}
	shown := map[string]string{"failure-503.yaml": "answers: [{step: request, status: 503}]\nwant: {ok: false, code: UPSTREAM_UNAVAILABLE}\n"}
	for k, v := range goodFixtures {
		shown[k] = v
	}
	same(t, "a shown not_done", lint(t, goodSite, notDone, shown), nil)
	same(t, "a bound result", lint(t, goodSite, edit(t, bad["result-not-bound"].contract, "idempotency: {", "checks: [{same: [input.version, result.version]}]\nidempotency: {"), goodFixtures), nil)
	same(t, "bound evidence", lint(t, signedSite, signed("{sub: input.version}"), goodFixtures), nil)
}

// A kind is what its fixtures want, not only what they are called; both YAML
// names and JSON count, and bodies do not.
func TestFixtureKinds(t *testing.T) {
	const ok, no = "want: {ok: true}\n", "want: {ok: false, code: INVALID_RESPONSE}\n"
	none := func(k string) string { return "1:1 fixtures there is no fixture of the kind " + k }
	for name, c := range map[string]struct {
		fixtures map[string]string
		want     []string
	}{
		"other names":    {map[string]string{"accepted.yml": ok, "near-miss-x.json": `{"want": {"ok": false}}`, "failure.yaml": no}, nil},
		"turned round":   {map[string]string{"accepted.yaml": no, "near-miss.yaml": ok, "failure.yaml": ok}, []string{none("accepted"), none("near-miss"), none("failure")}},
		"bodies":         {map[string]string{"accepted.json": `{"id": 1}`, "near-miss.yaml": no, "failure.yaml": no, "failure-x.txt": no}, []string{none("accepted")}},
		"unreadable":     {map[string]string{"accepted.yaml": "want: {ok: [", "near-miss.yaml": no, "failure.yaml": no}, []string{none("accepted")}},
		"hostile either": {map[string]string{"accepted.yaml": ok, "near-miss.yaml": no, "failure.yaml": no, "hostile-a.yaml": ok, "hostile-b.yaml": no}, nil},
	} {
		same(t, name, lint(t, goodSite, shownContract(t), c.fixtures), c.want)
	}
}

// A rule set aside is silent in the lint and shown on the card.
func TestExceptions(t *testing.T) {
	contract := edit(t, shownContract(t), "failures:\n", "exceptions: [{rule: fixtures, because: the vendor has no sandbox}]\nfailures:\n")
	same(t, "set aside", lint(t, goodSite, contract, nil), nil)
	set, c := mustLoad(t, goodSite, contract)
	same(t, "card", mustFreeze(t, set, c, goodInput).Exceptions(), []string{"fixtures: the vendor has no sandbox"})
}

// FuzzLoadContract: no text makes the loader panic, and what it takes has the
// properties that later steps rest on.
func FuzzLoadContract(f *testing.F) {
	f.Add([]byte(goodContract))
	f.Add([]byte(readText))
	f.Add([]byte(pathContract))
	good := stepsContract(f)
	f.Add([]byte(good))
	_, slips := readSlips(f, "testdata/step_refusals.txt")
	for _, s := range slips {
		f.Add([]byte(strings.Replace(good, s.old, s.new, 1)))
	}
	for _, pattern := range []string{"../../contracts/*/contract.yaml"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			if b, err := os.ReadFile(p); err == nil {
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := parseContract("contract.yaml", b)
		d.bind(nil)
		problems := d.f.Problems()
		for _, p := range problems {
			if p.Message == "" || p.File == "" {
				t.Fatalf("an empty problem %+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		c := d.c
		for _, s := range c.allSteps() {
			reads := s.method == "GET" || s.method == "HEAD" || s.method == "POST" && s.reads != "" && s.kind != StepLookup
			switch {
			case s.reader == nil || s.path == nil || s.timeout < minTimeout || len(s.rows) == 0 || len(s.rows) != len(s.captures):
				t.Fatalf("%s is not whole", s.name)
			case s.kind != StepRequest && !reads:
				t.Fatalf("%s sends %s", s.name, s.method)
			case s.kind == StepPoll && (s.every < minPollEvery || s.within < s.every):
				t.Fatal("a poll without pace or end")
			}
		}
		switch {
		case c.inputSchema == nil || c.resultSchema == nil || c.envelope == nil || c.request.reader == nil || c.request.path == nil:
			t.Fatal("a contract that is not whole")
		case c.effect == 0 || c.approval.ask == 0 || c.retry.Attempts < 1:
			t.Fatal("a contract without an effect, an ask or an attempt")
		case c.effect != Read && !c.idem.declared() && c.atMostOnce == "" && c.reconcile == nil:
			t.Fatal("a change that may be done twice")
		case c.effect != Read && (c.request.method == "GET" || c.request.method == "HEAD"):
			t.Fatal("a change by a method that reads")
		case c.effect == Destroy && c.approval.ask != AskEveryCall:
			t.Fatal("a destroying contract that does not ask")
		}
		for _, s := range c.allSteps() {
			for _, h := range s.headers {
				words := map[string]bool{}
				h.node.inputs(words)
				if refusedHeader(h.name) || len(words) > 0 {
					t.Fatal("a header that a contract may not set")
				}
			}
		}
		_, _ = c.ParseInput(map[string]any{})
		Lint(c, nil)
	})
}
