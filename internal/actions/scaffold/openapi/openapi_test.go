package openapi_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
	"chatelaine/internal/actions/scaffold/openapi"
	"chatelaine/internal/contracttest"
)

func read(t testing.TB, file string) *openapi.Document {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	d, err := openapi.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var samples = []string{"release-service.yaml", "ticket-service.json"}

// outline is what contract new does with a description.
func outline(t testing.TB, d *openapi.Document, operation, action string) *scaffold.Outline {
	t.Helper()
	o, err := d.Outline(openapi.Options{Operation: operation, Action: action})
	if err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	if wrong := o.Complete(); len(wrong) > 0 {
		t.Fatalf("%s: %v", operation, wrong)
	}
	return o
}

// Every operation of the samples becomes a contract that loads, that the lint
// has nothing against, and whose fixtures play, their near-misses too.
func TestEveryOperationBecomesAContract(t *testing.T) {
	for _, file := range samples {
		d := read(t, file)
		for i, op := range d.Operations() {
			id := op.ID
			if id == "" {
				id = op.Method + " " + op.Path
			}
			t.Run(file+" "+id, func(t *testing.T) {
				t.Parallel()
				action := "draft_" + string(rune('a'+i))
				o := outline(t, d, id, action)
				plays(t, o)
			})
		}
	}
}

func plays(t *testing.T, o *scaffold.Outline) {
	t.Helper()
	root := t.TempDir()
	contracts, site := filepath.Join(root, "contracts"), filepath.Join(root, "targets.yaml")
	w, err := o.Write(contracts)
	if err != nil {
		t.Fatalf("%v\n%s", err, o.Files()["contract.yaml"])
	}
	if err := os.WriteFile(site, []byte(w.Site), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.Dir, "contract.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set, problems := actions.LoadSet(site, contracts)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, text)
	}
	c, _ := set.Contract(o.Action)
	for _, f := range actions.Lint(c, set) {
		t.Errorf("lint: %d: %s [%s]\n%s", f.Line, f.Message, f.Rule, text)
	}
	rep, err := contracttest.Run(context.Background(), contracttest.Options{Site: site, Contracts: contracts, Mutate: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rep.Cases {
		if !c.OK {
			b, _ := os.ReadFile(filepath.Join(contracts, c.File))
			t.Errorf("%s: %+v\n%s\n%s", c.File, c, b, text)
		}
	}
	for _, m := range rep.Mutations {
		for _, h := range m.Holes {
			if !slices.ContainsFunc(o.Decisions, func(d string) bool { return strings.Contains(d, "each element is about what was asked") }) {
				t.Errorf("a hole: %+v\n%s", h, text)
			}
		}
	}
	for _, c := range rep.Coverage {
		t.Logf("%+v", c)
		if len(c.NeverRefused) > 0 {
			t.Errorf("no fixture is refused by %+v\n%s", c.NeverRefused, text)
		}
	}
	kinds := map[string]bool{}
	for _, c := range rep.Cases {
		kind, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(c.File), ".yaml"), "-")
		kinds[kind] = true
	}
	for _, k := range []string{"accepted", "near", "failure", "hostile"} {
		if !kinds[k] {
			t.Errorf("there is no fixture of the kind %s", k)
		}
	}
}

// nothingOpen says that no openness of the description came along.
func TestNothingOpenComesAlong(t *testing.T) {
	for _, file := range samples {
		d := read(t, file)
		for i, op := range d.Operations() {
			if op.ID == "" {
				continue
			}
			o := outline(t, d, op.ID, "draft_"+string(rune('a'+i)))
			text := o.Files()["contract.yaml"]
			body := text[strings.Index(text, "contract: v1"):]
			for _, no := range []string{"additionalProperties: true", "example.com", "https://", "callback", "webhook", "Ignore all", "patternProperties"} {
				if strings.Contains(body, no) {
					t.Errorf("%s: the contract holds %q\n%s", op.ID, no, text)
				}
			}
		}
	}
}

// told are what the lists of an operation must say.
var told = []struct {
	file, operation string
	left, decide    []string
}{
	{
		"release-service.yaml", "createRelease",
		[]string{
			`body.webhook_url: its name has the word "url"`, `body.token: its name has the word "token"`,
			`body.metadata: the description lets it hold anything`, `body.window.host: its name has the word "host"`,
			`header X-Trace: no input stands in a header`, `answer.meta: the description lets it hold anything`,
			`answer.previous.next: it refers to itself`,
		},
		[]string{
			`body.webhook_url: the service requires it; write a constant`, `idempotency: the daemon sends its own key as Idempotency-Key`,
			`body.reason: the description bounds it nowhere`, `body: the description lets it hold members of any name`,
			`body.labels: the description bounds the list nowhere; 20 elements are assumed`, `answer 202: it is described too`, `answer 4XX: a row names exact statuses`,
			`failures.CONFLICT: say in your own words what 409 means`, `target: the server has the variable region`, `target: the description names 2 servers`,
			`owner: name who answers`, `display.notes: it is text for people`, `result.id: the description lets it be any text`, `display.author_name: it is text for people`,
		},
	},
	{
		"release-service.yaml", "putFile",
		[]string{
			`path parameter account: its name has the word "account"`, `path parameter path: its name has the word "path"`,
			`path parameter note: free text does not stand in a path`, `body.nested: lists and objects of a form are written by hand`,
		},
		[]string{`target.account: the operator fills this part of the path`, `body.size: the description gives it no bounds`, `body.nested: the service requires it`},
	},
	{
		"release-service.yaml", "listReleases",
		[]string{`query parameter callback_url: `, `query parameter sort: it has several shapes (oneOf)`},
		[]string{`answer default: a row names exact statuses`},
	},
	{
		"ticket-service.json", "searchTickets",
		[]string{
			`query parameter query: its name has the word "query"`, `cookie parameter session: no contract sends a cookie`,
			`query parameter filter: an object or a list has no place there`,
		},
		[]string{`query parameter query: the service requires it`, `identity: the description names several ways in; login is suggested`, `target: the description gives only the server's path`},
	},
	{
		"ticket-service.json", "addComment",
		[]string{`body: it is neither JSON nor a form`},
		[]string{`body: the service takes multipart/form-data`, `answer 202: it says only that the request was taken`, `identity: the description asks for none`},
	},
	{"ticket-service.json", "createTicket", []string{`body.command: its name has the word "command"`, `body.@type: its name is no name of an input`}, nil},
	{"ticket-service.json", "setState", nil, []string{`operation: the description calls it deprecated`}},
}

// The identity that is suggested is of the kind that the description names, and its
// site file loads.
func TestSuggestedIdentities(t *testing.T) {
	for scheme, want := range map[string]string{
		"{type: mutualTLS}":                           "{kind: client_certificate}",
		"{type: http, scheme: bearer}":                "{kind: bearer}",
		"{type: openIdConnect}":                       "{kind: bearer}",
		"{type: oauth2, flows: {}}":                   "{kind: bearer}",
		"{type: apiKey, in: header, name: X-Api-Key}": "{kind: header, name: X-Api-Key, prefix: ''}",
		"{type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://login.example/token', scopes: {}}}}": "{kind: oauth2_client, token: {url: 'https://login.example/token'}, client_id: the-client-id, scopes: ['a:b', c]}",
		"{type: oauth2, flows: {clientCredentials: {tokenUrl: '/token', scopes: {}}}}":                      "{kind: bearer}",
		"{type: oauth2, flows: {clientCredentials: {tokenUrl: 'http://login.example/token', scopes: {}}}}":  "{kind: bearer}",
	} {
		text := "openapi: 3.1.0\ninfo: {title: a, version: '1'}\nservers: [{url: 'https://service.example'}]\npaths: {/a: {get: {operationId: x, security: [{way: ['a:b', c, 'not a scope', c]}], responses: {'200': {description: ok, content: {application/json: {schema: {type: object, required: [id], properties: {id: {type: integer, minimum: 1, maximum: 9}}}}}}}}}}\ncomponents: {securitySchemes: {way: " + scheme + "}}\n"
		d, err := openapi.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		o := outline(t, d, "x", "draft_one")
		if site := o.Site(); !strings.Contains(site, "-bot: "+want+"\n") {
			t.Errorf("%s: no %s in\n%s", scheme, want, site)
		}
		if _, err := o.Write(t.TempDir()); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// A bound that the description leaves out stays out.
func TestExcludedBounds(t *testing.T) {
	for schema, want := range map[string]string{
		"{type: integer, exclusiveMinimum: 0, exclusiveMaximum: 6}":                         "{type: integer, minimum: 1, maximum: 5}",
		"{type: integer, minimum: 0, exclusiveMinimum: true, maximum: 6}":                   "{type: integer, minimum: 1, maximum: 6}",
		"{type: integer, minimum: 3, exclusiveMinimum: 0, maximum: 6, exclusiveMaximum: 9}": "{type: integer, minimum: 3, maximum: 6}",
		"{type: integer, minimum: 3, exclusiveMinimum: 3, maximum: 6, exclusiveMaximum: 6}": "{type: integer, minimum: 4, maximum: 5}",
		"{type: number, exclusiveMinimum: 0, maximum: 1}":                                   "{type: number, minimum: 0, maximum: 1}",
		"{type: integer, minimum: 5, maximum: 1}":                                           "",
	} {
		d, err := openapi.Parse([]byte(one("/a", "{operationId: x, parameters: [{name: size, in: query, required: true, schema: "+schema+"}]}")))
		if err != nil {
			t.Fatal(err)
		}
		o := outline(t, d, "x", "draft_one")
		if want == "" {
			if len(o.Inputs) > 0 || !strings.Contains(strings.Join(o.LeftOut, "\n"), "let no number through") {
				t.Errorf("%s: %v, %v", schema, o.Inputs, o.LeftOut)
			}
			continue
		}
		if text := o.Files()["contract.yaml"]; !strings.Contains(text, "size: "+want+"\n") {
			t.Errorf("%s: no %s in\n%s", schema, want, text)
		}
		if strings.HasPrefix(schema, "{type: number") && !strings.Contains(strings.Join(o.Decisions, "\n"), "leaves 0 itself out") {
			t.Errorf("%s: %v", schema, o.Decisions)
		}
	}
}

func TestWhatIsLeftOutIsSaid(t *testing.T) {
	for _, c := range told {
		o := outline(t, read(t, c.file), c.operation, "draft_one")
		for _, want := range c.left {
			if !slices.ContainsFunc(o.LeftOut, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%s: left out says nothing like %q:\n%s", c.operation, want, strings.Join(o.LeftOut, "\n"))
			}
		}
		for _, want := range c.decide {
			if !slices.ContainsFunc(o.Decisions, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%s: the decisions have nothing like %q:\n%s", c.operation, want, strings.Join(o.Decisions, "\n"))
			}
		}
		text := o.Files()["contract.yaml"]
		for _, l := range append(slices.Clone(o.LeftOut), o.Decisions...) {
			if !strings.Contains(text, l) {
				t.Errorf("%s: the contract's comments do not say %q", c.operation, l)
			}
		}
	}
}

// A refusal without content is expected without a body, which is a decision; an
// answer to HEAD has none in any case.
func TestRefusalsWithoutContent(t *testing.T) {
	d, err := openapi.Parse([]byte(`openapi: 3.0.3
info: {title: T, version: 1.0.0}
servers: [{url: 'https://t.example'}]
paths:
  /things:
    get:
      operationId: listThings
      responses:
        '200': {description: ok, content: {application/json: {schema: {type: object, required: [n], properties: {n: {type: integer, minimum: 0, maximum: 9}}}}}}
        '409': {description: busy}
    head:
      operationId: headThings
      responses:
        '200': {description: ok}
        '409': {description: busy, content: {application/json: {schema: {type: object}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	told := func(o *scaffold.Outline) bool {
		return slices.ContainsFunc(o.Decisions, func(s string) bool { return strings.Contains(s, "answer 409: the description gives it no content") })
	}
	get, head := outline(t, d, "listThings", "draft_get"), outline(t, d, "headThings", "draft_head")
	if !told(get) || told(head) {
		t.Errorf("GET: %v\nHEAD: %v", get.Decisions, head.Decisions)
	}
	plays(t, get)
	plays(t, head)
}
