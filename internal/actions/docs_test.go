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
	for _, word := range slices.Concat(sshKeys, laterRowKeys, []string{"confirm: required"}) {
		if !strings.Contains(later, "`"+word+"`") {
			t.Errorf("the page does not say that %s is put off", word)
		}
	}
	for _, r := range Rules() {
		if !strings.Contains(page, "# "+r.Page) {
			t.Errorf("the page has no part %q, which the rule %s names", r.Page, r.ID)
		}
	}
	for _, word := range slices.Concat(topKeys, stepKeys, rowKeys, targetKeys, sshTargetKeys, identityKinds, functionNames, predicateOps, pickKeys, timeForms, checkKinds, fixtureKinds, headerAllowList) {
		if !strings.Contains(page, word) {
			t.Errorf("the page does not know %s", word)
		}
	}
}
