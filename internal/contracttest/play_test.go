package contracttest

import (
	"strings"
	"testing"
	"time"
)

const whole = `
name: one thing
input: {id: a7, page: 2}
answers:
  - {step: request, status: 200, headers: {Content-Type: application/json}, body: '{"id":"a7","note":"hello"}'}
want:
  ok: true
  data: {id: a7}
  display: {note: {text: hello, truncated: false}}
  sent:
    - {step: request, method: GET, path: /api/things/a7, query: {sort: name, page: 2}, headers: {Accept: application/json}, credential: Authorization}
`

// What a fixture says wrongly is told, and only that.
func TestEveryDifferenceIsTold(t *testing.T) {
	cases := []struct{ name, from, to, what, want, got string }{
		{name: "as it is"},
		{"data", "data: {id: a7}", "data: {id: a8}", "data.id", `"a8"`, `"a7"`},
		{"more data", "data: {id: a7}", "data: {id: a7, more: 1}", "data.more", "1", "(absent)"},
		{"display", "text: hello,", "text: bye,", "display.note.text", `"bye"`, `"hello"`},
		{"display that is not said", "  display: {note: {text: hello, truncated: false}}\n", "", "display.note", "(absent)", `{"text":"hello","truncated":false}`},
		{"method", "method: GET", "method: HEAD", "sent[0].method", "HEAD", "GET"},
		{"path", "/api/things/a7", "/things/a7", "sent[0].path", "/things/a7", "/api/things/a7"},
		{"query value", "page: 2}, h", "page: 3}, h", "sent[0].query", "page=3&sort=name", "page=2&sort=name"},
		{"query left out", "query: {sort: name, page: 2}, ", "", "sent[0].query", "none", "page=2&sort=name"},
		{"header", "Accept: application/json}, c", "Accept: text/plain}, c", "sent[0].headers.Accept", "text/plain", "application/json"},
		{"header that is not there", "{Accept:", "{Prefer: x, Accept:", "sent[0].headers.Prefer", "x", "none"},
		{"body", "credential: Authorization", "json: {a: 1}", "sent[0].headers.Content-Type", "application/json", "none"},
		{"place of the credential", "credential: Authorization", "credential: X-Api-Key", "sent[0].credential", "X-Api-Key", "Authorization"},
		{"no credential", "credential: Authorization", "credential: none", "sent[0].credential", "none", "Authorization"},
		{"nothing sent", "sent:\n    - {", "sent: [] #", "sent", "0 requests", "1 request"},
		{"an answer too many", "want:", "  - {step: request, status: 500}\nwant:", "answers", "each asked for", "1 that nobody asked for"},
		{"an answer too few", "status: 200,", "status: 503,", "answers", "one for each request", "2 requests beyond the last answer"},
		{"a failure", "ok: true\n  data: {id: a7}\n  display: {note: {text: hello, truncated: false}}", "ok: false\n  code: NOT_FOUND", "outcome", "NOT_FOUND", "ok"},
		{"a code", "ok: true\n  data: {id: a7}\n  display: {note: {text: hello, truncated: false}}\n", "ok: false\n  code: NOT_FOUND\n", "outcome", "NOT_FOUND", "ok"},
	}
	fixtures := map[string]string{}
	for _, c := range cases {
		fixtures[c.name] = strings.Replace(whole, c.from, c.to, 1)
		if c.from != "" && fixtures[c.name] == whole {
			t.Fatalf("%s: the change changes nothing", c.name)
		}
	}
	played := playAll(t, "get_thing", fixtures)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := played[c.name]
			if c.what == "" {
				if !x.OK {
					t.Errorf("%+v", x)
				}
				return
			}
			if x.OK {
				t.Fatal("played as it says")
			}
			for _, d := range x.Diffs {
				if d == (Diff{c.what, c.want, c.got}) {
					return
				}
			}
			t.Errorf("differs: %+v (%s)", x.Diffs, x.Reason)
		})
	}
}

