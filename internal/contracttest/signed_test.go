package contracttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/validate"
)

const evidenceSite = `
targets:
  review: {url: "https://review.example", identity: bot, actions: [get_review], effects: [read]}
identities:
  bot: {kind: bearer}
keys:
  signer: {jwks: signer.json}
`

const evidenceContract = `
contract: v1
action: get_review
version: 1.0.0
summary: Read one review.
owner: tests
effect: read
input: {type: object, additionalProperties: false, required: [change_id], properties: {change_id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
route: {target: review}
request:
  method: GET
  path: /reviews/{input.change_id}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [state, evidence], properties: {state: {type: string, maxLength: 20}, evidence: {type: string, maxLength: 8000}}}
      success: {state: /state}
result: {type: object, additionalProperties: false, required: [state], properties: {state: {type: string, enum: [approved, refused]}}}
checks: [{signed: {jws: /evidence, keys: signer, issuer: "https://sign.example", audience: deploys, claims: {sub: input.change_id, state: result.state}}}]
`

// evidenceKeys is a key set as an operator has it. Nobody has the private
// halves here, and a run needs none.
func evidenceKeys(t *testing.T) string {
	t.Helper()
	var list []any
	for kid, alg := range map[string]string{"k1": "ES256", "k2": "EdDSA", "k3": "RS256", "k4": "PS512", "k5": "ES384", "k6": "ES512"} {
		s, err := newSigner(kid, alg)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s.jwk())
	}
	return string(validate.Canonical(map[string]any{"keys": list}))
}

// playEvidence plays fixtures of get_review by name.
func playEvidence(t *testing.T, fixtures map[string]string) (map[string]Case, error) {
	t.Helper()
	dir := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("targets.yaml", evidenceSite)
	put("signer.json", evidenceKeys(t))
	put("contracts/get_review/contract.yaml", evidenceContract)
	names := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(fixtures)) {
		file := fmt.Sprintf("hostile-%02d.yaml", i)
		put("contracts/get_review/fixtures/"+file, "name: "+name+"\n"+fixtures[name])
		names[file] = name
	}
	rep, err := Run(context.Background(), Options{Site: filepath.Join(dir, "targets.yaml"), Contracts: filepath.Join(dir, "contracts")})
	out := map[string]Case{}
	for _, c := range rep.Cases {
		out[names[filepath.Base(c.File)]] = c
	}
	return out, err
}

func evidence(jws, state, want string) string {
	return `input: {change_id: c1}
now: 2026-01-05T10:00:00Z
answers:
  - {step: request, status: 200, headers: {Content-Type: application/json}, jws: {evidence: ` + jws + `}, body: '{"state":"` + state + `","evidence":"${jws.evidence}"}'}
want: ` + want + "\n"
}

