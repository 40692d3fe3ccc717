package main

import (
	"fmt"
	"strings"

	"chatelaine/internal/actions"
)

// ruleText is one rule, for programs.
type ruleText struct {
	Rule     string        `json:"rule"`
	Title    string        `json:"title"`
	Reason   string        `json:"reason"`
	Severity string        `json:"severity"`
	Decider  string        `json:"decider"`
	SetAside bool          `json:"may_be_set_aside"`
	Page     string        `json:"page"`
	Bad      []exampleText `json:"bad,omitzero"`
	Good     []exampleText `json:"good,omitzero"`
}

// exampleText is one file of an example: the parts that differ from a whole
// contract.
type exampleText struct {
	File string   `json:"file"`
	How  []string `json:"how,omitzero"`
	Text string   `json:"text"`
}

func ruleIDs() []string {
	var out []string
	for _, r := range actions.Rules() {
		out = append(out, r.ID)
	}
	return out
}

// explainRule prints why a rule is asked, what breaks it and what does not.
func (a *app) explainRule(id string, asJSON bool) error {
	r, ok := actions.RuleByID(id)
	if !ok {
		hint := "docs/lint.md lists them all"
		if near := nearest(id, ruleIDs()); near != "" {
			hint = "did you mean " + near + "?"
		}
		return usage(fmt.Sprintf("there is no rule %q", id), hint)
	}
	ex, has := r.Example()
	if asJSON {
		return a.printJSON(ruleText{
			Rule: r.ID, Title: r.Title, Reason: r.Reason, Severity: r.Severity.String(), Decider: r.Decider.String(),
			SetAside: r.MayBeSetAside(), Page: r.Page, Bad: exampleTexts(ex.Bad), Good: exampleTexts(ex.Good),
		})
	}
	aside := "an exception cannot set it aside"
	if r.MayBeSetAside() {
		aside = "an exception may set it aside"
	}
	fmt.Fprintf(a.out, "%s: %s\n", r.ID, r.Title)
	fmt.Fprintf(a.out, "%s, found by the %s; %s\n\n%s\n", r.Severity, r.Decider.Finder(), aside, r.Reason)
	if !has {
		fmt.Fprintf(a.out, "\nThere is no example. %s\n", r.NoExample)
	} else {
		a.writeExample("bad", ex.Bad)
		a.writeExample("good", ex.Good)
	}
	fmt.Fprintf(a.out, "\nstated in docs/contract-format.md, %q\n", r.Page)
	return nil
}

func (a *app) writeExample(side string, files []actions.ExampleFile) {
	fmt.Fprintf(a.out, "\n%s:\n", side)
	for _, f := range files {
		for _, l := range strings.Split(strings.TrimRight(f.String(), "\n"), "\n") {
			fmt.Fprintf(a.out, "    %s\n", printable(l))
		}
	}
}

func exampleTexts(files []actions.ExampleFile) []exampleText {
	var out []exampleText
	for _, f := range files {
		out = append(out, exampleText{f.Name, f.How, f.Text})
	}
	return out
}
