package actions

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const lintPage = "../../docs/lint.md"

const lintIntro = `# The rules of contracts

Every rule that [the format](contract-format.md) states has an id, which never changes: it
stands in square brackets behind each message, in ` + "`--json`" + `, in ` + "`--sarif`" + ` and in
` + "`exceptions`" + `. This page is written from the table in the code; a test keeps the two equal
and runs every example.

` + "```sh" + `
chatelaine contract lint
chatelaine contract lint --explain path-input
chatelaine contract lint --sarif > lint.sarif
` + "```" + `

## Who decides
- **The strict reader**, in any file: contract, site file and fixture.
- **The loader**, in a contract, in its schemas and in the site file. What it refuses is
  unsafe, nothing is loaded, and nobody can set it aside.
- **The reader of fixtures**, where fixtures are played and where they are linted.
- **The lint**, in a contract that loads. These rules, and only these, may be set aside:
  ` + "`exceptions: [{rule: ID, because: TEXT}]`" + `, shown in ` + "`contract show`" + `, on the card and as
  suppressed in SARIF. An exception that sets nothing aside is a finding itself.

The command ends with 1 where anything is found, whatever its severity. ` + "`error`" + ` means that
something may pass that nobody reviewed, ` + "`warning`" + ` that a person was probably not careful.

## How to read the examples
An example shows only the keys that differ from a small whole contract, which has site file and
fixtures and no finding. ` + "`<<…>>`" + ` stands for what a page cannot show: a tab, a byte, a text many
times, a key file.
`

var pageParts = map[Decider]string{
	ByReader: "Any file", ByLoader: "Contracts", BySchema: "Schemas of contracts",
	BySite: "The site file", ByFixtures: "Fixtures", ByLint: "What the lint says",
}

// docs/lint.md is the table of rules, with the examples.
func TestPageOfRules(t *testing.T) {
	want := rulesPage()
	if *update {
		if err := os.WriteFile(lintPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(lintPage)
	if err != nil || string(got) != want {
		t.Errorf("docs/lint.md is not what the table says (%v); run: go test ./internal/actions -run TestPageOfRules -%s", err, flag.Lookup("update").Name)
	}
}

func rulesPage() string {
	var b strings.Builder
	b.WriteString(lintIntro)
	last := Decider(0)
	for _, r := range Rules() {
		if r.Decider != last {
			fmt.Fprintf(&b, "\n## %s\n", pageParts[r.Decider])
			writeOverview(&b, r.Decider)
			last = r.Decider
		}
		aside := ""
		if r.MayBeSetAside() {
			aside = ", may be set aside"
		}
		fmt.Fprintf(&b, "\n### %s\n**%s.** %s\n\nSeverity: %s%s. Stated under %q.\n", r.ID, r.Title, r.Reason, r.Severity, aside, r.Page)
		ex, ok := r.Example()
		if !ok {
			fmt.Fprintf(&b, "\nThere is no example. %s\n", r.NoExample)
			continue
		}
		writePageExample(&b, "Bad", ex.Bad)
		writePageExample(&b, "Good", ex.Good)
	}
	return b.String()
}

// writeOverview lists the rules of one decider, each with what breaks it.
func writeOverview(b *strings.Builder, d Decider) {
	b.WriteString("| rule | what breaks it |\n|---|---|\n")
	for _, r := range Rules() {
		if r.Decider == d {
			fmt.Fprintf(b, "| [%s](#%s) | %s |\n", r.ID, r.ID, r.Title)
		}
	}
}

func writePageExample(b *strings.Builder, side string, files []ExampleFile) {
	fmt.Fprintf(b, "\n%s:\n", side)
	for _, f := range files {
		fmt.Fprintf(b, "```yaml\n%s\n```\n", strings.TrimRight(f.String(), "\n"))
	}
}
