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
	type object = map[string]any
	var log object
	if err := json.Unmarshal(b, &log); err != nil {
		t.Fatal(err)
	}
	get := func(v any, path ...any) any {
		t.Helper()
		for _, p := range path {
			switch p := p.(type) {
			case string:
				m, _ := v.(object)
				v = m[p]
			case int:
				l, _ := v.([]any)
				if p >= len(l) {
					t.Fatalf("no element %d", p)
				}
				v = l[p]
			}
		}
		if v == nil {
			t.Errorf("nothing at %v", path)
		}
		return v
	}
	if get(log, "version") != "2.1.0" || get(log, "runs", 0, "columnKind") != "unicodeCodePoints" {
		t.Error("another version or other columns")
	}
	rules, _ := get(log, "runs", 0, "tool", "driver", "rules").([]any)
	if len(rules) != len(actions.Rules()) || get(log, "runs", 0, "tool", "driver", "name") == "" {
		t.Errorf("%d rules", len(rules))
	}
	ids := map[any]bool{}
	for _, r := range rules {
		id := get(r, "id")
		if ids[id] {
			t.Errorf("%v stands twice", id)
		}
		ids[id] = true
		for _, text := range []string{"shortDescription", "fullDescription", "help"} {
			if get(r, text, "text") == "" {
				t.Errorf("%v: no %s", id, text)
			}
		}
		if u, err := url.Parse(get(r, "helpUri").(string)); err != nil || !u.IsAbs() || u.Fragment != id {
			t.Errorf("%v: helpUri %v", id, u)
		}
		if l := get(r, "defaultConfiguration", "level"); l != "error" && l != "warning" {
			t.Errorf("%v: level %v", id, l)
		}
	}
	results, _ := get(log, "runs", 0, "results").([]any)
	if len(results) != len(found) {
		t.Fatalf("%d results", len(results))
	}
	for i, r := range results {
		index, known := r.(object)["ruleIndex"].(float64)
		if known && get(rules[int(index)], "id") != get(r, "ruleId") || !known && found[i].Rule != "a-rule-nobody-knows" {
			t.Errorf("result %d: rule %v at %v", i, get(r, "ruleId"), index)
		}
		if get(r, "message", "text") == "" || !slices.Contains([]any{"error", "warning", "note", "none"}, get(r, "level")) {
			t.Errorf("result %d says nothing", i)
		}
		place := get(r, "locations", 0, "physicalLocation").(object)
		if _, err := url.Parse(get(place, "artifactLocation", "uri").(string)); err != nil {
			t.Errorf("result %d: %v", i, err)
		}
		if region, has := place["region"]; has != (found[i].Line > 0) || has && get(region, "startLine").(float64) < 1 {
			t.Errorf("result %d: region %v", i, region)
		}
	}
	if get(results[2], "suppressions", 0, "kind") != "inSource" {
		t.Error("what is set aside is not suppressed")
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
