package conformance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/conformance.md anew instead of comparing them")

const reportPage = "../../../docs/conformance.md"

// report holds one table of docs/conformance.md to what a test found. The
// table stands between two comments that bear its name.
func report(t *testing.T, name, table string) {
	t.Helper()
	raw, err := os.ReadFile(reportPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	begin, end := fmt.Sprintf("<!-- %s: written by the tests -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	before, rest, ok := strings.Cut(page, begin)
	old, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("docs/conformance.md has no place for the table %s", name)
	}
	table = "\n" + strings.TrimSpace(table) + "\n\n"
	if old == table {
		return
	}
	if !*update {
		t.Errorf("docs/conformance.md is not true any more: its table %s differs from what was found now.\nLook at what changed, then run make conformance UPDATE=-update.\nfound:\n%s", name, table)
		return
	}
	if err := os.WriteFile(reportPage, []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