func TestLayerAndCode(t *testing.T) {
	fixture := func(answer, want string) string {
		return "name: n\ninput: {id: a7}\nanswers:\n  - {step: request, " + answer + "}\nwant: {ok: false, " + want + "}\n"
	}
	const json = "status: 200, headers: {Content-Type: application/json}, body: "
	for name, x := range playAll(t, "get_thing", map[string]string{
		"transport":     fixture(`status: 200, headers: {Content-Type: application/json, Content-Encoding: gzip}, body: '{}'`, "code: INVALID_RESPONSE, layer: transport"),
		"parse":         fixture(json+`'{"id":"a7","id":"a7"}'`, "code: INVALID_RESPONSE, layer: parse"),
		"media":         fixture(`status: 200, body: '{"id":"a7"}'`, "code: INVALID_RESPONSE, layer: outcome"),
		"outcome":       fixture(`status: 302, headers: {Location: "https://evil.example/"}`, "code: INVALID_RESPONSE, layer: outcome"),
		"schema":        fixture(json+`'{"id":7}'`, "code: INVALID_RESPONSE, layer: schema"),
		"check":         fixture(json+`'{"id":"b8"}'`, "code: INVALID_RESPONSE, layer: check"),
		"result":        fixture(json+`'{"id":"NOT SMALL"}'`, "code: INVALID_RESPONSE, layer: result"),
		"echo":          fixture(json+`'{"id":"a7","note":"${credential}"}'`, "code: INVALID_RESPONSE, layer: echo"),
		"echo, header":  fixture(`status: 200, headers: {Content-Type: application/json, X-Seen: "${credential}"}, body: '{"id":"a7"}'`, "code: INVALID_RESPONSE, layer: echo"),
		"not found":     fixture("status: 404", "code: NOT_FOUND"),
		"our key":       fixture("status: 401", "code: REMOTE_UNAUTHENTICATED"),
		"cut, repeated": fixture("close: after_headers, repeat: true", "code: UPSTREAM_UNAVAILABLE"),
		"closed":        fixture("close: before_answer, repeat: true", "code: UPSTREAM_UNAVAILABLE"),
		"too late":      fixture("status: 200, delay: 20s, repeat: true", "code: UPSTREAM_UNAVAILABLE"),
		"slow down":     fixture("status: 429, headers: {Retry-After: 5}, repeat: true", "code: REMOTE_RATE_LIMITED"),
		"bad input":     "name: n\ninput: {id: ../x}\nanswers: []\nwant: {ok: false, code: INVALID_ARGUMENT, sent: []}\n",
		"no object":     "name: n\ninput: null\nanswers: []\nwant: {ok: false, code: INVALID_ARGUMENT, sent: []}\n",
	}) {
		t.Run(name, func(t *testing.T) {
			if !x.OK {
				t.Errorf("want %s, got %s: %s\n%v", x.Want, x.Got, x.Reason, x.Diffs)
			}
		})
	}
	x := playOne(t, "get_thing", "name: n\ninput: {id: ../x, more: 1}\nanswers: []\nwant: {ok: true, data: {}}\n")
	if x.OK || !strings.Contains(x.Reason, "input /id ") || !strings.Contains(x.Reason, "input /more ") || strings.Contains(x.Reason, "..") {
		t.Errorf("the fields of the input that was refused: %q", x.Reason)
	}
	x = playOne(t, "get_thing", fixture(json+`'{"id":7}'`, "code: INVALID_RESPONSE, layer: parse"))
	if x.OK || x.Diffs[0] != (Diff{"layer", "parse", "schema"}) || x.Layer != "schema" {
		t.Errorf("%+v", x)
	}
}

func TestEveryIdentityKind(t *testing.T) {
	for action, c := range map[string]struct{ credential, path string }{
		"get_thing":  {"Authorization", "/api/things/a7"},
		"get_keyed":  {"X-Api-Key", "/things/a7"},
		"get_signed": {"Authorization", "/things/a7"},
		"get_open":   {"none", "/things/a7"},
		"get_local":  {"Authorization", "/things/a7"},
		"get_meshed": {"client certificate", "/things/a7"},
		"get_token1": {"Authorization", "/things/a7"},
		"get_token2": {"Authorization", "/things/a7"},
		"get_token3": {"Authorization", "/things/a7"},
		"get_token4": {"Authorization", "/things/a7"},
		"get_token5": {"Authorization", "/things/a7"},
	} {
		t.Run(action, func(t *testing.T) {
			text := strings.NewReplacer("credential: Authorization", "credential: "+c.credential, "/api/things/a7", c.path).Replace(whole)
			if x := playOne(t, action, text); !x.OK {
				t.Errorf("%+v", x)
			}
		})
	}
}

const change = `
name: one change
input: {id: a7, text: "a b&c"}
idempotency_key: key-1
answers:
  - {step: request, ANSWER}
want:
  WANT
  sent:
    - {step: request, method: POST, path: /api/things/a7, headers: {Idempotency-Key: key-1}, form: {text: "a b&c", meta: {kind: note}}}
`

func TestChanges(t *testing.T) {
	repeated := "\n    - {step: request, method: POST, path: /api/things/a7, headers: {Idempotency-Key: key-1}, form: {text: \"a b&c\", meta: {kind: note}}}\n"
	fixtures := map[string]string{}
	for name, c := range map[string]struct{ answer, want, more string }{
		"done":                           {"status: 204", "ok: true\n  data: {}", ""},
		"lost, twice with the same key":  {"close: before_answer, repeat: true", "ok: false\n  code: OUTCOME_UNKNOWN", repeated},
		"lost, then done":                {"close: after_headers}\n  - {step: request, status: 204", "ok: true\n  data: {}", repeated},
		"lost, then refused":             {"close: before_answer}\n  - {step: request, status: 403", "ok: false\n  code: OUTCOME_UNKNOWN", repeated},
		"server error, then not allowed": {"status: 500}\n  - {step: request, status: 401", "ok: false\n  code: OUTCOME_UNKNOWN", repeated},
		"an answer that is none":         {"status: 200, body: x", "ok: false\n  code: INVALID_RESPONSE\n  layer: outcome", ""},
	} {
		text := strings.NewReplacer("ANSWER", c.answer, "WANT", c.want).Replace(change)
		fixtures[name] = strings.TrimRight(text, "\n") + c.more
	}
	for name, x := range playAll(t, "set_thing", fixtures) {
		if !x.OK {
			t.Errorf("%s: want %s, got %s: %s\n%v", name, x.Want, x.Got, x.Reason, x.Diffs)
		}
	}
	x := playOne(t, "set_thing", strings.NewReplacer("ANSWER", "status: 204", "WANT", "ok: true\n  data: {}", "kind: note", "kind: other").Replace(change))
	if x.OK || x.Diffs[0] != (Diff{"sent[0].form", "meta%5Bkind%5D=other&text=a+b%26c", "meta%5Bkind%5D=note&text=a+b%26c"}) {
		t.Errorf("%+v", x.Diffs)
	}
}

func TestWaitsTakeNoTime(t *testing.T) {
	start := time.Now()
	text := "name: n\ninput: {id: a7}\nanswers:\n  - {step: request, status: 429, headers: {Retry-After: 9}, repeat: true}\nwant: {ok: false, code: REMOTE_RATE_LIMITED}\n"
	if x := playOne(t, "get_thing", text); !x.OK || time.Since(start) > 5*time.Second {
		t.Errorf("%s: %+v", time.Since(start), x)
	}
}
