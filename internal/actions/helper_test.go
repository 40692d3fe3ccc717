package actions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/validate"
)

const goodSite = `targets:
  deploy-test:
    url: https://deploy.test.example/api
    identity: test-bot
    actions: [start_release]
    effects: [read, change]
    ask: session
  deploy-prod:
    url: https://deploy.prod.example:8443
    identity: prod-bot
    actions: [start_release]
    effects: [change]
    ask: every_call
identities:
  test-bot: {kind: bearer}
  prod-bot: {kind: header, name: X-Api-Key}
lists:
  projects:
    alpha: {target: deploy-test, with: {app: alpha}}
    beta: {target: deploy-prod, with: {app: beta}}
`

const goodContract = `contract: v1
action: start_release
version: 1.2.0
summary: Start one release of a service.
owner: release team
effect: change
input:
  type: object
  additionalProperties: false
  required: [service, environment, version, reason]
  properties:
    service: {type: string, enum: [api, worker]}
    environment: {type: string, enum: [test, production]}
    version: {type: string, pattern: '^[0-9.]{1,9}$', maxLength: 9}
    reason: {type: string, minLength: 1, maxLength: 300}
    note: {type: string, maxLength: 300}
    size: {type: integer, minimum: 0, maximum: 9}
    labels: {type: array, maxItems: 3, items: {type: string, maxLength: 20}}
route:
  by: [environment]
  cases:
    - {environment: test, target: deploy-test, with: {app: shop api}}
    - {environment: production, target: deploy-prod, with: {app: shop}}
approval:
  sentence: "Start {input.version} of {input.service} in {input.environment}"
  show: {Reason: {from: input.reason}}
request:
  method: POST
  path: /v1/apps/{target.app}/releases/{input.version}
  query: {note: {from: input.note, optional: true}}
  headers: {Accept: application/json}
  json: {reason: {from: input.reason}, at: {from: call.now}}
  timeout: 10s
  outcomes:
    - status: 201
      expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, maxLength: 20}}}
      success: {id: /id}
    - status: 409
      failure: BUSY
result: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}}}
idempotency: {header: Idempotency-Key}
failures:
  BUSY: {message: "Another release is running; nothing was started.", retryable: true}
`

// edit replaces one piece of a text; the piece must stand there exactly once.
func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if n := strings.Count(text, pairs[i]); n != 1 {
			t.Fatalf("%q stands %d times", pairs[i], n)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// write lays a site file and one contract into a folder.
func write(t *testing.T, site, contract string) (sitePath, dir string) {
	t.Helper()
	root := t.TempDir()
	name := "start_release"
	for _, l := range strings.Split(contract, "\n") {
		if a, ok := strings.CutPrefix(l, "action: "); ok && actionName.MatchString(a) {
			name = a
		}
	}
	dir = filepath.Join(root, "contracts")
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	sitePath = filepath.Join(root, "targets.yaml")
	for path, text := range map[string]string{sitePath: site, filepath.Join(dir, name, contractFile): contract} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sitePath, dir
}

func load(t *testing.T, site, contract string) (*Set, Problems) {
	t.Helper()
	set, ps := LoadSet(write(t, site, contract))
	if len(ps) == 0 {
		agrees(t, site, contract)
	}
	return set, ps
}

// mustLoad loads a set that is good.
func mustLoad(t *testing.T, site, contract string) (*Set, *Contract) {
	t.Helper()
	set, ps := load(t, site, contract)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	return set, set.Contracts()[0]
}

// told renders problems without the file's path: "LINE:COLUMN RULE message".
func told(ps Problems) []string {
	var out []string
	for _, p := range ps {
		out = append(out, fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Rule, p.Message))
	}
	return out
}

// same compares two lists of texts.
func same(t *testing.T, name string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func parseJSON(t testing.TB, s string) any {
	t.Helper()
	v, err := validate.Parse([]byte(s), validate.CallerLimits())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const goodInput = `{"service":"api","environment":"test","version":"2.14","reason":"fixes retries"}`

var testCall = CallFacts{CallID: "act_01J0000000", IdempotencyKey: "3f0c8a52-6f0d-4a53-9d1c-0d5e0f1f5a11"}

var testNow = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// freeze makes a plan of an input; the identity's generation is 3.
func freeze(t *testing.T, set *Set, c *Contract, input string) (Plan, error) {
	t.Helper()
	in, err := c.ParseInput(parseJSON(t, input))
	if err != nil {
		return Plan{}, err
	}
	r, err := set.Resolve(c, in)
	if err != nil {
		return Plan{}, err
	}
	return Freeze(c, r, in, IdentityFact{r.Target().Identity(), 3}, testCall)
}

func mustFreeze(t *testing.T, set *Set, c *Contract, input string) Plan {
	t.Helper()
	p, err := freeze(t, set, c, input)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
