package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest"
)

// contractTest is one run of the command.
type contractTest struct {
	files           contractFiles
	actions         []string
	parallel        int
	mutate          bool
	coverage        bool
	requireCoverage bool
	watch           bool
	junit           string
	github          bool
	verbose, json   bool
}

// parallelLimit is more fixtures at once than any machine has use for.
const parallelLimit = 256

func (a *app) contractTestCmd() *cobra.Command {
	t := contractTest{}
	cmd := &cobra.Command{
		Use: "test [ACTION…]", Short: "Play the fixtures of contracts",
		Long: `Play the fixtures of contracts through the real executor against a real HTTPS
server on this machine, and compare what left and what came back. Fixtures of old
upstream shapes, in fixtures/v1, v2 and so on, are played too. It needs no daemon
and no secret. It ends with 1 where a fixture fails.

--mutate also makes the near-misses of every answer that a contract takes: a member
more, one less, null, another type, another thing's name, an old time, other bytes.
Each must be refused, or be an answer that the contract's author wrote out; what is
neither is a hole and ends the run with 1. docs/contract-testing.md has the rule.`,
		Example: "  chatelaine contract test\n  chatelaine contract test deploy_release --contracts contracts --mutate --coverage\n  chatelaine contract test --watch\n  chatelaine contract test --contracts contracts --mutate --require-coverage --junit report.xml --github",
		RunE: do(func(cmd *cobra.Command, args []string) error {
			var err error
			if t.files, err = t.files.find(a); err != nil {
				return err
			}
			t.actions = args
			if err := t.check(); err != nil {
				return err
			}
			if t.watch {
				return a.watchContracts(cmd.Context(), t)
			}
			return a.testContracts(cmd.Context(), t)
		}),
	}
	t.files.add(cmd)
	f := cmd.Flags()
	f.IntVar(&t.parallel, "parallel", 0, "fixtures at once, 0 for one a processor")
	f.BoolVar(&t.mutate, "mutate", false, "also make the near-misses of every accepted answer, and report those that are taken")
	f.BoolVar(&t.coverage, "coverage", false, "list the rows, picks, display texts and checks that no fixture reached")
	f.BoolVar(&t.requireCoverage, "require-coverage", false, "end with 1 where a place is not reached")
	f.BoolVar(&t.watch, "watch", false, "play again what changes, until interrupted")
	f.StringVar(&t.junit, "junit", "", "also write the report to this file as JUnit XML")
	f.BoolVar(&t.github, "github", false, "also write annotations as GitHub's build servers read them")
	f.BoolVar(&t.verbose, "verbose", false, "also list the fixtures that passed")
	jsonFlag(cmd, &t.json)
	return cmd
}

func (t contractTest) check() error {
	switch {
	case t.parallel < 0 || t.parallel > parallelLimit:
		return usage(fmt.Sprintf("--parallel must lie between 0 and %d", parallelLimit))
	case t.json && t.github:
		return usage("--json and --github both write to standard output; give one of them")
	case t.json && t.watch:
		return usage("--watch never ends, so it writes no JSON", "use --junit FILE for programs")
	}
	return nil
}

func (a *app) testContracts(ctx context.Context, t contractTest) error {
	rep, problems, err := t.run(ctx)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return a.testProblems(problems, t)
	}
	return a.report(rep, t)
}

// run plays what was asked for. Problems are what kept the files from being
// loaded.
func (t contractTest) run(ctx context.Context) (contracttest.Report, actions.Problems, error) {
	set, problems := actions.LoadDrafts(t.files.site, t.files.contracts)
	if len(problems) > 0 {
		return contracttest.Report{}, problems, nil
	}
	if len(set.Contracts()) == 0 {
		return contracttest.Report{}, nil, noContracts(t.files)
	}
	if err := knownActions(set, t.actions); err != nil {
		return contracttest.Report{}, nil, err
	}
	rep, err := contracttest.Run(ctx, contracttest.Options{
		Site: t.files.site, Contracts: t.files.contracts, Actions: t.actions, Parallel: t.parallel, Mutate: t.mutate,
	})
	if err != nil {
		if errors.As(err, &problems) {
			return rep, problems, nil
		}
		if ctx.Err() != nil {
			return rep, nil, err
		}
		return rep, nil, refused(err.Error())
	}
	return rep, nil, nil
}

// testProblems reports files that do not load in every form that was asked for.
func (a *app) testProblems(problems actions.Problems, t contractTest) error {
	if t.junit != "" {
		var b bytes.Buffer
		if err := contracttest.JUnitProblems(&b, problems); err != nil {
			return err
		}
		if err := writeReport(t.junit, b.Bytes()); err != nil {
			return err
		}
	}
	if t.github {
		if err := contracttest.GitHubProblems(a.out, problems); err != nil {
			return err
		}
	}
	return a.lintProblems(t.files, problems, t.json)
}

// report writes the report in every form that was asked for and says how the
// command ends.
func (a *app) report(rep contracttest.Report, t contractTest) error {
	if t.junit != "" {
		var b bytes.Buffer
		if err := rep.JUnit(&b, t.requireCoverage); err != nil {
			return err
		}
		if err := writeReport(t.junit, b.Bytes()); err != nil {
			return err
		}
	}
	if t.json {
		if err := a.printJSON(rep); err != nil {
			return err
		}
	} else {
		a.writeCases(rep, t)
	}
	if t.github {
		if err := rep.GitHub(a.out, t.requireCoverage); err != nil {
			return err
		}
	}
	return t.verdict(rep)
}

func (t contractTest) verdict(rep contracttest.Report) error {
	switch {
	case len(rep.Cases) == 0:
		return refused("no fixture was played", "chatelaine contract lint says which contracts want some")
	case rep.Failed() > 0:
		return refused(fmt.Sprintf("%d of %s failed", rep.Failed(), plural(len(rep.Cases), "fixture", "fixtures")))
	case rep.Holes() > 0:
		return refused(plural(rep.Holes(), "hole", "holes") + " in what the contracts take")
	case t.requireCoverage && rep.Missing() > 0:
		var hints []string
		if !t.coverage {
			hints = []string{"--coverage lists them"}
		}
		return refused("no fixture reaches "+plural(rep.Missing(), "place", "places"), hints...)
	}
	return nil
}

// reportMode lets everybody read a report: it holds no secret.
const reportMode = 0o644

func writeReport(file string, b []byte) error {
	if err := os.WriteFile(file, b, reportMode); err != nil {
		return usage(fmt.Sprintf("cannot write %s: %v", file, plainCause(err)))
	}
	return nil
}
