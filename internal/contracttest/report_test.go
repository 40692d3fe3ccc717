package contracttest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	"chatelaine/internal/actions"
)

// failing is a run with a fixture that passes, two that fail and one of an old
// shape; the answer of one holds the planted secret and a control character.
func failing(t *testing.T) Report {
	t.Helper()
	o := write(t, map[string]string{
		"get_thing/accepted.yaml":       whole,
		"get_thing/hostile-path.yaml":   strings.Replace(whole, "/api/things", "/things", 1),
		"get_thing/hostile-note.yaml":   strings.NewReplacer(`hello"}`, `\u001b[2J${credential}"}`, "data: {id: a7}", "data: {id: b8}").Replace(whole),
		"get_thing/v1/accepted-old.yml": whole,
	})
	o.Parallel = 1
	rep, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Cases) != 4 || rep.Failed() != 2 || rep.OK() || rep.Cases[3].Era != "v1" {
		t.Fatalf("%+v", rep.Cases)
	}
	return rep
}

// What the report says of each fixture, in every form; never the planted secret
// and never a control character of an answer.
func TestReportForms(t *testing.T) {
	rep := failing(t)
	rep.Mutations = []Mutation{{Action: "get_thing", Made: 3, Holes: []Hole{{Contract: "c.yaml", Line: 7, Row: "request.outcomes[0]", Kind: kindExtra, Place: "/x\n::error::", Value: "1", Why: "w", WayOut: "o"}}}}
	var junit, github bytes.Buffer
	if err := errors.Join(rep.JUnit(&junit, true), rep.GitHub(&github, true)); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"junit": junit.String(), "github": github.String(), "json": string(doc)} {
		if strings.Contains(text, "planted-") || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s shows the planted secret or a control character:\n%s", name, text)
		}
	}
	var back Report
	if err := json.Unmarshal(doc, &back); err != nil || len(back.Cases) != 4 || back.Failed() != 2 {
		t.Errorf("%v: %+v", err, back)
	}
}

// The XML parses, and its numbers are those of the cases that stand in it.
func TestJUnitCounts(t *testing.T) {
	rep := failing(t)
	rep.Mutations = []Mutation{{Action: "get_thing", Made: 3, Holes: []Hole{{Kind: kindExtra}, {Kind: kindNull}}}, {Action: "other", Made: 2}}
	var b bytes.Buffer
	if err := rep.JUnit(&b, true); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	tests, failures, errs := 0, 0, 0
	for _, s := range got.Suites {
		inTests, inFailures := len(s.Cases), 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				inFailures++
			}
		}
		if s.Tests != inTests || s.Failures != inFailures {
			t.Errorf("suite %s says %d and %d, has %d and %d", s.Name, s.Tests, s.Failures, inTests, inFailures)
		}
		tests, failures, errs = tests+s.Tests, failures+s.Failures, errs+s.Errors
	}
	// 4 fixtures, 2 holes and one contract without, 12 contracts' coverage, of
	// which 11 have no fixture.
	if got.Tests != tests || got.Failures != failures || got.Errors != errs || tests != 19 || failures != 15 {
		t.Errorf("%d tests, %d failures, %d errors; the suites add up to %d, %d, %d", got.Tests, got.Failures, got.Errors, tests, failures, errs)
	}
	if c := got.Suites[0].Cases[1]; c.Failure == nil || !strings.Contains(c.Failure.Text, "decided by echo") || c.Line != 6 || !strings.HasSuffix(c.File, "hostile-note.yaml") {
		t.Errorf("%+v %+v", c, c.Failure)
	}
	b.Reset()
	if err := JUnitProblems(&b, actions.Problems{{File: "f", Line: 3, Rule: "r", Message: "a <b> & c", Hint: "h"}}); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil || got.Errors != 1 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// One line for each thing that is wrong, which no text can end or prolong.
func TestGitHubAnnotations(t *testing.T) {
	rep := failing(t)
	rep.Mutations = []Mutation{{Holes: []Hole{{Contract: "a,b:c.yaml", Line: 7, Row: "r", Kind: kindExtra, Place: "/x\n::error::", Why: "50%", WayOut: "o"}}}}
	rep.Coverage = []Coverage{{Contract: "c.yaml", Missing: []CoveredPlace{{Name: "request.outcomes[1]", Line: 9, Why: "none"}}}}
	var b bytes.Buffer
	if err := rep.GitHub(&b, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for i, want := range []string{"hostile-note.yaml,line=6,title=fixture", "::error file=", "::error file=a%2Cb%3Ac.yaml,line=7,title=hole%3A extra member at r::50%25 (at \"/x", "::warning file=c.yaml,line=9,title=coverage%3A request.outcomes[1]::none"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s, want %s", i, lines[i], want)
		}
	}
}

// A document that differs is told member by member.
func TestDiffsNameTheMember(t *testing.T) {
	var got []Diff
	want := map[string]any{"a": "x", "b": []any{map[string]any{"c": json.Number("1")}}, "gone": true, "same": "s"}
	have := map[string]any{"a": "y", "b": []any{map[string]any{"c": json.Number("2")}}, "more": nil, "same": "s"}
	apart("data", want, have, &got)
	text := ""
	for _, d := range got {
		text += d.What + " " + d.Want + " " + d.Got + "\n"
	}
	if text != "data.a \"x\" \"y\"\ndata.b[0].c 1 2\ndata.gone true (absent)\ndata.more (absent) null\n" {
		t.Error(text)
	}
}
