package contracttest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// firm is a contract whose near-misses are all refused or written out.
const firm = `
contract: v1
action: get_thing
version: 1.0.0
summary: Read one thing.
owner: tests
effect: read
input:
  type: object
  additionalProperties: false
  required: [id]
  properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}
route: {target: things}
request:
  method: GET
  path: /things/{input.id}
  timeout: 5s
  outcomes:
    - status: 200
      when: {not: {equals: [/state, failed]}}
      expect:
        type: object
        additionalProperties: false
        required: [ok, id, zone, state, seen, count, owner, parts]
        properties:
          ok: {const: true}
          id: {type: string, maxLength: 8}
          zone: {type: string, minLength: 1, maxLength: 40}
          state: {type: string, enum: [ready, busy, failed]}
          seen: {type: string, format: date-time, maxLength: 35}
          count: {type: integer, minimum: 0, maximum: 99}
          owner: {type: object, additionalProperties: false, required: [name], properties: {name: {type: [string, 'null'], maxLength: 20}}}
          parts: {type: array, maxItems: 9, items: {type: object, additionalProperties: true, required: [name, size], properties: {name: {type: string, maxLength: 9}, size: {type: integer}}}}
          note: {type: string, maxLength: 200}
      success:
        id: /id
        zone: /zone
        state: /state
        seen: {at: /seen, time: rfc3339}
        size: {find: {in: /parts, where: {equals: [/name, main]}}, at: /size}
        tag: {header: ETag}
      display: {note: {at: /note, optional: true}}
    - status: 200
      when: {equals: [/state, failed]}
      failure: THING_FAILED
result:
  type: object
  additionalProperties: false
  required: [id, zone, state, seen, size, tag]
  properties:
    id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}
    zone: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}
    state: {type: string, enum: [ready, busy]}
    seen: {type: string, format: date-time, maxLength: 35}
    size: {type: integer, minimum: 0, maximum: 99}
    tag: {type: string, pattern: '^"[a-z0-9]{1,8}"$', maxLength: 10}
display: {note: {max: 100, lines: 3}}
checks:
  - same: [result.id, input.id]
  - fresh: {at: result.seen, within: 5m, skew: 30s}
failures:
  THING_FAILED: {message: It failed., retryable: false}
`

const firmAnswer = `name: a thing
input: {id: a7}
now: 2026-01-05T10:00:00Z
answers:
  - {step: request, status: 200, headers: {Content-Type: application/json, ETag: '"x1"'}, body: '{"ok":true,"id":"a7","zone":"north","state":"ready","seen":"2026-01-05T10:00:00Z","count":4,"owner":{"name":"ann"},"parts":[{"name":"main","size":3,"colour":"red"},{"name":"spare","size":1}],"note":"hello"}'}
want:
  ok: true
  data: {id: a7, zone: north, state: ready, seen: '2026-01-05T10:00:00Z', size: 3, tag: '"x1"'}
  display: {note: {text: hello, truncated: false}}
`

// mutated runs the mode over the contract with some texts replaced.
func mutated(t *testing.T, answer string, pairs ...string) Mutation {
	t.Helper()
	text := firm
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the contract has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	o := writeWith(t, map[string]string{"get_thing": text}, map[string]string{"get_thing/accepted.yaml": answer})
	o.Mutate, o.Actions = true, []string{"get_thing"}
	rep, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !rep.Cases[0].OK {
		t.Fatalf("%+v", rep.Cases[0])
	}
	return rep.Mutations[0]
}

func TestFirmContractHasNoHole(t *testing.T) {
	m := mutated(t, firmAnswer)
	for _, h := range m.Holes {
		t.Error(h)
	}
	if m.Answers != 1 || m.Made < 150 || m.Refused+m.Failed+m.Same+m.Allowed != m.Made || m.Capped {
		t.Errorf("%+v", m)
	}
}

