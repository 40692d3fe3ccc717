package review

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"chatelaine/internal/actions"
)

var update = flag.Bool("update", false, "write the golden pages")

const shipped = "../../../contracts"

// shippedSet is loaded once for all tests.
var shippedSet = sync.OnceValues(func() (*actions.Set, actions.Problems) {
	return actions.LoadSet(filepath.Join(shipped, "targets.yaml"), shipped)
})

// pages builds the page of every shipped contract.
func pages(t *testing.T) map[string]Page {
	t.Helper()
	set, problems := shippedSet()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	out := map[string]Page{}
	for _, c := range set.Contracts() {
		p, problems := Build(c, set)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		out[c.Action()] = p
	}
	return out
}

func text(t *testing.T, p Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Text(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func html(t *testing.T, p Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every page names what the reviewer must see, in lines that fit.
func TestShippedPages(t *testing.T) {
	for action, p := range pages(t) {
		out := text(t, p)
		for i, line := range strings.Split(out, "\n") {
			if n := utf8.RuneCountInString(line); n > pageWidth {
				t.Errorf("%s: line %d has %d characters", action, i+1, n)
			}
		}
		var want []string
		for _, i := range p.Inputs {
			want = append(want, i.Name)
			if len(i.Goes) == 0 {
				t.Errorf("%s: the input %s goes nowhere", action, i.Name)
			}
		}
		for _, d := range p.Destinations {
			want = append(want, d.Target, d.Address, d.Identity)
		}
		for _, o := range p.Result {
			want = append(want, o.Name)
			if len(o.From) == 0 {
				t.Errorf("%s: nothing picks %s", action, o.Name)
			}
		}
		for _, c := range p.Codes {
			want = append(want, c.Code)
		}
		for _, s := range p.Steps {
			want = append(want, s.Method)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: the page does not show %q", action, w)
			}
		}
		// "…" stands where the page does not know a form of the contract.
		if strings.Contains(out, "…") {
			t.Errorf("%s: the page has a gap:\n%s", action, out)
		}
	}
}

// The page of one contract is kept as it is read, and fits about one screen.
func TestGoldenPage(t *testing.T) {
	p := pages(t)["deploy_release"]
	p.Digest = "sha256:0"
	p.Fixtures = []Fixtures{{"accepted", 1}, {"near-miss", 2}, {"failure", 3}, {"hostile", 4}}
	got := text(t, p)
	file := filepath.Join("testdata", "deploy_release.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	if lines := strings.Count(got, "\n"); lines > 60 {
		t.Errorf("the page has %d lines", lines)
	}
}

var outside = regexp.MustCompile(`(?i)<script|<link|<img|<iframe|\ssrc=|\shref=|url\(|@import|\son[a-z]+=`)

// The HTML form stands by itself.
func TestHTMLIsSelfContained(t *testing.T) {
	for action, p := range pages(t) {
		out := html(t, p)
		if m := outside.FindString(out); m != "" {
			t.Errorf("%s: the file has %q", action, m)
		}
		for _, want := range []string{"default-src 'none'", "width=device-width", "prefers-color-scheme: dark", p.Digest} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the file has no %q", action, want)
			}
		}
		for _, d := range p.Destinations {
			if !strings.Contains(out, d.Identity) || !strings.Contains(out, d.Address) {
				t.Errorf("%s: the file does not show the target %s", action, d.Target)
			}
		}
	}
}

