package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest"
)

func (a *app) contractTestCmd() *cobra.Command {
	var asJSON, verbose, mutate bool
	var f contractFiles
	var parallel int
	cmd := &cobra.Command{
		Use: "test [ACTION…]", Short: "Play the fixtures of contracts",
		Long: `Play the fixtures of contracts through the real executor against a real HTTPS
server on this machine, and compare what left and what came back. It needs no
daemon and no secret. It ends with 1 where a fixture fails.`,
		Example: "  chatelaine contract test\n  chatelaine contract test deploy_release --contracts contracts --json",
		RunE: do(func(cmd *cobra.Command, args []string) error {
			f, err := f.find(a)
			if err != nil {
				return err
			}
			if parallel < 0 || parallel > 256 {
				return usage("--parallel must lie between 0 and 256")
			}
			return a.testContracts(cmd.Context(), contracttest.Options{Site: f.site, Contracts: f.contracts, Actions: args, Parallel: parallel, Mutate: mutate}, verbose, asJSON)
		}),
	}
	f.add(cmd)
	cmd.Flags().IntVar(&parallel, "parallel", 0, "fixtures at once, 0 for one a processor")
	cmd.Flags().BoolVar(&mutate, "mutate", false, "also make the near-misses of every accepted answer, and report those that are taken")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "also list the fixtures that passed")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) testContracts(ctx context.Context, o contracttest.Options, verbose, asJSON bool) error {
	set, problems := actions.LoadSet(o.Site, o.Contracts)
	if len(problems) > 0 {
		return a.lintProblems(problems, asJSON)
	}
	if err := knownActions(set, o.Actions); err != nil {
		return err
	}
	rep, err := contracttest.Run(ctx, o)
	if err != nil {
		var ps actions.Problems
		if errors.As(err, &ps) {
			return a.lintProblems(ps, asJSON)
		}
		return refused(err.Error())
	}
	if asJSON {
		if err := a.printJSON(rep); err != nil {
			return err
		}
	} else {
		a.writeCases(rep, verbose)
	}
	failed := 0
	for _, x := range rep.Cases {
		if !x.OK {
			failed++
		}
	}
	switch {
	case len(rep.Cases) == 0:
		return refused("no fixture was played")
	case failed > 0:
		return refused(fmt.Sprintf("%d of %s failed", failed, plural(len(rep.Cases), "fixture", "fixtures")))
	case rep.Holes() > 0:
		return refused(plural(rep.Holes(), "hole", "holes") + " in what the contracts take")
	}
	return nil
}

func (a *app) writeCases(rep contracttest.Report, verbose bool) {
	passed := map[string]int{}
	for _, x := range rep.Cases {
		if x.OK {
			passed[x.Action]++
			if verbose {
				fmt.Fprintf(a.out, "%s  %s  %s: %s\n", a.paint(good, "ok  "), printable(x.File), printable(x.Fixture), printable(x.Got))
			}
			continue
		}
		fmt.Fprintf(a.out, "%s  %s  %s\n", a.paint(bad, "FAIL"), printable(x.File), printable(x.Fixture))
		fmt.Fprintf(a.out, "      want %s\n      got  %s\n", printable(x.Want), printable(x.Got))
		if x.Reason != "" {
			fmt.Fprintf(a.out, "      why  %s\n", printable(x.Reason))
		}
		for _, d := range x.Diffs {
			fmt.Fprintf(a.out, "      %s: want %s, got %s\n", printable(d.What), printable(d.Want), printable(d.Got))
		}
	}
	var rows []row
	for _, action := range sortedKeys(countCases(rep)) {
		rows = append(rows, row{c(action), c(fmt.Sprintf("%d of %d", passed[action], countCases(rep)[action]))})
	}
	a.table([]string{"action", "fixtures passed"}, rows)
	a.writeMutations(rep)
}

// writeMutations tells every hole with its way out, and what became of the
// near-misses of each contract.
func (a *app) writeMutations(rep contracttest.Report) {
	if len(rep.Mutations) == 0 {
		return
	}
	var rows []row
	for _, m := range rep.Mutations {
		for _, h := range m.Holes {
			fmt.Fprintf(a.out, "%s  %s:%d  %s: %s at %s\n", a.paint(bad, "HOLE"), printable(h.Contract), h.Line, printable(h.Row), h.Kind, printable(orWhole(h.Place)))
			fmt.Fprintf(a.out, "      %s\n      there   %s\n      in      %s\n      way out %s\n", printable(h.Why), printable(h.Value), printable(h.File), printable(h.WayOut))
		}
		rows = append(rows, row{c(m.Action), c(fmt.Sprint(m.Made)), c(fmt.Sprint(m.Refused + m.Failed)), c(fmt.Sprint(m.Same)), c(fmt.Sprint(m.Allowed)), c(fmt.Sprint(len(m.Holes)))})
	}
	a.table([]string{"action", "near-misses", "refused", "same answer", "written out", "holes"}, rows)
}

func orWhole(place string) string {
	if place == "" {
		return "the whole answer"
	}
	return place
}

func countCases(rep contracttest.Report) map[string]int {
	out := map[string]int{}
	for _, x := range rep.Cases {
		out[x.Action]++
	}
	return out
}
