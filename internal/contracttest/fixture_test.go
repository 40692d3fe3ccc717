package contracttest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
)

// Every mistake of every file is told at once, with its line.
func TestBrokenFixtures(t *testing.T) {
	o := write(t, map[string]string{
		"get_thing/accepted.yaml":   whole,
		"get_thing/rejected-x.yaml": whole,
		"get_thing/failure-keys.yaml": `name: n
input: {id: a7}
colour: blue
answers:
  - {step: request, status: 99}
  - {step: poll, status: 200}
  - {step: request, exit: 0, stdout: x}
  - {step: request, status: 200, repeat: true}
  - {step: request, status: 200, body: x, body_file: y}
  - {step: request}
want: {ok: maybe, code: NOT_FOUND, layer: sky}
`,
		"get_thing/failure-want.yaml": `name: n
input: {id: a7}
now: yesterday
answers: []
want: {ok: true, code: NOT_FOUND, sent: [{step: request, method: GET, json: {}, text: x, argv: [a]}]}
`,
		"set_thing/near-miss-yaml.yaml":   "name: a\nname: b\n",
		"set_thing/near-miss-file.yaml":   "name: n\ninput: {}\nanswers: [{step: request, status: 200, body_file: ../../../secret}]\nwant: {ok: false, code: X}\n",
		"set_thing/failure-absent.yaml":   "name: n\ninput: {}\nanswers: [{step: request, status: 200, body_file: none.json}]\nwant: {ok: false, code: NOT_FOUND, data: {}}\n",
		"set_thing/failure-code.yaml":     "name: n\ninput: {}\ncolour: blue\nanswers: []\nwant: {ok: false, code: INVALID_RESPONS, layer: schema}\n",
		"set_thing/failure-own.yaml":      "name: n\ninput: {}\nanswers: []\nwant: {ok: false, code: SOMETHING_ELSE}\n",
		"set_thing/failure-case.yaml":     "name: n\ninput: {}\nanswers: []\nwant: {ok: false, code: not_found}\n",
		"set_thing/failure-no-layer.yaml": "name: n\ninput: {}\nanswers: []\nwant: {ok: false, code: NOT_FOUND, layer: schema}\n",
	})
	_, err := Run(context.Background(), o)
	var ps actions.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("error %v", err)
	}
	text := ps.Error()
	for _, p := range ps {
		text += "\n" + filepath.Base(p.File) + ": " + p.Message + " = " + p.Hint
	}
	for _, want := range []string{
		"rejected-x.yaml: a fixture's file name begins with its kind",
		`failure-keys.yaml: a fixture has no key "colour"`,
		"failure-keys.yaml: status must be a whole number from 200 to 599",
		`failure-keys.yaml: step cannot be "poll"`,
		"failure-keys.yaml: nothing of the same step comes after an answer that is repeated",
		`failure-keys.yaml: "exit" belongs to a step over SSH`,
		`failure-keys.yaml: "stdout" belongs to a step over SSH`,
		"failure-keys.yaml: body stands beside body_file",
		"failure-keys.yaml: an answer needs a status, or close",
		"failure-keys.yaml: want.ok must be true or false",
		"failure-keys.yaml: want.layer cannot be",
		"failure-want.yaml: now is no RFC 3339 time",
		"failure-want.yaml: a success has no code",
		`failure-want.yaml: "argv" belongs to a step over SSH`,
		"near-miss-yaml.yaml: ",
		"near-miss-file.yaml: body_file must lie beside the fixture",
		"failure-absent.yaml: body_file cannot be read",
		"failure-absent.yaml: a failure has no data",
		"failure-no-layer.yaml: only INVALID_RESPONSE has a layer",
		`failure-code.yaml: a fixture has no key "colour"`,
		`failure-code.yaml: want.code cannot be "INVALID_RESPONS": it is no code of the API, and the contract declares none of that name = did you mean "INVALID_RESPONSE"?`,
		`failure-own.yaml: want.code cannot be "SOMETHING_ELSE": it is no code of the API, and the contract declares none of that name = write a code of the API`,
		`failure-case.yaml: want.code cannot be "not_found": it is no code of the API, and the contract declares none of that name = did you mean "NOT_FOUND"?`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not told: %s", want)
		}
	}
	for _, p := range ps {
		if p.Line == 0 && p.Rule != "fixture-kind" || p.Hint == "" {
			t.Errorf("without a line or a hint: %+v", p)
		}
	}
}

