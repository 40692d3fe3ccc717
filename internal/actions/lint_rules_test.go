package actions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest"
)

// baseSite is the site file around every example.
const baseSite = `targets:
  deploys:
    url: https://deploys.example/api
    identity: deploy-bot
    actions: [get_release, start_release]
    effects: [read, change]
    ask: session
identities:
  deploy-bot: {kind: bearer}
`

// bases are the whole contracts that examples are parts of.
var bases = map[string]map[string]string{
	"read": {
		"contract.yaml": `contract: v1
action: get_release
version: 1.0.0
summary: Tell how one release of a service stands.
owner: release team
effect: read
input:
  type: object
  additionalProperties: false
  required: [id]
  properties:
    id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}
route: {target: deploys}
request:
  method: GET
  path: /v1/releases/{input.id}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [id, state], properties: {id: {type: string, maxLength: 20}, state: {type: string, maxLength: 20}}}
      success: {id: /id, state: /state}
result: {type: object, additionalProperties: false, required: [id, state], properties: {id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9}, state: {type: string, enum: [running, done]}}}
checks:
  - same: [result.id, input.id]
`,
		"fixtures/accepted.yaml": `name: a release that runs
input: {id: r17}
answers:
  - {step: request, status: 200, headers: {Content-Type: application/json}, body: '{"id":"r17","state":"running"}'}
want: {ok: true, data: {id: r17, state: running}}
`,
		"fixtures/near-miss.yaml": `name: another release
input: {id: r17}
answers:
  - {step: request, status: 200, headers: {Content-Type: application/json}, body: '{"id":"r18","state":"running"}'}
want: {ok: false, code: INVALID_RESPONSE, layer: check}
`,
		"fixtures/failure.yaml": `name: no such release
input: {id: r17}
answers:
  - {step: request, status: 404}
want: {ok: false, code: NOT_FOUND}
`,
	},
	"change": {
		"contract.yaml": `contract: v1
action: start_release
version: 1.0.0
summary: Start one release of a service.
owner: release team
effect: change
input:
  type: object
  additionalProperties: false
  required: [service, version, reason]
  properties:
    service: {type: string, enum: [api, worker]}
    version: {type: string, pattern: '^[0-9]{1,4}[.][0-9]{1,4}$', maxLength: 9}
    reason: {type: string, minLength: 1, maxLength: 300}
route: {target: deploys}
approval:
  sentence: "Start {input.version} of {input.service}"
  show: {Reason: {from: input.reason}}
request:
  method: POST
  path: /v1/apps/{input.service}/releases
  json: {version: {from: input.version}, reason: {from: input.reason}}
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
`,
		"fixtures/accepted.yaml": `name: a release starts
input: {service: api, version: "1.2", reason: fixes retries}
answers:
  - {step: request, status: 201, headers: {Content-Type: application/json}, body: '{"id":"r17"}'}
want: {ok: true, data: {id: r17}}
`,
		"fixtures/near-miss.yaml": `name: an id of another kind
input: {service: api, version: "1.2", reason: fixes retries}
answers:
  - {step: request, status: 201, headers: {Content-Type: application/json}, body: '{"id":"17"}'}
want: {ok: false, code: INVALID_RESPONSE, layer: result}
`,
		"fixtures/failure.yaml": `name: another release is running
input: {service: api, version: "1.2", reason: fixes retries}
answers:
  - {step: request, status: 409}
want: {ok: false, code: BUSY}
`,
	},
}

// Every rule has a bad example that breaks it, and nothing but what it says it
// also breaks, and a good one that breaks nothing.
func TestRuleExamples(t *testing.T) {
	for _, r := range actions.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			ex, ok := r.Example()
			if (r.NoExample != "") == ok {
				t.Fatalf("the rule needs an example, or a reason why there is none; not both")
			}
			if !ok {
				return
			}
			want := append([]string{r.ID}, ex.Also...)
			slices.Sort(want)
			if got := broken(t, ex.Base, ex.Bad); !slices.Equal(got, want) {
				t.Errorf("the bad example breaks %v, it should break %v", got, want)
			}
			if got := broken(t, ex.Base, ex.Good); len(got) > 0 {
				t.Errorf("the good example breaks %v", got)
			}
		})
	}
}

// Every rule says enough to act on.
func TestRulesAreWhole(t *testing.T) {
	id := regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, r := range actions.Rules() {
		switch {
		case !id.MatchString(r.ID) || seen[r.ID]:
			t.Errorf("%q is no id, or stands twice", r.ID)
		case r.Title == "" || strings.HasSuffix(r.Title, ".") || len(r.Reason) < 20 || !strings.HasSuffix(r.Reason, "."):
			t.Errorf("%s: the title has no full stop, the reason is a sentence", r.ID)
		case r.Severity == 0 || r.Decider == 0 || r.Page == "":
			t.Errorf("%s: no severity, no decider or no page", r.ID)
		case r.Decider != actions.ByLint && r.Severity != actions.Error:
			t.Errorf("%s: what is refused is an error", r.ID)
		}
		seen[r.ID] = true
	}
}

