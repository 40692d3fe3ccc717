package contracttest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/formatschema"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/testkit/slips"
)

// The published schema of fixtures and their reader say the same, as those of
// contracts and site files do.

// onlyReader are the rules that no schema can say, each with the reason.
var onlyReader = map[string]string{
	"file":        "other files",
	"jws":         "places in the body",
	"time":        "a real date",
	"range":       "lengths of time",
	"unreachable": "what stands behind another entry",
}

func fixtureSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	d, _ := formatschema.Named("fixture")
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///"+d.File, v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///" + d.File)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parseFixture(text string) *strictyaml.File {
	return strictyaml.Parse("fixture.yaml", []byte(text), strictyaml.Limits{Bytes: maxFixture})
}

func fixtureProblems(f *strictyaml.File, dir string) actions.Problems {
	d := decoder{f: f, dir: dir, bodies: map[string]bool{}, steps: []string{"head", "request", "poll", "reconcile"}}
	if f.Root() != nil {
		d.fixture(&fixture{})
	}
	return f.Problems()
}

func TestSchemaTakesTheShippedFixtures(t *testing.T) {
	s := fixtureSchema(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "contracts", "*", "fixtures", "*.yaml"))
	old, oldErr := filepath.Glob(filepath.Join("..", "..", "contracts", "*", "fixtures", "v*", "*.yaml"))
	if err = errors.Join(err, oldErr); err != nil || len(files) == 0 {
		t.Fatalf("%d fixtures: %v", len(files), err)
	}
	for _, path := range append(files, old...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if f := parseFixture(string(b)); f.Root() == nil {
			t.Errorf("%s: %v", path, f.Problems())
		} else if err := s.Validate(f.Root().Value()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

const driftFixture = `name: everything
input: {a: 1}
now: 2026-01-05T10:00:00Z
idempotency_key: key-1
call_id: act_1
answers:
  - {step: request, status: 200, headers: {Content-Type: application/json, X-Many: [a, 1]}, body: '${jws.one} ${jws.two}', jws: {one: {keys: a, kid: b, claims: {sub: x}, valid: 5m, forge: stranger}, two: {keys: a, payload: text}}, delay: 2s}
  - {step: request, body_file: body.json, status: 201}
  - {step: request, close: after_headers, repeat: true}
want:
  ok: true
  data: {}
  display: {log: {text: a, truncated: false}}
  sent:
    - {step: request, method: POST, path: /a, query: {a: [1, b, true]}, headers: {Accept: a}, json: {}, credential: Authorization}
    - {step: request, method: POST, path: /a, form: {a: {b: [1, {c: d}]}}, credential: body token}
    - {step: request, method: POST, path: /a, text: a, credential: client certificate}
`

var driftFixtures = []string{driftFixture, "name: a failure\ninput: {}\nwant: {ok: false, code: INVALID_RESPONSE, layer: schema}\n"}

func TestSchemaAndReaderAgree(t *testing.T) {
	s, dir := fixtureSchema(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "body.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, text := range driftFixtures {
		if ps := fixtureProblems(parseFixture(text), dir); len(ps) > 0 {
			t.Fatalf("fixture %d: %v", i, ps)
		}
		for _, m := range slips.Of(parseFixture(text).Root().Value(), slips.All) {
			f := parseFixture(m.JSON)
			ps := fixtureProblems(f, dir)
			err := s.Validate(f.Root().Value())
			if err != nil && len(ps) == 0 {
				t.Errorf("%s: the reader takes it, the schema does not: %v", m.At, err)
			}
			for _, p := range ps {
				// Which steps there are stands in the contract.
				if step := strings.HasPrefix(p.Message, "step cannot be "); err == nil && !step && onlyReader[p.Rule] == "" {
					t.Errorf("%s: the reader refuses it, the schema does not: %v", m.At, p)
				}
			}
		}
	}
}

// fixturePlaces says where in the schema stand the keys of what the reader calls
// by these words.
var fixturePlaces = map[string]string{
	"a fixture": "", "an answer": "answer", "a signed text": "signed", "want": "want", "an entry of sent": "sent",
}

func TestSchemaAndReaderHaveTheSameKeys(t *testing.T) {
	d, _ := formatschema.Named("fixture")
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	f := parseFixture(driftFixture)
	f.Watch(func(what string, keys []string) {
		seen[what] = true
		at, named := fixturePlaces[what]
		if !named {
			t.Errorf("the reader reads the keys of %q, and no place of the schema is named for it", what)
			return
		}
		s := root.(map[string]any)
		if at != "" {
			s = s["$defs"].(map[string]any)[at].(map[string]any)
		}
		props := s["properties"].(map[string]any)
		for _, k := range keys {
			if _, ok := props[k]; !ok && !sshKeys[k] {
				t.Errorf("%s: the schema has no key %q", what, k)
			}
			delete(props, k)
		}
		for k := range props {
			t.Errorf("%s: the reader has no key %q", what, k)
		}
		for _, k := range keys {
			props[k] = true // several of the same kind come by
		}
	})
	fixtureProblems(f, t.TempDir())
	for what := range fixturePlaces {
		if !seen[what] {
			t.Errorf("the fixture of this test has no %q", what)
		}
	}
}
