package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions"
)

// object is one JSON object as a program reads it.
type object = map[string]any

// dig follows members and indexes; what is not there fails the test.
func dig(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(object)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("no element %d of %v", p, path)
			}
			v = l[p]
		}
	}
	if v == nil {
		t.Errorf("nothing at %v", path)
	}
	return v
}

// The required members, closed words and references of SARIF 2.1.0: what a
// validator of its schema, and a reader of the log, would refuse.
func TestSARIF(t *testing.T) {
	found := []finding{
		{File: "contracts/a b/contract.yaml", Line: 3, Column: 7, Rule: "path-input", Severity: "error", Message: "m", Hint: "h"},
		{File: "/elsewhere/targets.yaml", Rule: "file", Severity: "error", Message: "m"},
		{File: "contracts/x/contract.yaml", Line: 1, Column: 1, Rule: "fixtures", Severity: "error", Message: "m", SetAside: "no sandbox"},
		{File: "x.yaml", Line: 1, Column: 1, Rule: "a-rule-nobody-knows", Severity: "warning", Message: "m"},
	}
	b, err := json.Marshal(sarifOf(found, sarifHelpBase))
	if err != nil {
		t.Fatal(err)
	}
	var log object
	if err := json.Unmarshal(b, &log); err != nil {
		t.Fatal(err)
	}
	if dig(t, log, "version") != "2.1.0" || dig(t, log, "runs", 0, "columnKind") != "unicodeCodePoints" || dig(t, log, "runs", 0, "tool", "driver", "name") == "" {
		t.Error("another version, other columns or no name")
	}
	rules, _ := dig(t, log, "runs", 0, "tool", "driver", "rules").([]any)
	results, _ := dig(t, log, "runs", 0, "results").([]any)
	if len(rules) != len(actions.Rules()) || len(results) != len(found) {
		t.Fatalf("%d rules, %d results", len(rules), len(results))
	}
	sarifRules(t, rules)
	for i, r := range results {
		sarifResultOf(t, rules, r, found[i])
	}
	if dig(t, results[2], "suppressions", 0, "kind") != "inSource" {
		t.Error("what is set aside is not suppressed")
	}
}

func sarifRules(t *testing.T, rules []any) {
	t.Helper()
	ids := map[any]bool{}
	for _, r := range rules {
		id := dig(t, r, "id")
		if ids[id] {
			t.Errorf("%v stands twice", id)
		}
		ids[id] = true
		for _, text := range []string{"shortDescription", "fullDescription", "help"} {
			if dig(t, r, text, "text") == "" {
				t.Errorf("%v: no %s", id, text)
			}
		}
		if u, err := url.Parse(dig(t, r, "helpUri").(string)); err != nil || !u.IsAbs() || u.Fragment != id {
			t.Errorf("%v: helpUri %v", id, u)
		}
		if l := dig(t, r, "defaultConfiguration", "level"); l != "error" && l != "warning" {
			t.Errorf("%v: level %v", id, l)
		}
	}
}

func sarifResultOf(t *testing.T, rules []any, r any, of finding) {
	t.Helper()
	index, known := r.(object)["ruleIndex"].(float64)
	if known && dig(t, rules[int(index)], "id") != dig(t, r, "ruleId") || !known && of.Rule != "a-rule-nobody-knows" {
		t.Errorf("%s: rule %v at %v", of.Rule, dig(t, r, "ruleId"), index)
	}
	if dig(t, r, "message", "text") == "" || !slices.Contains([]any{"error", "warning", "note", "none"}, dig(t, r, "level")) {
		t.Errorf("%s says nothing", of.Rule)
	}
	place := dig(t, r, "locations", 0, "physicalLocation").(object)
	if _, err := url.Parse(dig(t, place, "artifactLocation", "uri").(string)); err != nil {
		t.Errorf("%s: %v", of.Rule, err)
	}
	if region, has := place["region"]; has != (of.Line > 0) || has && dig(t, region, "startLine").(float64) < 1 {
		t.Errorf("%s: region %v", of.Rule, region)
	}
}

func TestFileURI(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"contracts/a b/contract.yaml":          "contracts/a%20b/contract.yaml",
		filepath.Join(wd, "x", "targets.yaml"): "x/targets.yaml",
		"/elsewhere/targets.yaml":              "file:///elsewhere/targets.yaml",
	} {
		if got := fileURI(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if up := fileURI("../up.yaml"); !strings.HasPrefix(up, "file:///") {
		t.Errorf("a file above: %s", up)
	}
}