// hostilePage has the same text in every place that a contract fills.
func hostilePage(s string) Page {
	v := Value{Members: []Member{{s, Value{Items: []Value{{Text: s}}}}}}
	return Page{
		Action: s, Version: s, Summary: s, Owner: s, Effect: s, Digest: s, SiteRead: true, RouteList: s, RouteBy: []string{s},
		Inputs:       []Input{{s, true, Bound{Words: s}, []Place{{s, s, s}}}},
		Destinations: []Destination{{Target: s, Address: s, BasePath: s, Identity: s, Kind: s, Exchange: s, Grants: []Member{{s, Value{Text: s}}}, ReadOnly: true, Effects: []string{s}, Ask: s, Cases: []Case{{[]Member{{s, Value{Text: s}}}, nil}}}},
		Steps: []Step{{
			Kind: s, Name: s, Method: s, Path: s, Query: []Member{{s, v}}, Headers: []Member{{s, v}}, BodyKind: s, ContentType: s, Body: &v,
			Reads: s, Timeout: s, Every: s, Within: s, Rows: []Row{{Status: s, Media: s, When: s, Body: s, Ends: s, Codes: []string{s}, CodeFrom: s, Captures: []Member{{s, v}}}},
		}},
		Result: []Output{{s, true, Bound{Words: s}, []string{s}}}, Display: []Output{{s, true, Bound{Words: s}, []string{s}}},
		Checks: []string{s}, Codes: []Code{{s, true, 409, true, s}}, Approval: Approval{s, []Member{{s, v}}, s},
		Once: []string{s}, Retry: &Retry{2, s, []string{s}, s}, Exceptions: []Exception{{s, s}}, Fixtures: []Fixtures{{s, 1}},
	}
}

// No text of a contract becomes markup, a second line, or a turn of the reading
// order.
func TestHostileTextStaysText(t *testing.T) {
	p := hostilePage("</code><script>alert(1)</script>\u202e\n\x1b[31m\"'")
	out := html(t, p)
	if strings.Contains(out, "<script>") || strings.Contains(out, "</code><script") {
		t.Error("the HTML form holds markup of the contract")
	}
	plain := text(t, p)
	for _, s := range []string{out, plain} {
		for _, bad := range []string{"\u202e", "\x1b"} {
			if strings.Contains(s, bad) {
				t.Errorf("a form holds %q", bad)
			}
		}
	}
	for _, line := range strings.Split(plain, "\n") {
		if strings.HasPrefix(line, "[31m") {
			t.Error("a text of the contract began a line of its own")
		}
	}
}

// A program always finds a list where a list is due.
func TestJSONHasNoNullLists(t *testing.T) {
	for action, p := range pages(t) {
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), ":null") {
			t.Errorf("%s: %s", action, b)
		}
	}
}

// Without a site file the page says so and guesses nothing.
func TestPageWithoutSiteFile(t *testing.T) {
	c, problems := actions.LoadContract(filepath.Join(shipped, "deploy_release"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, problems := Build(c, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	out := text(t, p)
	if !strings.Contains(out, "no site file was read") || strings.Contains(out, "https://") {
		t.Error(out)
	}
}

func TestBuildOfAFolderThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deploy_release")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(shipped, "deploy_release"))); err != nil {
		t.Fatal(err)
	}
	c, problems := actions.LoadContract(dir)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if err := os.Remove(filepath.Join(dir, "contract.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, problems := Build(c, nil); len(problems) == 0 {
		t.Error("a page without a contract")
	}
}

// A page says where a secret is exchanged and for what.
func TestPageOfAnExchange(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("targets.yaml", `targets:
  code: {url: "https://code.example", identity: app, actions: [get_me], with: {repo: web}}
identities:
  app: {kind: github_app, token: {url: "https://[fd00::7]:8443/api", allow: [private]}, app_id: "1", installation: "2", repositories: {from: target.repo}, permissions: {contents: write}}
`)
	put("contracts/get_me/contract.yaml", `contract: v1
action: get_me
version: 1.0.0
summary: Tell who we are.
owner: tests
effect: read
input: {type: object, additionalProperties: false, properties: {}}
route: {target: code}
request:
  method: GET
  path: /me
  outcomes: [{status: 200, media: none, success: {}}]
result: {type: object, additionalProperties: false, properties: {}}
`)
	set, ps := actions.LoadSet(filepath.Join(dir, "targets.yaml"), filepath.Join(dir, "contracts"))
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	c, _ := set.Contract("get_me")
	p, ps := Build(c, set)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	d := p.Destinations[0]
	if d.Exchange != "https://[fd00::7]:8443/api" || !d.ReadOnly || len(d.Grants) != 4 {
		t.Errorf("%+v", d)
	}
	for name, out := range map[string]string{"text": strings.Join(strings.Fields(text(t, p)), " "), "html": html(t, p)} {
		for _, want := range []string{"app is github app at https://[fd00::7]:8443/api", "installation 2", "for reading only"} {
			if !strings.Contains(out, want) {
				t.Errorf("the %s does not say %q:\n%s", name, want, out)
			}
		}
	}
}
