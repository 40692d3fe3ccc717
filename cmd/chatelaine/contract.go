package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/client"
)

func (a *app) contractCmd() *cobra.Command {
	return group("contract", "Check and list contracts",
		`A contract is a folder with contract.yaml and fixtures. lint and test need no
daemon, so that CI can run them; list asks the daemon what it has loaded.`,
		"  chatelaine contract lint --contracts contracts --site contracts/targets.yaml\n  chatelaine contract test deploy_release",
		a.contractLintCmd(), a.contractTestCmd(), a.contractListCmd())
}

// contractFiles are where the contracts and the site file are.
type contractFiles struct{ contracts, site string }

func (f *contractFiles) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.contracts, "contracts", "", "folder of contract folders (default contracts/ in the configuration folder)")
	cmd.Flags().StringVar(&f.site, "site", "", "the site file (default targets.yaml beside the contract folders, else in the configuration folder)")
}

// find fills what was not given and says which of them is not there.
func (f contractFiles) find(a *app) (contractFiles, error) {
	p, err := a.places()
	if err != nil {
		return f, err
	}
	if f.site == "" {
		f.site = p.SiteFile()
		if f.contracts != "" {
			if beside := f.contracts + "/targets.yaml"; isFile(beside) {
				f.site = beside
			}
		}
	}
	if f.contracts == "" {
		f.contracts = p.Contracts()
	}
	if fi, err := os.Stat(f.contracts); err != nil || !fi.IsDir() {
		return f, usage(fmt.Sprintf("there is no folder of contracts at %s", f.contracts), "name it with --contracts DIR")
	}
	if !isFile(f.site) {
		return f, usage(fmt.Sprintf("there is no site file at %s", f.site), "name it with --site FILE")
	}
	return f, nil
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

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

// knownActions refuses a name that no contract has: a misspelt one would pass
// every check.
func knownActions(set *actions.Set, names []string) error {
	var known []string
	for _, contract := range set.Contracts() {
		known = append(known, contract.Action())
	}
	for _, n := range names {
		if slices.Contains(known, n) {
			continue
		}
		hint := "these are here: " + strings.Join(known, ", ")
		if near := nearest(n, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return usage(fmt.Sprintf("there is no contract of action %q", n), hint)
	}
	return nil
}

func (a *app) contractListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the contracts that the daemon has loaded",
		Long:    "List the contracts that the daemon has loaded, with the targets that each can reach.",
		Example: "  chatelaine contract list\n  chatelaine contract list --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error { return a.listContracts(cmd.Context(), op, asJSON) })
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