func TestBodyFileAndSeveralLines(t *testing.T) {
	o := write(t, map[string]string{
		"get_thing/accepted.yaml": "name: n\ninput: {id: a7}\nanswers: [{step: request, status: 200, headers: {Content-Type: application/json, Link: [a, b]}, body_file: bodies/one.json}]\nwant: {ok: true, data: {id: a7}}\n",
		// A body may have a fixture's name; the two kinds of YAML names and JSON are fixtures.
		"get_thing/accepted-two.yml":       "name: n\ninput: {id: a7}\nanswers: [{step: request, status: 200, headers: {Content-Type: application/json}, body_file: accepted-two-body.json}]\nwant: {ok: true, data: {id: a7}}\n",
		"get_thing/accepted-two-body.json": `{"id":"a7"}`,
		"get_thing/hostile-input.json":     `{"name": "n", "input": {"id": "/"}, "want": {"ok": false, "code": "INVALID_ARGUMENT", "sent": []}}`,
	})
	dir := filepath.Join(o.Contracts, "get_thing", "fixtures", "bodies")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "one.json"), []byte(`{"id":"a7"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	rep, err := Run(context.Background(), o)
	if err != nil || !rep.OK() || len(rep.Cases) != 3 {
		t.Errorf("%v %+v", err, rep)
	}
}

// A form is written in a fixture in the shape that the contract gives it, or as
// the names that leave.
func TestFormShapes(t *testing.T) {
	f := strictyaml.Parse("x.yaml", []byte("{a: [1, {b: true}, [x]], 'c[d]': e, q: {r: [s, t]}}"), strictyaml.Limits{Bytes: 1 << 10})
	d := decoder{f: f}
	if got := d.pairs(f.Root(), "form").Encode(); got != "a%5B0%5D=1&a%5B1%5D%5Bb%5D=true&a%5B2%5D%5B0%5D=x&c%5Bd%5D=e&q%5Br%5D%5B0%5D=s&q%5Br%5D%5B1%5D=t" {
		t.Error(got)
	}
	f = strictyaml.Parse("x.yaml", []byte("{a: [1, true]}"), strictyaml.Limits{Bytes: 1 << 10})
	if got := (decoder{f: f}).pairs(f.Root(), "query").Encode(); got != "a=1&a=true" {
		t.Error(got)
	}
}

func TestRunRefusals(t *testing.T) {
	o := write(t, nil)
	if rep, err := Run(context.Background(), o); err != nil || rep.OK() {
		t.Errorf("no fixture at all is no success: %v", err)
	}
	o.Actions = []string{"set_things"}
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), `"set_things"`) {
		t.Errorf("error %v", err)
	}
	o.Actions, o.Site = nil, filepath.Join(t.TempDir(), "absent.yaml")
	var ps actions.Problems
	if _, err := Run(context.Background(), o); !errors.As(err, &ps) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, write(t, map[string]string{"get_thing/accepted.yaml": whole})); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		`plain "quoted" é \`: `plain "quoted" é \`, "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb": `a\nb`, "a\u202eb": `a\u202eb`, "bad\xff": `bad\ufffd`,
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzFixture: whatever a file holds, reading it ends with a fixture or with
// problems, and never with both a usable name and a nil want.
func FuzzFixture(f *testing.F) {
	f.Add(whole)
	f.Add(change)
	f.Add("name: n\ninput: {}\nanswers: [{step: request, close: before_answer, repeat: true}]\nwant: {ok: false, code: X, sent: [{step: request, method: GET, path: /, query: {a: [1, {b: c}]}, form: {a: null}}]}\n")
	f.Add("{\"name\": \"n\", \"want\": 3, \"answers\": {}}")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		d := decoder{f: strictyaml.Parse("f.yaml", []byte(text), strictyaml.Limits{}), dir: dir, steps: []string{"request"}}
		var fx fixture
		if d.f.Root() != nil {
			d.fixture(&fx)
		}
		if len(d.f.Problems()) == 0 && (fx.name == "" && !strings.Contains(text, "name") || !fx.want.ok && fx.want.code == "" && !strings.Contains(text, "code")) {
			t.Errorf("accepted without name or want: %+v", fx)
		}
	})
}
