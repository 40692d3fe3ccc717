package contracttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// site is the site file of these tests: one target for each kind of identity.
const site = `
targets:
  things:  {url: "https://things.example/api", identity: bot, actions: [set_thing, get_thing], effects: [read, change], ask: session}
  keyed:   {url: "https://keyed.example:8443", identity: key, actions: [get_keyed], effects: [read]}
  signed:  {url: "https://signed.example", identity: pair, actions: [get_signed], effects: [read]}
  open:    {url: "https://open.example", identity: nobody, actions: [get_open], effects: [read]}
  posts:   {url: "https://posts.example", identity: pager, actions: [post_thing], effects: [read, change], ask: session}
  fields:  {url: "https://fields.example", identity: fielded, actions: [post_field], effects: [read, change], ask: session}
  meshed:  {url: "https://meshed.example", identity: mesh, actions: [get_meshed], effects: [read]}
  tokens:  {url: "https://tokens.example", identity: machine, actions: [get_token1], effects: [read]}
  people:  {url: "https://people.example", identity: person, actions: [get_token2], effects: [read]}
  apps:    {url: "https://apps.example", identity: app, actions: [get_token3], effects: [read], with: {repo: web}}
  robots:  {url: "https://robots.example", identity: robot, actions: [get_token4], effects: [read]}
  images:  {url: "https://images.example", identity: images, actions: [get_token5], effects: [read]}
  local:   {url: "http://127.0.0.1:8080", identity: bot, actions: [get_local], effects: [read], allow: [loopback]}
identities:
  bot:    {kind: bearer}
  key:    {kind: header, name: X-Api-Key, prefix: "k "}
  pair:   {kind: basic, username: chatelaine}
  nobody: {kind: none}
  pager:   {kind: body, json: /auth/routing_key}
  fielded: {kind: body, form: token}
  mesh:    {kind: client_certificate}
  machine: {kind: oauth2_client, token: {url: "https://login.example/token"}, client_id: a, scopes: [b]}
  person:  {kind: oauth2_refresh, token: {url: "https://login.example/token"}, client_id: a}
  app:     {kind: github_app, token: {url: "https://login.example"}, app_id: "1", installation: "2", repositories: {from: target.repo}, permissions: {contents: read}}
  robot:   {kind: jwt_bearer, token: {url: "https://login.example/token"}, issuer: a, scopes: [b]}
  images:  {kind: registry_token, token: {url: "https://login.example/token"}, username: a, service: b, scopes: ["repository:a:pull"]}
`

// reads is a contract that reads; ACTION and TARGET are replaced.
const reads = `
contract: v1
action: ACTION
version: 1.0.0
summary: Read one thing.
owner: tests
effect: read
input:
  type: object
  additionalProperties: false
  required: [id]
  properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}, page: {type: integer, minimum: 1, maximum: 9}}
route: {target: TARGET}
request:
  method: GET
  path: /things/{input.id}
  query: {page: {from: input.page, optional: true}, sort: name}
  headers: {Accept: application/json}
  timeout: 5s
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, maxLength: 64}, note: {type: string, maxLength: 200}}}
      success: {id: /id}
      display: {note: {at: /note, optional: true}}
result: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
display: {note: {max: 100, lines: 3}}
checks: [{same: [result.id, input.id]}]
retry: {attempts: 3, within: 30s, codes: [UPSTREAM_UNAVAILABLE, REMOTE_RATE_LIMITED]}
`

const sets = `
contract: v1
action: set_thing
version: 1.0.0
summary: Set one thing.
owner: tests
effect: change
input:
  type: object
  additionalProperties: false
  required: [id, text]
  properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}, text: {type: string, maxLength: 200}}
route: {target: things}
approval: {sentence: "Set {input.id} to {input.text}"}
request:
  method: POST
  path: /things/{input.id}
  form: {text: {from: input.text}, meta: {kind: note}}
  timeout: 5s
  outcomes:
    - status: 204
      media: none
      success: {}
result: {type: object, additionalProperties: false, properties: {}}
idempotency: {header: Idempotency-Key}
retry: {attempts: 2, within: 30s, codes: [UPSTREAM_UNAVAILABLE, OUTCOME_UNKNOWN]}
`

// write lays out the site and the contracts, with one fixture file for each
// "action/name" of fixtures.
func write(t *testing.T, fixtures map[string]string) Options {
	t.Helper()
	return writeWith(t, nil, fixtures)
}

// writeWith is write with other contracts in place of some.
func writeWith(t *testing.T, contracts, fixtures map[string]string) Options {
	t.Helper()
	dir := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("targets.yaml", site)
	put("contracts/set_thing/contract.yaml", sets)
	for action, target := range map[string]string{"get_thing": "things", "get_keyed": "keyed", "get_signed": "signed", "get_open": "open", "get_local": "local",
		"get_meshed": "meshed", "get_token1": "tokens", "get_token2": "people", "get_token3": "apps", "get_token4": "robots", "get_token5": "images"} {
		put("contracts/"+action+"/contract.yaml", strings.NewReplacer("ACTION", action, "TARGET", target).Replace(reads))
	}
	for action, text := range contracts {
		put("contracts/"+action+"/contract.yaml", text)
	}
	for name, text := range fixtures {
		action, file, _ := strings.Cut(name, "/")
		put("contracts/"+action+"/fixtures/"+file, text)
	}
	return Options{Site: filepath.Join(dir, "targets.yaml"), Contracts: filepath.Join(dir, "contracts")}
}

// playAll plays fixtures of one action, by name.
func playAll(t *testing.T, action string, fixtures map[string]string) map[string]Case {
	t.Helper()
	files, names := map[string]string{}, map[string]string{}
	for name, text := range fixtures {
		file := fmt.Sprintf("hostile-%d.yaml", len(files))
		files[action+"/"+file], names[file] = text, name
	}
	rep, err := Run(context.Background(), write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Case{}
	for _, c := range rep.Cases {
		out[names[filepath.Base(c.File)]] = c
	}
	if len(out) != len(fixtures) {
		t.Fatalf("%d of %d fixtures were played", len(out), len(fixtures))
	}
	return out
}

// playOne plays one fixture of an action.
func playOne(t *testing.T, action, fixture string) Case {
	t.Helper()
	return playAll(t, action, map[string]string{"": fixture})[""]
}