// Every weakness of a contract is a hole of its own kind, at its place, with a
// way out.
func TestEveryWeaknessIsAHole(t *testing.T) {
	const ownerClosed = "owner: {type: object, additionalProperties: false,"
	for name, c := range map[string]struct {
		change []string
		holes  []string // kind and place of each hole that there must be
	}{
		"no word about the subject":   {[]string{"  - same: [result.id, input.id]\n", ""}, []string{"other subject /id"}},
		"nobody looks at ok":          {[]string{"ok: {const: true}", "ok: {type: boolean}"}, []string{"other listed value /ok"}},
		"a name that may be absent":   {[]string{"required: [name, size]", "required: [size]"}, []string{"member removed /parts/0/name", "member removed /parts/1/name"}},
		"a state that may be absent":  {[]string{"zone, state, seen, count", "zone, seen, count", "state: /state", "state: {at: /state, optional: true}", "required: [id, zone, state, seen,", "required: [id, zone, seen,"}, []string{"member removed /state"}},
		"empty text as a fact":        {[]string{"zone: {type: string, minLength: 1, maxLength: 40}", "zone: {type: string, maxLength: 40}", "'^[a-z]{1,8}$'", "'^[a-z]{0,8}$'"}, []string{"empty string /zone"}},
		"a header that may be empty":  {[]string{`'^"[a-z0-9]{1,8}"$'`, `'^("[a-z0-9]{1,8}"|)$'`}, []string{"header Etag"}},
		"an error that nobody reads":  {[]string{"          note: {type: string, maxLength: 200}\n", "          note: {type: string, maxLength: 200}\n          error: {type: string, maxLength: 40}\n"}, []string{"error beside data /error"}},
		"an undescribed word in when": {[]string{"{not: {equals: [/state, failed]}}", "{all_of: [{not: {equals: [/state, failed]}}, {not: {equals: [/owner/kind, robot]}}]}", ownerClosed, "owner: {type: object, additionalProperties: true,"}, []string{"member removed /owner/kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := firmAnswer
			if name == "an undescribed word in when" {
				answer = strings.Replace(answer, `"name":"ann"`, `"name":"ann","kind":"human"`, 1)
			}
			m := mutated(t, answer, c.change...)
			got := map[string]bool{}
			for _, h := range m.Holes {
				got[h.Kind+" "+h.Place] = true
				if h.WayOut == "" || h.Why == "" || h.Line == 0 || h.Row != "request.outcomes[0]" {
					t.Errorf("%+v", h)
				}
			}
			for _, want := range c.holes {
				if !got[want] {
					t.Errorf("no hole %q; there are %v", want, got)
				}
				delete(got, want)
			}
			for more := range got {
				t.Errorf("a hole too many: %s", more)
			}
		})
	}
}

// What the author wrote out is no hole: an object that was opened, a member that
// may be absent or null, a word of an enum.
func TestWrittenOutIsNoHole(t *testing.T) {
	for name, change := range map[string][]string{
		"an open object":           {"owner: {type: object, additionalProperties: false,", "owner: {type: object, additionalProperties: true,"},
		"an open answer":           {"        type: object\n        additionalProperties: false\n        required: [ok,", "        type: object\n        additionalProperties: true\n        required: [ok,"},
		"a member that may be out": {"state, seen, count, owner", "state, seen, owner"},
		"a pick that may be out":   {"zone: /zone", "zone: {at: /zone, optional: true}", "ok, id, zone, state", "ok, id, state", "required: [id, zone, state, seen,", "required: [id, state, seen,"},
		"a null that is kept":      {"zone: {type: string, minLength: 1,", "zone: {type: [string, 'null'], minLength: 1,", "zone: /zone", "zone: {at: /zone, null: omit}", "required: [id, zone, state, seen,", "required: [id, state, seen,"},
		"a thought about absence":  {"{not: {equals: [/state, failed]}}", "{any_of: [{not: {exists: /state}}, {not: {equals: [/state, failed]}}]}", "zone, state, seen, count", "zone, seen, count", "state: /state", "state: {at: /state, optional: true}", "required: [id, zone, state, seen,", "required: [id, zone, seen,"},
		"a bound in a map":         {"zone: /zone", "zone: {at: /zone, map: {north: n}, other: other}"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := firmAnswer
			if name == "a bound in a map" {
				answer = strings.Replace(answer, "zone: north", "zone: n", 1)
			}
			for _, h := range mutated(t, answer, change...).Holes {
				t.Error(h)
			}
		})
	}
}

// A signed answer has near-misses as any other; none of them is evidence.
func TestNearMissesOfSignedAnswers(t *testing.T) {
	dir := t.TempDir()
	o := Options{Site: filepath.Join(dir, "targets.yaml"), Contracts: filepath.Join(dir, "contracts"), Mutate: true}
	for path, text := range map[string]string{
		"targets.yaml": evidenceSite, "signer.json": evidenceKeys(t), "contracts/get_review/contract.yaml": evidenceContract,
		"contracts/get_review/fixtures/accepted.yaml": "name: signed\n" + evidence(`{keys: signer, claims: {iss: "https://sign.example", aud: deploys, sub: c1, state: approved}, valid: 5m}`, "approved", "{ok: true, data: {state: approved}}"),
	} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := Run(context.Background(), o)
	if err != nil || !rep.OK() {
		t.Fatalf("%v %+v", err, rep.Cases)
	}
	if m := rep.Mutations[0]; m.Answers != 1 || m.Made < 30 || m.Refused != m.Made {
		t.Errorf("%+v", m)
	}
}

