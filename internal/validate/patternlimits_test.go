package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A costly pattern in a schema is told by a rule of its own, and once.
func TestCostlyPatternOfASchema(t *testing.T) {
	found := LintSchema(mustParse(t, `{"type":"string","pattern":"^(a{0,30}){0,30}b$"}`), UseInput)
	if len(found) != 1 || found[0].Rule != ruleCost || found[0].Pointer != "/pattern" || found[0].Message != costComplaint || found[0].Hint == "" {
		t.Errorf("%+v", found)
	}
}

// A pattern over which the walk itself would take too long is refused as costly.
func TestWorkOverOnePatternIsBounded(t *testing.T) {
	unit := `([a-z]{0,20}[a-z]{0,19}!){0,25};`
	for times, costly := range map[int]bool{1: false, 4: false, 7: true} {
		p := "^" + strings.Repeat(unit, times) + "$"
		if got := slices.Contains(LintPattern(p), costComplaint); got != costly {
			t.Errorf("%d times: costly %v, want %v", times, got, costly)
		}
	}
}

// However many patterns are looked at, only so many are kept.
func TestKeptPatterns(t *testing.T) {
	for i := range patternsKept + 7 {
		if found := LintPattern(fmt.Sprintf("^kept%d$", i)); len(found) > 0 {
			t.Fatal(found)
		}
	}
	patterns.Lock()
	defer patterns.Unlock()
	if len(patterns.byText) > patternsKept {
		t.Errorf("%d patterns are kept", len(patterns.byText))
	}
}
