package actions

import (
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

// hostileNames are what callers have been seen to put where a name belongs.
var hostileNames = []string{
	"", ".", "..", "a/b", "../a", "a/..", "%2e%2e", "a%2Fb", "..;", "a;b", `..\`, `a\b`, "a?b", "a#b", "a b", "a\nb", "a\r\nb", "a\x00b",
	"\uff0e\uff0e", "\u2024", "é", "\xff", "a\tb", "//evil.example", "https://evil.example", "a{b}", "a|b", "a\"b", "<a>", "a^b", "a`b",
}

func TestPathValueRefuses(t *testing.T) {
	for _, s := range hostileNames {
		if got, err := pathValue(s, 's'); err == nil {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, s := range []string{"", "/", "/a", "a/", "a//b", "a/../b", "a/./b", "..", "a/b;c", "a/%2e%2e"} {
		for _, mode := range []byte{'/', '%'} {
			if got, err := pathValue(s, mode); err == nil {
				t.Errorf("%q became %q", s, got)
			}
		}
	}
	for _, v := range []any{json.Number("-1"), json.Number("1.5"), json.Number("-0.5"), true, nil, []any{}, map[string]any{}} {
		if got, err := pathValue(v, 's'); err == nil {
			t.Errorf("%v became %q", v, got)
		}
	}
}

func TestPathValueTakes(t *testing.T) {
	for _, c := range []struct {
		v    any
		mode byte
		want string
	}{
		{"v2.14-rc_1", 's', "v2.14-rc_1"}, {"...", 's', "..."}, {"a/b.c/d", '/', "a/b.c/d"}, {"a/b", '%', "a%2Fb"},
		{json.Number("7"), 's', "7"}, {json.Number("1e3"), 's', "1000"}, {json.Number("2.0"), 's', "2"},
	} {
		if got, err := pathValue(c.v, c.mode); err != nil || got != c.want {
			t.Errorf("%v: %q %v", c.v, got, err)
		}
	}
}

func TestOperatorPath(t *testing.T) {
	for _, c := range []struct {
		v    string
		mode byte
		want string
	}{
		{"acme", 's', "acme"}, {"a b", 's', "a%20b"}, {"a/b", 's', "a%2Fb"}, {"a/b", '/', "a/b"}, {"a/b", '%', "a%2Fb"}, {"a?b#c", '/', "a%3Fb%23c"}, {"50%", 's', "50%25"},
	} {
		if got, err := operatorPath(c.v, c.mode); err != nil || got != c.want {
			t.Errorf("%q: %q %v", c.v, got, err)
		}
	}
	for _, s := range []string{"", "..", "a/../b", "a//b", "a\\b", "a\nb"} {
		if got, err := operatorPath(s, '/'); err == nil {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestOverAlphabet(t *testing.T) {
	for pattern, want := range map[string]bool{
		`^[a-z0-9-]{1,8}$`: true, `^CR-[0-9]{1,10}$`: true, `^(a|b.)$`: false, `^(a|b)$`: true, `^a|b$`: false, `[a-z]+`: false, `^[a-z]+`: false,
		`^.$`: false, `^[^a]$`: false, `^\w$`: true, `^\S$`: false, `^(?i)k$`: false, `^[a-z/]$`: false, `^a\.b$`: true, `^a%b$`: false, `^[A-z]$`: false, `^$`: true, `^a\nb$`: false,
	} {
		if got := overAlphabet(pattern, pathRune(false)); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}

const pathContract = `contract: v1
action: put_file
version: 1.0.0
summary: Write one page.
owner: docs team
effect: change
input:
  type: object
  additionalProperties: false
  required: [file, branch, number]
  properties:
    file: {type: string, pattern: '^[A-Za-z0-9._/-]{1,100}$', maxLength: 100}
    branch: {type: string, pattern: '^[A-Za-z0-9._/-]{1,100}$', maxLength: 100}
    number: {type: integer, minimum: 0, maximum: 100000}
route: {target: code-host, with: {owner: acme}}
approval:
  sentence: "Write {input.file} on {input.branch}, number {input.number}"
request:
  method: PUT
  path: /repos/{target.owner}/{target.repo...}/n{input.number}/{input.branch%}/docs/{input.file...}
  text: {concat: [a, b]}
  outcomes:
    - {status: 204, media: none, success: {}}
result: {type: object, additionalProperties: false, properties: {}}
idempotency: {natural: true}
`

const pathSite = `targets:
  code-host:
    url: https://code.example/base/v3
    identity: none
    actions: [put_file]
    effects: [change]
    ask: session
    keeps_escaped_slash: true
    with: {repo: group/pages}
    headers: {X-Team: docs}
identities:
  none: {kind: none}
`

func TestPathTemplate(t *testing.T) {
	set, c := mustLoad(t, pathSite, pathContract)
	p := mustFreeze(t, set, c, `{"file":"guide/a.md","branch":"feature/x","number":12}`)
	r, err := p.Request(testNow)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/base/v3/repos/acme/group/pages/n12/feature%2Fx/docs/guide/a.md"; r.WirePath() != want {
		t.Errorf("%s, want %s", r.WirePath(), want)
	}
	if string(r.Body()) != "ab" || r.ContentType() != "text/plain; charset=utf-8" || r.Header().Get("X-Team") != "docs" {
		t.Errorf("%s %s %v", r.Body(), r.ContentType(), r.Header())
	}
	for _, member := range []string{"file", "branch"} {
		for _, bad := range []string{"..", "a/../../b", "/a", "a/", "./a", "a//b"} {
			in := map[string]any{"file": "a", "branch": "b", "number": json.Number("1")}
			in[member] = bad
			_, err := c.ParseInput(in)
			if fault.CodeOf(err) != fault.InvalidArgument {
				t.Errorf("%s %q: %v", member, bad, err)
			}
		}
	}
}

// A value that is only part of a segment may not finish a dot segment.
func TestPartOfASegment(t *testing.T) {
	set, c := mustLoad(t, goodSite, edit(t, goodContract, "/releases/{input.version}", "/releases/.{input.version}"))
	_, err := freeze(t, set, c, strings.Replace(goodInput, "2.14", ".1", 1))
	if err != nil {
		t.Error(err)
	}
	contract := edit(t, goodContract, "/releases/{input.version}", "/releases/{input.service}{input.version}", "enum: [api, worker]", "enum: ['.', worker]")
	if _, ps := load(t, goodSite, contract); len(ps) != 1 || ps[0].Rule != "path-input" {
		t.Errorf("%v", ps)
	}
}

// FuzzPath: whatever a caller says, the request stays under the base path, on
// the same origin, with the template's number of segments and no dot segment.
func FuzzPath(f *testing.F) {
	for _, s := range hostileNames {
		f.Add(s, s, s)
	}
	f.Add("a", "b/c", "d/e.md")
	t1 := Target{endpoint: endpoint{scheme: "https", host: "code.example", port: 443, basePath: "/base/v3"}}
	tpl := &pathTemplate{segments: [][]pathPart{
		{{lit: "repos"}}, {{lit: "x-"}, {path: "input.one", mode: 's'}}, {{path: "input.one", mode: 's'}, {path: "input.one", mode: 's'}},
		{{path: "input.two", mode: '%'}}, {{path: "input.three", mode: '/'}},
	}}
	f.Fuzz(func(t *testing.T, one, two, three string) {
		p := &plan{contract: &Contract{request: stepSpec{path: tpl}}, route: Route{target: &t1}}
		p.input.value = map[string]any{"one": one, "two": two, "three": three}
		b, err := p.build(&p.contract.request, p.env(testNow, false))
		if err != nil {
			return
		}
		u, err := url.Parse("https://code.example" + b.path)
		if err != nil {
			t.Fatalf("%q does not parse", b.path)
		}
		decoded, err := url.PathUnescape(b.path)
		if err != nil {
			t.Fatal(err)
		}
		segments := 3 + 5 + strings.Count(three, "/")
		switch {
		case u.Host != "code.example" || u.RawQuery != "" || u.Fragment != "":
			t.Fatalf("%q leaves the origin", b.path)
		case path.Clean(decoded) != decoded || !strings.HasPrefix(decoded, "/base/v3/repos/x-"):
			t.Fatalf("%q leaves the base path", b.path)
		case strings.Count(b.path, "/") != segments-1:
			t.Fatalf("%q has %d slashes", b.path, strings.Count(b.path, "/"))
		case strings.ContainsAny(b.path, ";\\ ?#") || strings.Contains(strings.ReplaceAll(b.path, "%2F", ""), "%"):
			t.Fatalf("%q holds what it may not", b.path)
		}
	})
}

// A folder is constant only where every value begins with it and its slash.
func TestBeginsWithFolder(t *testing.T) {
	for pattern, want := range map[string]bool{
		`^docs/[a-z]{1,9}$`: true, `^docs/(a|b)$`: true, `^docs/a/[a-z]{1,9}$`: true, `^docs/$`: true,
		`^docs/?[a-z]{1,9}$`: false, `^docs/{0,1}[a-z]{1,9}$`: false, `^docs/*[a-z]{1,9}$`: false, `^(docs/)?[a-z/]{1,9}$`: false,
		`^docs/a$|^etc/b$`: false, `^(docs|src)/[a-z]{1,9}$`: false, `^/[a-z]{1,9}$`: false, `^\.\./[a-z]{1,9}$`: false,
		`^[a-z]{1,9}/[a-z]{1,9}$`: false, `docs/a`: false, `^docs`: false, `^`: false, ``: false, `(`: false,
	} {
		if got := beginsWithFolder(map[string]any{"pattern": pattern}); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
	if !beginsWithFolder(map[string]any{"enum": []any{"a"}}) || beginsWithFolder(map[string]any{}) {
		t.Error("an enum is the author's own")
	}
}

// A constant folder is one that no call chooses.
func TestConstantFolder(t *testing.T) {
	const file = "    file: {type: string, pattern: '^[a-z/]{1,9}$', maxLength: 9}\n    note: {type"
	for path, want := range map[string]bool{
		"/docs/{input.file...}": true, "/{target.app}/{input.file...}": true, "/docs/{input.service}/{input.file...}": true,
		"/{input.file...}": false, "/{input.service}/{input.file...}": false, "/x-{input.service}/docs/{input.file...}": false, "/{call.id}/{input.file...}": false,
	} {
		_, ps := load(t, goodSite, edit(t, goodContract, "path: /v1/apps/{target.app}/releases/{input.version}", "path: "+path, "required: [service,", "required: [file, service,", "    note: {type", file))
		if ok := len(ps) == 0; ok != want || !want && ps[0].Rule != "path-folder" {
			t.Errorf("%s: %v", path, told(ps))
		}
	}
}
