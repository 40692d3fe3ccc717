package actions

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The page of the format names every key that the loader takes or puts off,
// every word and every rule that an exception may name.
func TestPageOfTheFormat(t *testing.T) {
	b, err := os.ReadFile("../../docs/contract-format.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	_, later, _ := strings.Cut(page, "## Not in this release")
	later, _, _ = strings.Cut(later, "\n## ")
	for _, word := range slices.Concat(sshKeys, laterRowKeys, laterKinds, sshTargetKeys, []string{"lookups", "poll", "reconcile", "confirm: required"}) {
		if !strings.Contains(later, "`"+word+"`") {
			t.Errorf("the page does not say that %s is put off", word)
		}
	}
	for _, rule := range LintRules() {
		if !strings.Contains(page, "| `"+rule+"` |") {
			t.Errorf("the page has no rule %s", rule)
		}
		if !strings.Contains(page, "## "+lintRules[rule]) && !strings.Contains(page, lintRules[rule]) {
			t.Errorf("the page has no part %q", lintRules[rule])
		}
	}
	for _, word := range slices.Concat(topKeys, stepKeys, rowKeys, targetKeys, identityKinds, functionNames, predicateOps, pickKeys, timeForms, checkKinds, fixtureKinds, headerAllowList) {
		if !strings.Contains(page, word) {
			t.Errorf("the page does not know %s", word)
		}
	}
}