// broken lays an example into a folder and returns the rules it breaks, sorted,
// each once.
func broken(t *testing.T, base string, files []actions.ExampleFile) []string {
	t.Helper()
	root := t.TempDir()
	action := map[string]string{"read": "get_release", "change": "start_release"}[base]
	whole := map[string]string{"targets.yaml": baseSite}
	for name, text := range bases[base] {
		whole["contracts/"+action+"/"+name] = text
	}
	for _, f := range files {
		name := f.Name
		if name == "contract.yaml" || strings.HasPrefix(name, "fixtures/") {
			name = "contracts/" + action + "/" + name
		}
		if text, there := assemble(t, whole[name], f); there {
			whole[name] = text
		} else {
			delete(whole, name)
		}
	}
	for name, text := range whole {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	rev := actions.ReviewFolder(filepath.Join(root, "targets.yaml"), filepath.Join(root, "contracts"))
	for _, c := range rev.Contracts {
		rev.Problems = append(rev.Problems, contracttest.FixtureProblems(filepath.Join(root, "contracts"), c)...)
	}
	for _, p := range rev.Problems {
		out = append(out, p.Rule)
		t.Log(p)
	}
	for _, f := range rev.Findings {
		out = append(out, f.Rule)
		t.Log(f)
	}
	if len(rev.Problems) == 0 {
		fitSchemas(t, whole)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fitSchemas holds files that the readers take against the published schemas.
func fitSchemas(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		kind := "fixture"
		switch {
		case name == "targets.yaml":
			kind = "targets"
		case strings.HasSuffix(name, "/contract.yaml"):
			kind = "contract"
		case !strings.HasSuffix(name, ".yaml"):
			continue
		}
		if err := actions.FitsSchema(t, kind, text); err != nil {
			t.Errorf("%s: the readers take it, its schema does not: %v", name, err)
		}
	}
}

// assemble puts the keys of an example into the whole file; false where the
// example says that the file is not there.
func assemble(t *testing.T, whole string, f actions.ExampleFile) (string, bool) {
	t.Helper()
	text := fill(t, f.Text)
	var without []string
	for _, how := range f.How {
		switch word, rest, _ := strings.Cut(how, " "); word {
		case "absent":
			return "", false
		case "whole":
			return text, true
		case "first":
			return text + whole, true
		case "without":
			without = append(without, strings.Fields(rest)...)
		default:
			t.Fatalf("an example knows no %q", how)
		}
	}
	if f.Name != "contract.yaml" && f.Name != "targets.yaml" {
		return text, true
	}
	for _, block := range blocks(text) {
		without = append(without, block.key)
	}
	var out strings.Builder
	for _, block := range blocks(whole) {
		if !slices.Contains(without, block.key) {
			out.WriteString(block.text)
		}
	}
	return out.String() + text, true
}

type block struct{ key, text string }

// blocks cuts a file at the keys of its top level.
func blocks(text string) []block {
	var out []block
	for _, l := range strings.SplitAfter(text, "\n") {
		if m := topKey.FindStringSubmatch(l); m != nil {
			out = append(out, block{key: m[1]})
		}
		if len(out) > 0 {
			out[len(out)-1].text += l
		}
	}
	return out
}

var (
	topKey = regexp.MustCompile(`^([a-z_]+):`)
	// hole is a place of an example that no text file can show.
	hole = regexp.MustCompile(`<<(tab|byte|repeat|many|pem|jwks)(?: (\S+) ?((?:[^>]|>[^>])*))?>>`)
)

func fill(t *testing.T, text string) string {
	t.Helper()
	return hole.ReplaceAllStringFunc(text, func(h string) string {
		m := hole.FindStringSubmatch(h)
		n, _ := strconv.ParseInt(m[2], 0, 32)
		switch m[1] {
		case "tab":
			return "\t"
		case "byte":
			return string([]byte{byte(n)})
		case "repeat":
			return strings.Repeat(m[3], int(n))
		case "many":
			lines := make([]string, n)
			for i := range lines {
				lines[i] = fmt.Sprintf("  "+strings.TrimSpace(m[3]), i)
			}
			return strings.Join(lines, "\n")
		case "pem":
			return examplePEM
		}
		key, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
			"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(key)
	})
}

// examplePEM is a certificate of nobody.
const examplePEM = `-----BEGIN CERTIFICATE-----
MIIBfDCCASGgAwIBAgIUZWpJDEvMHwyDnFJSXfaqFBBSLPwwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMzAxOTIyMDZaGA8yMTI2MTEwNjE5
MjIwNlowEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABOMYK+v/9BI1EojNDd3VlzFVR914eQK+1gUUDf+NEc6DiQGcMaVrhu/Y0a+n
J8s1Is/B2jwEnXFyiDK+YyJn/kSjUzBRMB0GA1UdDgQWBBR8gPw0YEfywELWjZyE
jf/sGsFnVzAfBgNVHSMEGDAWgBR8gPw0YEfywELWjZyEjf/sGsFnVzAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQDqvs9K2aksDIfTUBksioqrf3Fq
7znf27kyJzp3ByLusAIhAMlYj+hRzt50keOlYHYqjqfFh0WgeMdChFBwE5TPrEWU
-----END CERTIFICATE-----`

// An example without a rule would be a rule that somebody took away. Exceptions
// and other people's programs name the ids, so none may go.
func TestNoRuleWasTakenAway(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*")
	if err != nil || len(files) < 100 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		id := strings.TrimSuffix(filepath.Base(f), ".txt")
		if _, ok := actions.RuleByID(id); !ok {
			t.Errorf("%s belongs to no rule", f)
		}
	}
}
