package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest"
)

// finding is one mistake or remark, for programs.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitzero"`
	Page     string `json:"page,omitzero"`
	SetAside string `json:"set_aside,omitzero"` // the author's reason

	refused bool   // found by a reader or the loader
	excerpt string // of the line, for refused ones
}

// lintFlags are what contract lint was asked for.
type lintFlags struct {
	asJSON, asSARIF bool
	explain         string
	helpBase        string
}

func (a *app) contractLintCmd() *cobra.Command {
	var l lintFlags
	var f contractFiles
	cmd := &cobra.Command{
		Use: "lint [ACTION…]", Short: "Read contracts with a reviewer's eyes",
		Long: `Load all contracts and the site file as the daemon would, read their fixtures, and
report every mistake at once, each with file, line, column, rule and a hint. A
contract that does not load hides nothing about the others. With ACTION only what is
about these contracts and the site file is shown. It ends with 1 where anything is
wrong. --explain RULE says why a rule is asked, with a bad and a good example; all
rules are in docs/lint.md.`,
		Example: "  chatelaine contract lint\n  chatelaine contract lint deploy_release --contracts contracts --json\n  chatelaine contract lint --sarif > lint.sarif\n  chatelaine contract lint --explain path-input",
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := l.check(args); err != nil {
				return err
			}
			if l.explain != "" {
				return a.explainRule(l.explain, l.asJSON)
			}
			f, err := f.find(a)
			if err != nil {
				return err
			}
			return a.lint(f, args, l)
		}),
	}
	f.add(cmd)
	jsonFlag(cmd, &l.asJSON)
	cmd.Flags().BoolVar(&l.asSARIF, "sarif", false, "print a SARIF 2.1.0 log for code scanning")
	cmd.Flags().StringVar(&l.helpBase, "help-base", sarifHelpBase, "with --sarif: the address of the page of rules, before #RULE")
	cmd.Flags().StringVar(&l.explain, "explain", "", "say why this rule is asked, with its examples")
	_ = cmd.RegisterFlagCompletionFunc("explain", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return ruleIDs(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (l lintFlags) check(args []string) error {
	switch {
	case l.asJSON && l.asSARIF:
		return usage("--json and --sarif exclude each other", "take one of them")
	case l.explain != "" && (l.asSARIF || len(args) > 0):
		return usage("--explain stands alone, or beside --json", "leave the actions and --sarif out")
	case l.helpBase != sarifHelpBase && !l.asSARIF:
		return usage("--help-base belongs to --sarif")
	case !absoluteURI(l.helpBase):
		return usage(fmt.Sprintf("--help-base %q is no absolute address", l.helpBase), "such as https://git.example/ours/docs/lint.md")
	}
	return nil
}

func (a *app) lint(f contractFiles, only []string, l lintFlags) error {
	rev := actions.ReviewFolder(f.site, f.contracts)
	if err := knownFolders(rev.Actions, only); err != nil {
		return err
	}
	found, checked := joined(f, rev, only)
	open := 0
	for _, x := range found {
		if x.SetAside == "" {
			open++
		}
	}
	if err := a.writeLint(found, checked, l); err != nil {
		return err
	}
	switch {
	case open > 0:
		return refused(plural(open, "finding", "findings")+" in "+plural(checked, "contract", "contracts"),
			append(f.siteHints(found), explainHint)...)
	case checked == 0:
		return noContracts(f)
	}
	return nil
}

const explainHint = "chatelaine contract lint --explain RULE says why, with a bad and a good example"

func noContracts(f contractFiles) error {
	return refused("there is no contract in "+f.contracts, "chatelaine contract new ACTION writes a first draft; --contracts DIR names another folder")
}

// siteHints name the site file where something was looked for in it and not found:
// it may be another one than the author thinks of.
func (f contractFiles) siteHints(found []finding) []string {
	for _, x := range found {
		if x.Rule == "target-unknown" || x.Rule == "list-unknown" {
			return []string{"the site file is " + f.site + "; --site FILE names another one"}
		}
	}
	return nil
}

func (a *app) writeLint(found []finding, checked int, l lintFlags) error {
	open := slices.DeleteFunc(slices.Clone(found), func(x finding) bool { return x.SetAside != "" })
	switch {
	case l.asSARIF:
		return a.printJSON(sarifOf(found, l.helpBase))
	case l.asJSON:
		return a.printJSON(map[string]any{"contracts": checked, "findings": open})
	}
	return a.writeFindings(open)
}

// joined is what the readers, the loader and the lint say together, in the order of
// files and lines.
func joined(f contractFiles, rev actions.Review, only []string) (found []finding, checked int) {
	found = []finding{}
	problems := slices.Clone(rev.Problems)
	for _, c := range rev.Contracts {
		problems = append(problems, contracttest.FixtureProblems(f.contracts, c)...)
	}
	asked := func(file string) bool {
		rel, err := filepath.Rel(f.contracts, file)
		action, _, below := strings.Cut(filepath.ToSlash(rel), "/")
		return len(only) == 0 || err != nil || !below || action == ".." || slices.Contains(only, action)
	}
	for _, p := range problems {
		if asked(p.File) {
			found = append(found, refusal(p))
		}
	}
	for _, r := range rev.Findings {
		if asked(r.File) {
			found = append(found, finding{
				File: r.File, Line: r.Line, Column: r.Column, Rule: r.Rule, Severity: r.Severity.String(),
				Message: r.Message, Hint: r.Hint, Page: r.Page, SetAside: r.SetAside,
			})
		}
	}
	for _, action := range rev.Actions {
		if len(only) == 0 || slices.Contains(only, action) {
			checked++
		}
	}
	slices.SortStableFunc(found, func(x, y finding) int {
		if x.File != y.File {
			return strings.Compare(x.File, y.File)
		}
		return 0
	})
	return found, checked
}

// refusal is a mistake of a file that was not taken.
func refusal(p actions.Problem) finding {
	x := finding{
		File: p.File, Line: p.Line, Column: p.Column, Rule: p.Rule, Severity: actions.Error.String(),
		Message: p.Message, Hint: p.Hint, refused: true, excerpt: p.Excerpt,
	}
	if r, ok := actions.RuleByID(p.Rule); ok {
		x.Page = r.Page
	}
	return x
}

func (a *app) lintProblems(f contractFiles, problems actions.Problems, asJSON bool) error {
	found := []finding{}
	for _, p := range problems {
		found = append(found, refusal(p))
	}
	if err := a.writeLint(found, 0, lintFlags{asJSON: asJSON}); err != nil {
		return err
	}
	return refused("nothing is loaded: "+plural(len(problems), "mistake", "mistakes"), append(f.siteHints(found), explainHint)...)
}

func (a *app) writeFindings(found []finding) error {
	for _, x := range found {
		if x.refused {
			p := actions.Problems{{File: x.File, Line: x.Line, Column: x.Column, Rule: x.Rule, Message: x.Message, Hint: x.Hint, Excerpt: x.excerpt}}
			if err := p.Render(a.out); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.out, "%s:%d:%d: %s [%s]\n", printable(x.File), x.Line, x.Column, printable(x.Message), a.paint(severityColour(x.Severity), printable(x.Rule)))
		if x.Hint != "" {
			fmt.Fprintf(a.out, "  = %s\n", printable(x.Hint))
		}
	}
	return nil
}

func severityColour(word string) string {
	if word == actions.Error.String() {
		return bad
	}
	return warn
}

// knownFolders is knownActions for the folders of contracts, loaded or not.
func knownFolders(known, names []string) error {
	for _, n := range names {
		if slices.Contains(known, n) {
			continue
		}
		hint := "these are here: " + strings.Join(known, ", ")
		if near := nearest(n, known); near != "" {
			hint = "did you mean " + near + "?"
		} else if strings.ContainsAny(n, `/\`) {
			hint = "name a contract by its action; its folder of contracts goes behind --contracts"
		}
		return usage(fmt.Sprintf("there is no contract of action %q", n), hint)
	}
	return nil
}
