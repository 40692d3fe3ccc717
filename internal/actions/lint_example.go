package actions

import (
	"embed"
	"fmt"
	"strings"
)

// exampleFiles has one file a rule: what breaks it, and the same that does not.
//
//go:embed testdata/rules
var exampleFiles embed.FS

// Example is a rule's two examples. Each is a part of a small whole contract
// with site file and fixtures, whose other parts stay as they are.
type Example struct {
	Base      string   // which whole contract: read or change
	Also      []string // further rules that the bad example breaks
	Bad, Good []ExampleFile
}

// ExampleFile is one file of an example: the top-level keys that differ.
type ExampleFile struct {
	Name string   // contract.yaml, targets.yaml, fixtures/accepted.yaml, …
	How  []string // without KEY…, absent, whole or first
	Text string
}

// Example returns the rule's examples, false where it has none.
func (r Rule) Example() (Example, bool) {
	b, err := exampleFiles.ReadFile("testdata/rules/" + r.ID + ".txt")
	if err != nil {
		return Example{}, false
	}
	ex, err := parseExample(string(b))
	return ex, err == nil
}

// parseExample reads the form of the files: lines KEY: VALUE, then one part a
// file, headed "-- bad/NAME --" or "-- good/NAME (HOW) --".
func parseExample(text string) (Example, error) {
	var ex Example
	parts := strings.Split("\n"+text, "\n-- ")
	for _, l := range strings.Split(strings.TrimSpace(parts[0]), "\n") {
		key, value, _ := strings.Cut(l, ": ")
		switch key {
		case "base":
			ex.Base = value
		case "also":
			ex.Also = strings.Fields(value)
		default:
			return ex, fmt.Errorf("an example has no line %q", l)
		}
	}
	for _, p := range parts[1:] {
		head, body, _ := strings.Cut(p, "\n")
		head, ok := strings.CutSuffix(head, " --")
		side, name, named := strings.Cut(head, "/")
		if !ok || !named {
			return ex, fmt.Errorf("no head of a part: %q", head)
		}
		how := strings.Split(name, " (")
		f := ExampleFile{Name: how[0], Text: body}
		for _, h := range how[1:] {
			f.How = append(f.How, strings.TrimSuffix(h, ")"))
		}
		switch side {
		case "bad":
			ex.Bad = append(ex.Bad, f)
		case "good":
			ex.Good = append(ex.Good, f)
		default:
			return ex, fmt.Errorf("an example is bad or good, not %q", side)
		}
	}
	return ex, nil
}

// String gives the file as a page or a terminal shows it.
func (f ExampleFile) String() string {
	var b strings.Builder
	b.WriteString("# " + f.Name)
	for _, h := range f.How {
		switch word, rest, _ := strings.Cut(h, " "); word {
		case "without":
			b.WriteString(", without " + strings.ReplaceAll(rest, " ", ", "))
		case "absent":
			b.WriteString(" is not there")
		}
	}
	return b.String() + "\n" + f.Text
}
