package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
)

// finding is one mistake or remark, for programs.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitzero"`
	Page    string `json:"page,omitzero"`
}

func (a *app) contractLintCmd() *cobra.Command {
	var asJSON bool
	var f contractFiles
	cmd := &cobra.Command{
		Use: "lint [ACTION…]", Short: "Read contracts with a reviewer's eyes",
		Long: `Load all contracts and the site file as the daemon would, and report every mistake
at once, each with file, line, column and a hint. With ACTION only the remarks
about these contracts are shown. It ends with 1 where anything is wrong.`,
		Example: "  chatelaine contract lint\n  chatelaine contract lint deploy_release --contracts contracts --json",
		RunE: do(func(cmd *cobra.Command, args []string) error {
			f, err := f.find(a)
			if err != nil {
				return err
			}
			return a.lint(f, args, asJSON)
		}),
	}
	f.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) lint(f contractFiles, only []string, asJSON bool) error {
	set, problems := actions.LoadSet(f.site, f.contracts)
	if len(problems) > 0 {
		return a.lintProblems(problems, asJSON)
	}
	if err := knownActions(set, only); err != nil {
		return err
	}
	found := []finding{}
	checked := 0
	for _, contract := range set.Contracts() {
		if len(only) > 0 && !slices.Contains(only, contract.Action()) {
			continue
		}
		checked++
		for _, r := range actions.Lint(contract, set) {
			found = append(found, finding{r.File, r.Line, r.Column, r.Rule, r.Message, r.Hint, r.Page})
		}
	}
	if asJSON {
		if err := a.printJSON(map[string]any{"contracts": checked, "findings": found}); err != nil {
			return err
		}
	} else {
		a.writeFindings(found)
	}
	if len(found) > 0 {
		return refused(plural(len(found), "finding", "findings") + " in " + plural(checked, "contract", "contracts"))
	}
	if checked == 0 {
		return refused("there is no contract in " + f.contracts)
	}
	return nil
}

func (a *app) lintProblems(problems actions.Problems, asJSON bool) error {
	if asJSON {
		found := []finding{}
		for _, p := range problems {
			found = append(found, finding{File: p.File, Line: p.Line, Column: p.Column, Rule: p.Rule, Message: p.Message, Hint: p.Hint})
		}
		if err := a.printJSON(map[string]any{"contracts": 0, "findings": found}); err != nil {
			return err
		}
	} else if err := problems.Render(a.out); err != nil {
		return err
	}
	return refused("nothing is loaded: " + plural(len(problems), "mistake", "mistakes"))
}

func (a *app) writeFindings(found []finding) {
	for _, x := range found {
		fmt.Fprintf(a.out, "%s:%d:%d: %s [%s]\n", printable(x.File), x.Line, x.Column, printable(x.Message), printable(x.Rule))
		if x.Hint != "" {
			fmt.Fprintf(a.out, "    %s\n", printable(x.Hint))
		}
		if x.Page != "" {
			fmt.Fprintf(a.out, "    see %s in docs/contract-format.md\n", printable(x.Page))
		}
	}
}
