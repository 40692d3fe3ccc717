package compare

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func hostileReport() Report {
	s := "</details><img src=x>\u202e\n\x1b[31m| @team #1 `code` [x](https://evil.example) www.evil.example"
	r := Sides(Side{Name: s, Contracts: map[string]Text{}}, Side{Name: s, Contracts: map[string]Text{}})
	ch := newChange("changed", "/x", s, s, "`` "+s)
	r.Contracts = []Contract{{Action: s, State: Changed, OldVersion: s, NewVersion: s, Changes: []Change{ch}}}
	r.Site = []Change{ch}
	r.count()
	return r
}

// No text of a contract formats the page, calls anybody, or steers a terminal.
func TestHostileReport(t *testing.T) {
	var text, page strings.Builder
	if err := hostileReport().Text(&text, Paint{}); err != nil {
		t.Fatal(err)
	}
	if err := hostileReport().Markdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		if strings.ContainsAny(out, "\u202e\x1b") {
			t.Errorf("a character that steers is in %q", out)
		}
	}
	outside := withoutCode(page.String())
	for _, bad := range []string{"<img", "@team", "#1", "](http", "www."} {
		if strings.Contains(outside, bad) {
			t.Fatalf("%q stands outside code: %s", bad, outside)
		}
	}
	for _, line := range strings.Split(page.String(), "\n") {
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 6 {
			t.Errorf("a row of the table has other cells: %s", line)
		}
	}
}

// withoutCode takes the code spans out, as CommonMark reads them: a run of
// backticks begins one, the next run of the same length ends it.
func withoutCode(s string) string {
	runs := regexp.MustCompile("`+")
	var out strings.Builder
	for {
		open := runs.FindStringIndex(s)
		if open == nil {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:open[0]])
		fence, rest := s[open[0]:open[1]], s[open[1]:]
		end := -1
		for _, r := range runs.FindAllStringIndex(rest, -1) {
			if r[1]-r[0] == len(fence) {
				end = r[1]
				break
			}
		}
		if end < 0 {
			out.WriteString(fence)
			end = 0
		}
		s = rest[end:]
	}
}

// What loosens stands first, in every form.
func TestLooseningStandsFirst(t *testing.T) {
	base := readFile(t, "testdata/contract.yaml")
	e := strings.Replace(base, "maxLength: 500", "maxLength: 501", 1)
	r := Sides(Side{Name: "a", Contracts: map[string]Text{"write_page": {Root: parse(t, "a", base)}}},
		Side{Name: "b", Contracts: map[string]Text{"write_page": {File: "b", Root: parse(t, "b", e)}}})
	var text, page strings.Builder
	if err := r.Text(&text, Paint{Loosens: func(s string) string { return "!" + s }}); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&page); err != nil {
		t.Fatal(err)
	}
	want := `!loosens authority
  write_page line 14: input.text takes more: maxLength 500 → maxLength 501 [input-wider]

write_page 1.2.3: needs a minor bump, made no bump, too small
  for the agent
    compatible  input.text takes more: maxLength 500 → maxLength 501 [input-wider]
  for the operator
    compatible  input.text takes more: maxLength 500 → maxLength 501 [input-wider]
`
	if text.String() != want {
		t.Errorf("the text is\n%s", text.String())
	}
	wantPage := "## Contracts\n\n### ⚠ Loosens authority\n\n- **write\\_page** line 14: input\\.text takes more: `maxLength 500` → `maxLength 501` (input-wider)\n\n" +
		"| contract | version | needs | made | |\n|---|---|---|---|---|\n| write\\_page | 1\\.2\\.3 → 1\\.2\\.3 | minor | none | ✗ too small |\n"
	if !strings.HasPrefix(page.String(), wantPage) {
		t.Errorf("the page is\n%s", page.String())
	}
	if small := r.TooSmall(); r.Enough || len(small) != 1 || small[0] != "write_page" {
		t.Errorf("too small: %v", small)
	}
}

// The JSON form has words for weights and bumps, and a list where one is due.
func TestJSONShape(t *testing.T) {
	b, err := json.Marshal(hostileReport())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"agent":"breaking"`, `"needs":"none"`, `"loosens":2`, `"loosens":true`, `"site_compared":false`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	if b, _ = json.Marshal(Sides(Side{}, Side{})); strings.Contains(string(b), "null") {
		t.Errorf("%s", b)
	}
}
