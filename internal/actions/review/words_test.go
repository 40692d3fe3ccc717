package review

import (
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions/strictyaml"
)

func parse(t *testing.T, text string) *strictyaml.Node {
	t.Helper()
	f := strictyaml.Parse("test.yaml", []byte(text), strictyaml.Limits{})
	if ps := f.Problems(); len(ps) > 0 {
		t.Fatalf("%s: %v", text, ps)
	}
	return f.Root()
}

func TestBoundsInWords(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{type: string, enum: [a, b]}`, "one of a, b"},
		{`{enum: [only]}`, "always only"},
		{`{const: "two words"}`, `always "two words"`},
		{`{enum: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]}`, "one of 14: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more"},
		{`{type: string, maxLength: 1}`, "free text, at most 1 character"},
		{`{type: string, minLength: 1, maxLength: 500}`, "free text, 1 to 500 characters"},
		{`{type: string, minLength: 2}`, "free text, at least 2 characters"},
		{`{type: string}`, "free text without a bound"},
		{`{type: string, pattern: '^[a-z]{3}$', minLength: 3, maxLength: 3}`, "matches ^[a-z]{3}$, 3 characters"},
		{`{type: string, pattern: "^[a\u00e9\u202e-\uffff]$"}`, `matches ^[a\x{e9}\x{202e}-\x{ffff}]$`},
		{`{type: string, format: date-time, maxLength: 35}`, "a time (RFC 3339)"},
		{`{type: string, format: ipv4}`, "text of format ipv4"},
		{`{type: integer, minimum: 1, maximum: 9}`, "whole number 1 to 9"},
		{`{type: number, exclusiveMinimum: 0, maximum: 1}`, "number at most 1, above 0"},
		{`{type: integer, minimum: 3, multipleOf: 3}`, "whole number at least 3, a multiple of 3"},
		{`{type: integer}`, "whole number without a bound"},
		{`{type: boolean}`, "true or false"},
		{`{type: [string, "null"], enum: [a, null]}`, "one of a, null"},
		{`{type: ["null", integer], minimum: 0, maximum: 1}`, "null, or whole number 0 to 1"},
		{`{type: array, maxItems: 3, uniqueItems: true, items: {enum: [x, y]}}`, "list of at most 3 elements, none twice, each one of x, y"},
		{`{type: array, items: {const: 1}}`, "list without a bound, each always 1"},
		{`{type: array, maxItems: 2, prefixItems: [{const: a}, {const: b}]}`, "list of at most 2 elements, in order: always a; always b"},
		{`{type: object, additionalProperties: false, required: [a], properties: {a: {const: 1}, b: {const: 2}}}`, "object with a (always 1), b? (always 2)"},
		{`{type: object}`, "object, open"},
		{`{oneOf: [{const: 1}, {type: boolean}]}`, "always 1, or true or false"},
		{`{$ref: "#/$defs/x", $defs: {x: {type: boolean}}}`, "true or false"},
		{`{$ref: "#/nowhere"}`, "what its schema says"},
		{`{minimum: 1}`, "what its schema says"},
		{`true`, "anything"},
	} {
		n := parse(t, c.schema)
		if got := (bounds{n}).of(n).Words; got != c.want {
			t.Errorf("%s: %q, want %q", c.schema, got, c.want)
		}
	}
}

func TestPredicatesInWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{equals: [/ok, true]}`, "/ok is true"},
		{`{equals: [/name, {from: input.name}]}`, "/name is {input.name}"},
		{`{equals: ["", {const: {a: 1}}]}`, `the whole body is {"a":1}`},
		{`{in: [/state, [a, b]]}`, "/state is one of a, b"},
		{`{exists: /id}`, "/id is there"},
		{`{is_null: /id}`, "/id is null"},
		{`{not: {exists: /error}}`, "not (/error is there)"},
		{`{all_of: [{exists: /a}, {any_of: [{exists: /b}, {exists: /c}]}]}`, "/a is there and (/b is there or /c is there)"},
		{`{each: [/items, {equals: [/ok, true]}]}`, "every element of /items has /ok is true"},
		{`{some: [/items, {exists: ""}]}`, "an element of /items has the whole body is there"},
		{`{none: [/items, {exists: /x}]}`, "no element of /items has /x is there"},
		{`{count: [/items, ">=", 2]}`, "the number of elements of /items >= 2"},
		{`{compare: [/a, "<", {at: /b, absent: 0}]}`, "/a < /b (0 where absent)"},
		{`{compare: [3, "==", {from: head.n}]}`, "3 == {head.n}"},
	} {
		if got := predicate(parse(t, c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestPicksInWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`/id`, "/id"},
		{`""`, "the whole body"},
		{`{at: /t, time: unix_nanos}`, "/t, time from unix_nanos"},
		{`{header: ETag, matches: '^[0-9]+$'}`, "header ETag, must match ^[0-9]+$"},
		{`{find: {in: /items, where: {equals: [/name, main]}}, at: /id, text: true}`, "/id of the one element of /items where /name is main, as text"},
		{`{find: {in: /items, where: {exists: /id}}}`, "the element of /items where /id is there"},
		{`{from: target.owner, optional: true}`, "{target.owner}, may be absent"},
		{`{const: true}`, "always true"},
		{`{at: /s, map: {OK: healthy, BAD: failed}, other: unknown}`, "/s, OK → healthy, BAD → failed, anything else → unknown"},
		{`{at: /x, base64: true, trim: false, strip_prefix: v, lower: true, prefix: "v"}`, `/x, base64 decoded, without "v" in front, in lower case, "v" put in front`},
		{`{at: /x, last_segment: true, integer: true, null: keep}`, "/x, last segment of the URL, as a whole number, null is kept"},
		{`{each: {in: /list, max: 5, pick: {id: /id, at: {at: /t, time: rfc3339}}}}`, "each of at most 5 of /list: id from /id, at from /t, time from rfc3339"},
	} {
		if got := pick(parse(t, c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestChecksInWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{same: [result.id, input.id]}`, "result.id is the same as input.id"},
		{`{increased: [result.v, head.v]}`, "result.v is greater than head.v"},
		{`{fresh: {at: result.t, within: 5m}}`, "result.t is at most 5m old"},
		{`{after_call: {at: result.t, skew: 2s}}`, "result.t is after the call, clocks may differ by 2s"},
		{`{signed: {jws: /evidence, keys: signer, issuer: "https://x", audience: us, claims: {sub: input.id}}}`, "/evidence is signed by a key of signer, issued by https://x, for us, claim sub is input.id"},
	} {
		if got := check(parse(t, c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestValuesInWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{a: 1, b: [x, {from: input.y}], c: {}}`, `{a: 1, b: ["x", {input.y}], c: {}}`},
		{`{from: input.x, optional: true}`, "{input.x?}"},
		{`{const: {from: 1}}`, `{"from":1}`},
		{`{concat: [v, {from: input.x}]}`, `"v" + {input.x}`},
		{`{base64: {from: input.x}}`, "base64({input.x})"},
		{`{json_text: {a: {from: input.x}}}`, "json_text({a: {input.x}})"},
		{`{join: [{from: input.list}, ","]}`, `{input.list} joined with ","`},
		{`{add_seconds: [{from: call.now}, 60]}`, "{call.now} + 60 seconds"},
		{`{each: {from: input.list}, as: item, give: {id: {from: item.id}}}`, "for each item of {input.list}: {id: {item.id}}"},
		{`{from: {x: 1}}`, "{from: {x: 1}}"},
		{`[]`, "[]"},
		{`null`, "null"},
		{`"a\u202eb"`, `"a\u202eb"`},
	} {
		if got := inline(valueOf(parse(t, c.text))); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

const manySteps = `
input: {type: object, properties: {a: {const: 1}, b: {const: 1}, c: {const: 1}, d: {const: 1}, e: {const: 1}, f: {const: 1}}}
route: {by: a, list: names}
lookups:
  head: {method: GET, path: "/x/{input.b}", outcomes: [{status: 200, expect: {type: object, additionalProperties: true}, capture: {sha: /sha}}]}
  tail: {method: GET, path: /y, query: {q: {from: input.c}}, outcomes: [{status: 200, capture: {}}]}
request:
  method: POST
  path: /z
  headers: {If-Match: {from: head.sha}}
  json: {list: [{from: input.d}, {lower: {from: input.e}}], rows: {each: {from: input.f}, as: row, give: {n: {from: row.n}}}, text: {from: input.a}}
  outcomes: [{status: 202, capture: {id: /id}}, {status: 503, failure: UPSTREAM_UNAVAILABLE, not_done: true}]
poll: {every: 2s, within: 1m, method: GET, path: /w, outcomes: [{status: 200, when: {equals: [/a, {from: input.a}]}, success: {}}, {status: 200, pending: true}]}
reconcile: {method: GET, path: /v, outcomes: [{status: 200, took_effect: true, success: {}}, {status: 404, took_effect: false}]}
approval: {sentence: "Do {input.a} with {input.e}", show: {What: {from: input.f}}}
checks: [{same: [result.a, input.a]}]
idempotency: {json: /meta/key}
`

func TestUsesFindsEveryPlace(t *testing.T) {
	got := Uses(parse(t, manySteps))
	want := map[string]string{
		"a": "chooses the target; body /text; poll reads the answer; sentence; check",
		"b": "lookup head path",
		"c": "lookup tail query q",
		"d": "body /list/0",
		"e": "body /list/1; sentence",
		"f": "body /rows; body /rows/n; card What",
	}
	for name, w := range want {
		var parts []string
		for _, p := range got[name] {
			parts = append(parts, p.String())
		}
		if s := strings.Join(parts, "; "); s != w {
			t.Errorf("%s: %q, want %q", name, s, w)
		}
	}
}

func TestStepsInOrder(t *testing.T) {
	root := parse(t, manySteps)
	var heads, rows []string
	all := stepsOf(root)
	for i, s := range all {
		st := step(s, root)
		heads = append(heads, stepWords(i, len(all), st))
		for _, r := range st.Rows {
			rows = append(rows, rowWords(r))
		}
	}
	want := []string{
		"1. lookup head: GET /x/{input.b} within 30s", "2. lookup tail: GET /y within 30s", "3. request: POST /z within 30s",
		"4. poll: GET /w within 30s, again every 2s for at most 1m", "5. reconcile: GET /v within 30s",
	}
	if !slices.Equal(heads, want) {
		t.Errorf("%q", heads)
	}
	wantRows := []string{
		"200 → goes on with sha from /sha; body open at the top",
		"200 → goes on; body not described",
		"202 → goes on with id from /id; body not described",
		"503 → failure UPSTREAM_UNAVAILABLE, nothing was done; body not described",
		"200 where /a is {input.a} → success; body not described",
		"200 → pending; body not described",
		"200 → took effect; body not described",
		"404 → did not take effect; body not described",
	}
	if !slices.Equal(rows, wantRows) {
		t.Errorf("%q", rows)
	}
	if body := inline(*step(all[2], root).Body); !strings.Contains(body, "meta: {key: {call.idempotency_key}}") {
		t.Errorf("the daemon's key is not in the body: %s", body)
	}
}