// A signed answer is played with keys of the run that stand for the operator's,
// and every forgery is refused by the rule that is for it.
func TestSignedFixtures(t *testing.T) {
	claims := `claims: {iss: "https://sign.example", aud: deploys, sub: c1, state: approved}, valid: 5m`
	good := `{ok: true, data: {state: approved}}`
	bad := `{ok: false, code: INVALID_RESPONSE, layer: check}`
	refused := map[string]string{
		"unsigned": validateRule("signed-form"), "public_key_as_secret": validateRule("signed-algorithm"), "stranger": validateRule("signed-signature"), "embedded_key": validateRule("signed-header"), "other_payload": validateRule("signed-signature"),
	}
	fixtures := map[string]string{
		"late":                evidence(`{keys: signer, claims: {iss: "https://sign.example", aud: deploys, sub: c1, state: approved, exp: 1767607100}}`, "approved", bad),
		"another issuer":      evidence(`{keys: signer, claims: {iss: "https://sign.example.evil", aud: deploys, sub: c1, state: approved}, valid: 5m}`, "approved", bad),
		"another audience":    evidence(`{keys: signer, claims: {iss: "https://sign.example", aud: [tests], sub: c1, state: approved}, valid: 5m}`, "approved", bad),
		"another subject":     evidence(`{keys: signer, claims: {iss: "https://sign.example", aud: deploys, sub: c2, state: approved}, valid: 5m}`, "approved", bad),
		"another state":       evidence(`{keys: signer, `+claims+`}`, "refused", bad),
		"a claim twice":       evidence(`{keys: signer, payload: '{"iss":"https://sign.example","aud":"deploys","sub":"c1","sub":"c1","state":"approved","exp":1767607300}'}`, "approved", bad),
		"no JSON":             evidence(`{keys: signer, payload: approved}`, "approved", bad),
		"a list of audiences": evidence(`{keys: signer, claims: {iss: "https://sign.example", aud: [tests, deploys], sub: c1, state: approved}, valid: 5m}`, "approved", good),
	}
	for _, kid := range []string{"k1", "k2", "k3", "k4", "k5", "k6"} {
		fixtures["key "+kid] = evidence(`{keys: signer, kid: `+kid+`, `+claims+`}`, "approved", good)
		for word := range refused {
			fixtures[word+" "+kid] = evidence(`{keys: signer, kid: `+kid+`, forge: `+word+`, `+claims+`}`, "approved", bad)
		}
	}
	cases, err := playEvidence(t, fixtures)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != len(fixtures) {
		t.Errorf("%d of %d were played", len(cases), len(fixtures))
	}
	for name, c := range cases {
		if !c.OK {
			t.Errorf("%s: want %s, got %s: %s %v", name, c.Want, c.Got, c.Reason, c.Diffs)
		}
		if word, _, _ := strings.Cut(name, " "); refused[word] != "" && !strings.Contains(c.Reason, refused[word]) {
			t.Errorf("%s: %s, want %s", name, c.Reason, refused[word])
		}
	}
}

// validateRule is a rule as a rejection writes it.
func validateRule(id string) string { return "check (" + id + ")" }

func TestSignedFixturesWithSlips(t *testing.T) {
	_, err := playEvidence(t, map[string]string{
		"a": evidence(`{keys: signer, claims: {}, payload: x}`, "approved", "{ok: false, code: INVALID_RESPONSE}"),
		"b": evidence(`{keys: signer, claims: {}, forge: nicely}`, "approved", "{ok: false, code: INVALID_RESPONSE}"),
		"c": strings.Replace(evidence(`{keys: signer, claims: {}}`, "approved", "{ok: false, code: INVALID_RESPONSE}"), "${jws.evidence}", "${jws.other}", 1),
		"d": evidence(`{claims: {}, alg: none}`, "approved", "{ok: false, code: INVALID_RESPONSE}"),
		"e": evidence(`{keys: signer, claims: [x], valid: soon}`, "approved", "{ok: false, code: INVALID_RESPONSE}"),
	})
	var ps actions.Problems
	if !errors.As(err, &ps) {
		t.Fatal(err)
	}
	text := ""
	for _, p := range ps {
		text += p.Message + "\n"
	}
	for _, want := range []string{
		"a signed text has claims or payload", "forge", `the body has a place for the signed text "other", which is not there`, `the signed text "evidence" stands nowhere in the body`,
		`a signed text has no key "alg"`, `a signed text needs the key "keys"`, "claims", "valid is no length of time",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %q in\n%s", want, text)
		}
	}
	for name, jws := range map[string]string{"no such set": `{keys: nobody, claims: {}}`, "no such key": `{keys: signer, kid: k9, claims: {}}`} {
		_, err := playEvidence(t, map[string]string{"x": evidence(jws, "approved", "{ok: false, code: INVALID_RESPONSE}")})
		if err == nil || !strings.Contains(err.Error(), "hostile-00.yaml: jws evidence: the site file has no key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only this room may put other keys into a reader.
func TestNobodyElseReplacesKeys(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "DangerouslyWith"+"Keys(") && !strings.Contains(path, "internal/contracttest/") && !strings.Contains(path, "internal/validate/") {
			t.Errorf("%s replaces keys", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
