package actions

import (
	"os"
	"strings"
	"testing"
)

// The shipped contracts and the example site file load, and the lint has
// nothing to say about them.
func TestShippedContracts(t *testing.T) {
	set, problems := LoadSet("../../contracts/targets.yaml", "../../contracts")
	if len(problems) > 0 {
		var b strings.Builder
		if err := problems.Render(&b); err != nil {
			t.Fatal(err)
		}
		t.Fatal(b.String())
	}
	for _, c := range set.Contracts() {
		for _, f := range Lint(c, set) {
			t.Errorf("%s:%d:%d: %s [%s]", f.File, f.Line, f.Column, f.Message, f.Rule)
		}
		if len(c.Targets()) == 0 || c.InputSchema() == nil || c.ResultSchema() == nil || c.EnvelopeSchema() == nil {
			t.Errorf("%s: not whole", c.Action())
		}
		alone, ps := LoadContract(c.Dir())
		// The names of an operator's list are under the digest.
		if len(ps) > 0 || (alone.Digest() != c.Digest()) != (c.route.list != "") {
			t.Errorf("%s: read alone: %v", c.Action(), ps)
		}
	}
	if _, err := os.Stat("../../contracts/deploy_release"); err == nil && len(set.Contracts()) == 0 {
		t.Error("no contract was loaded")
	}
}
