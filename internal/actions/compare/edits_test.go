package compare

import (
	"os"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions/strictyaml"
)

func parse(t testing.TB, name, text string) *strictyaml.Node {
	t.Helper()
	f := strictyaml.Parse(name, []byte(text), strictyaml.Limits{})
	if ps := f.Problems(); len(ps) > 0 {
		t.Fatalf("%s: %v", name, ps)
	}
	return f.Root()
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// edit is one change of testdata/contract.yaml and what must be said of it:
// kinds, the weight for agent, operator and upstream (b, c, e or -), whether
// an authority is loosened, and the bump. back is the bump of the way back.
type edit struct {
	name, from, to string
	kinds          string
	weights        string
	loosens        bool
	bump, back     Bump
}

const (
	yes = true
	nay = false
)

var edits = []edit{
	// What an agent may vary.
	{"new required input", "    note: {type: string, maxLength: 40}\n", "    note: {type: string, maxLength: 40}\n    why: {type: string, maxLength: 9}\n", "input-added", "cc-", yes, Minor, Major},
	{"input required from now on", "[site, page, text, level]\n  properties", "[site, page, text, level, note]\n  properties", "input-now-required", "bc-", nay, Major, Minor},
	{"input and required", "required: [site, page, text, level]\n  properties:\n", "required: [site, page, text, level, why]\n  properties:\n    why: {type: boolean}\n", "input-required-added", "bc-", yes, Major, Major},
	{"narrower enum", "enum: [a, b]", "enum: [a]", "input-narrower", "bc-", nay, Major, Minor},
	{"other enum", "enum: [a, b]", "enum: [a, c]", "input-changed", "bb-", yes, Major, Major},
	{"enum in another order", "enum: [a, b]", "enum: [b, a]", "spelling", "-e-", nay, Patch, Patch},
	{"const for an enum of one", "{type: string, enum: [a, b]}", "{type: string, const: a}", "input-narrower", "bc-", nay, Major, Minor},
	{"type added", "note: {type: string, maxLength: 40}", "note: {type: [string, 'null'], maxLength: 40}", "input-wider", "cc-", yes, Minor, Major},
	{"type changed", "level: {type: integer, minimum: 1, maximum: 9}", "level: {type: boolean}", "input-changed", "bb-", yes, Major, Major},
	{"integer to number", "level: {type: integer, minimum: 1", "level: {type: number, minimum: 1", "input-wider", "cc-", yes, Minor, Major},
	{"longer text", "minLength: 1, maxLength: 500", "minLength: 1, maxLength: 501", "input-wider", "cc-", yes, Minor, Major},
	{"shorter least", "minLength: 1, maxLength: 500", "minLength: 0, maxLength: 500", "input-wider", "cc-", yes, Minor, Major},
	{"both ends", "minLength: 1, maxLength: 500", "minLength: 2, maxLength: 501", "input-changed", "bb-", yes, Major, Major},
	{"a number written otherwise", "maxLength: 500}", "maxLength: 5e2}", "", "---", nay, NoBump, NoBump},
	{"bound gone", "page: {type: string, pattern: '^[a-z]{1,20}$', maxLength: 20}", "page: {type: string, maxLength: 20}", "input-wider", "cc-", yes, Minor, Major},
	{"pattern changed", "'^[a-z]{1,20}$', maxLength: 20", "'^[a-z0-9]{1,20}$', maxLength: 20", "input-changed", "bb-", yes, Major, Major},
	{"list longer", "maxItems: 3", "maxItems: 4", "input-wider", "cc-", yes, Minor, Major},
	{"list may repeat", "uniqueItems: true, ", "", "input-wider", "cc-", yes, Minor, Major},
	{"through a reference", "tag: {type: string, enum: [a, b]}", "tag: {type: string, enum: [a, b, c]}", "input-wider", "cc-", yes, Minor, Major},
	{"reference written out", "items: {$ref: '#/$defs/tag'}", "items: {type: string, enum: [a, b]}", "spelling", "-e-", nay, Patch, Patch},
	{"described", "level: {type: integer, ", "level: {type: integer, description: how loud, ", "input-described", "e--", nay, Patch, Patch},
	{"an applicator", "level: {type: integer, ", "level: {type: integer, anyOf: [{minimum: 1}], ", "input-changed", "bb-", yes, Major, Major},
	{"input opened", "additionalProperties: false\n  required: [site", "additionalProperties: true\n  required: [site", "input-changed", "bb-", yes, Major, Major},

	// Where it goes.
	{"case target", "target: wiki-red", "target: wiki-green", "route-case-target target-added target-removed", "bb-", yes, Major, Major},
	{"case to a target that is reached already", "target: wiki-red", "target: wiki-blue", "route-case-target target-removed", "bb-", yes, Major, Major},
	{"case constants", "with: {space: two}", "with: {space: three}", "route-case-constants", "-bb", yes, Major, Major},
	{"list for cases", "  by: [site]\n  cases:\n    - {site: blue, target: wiki-blue, with: {space: one}}\n    - {site: red, target: wiki-red, with: {space: two}}\n", "  by: [site]\n  list: sites\n", "route-by-changed target-removed target-removed", "bb-", yes, Major, Major},
	{"new case", "enum: [blue, red]}", "enum: [blue, red, green]}", "input-wider", "cc-", yes, Minor, Major},
	{"by written as a word", "by: [site]", "by: site", "spelling", "-e-", nay, Patch, Patch},

	// What is asked.
	{"sentence", "Write {input.page} of", "Write a page of", "sentence-changed", "-b-", yes, Major, Major},
	{"a line less", ", Level: {from: input.level}}\n", "}\n", "show-removed", "-b-", yes, Major, Minor},
	{"another line", "Level: {from: input.level}}", "Level: {from: input.site}}", "show-changed", "-b-", yes, Major, Major},
	{"asked less", "ask: every_call", "ask: session", "ask-looser", "cb-", yes, Major, Minor},
	{"asked by silence", "  ask: every_call\n", "", "ask-looser", "cb-", yes, Major, Minor},

	// What is sent.
	{"method", "method: PUT", "method: POST", "method-changed", "-bb", yes, Major, Major},
	{"path", "/pages/{input.page}\n  query", "/drafts/{input.page}\n  query", "path-changed", "-bb", yes, Major, Major},
	{"query added", `query: {notify: "no"}`, `query: {notify: "no", force: "yes"}`, "query-added", "-cc", yes, Minor, Major},
	{"query changed", `query: {notify: "no"}`, `query: {notify: "yes"}`, "query-changed", "-cb", yes, Major, Major},
	{"query gone", "  query: {notify: \"no\"}\n", "", "query-removed", "-cb", yes, Major, Minor},
	{"header added", "headers: {Accept: application/json, ", "headers: {Prefer: minimal, Accept: application/json, ", "header-added", "-cc", yes, Minor, Major},
	{"precondition gone", `, If-Match: "*"`, "", "header-removed", "-cb", yes, Major, Minor},
	{"header in other letters", "headers: {Accept:", "headers: {accept:", "spelling", "-e-", nay, Patch, Patch},
	{"header value", "Accept: application/json", "Accept: text/plain", "header-changed", "-cb", yes, Major, Major},
	{"body member", "    draft: true\n", "    draft: true\n    force: true\n", "body-added", "-cc", yes, Minor, Major},
	{"body member gone", "    draft: true\n", "", "body-removed", "-cb", yes, Major, Minor},
	{"body value", "draft: true", "draft: false", "body-changed", "-cb", yes, Major, Major},
	{"body list", "fixed]", "other]", "body-changed", "-cb", yes, Major, Major},
	{"body list longer", "fixed]", "fixed, more]", "body-changed", "-cb", yes, Major, Major},
	{"body written out", "{from: input.text}\n    draft: true", "{from: input.text, optional: false}\n    draft: {const: true}", "spelling", "-e-", nay, Patch, Patch},
	{"an input reaches more", "    draft: true\n", "    draft: true\n    head: {from: input.page}\n", "body-added input-reaches", "-cc", yes, Minor, Major},
	{"an input in another place", "level: {from: input.level}\n    note", "level: {from: input.page}\n    note", "body-changed input-reaches input-reaches-less", "-cb", yes, Major, Major},
	{"media type", "  timeout: 20s", "  content_type: application/merge-patch+json\n  timeout: 20s", "body-changed", "-cb", yes, Major, Major},
	{"another body", "  json:\n    text:", "  form:\n    text:", "body-removed body-added", "-cb", yes, Major, Major},
	{"timeout longer", "timeout: 20s", "timeout: 21s", "timeout-longer", "-c-", yes, Minor, Major},
	{"timeout by silence", "  timeout: 20s\n", "", "timeout-longer", "-c-", yes, Minor, Major},
	{"timeout written otherwise", "within: 5m\n  method", "within: 300s\n  method", "spelling", "-e-", nay, Patch, Patch},
	{"reads by POST", "  timeout: 20s", "  reads: it only asks\n  timeout: 20s", "reads-added", "-b-", yes, Major, Major},
	{"a key that nobody knows", "  timeout: 20s", "  timeout: 20s\n  follow: true", "changed", "bbb", yes, Major, Major},

	// Lookups, poll, reconcile.
	{"lookup path", "path: /spaces/{target.space}\n", "path: /space/{target.space}\n", "path-changed", "-bb", yes, Major, Major},
	{"lookup order", "", "", "lookup-order", "-bb", yes, Major, Major}, // made below
	{"capture elsewhere", "capture: {number: /number}", "capture: {number: /count}", "pick-changed", "-bb", yes, Major, Major},
	{"capture more", "        capture: {}", "        capture: {id: /id}", "pick-added", "-cc", yes, Minor, Minor},
	{"poll faster", "every: 2s", "every: 1s", "poll-faster", "-cc", yes, Minor, Minor},
	{"poll longer", "within: 5m\n  method", "within: 6m\n  method", "poll-longer", "-cc", yes, Minor, Major},
	{"pending for another word", "pending: true", "failure: PAGE_BUSY", "row-end-changed", "bbb", yes, Major, Major},
	{"the other effect", "took_effect: false", "took_effect: true", "row-end-changed", "bbb", yes, Major, Major},

	// What comes back.
	{"a status more", "status: [200, 201]", "status: [200, 201, 203]", "row-status-added", "-cc", yes, Minor, Major},
	{"statuses in another order", "status: [200, 201]", "status: [201, 200]", "spelling", "-e-", nay, Patch, Patch},
	{"media", "status: 503, media: none", "status: 503, media: text", "row-media", "-cb", yes, Major, Major},
	{"media written out", "status: 409\n", "status: 409\n      media: json\n", "spelling", "-e-", nay, Patch, Patch},
	{"when gone", "{status: 202, when: {exists: /job}, ", "{status: 202, ", "row-when-removed", "-cc", yes, Minor, Major},
	{"when changed", "{exists: /job}", "{exists: /jobs}", "row-when-changed", "-cb", yes, Major, Major},
	{"expect wider", "{type: string, enum: [done, queued]}", "{type: string, enum: [done, queued, held]}", "expect-wider", "-cc", yes, Minor, Major},
	{"expect has one member more", "message: {type: string, maxLength: 200}\n", "message: {type: string, maxLength: 200}\n          more: {type: boolean}\n", "expect-wider", "-cc", yes, Minor, Major},
	{"expect opened", "        additionalProperties: false\n        required: [id, state]", "        additionalProperties: true\n        required: [id, state]", "expect-opened", "-cc", yes, Minor, Major},
	{"expect binds a free member", "properties: {id: {type: string, maxLength: 20}}", "properties: {id: {type: string, maxLength: 20}, n: {type: boolean}}", "expect-narrower", "-cb", nay, Major, Minor},
	{"expect gone", "      expect: {type: object, additionalProperties: false, required: [error], properties: {error: {type: string, maxLength: 40}}}\n", "", "expect-removed", "-cc", yes, Minor, Major},
	{"expect asks less", "required: [error], properties", "properties", "expect-wider", "-cc", yes, Minor, Major},
	{"pick elsewhere", "success: {id: /id, state: {at: /state", "success: {id: /key, state: {at: /state", "pick-changed", "-bb", yes, Major, Major},
	{"pick written out", "success: {id: /id, state: {at: /state", "success: {id: {at: /id, null: refuse}, state: {at: /state", "spelling", "-e-", nay, Patch, Patch},
	{"pick gone", "      display: {message: {at: /message, optional: true}}\n", "", "pick-removed", "-cc", yes, Minor, Minor},
	{"map", "queued: waiting}", "queued: written}", "pick-changed", "-bb", yes, Major, Major},
	{"a code of the vendor", "map: {busy: PAGE_BUSY}", "map: {busy: PAGE_BUSY, held: PAGE_BUSY}", "failure-code-added", "ccc", yes, Minor, Major},
	{"every code of the vendor", "map: {busy: PAGE_BUSY}", "map: {busy: PAGE_BUSY}, other: PAGE_BUSY", "failure-code-added", "ccc", yes, Minor, Major},
	{"another code", "map: {busy: PAGE_BUSY}", "map: {busy: NOT_FOUND}", "failure-changed", "bcc", yes, Major, Major},
	{"one code for all", "{at: /error, map: {busy: PAGE_BUSY}}", "PAGE_BUSY", "failure-changed", "bcc", yes, Major, Major},
	{"nothing was done", "{status: 503, media: none, failure: UPSTREAM_UNAVAILABLE, not_done: true}", "{status: 503, media: none, failure: UPSTREAM_UNAVAILABLE}", "not-done-removed", "cc-", nay, Minor, Major},
	{"row more", "poll:\n", "    - {status: 410, media: none, failure: NOT_FOUND}\npoll:\n", "row-added", "ccc", yes, Minor, Major},
	{"row over a built-in one", "poll:\n", "    - {status: 404, media: none, failure: PAGE_BUSY}\npoll:\n", "row-added-over", "ccc", yes, Minor, Major},
	{"row beside", "poll:\n", "    - {status: 202, when: {exists: /done}, failure: NOT_FOUND}\npoll:\n", "row-added-beside", "ccb", yes, Major, Major},
	{"success for failure", "failure: UPSTREAM_UNAVAILABLE, not_done: true", "success: {id: {const: x}}, not_done: true", "row-end-changed pick-added", "bbb", yes, Major, Major},
	{"result more", "    seen_at:", "    size: {type: integer, minimum: 0, maximum: 9}\n    seen_at:", "result-added", "cc-", yes, Minor, Major},
	{"result wider", "enum: [written, waiting]", "enum: [written, waiting, held]", "result-wider", "bcc", yes, Major, Major},
	{"result optional", "required: [id, state]\n  properties", "required: [id]\n  properties", "result-now-optional", "bcc", yes, Major, Major},
	{"result pattern", "'^[a-z0-9]{4,40}$'", "'^[a-z0-9]{3,40}$'", "result-changed", "bbb", yes, Major, Major},
	{"result described", "seen_at: {type: string,", "seen_at: {type: string, title: when,", "result-described", "e--", nay, Patch, Patch},
	{"display longer", "message: {max: 200,", "message: {max: 201,", "display-wider", "cc-", yes, Minor, Minor},
	{"display more", "  message: {max: 200, lines: 5}\n", "  message: {max: 200, lines: 5}\n  log: {max: 9, lines: 1}\n", "display-added", "cc-", yes, Minor, Major},
	{"check gone", "  - same: [result.id, input.page]\n", "", "check-removed", "-bc", yes, Major, Major},
	{"check loosened", "within: 5m, skew", "within: 6m, skew", "check-loosened", "-bc", yes, Major, Major},
	{"skew gone", ", skew: 30s", "", "check-tightened", "-cb", nay, Major, Major},
	{"check mixed", "within: 5m, skew: 30s", "within: 6m, skew: 20s", "check-changed", "-bb", yes, Major, Major},
	{"check of something else", "[result.id, input.page]", "[result.id, target.space]", "check-changed", "-bb", yes, Major, Major},
	{"check the other way round", "[result.id, input.page]", "[input.page, result.id]", "spelling", "-e-", nay, Patch, Patch},
	{"code text", "writes this page;", "writes it;", "code-message", "e--", nay, Patch, Patch},
	{"code final", "retryable: true", "retryable: false", "code-now-final", "bc-", nay, Major, Minor},
	{"code more", "failures:\n", "failures:\n  PAGE_GONE: {message: It is gone., retryable: false}\n", "code-added", "c--", nay, Minor, Major},

	// Doing it once.
	{"retry more", "attempts: 3", "attempts: 4", "retry-more", "-cc", yes, Minor, Minor},
	{"retry longer", "within: 30s", "within: 31s", "retry-longer", "-cc", yes, Minor, Minor},
	{"retry after more", "codes: [UPSTREAM_UNAVAILABLE]", "codes: [UPSTREAM_UNAVAILABLE, OUTCOME_UNKNOWN]", "retry-code-added", "-cc", yes, Minor, Minor},
	{"no retry", "retry: {attempts: 3, within: 30s, codes: [UPSTREAM_UNAVAILABLE]}\n", "", "retry-less", "-c-", nay, Minor, Minor},
	{"rate limit", "codes: [UPSTREAM_UNAVAILABLE]}", "codes: [UPSTREAM_UNAVAILABLE], rate_limit: {header: X-Reset, unit: seconds}}", "rate-limit-changed", "-cc", yes, Minor, Minor},
	{"other idempotency", "{header: Idempotency-Key}", "{natural: true}", "idempotency-changed", "-bb", yes, Major, Major},
	{"no idempotency", "idempotency: {header: Idempotency-Key}\n", "", "idempotency-removed", "-bb", yes, Major, Minor},
	{"at most once", "retry: {", "at_most_once: it cannot be repeated\nretry: {", "at-most-once-added", "-c-", nay, Minor, Minor},
	{"a plan first", "retry: {", "confirm: required\nretry: {", "confirm-added", "bc-", nay, Major, Major},

	// Heads.
	{"summary", "Write one page of one site.", "Write a page.", "summary-changed", "e--", nay, Patch, Patch},
	{"owner", "docs team", "web team", "owner-changed", "-c-", nay, Minor, Minor},
	{"effect raised", "effect: change", "effect: destroy", "effect-raised", "-bb", yes, Major, Major},
	{"effect lowered", "effect: change", "effect: read", "effect-lowered", "-bb", yes, Major, Major},
	{"another format", "contract: v1", "contract: v2", "changed", "bbb", yes, Major, Major},
	{"another name", "action: write_page", "action: put_page", "action-renamed", "bb-", yes, Major, Major},
	{"exception more", "exceptions:\n", "exceptions:\n  - {rule: fixtures, because: none}\n", "exception-added", "-c-", yes, Minor, Patch},
	{"exception reason", "no name of its own", "no name", "reason-changed", "-e-", nay, Patch, Patch},
	{"only the version", "version: 1.2.3", "version: 1.2.4", "", "---", nay, NoBump, NoBump},
	{"only a comment", "effect: change", "# what it does\neffect: change", "", "---", nay, NoBump, NoBump},
	{"a key of the top that nobody knows", "effect: change", "effect: change\nnotify: everybody", "changed", "bbb", yes, Major, Major},
}

// apply makes the edit; the one without a text swaps the two lookups.
func (e edit) apply(t *testing.T, base string) string {
	t.Helper()
	if e.from == "" {
		_, rest, _ := strings.Cut(base, "lookups:\n")
		head, tail, _ := strings.Cut(rest, "  space:\n")
		space, after, _ := strings.Cut(tail, "request:\n")
		before, _, _ := strings.Cut(base, "  head:\n")
		return before + "  space:\n" + space + head + "request:\n" + after
	}
	if strings.Count(base, e.from) != 1 {
		t.Fatalf("%s: %q stands %d times in the base", e.name, e.from, strings.Count(base, e.from))
	}
	return strings.Replace(base, e.from, e.to, 1)
}

func kindsOf(changes []Change) []string {
	out := []string{}
	for _, ch := range changes {
		out = append(out, ch.Kind)
	}
	slices.Sort(out)
	return out
}

func weightsOf(changes []Change) string {
	var w [3]Weight
	for _, ch := range changes {
		w[0], w[1], w[2] = max(w[0], ch.Agent), max(w[1], ch.Operator), max(w[2], ch.Upstream)
	}
	out := ""
	for _, x := range w {
		out += string("-ecb"[x])
	}
	return out
}

// Every single edit is told as written, and the way back is its opposite.
func TestSingleEdits(t *testing.T) {
	base := readFile(t, "testdata/contract.yaml")
	old := Text{File: "old", Root: parse(t, "old", base)}
	if len(edits) < 80 {
		t.Fatalf("only %d edits", len(edits))
	}
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			new := Text{File: "new", Root: parse(t, "new", e.apply(t, base))}
			there, back := Pair("write_page", old, new), Pair("write_page", new, old)
			want := strings.Fields(e.kinds)
			slices.Sort(want)
			if got := kindsOf(there.Changes); !slices.Equal(got, want) {
				t.Fatalf("kinds %v, want %v: %+v", got, want, there.Changes)
			}
			if got := weightsOf(there.Changes); got != e.weights {
				t.Errorf("weights %s, want %s", got, e.weights)
			}
			if got := loosening(there.Changes) > 0; got != e.loosens {
				t.Errorf("loosens is %v", got)
			}
			if there.Needs != e.bump || back.Needs != e.back {
				t.Errorf("needs %s and back %s, want %s and %s", there.Needs, back.Needs, e.bump, e.back)
			}
			var opposite []string
			for _, k := range want {
				opposite = append(opposite, rules[k].Back)
			}
			slices.Sort(opposite)
			if got := kindsOf(back.Changes); !slices.Equal(got, opposite) {
				t.Errorf("back: kinds %v, want %v", got, opposite)
			}
			for _, ch := range there.Changes {
				if ch.Says == "" || ch.At == "" {
					t.Errorf("a change says nothing: %+v", ch)
				}
			}
		})
	}
}