// The near-misses of an answer that fails may not become a success.
func TestFailureStaysAFailure(t *testing.T) {
	text := strings.ReplaceAll(firm, "when: {equals: [/state, failed]}", "when: {exists: /error}")
	text = strings.ReplaceAll(text, "when: {not: {equals: [/state, failed]}}", "when: {not: {exists: /error}}")
	o := writeWith(t, map[string]string{"get_thing": text}, map[string]string{
		"get_thing/accepted.yaml": firmAnswer,
		"get_thing/failure-x.yaml": `name: it fails
input: {id: a7}
answers: [{step: request, status: 200, headers: {Content-Type: application/json}, body: '{"error":"no"}'}]
want: {ok: false, code: THING_FAILED}
`,
	})
	o.Mutate, o.Actions = true, []string{"get_thing"}
	rep, err := Run(context.Background(), o)
	if err != nil || !rep.OK() {
		t.Fatalf("%v %+v", err, rep.Cases)
	}
	m := rep.Mutations[0]
	if m.Answers != 1 || m.Failed == 0 || len(m.Holes) != 0 {
		t.Errorf("%+v", m)
	}
}

// A place of a schema through every keyword that leads there.
func TestSaidOf(t *testing.T) {
	schema := parsed(t, `{"type":"object","$defs":{"n":{"type":["string","null"]}},
		"properties":{"a":{"$ref":"#/$defs/n"},"l":{"type":"array","prefixItems":[{"const":1}],"items":{"type":"object","additionalProperties":true,"properties":{"x":{"type":"integer"}}}},"any":true,"t":{"anyOf":[{"type":"string"},{"type":"array"}]}},
		"patternProperties":{"^p":{"enum":["u","v"]}},"additionalProperties":{"type":"boolean"}}`)
	for path, want := range map[string]string{
		"/a": "named null string", "/l/0": "named number", "/l/1": "named object more", "/l/1/x": "named number", "/l/1/y": "open more", "/l/1/y/z": "open more",
		"/any": "named null string number boolean object array more", "/any/b": "open more", "/t": "named string array", "/p1": "named", "/other": "named open boolean", "/a/deeper": "unsaid", "": "named object more",
	} {
		s := saidOf(schema, split(path))
		var got []string
		for _, w := range []struct {
			word string
			is   bool
		}{{"named", s.named()}, {"open", s.open}, {"unsaid", s.unsaid()}, {"null", s.takes(nil)}, {"string", s.takes("x")}, {"number", s.takes(json.Number("3"))}, {"boolean", s.takes(true)}, {"object", s.takes(map[string]any{})}, {"array", s.takes([]any{})}, {"more", s.takesMore()}} {
			if w.is {
				got = append(got, w.word)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %s, want %s", path, strings.Join(got, " "), want)
		}
	}
	if saidOf(nil, []string{"a"}).unsaid() != true {
		t.Error("no schema says something")
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	v, err := validate.Parse([]byte(text), validate.AnswerLimits())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Whatever is changed in whatever document stays a document, and only there.
func FuzzMutants(f *testing.F) {
	f.Add(`{"a":[1,{"b":"x"}],"c":null,"d":true}`)
	f.Add(`["","ü",{"":0}]`)
	f.Add("\"\"  ")
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := validate.Parse([]byte(text), validate.AnswerLimits())
		if err != nil {
			return
		}
		back, err := validate.Parse(encode(doc), validate.AnswerLimits())
		if err != nil || !validate.Equal(back, doc) {
			t.Fatalf("%q comes back as %q: %v", text, encode(doc), err)
		}
		before := string(encode(doc))
		b := &breeder{row: &rowText{node: &strictyaml.Node{}}, out: &outline{}, doc: doc, media: validate.MediaJSON}
		b.base.raw.Body = []byte(text)
		b.breed()
		if string(encode(doc)) != before {
			t.Fatal("making a near-miss changed the answer itself")
		}
		for _, m := range b.made {
			_, err := validate.Parse(m.raw.Body, validate.AnswerLimits())
			broken := m.kind == kindTwice || m.kind == kindCut || m.kind == kindTrailing || m.kind == kindSecond
			if (err == nil) == broken {
				t.Fatalf("%s at %q: %q: %v", m.kind, pointerOf(m.path), m.raw.Body, err)
			}
		}
	})
}

// The page about contract tests has every kind of near-miss.
func TestPageNamesEveryKind(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "contract-testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		kindExtra, kindError, kindRemoved, kindNull, kindType, kindNumber, kindText, kindEmpty, kindOversized, kindListed, kindUnlisted,
		kindSubject, kindOld, kindFuture, kindTwice, kindMedia, kindCut, kindTrailing, kindSecond, kindHeader, kindBody, kindUTF8,
	} {
		if !regexp.MustCompile(`(?m)^\| (.*, )?` + regexp.QuoteMeta(kind) + `(,| \|)`).Match(b) {
			t.Errorf("docs/contract-testing.md has no row for %q", kind)
		}
	}
	if !strings.Contains(string(b), "more than 5,000 near-misses") || mutantsTried != 5000 || elementsTried != 3 {
		t.Error("docs/contract-testing.md has other bounds")
	}
}
