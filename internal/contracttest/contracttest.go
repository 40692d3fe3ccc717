// Package contracttest plays the fixtures of contracts: each goes through the
// real loader, the real executor and the real validator, against a real HTTPS
// server on loopback, and what left the machine is compared byte for byte with
// what the fixture says. It must never send anything to a target's real
// address and never touch a real credential. The command line and tests may
// import it.
package contracttest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"chatelaine/internal/actions"
)

// Options say what to play.
type Options struct {
	Site      string   // the site file, targets.yaml
	Contracts string   // the folder of contract folders
	Actions   []string // only these; none means all
	Parallel  int      // fixtures at once; 0 means one a processor
	Mutate    bool     // also make the near-misses of every accepted answer
}

// Run plays the fixtures. The error is for what kept them from being played:
// files that do not load (actions.Problems, all of them), an action that does
// not exist, a machine without loopback. A fixture that fails is in the report,
// whose order is that of actions and files.
func Run(ctx context.Context, o Options) (Report, error) {
	start := time.Now()
	set, problems := actions.LoadDrafts(o.Site, o.Contracts)
	if len(problems) > 0 {
		return Report{}, problems
	}
	chosen, fixtures, err := gather(set, o)
	if err != nil {
		return Report{}, err
	}
	p, err := newPlayer(set, chosen)
	if err != nil {
		return Report{}, err
	}
	cases, all := make([]Case, len(fixtures)), make([]played, len(fixtures))
	group, during := errgroup.WithContext(ctx)
	group.SetLimit(parallel(o.Parallel))
	for i, fx := range fixtures {
		group.Go(func() (err error) {
			cases[i], all[i], err = p.run(during, fx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Report{}, err
	}
	rep := Report{Cases: cases, Coverage: p.coverageOf(chosen, all)}
	if o.Mutate {
		if rep.Mutations, err = p.mutateAll(ctx, all, o.Parallel); err != nil {
			return Report{}, err
		}
	}
	rep.Took = time.Since(start)
	return rep, nil
}

// newPlayer prepares to play fixtures of some contracts of a set.
func newPlayer(set *actions.Set, chosen []*actions.Contract) (player, error) {
	t, err := newTrust()
	if err != nil {
		return player{}, err
	}
	signers, err := newSigners(set)
	if err != nil {
		return player{}, err
	}
	p := player{set: set, trust: t, signers: signers, outlines: map[string]*outline{}}
	for _, c := range chosen {
		if p.outlines[c.Action()], err = readOutline(c); err != nil {
			return player{}, err
		}
	}
	return p, nil
}

func parallel(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// gather reads the fixtures of the chosen contracts.
func gather(set *actions.Set, o Options) ([]*actions.Contract, []fixture, error) {
	for _, a := range o.Actions {
		if _, ok := set.Contract(a); !ok {
			return nil, nil, fmt.Errorf("there is no contract %q in %s", a, o.Contracts)
		}
	}
	var chosen []*actions.Contract
	var out []fixture
	var problems actions.Problems
	for _, c := range set.Contracts() {
		if len(o.Actions) > 0 && !slices.Contains(o.Actions, c.Action()) {
			continue
		}
		fs, ps := readFixtures(o.Contracts, c)
		chosen, out, problems = append(chosen, c), append(out, fs...), append(problems, ps...)
	}
	if len(problems) > 0 {
		return nil, nil, problems
	}
	return chosen, out, nil
}

// played is a fixture with the answers that its call met.
type played struct {
	fx    fixture
	ok    bool
	trace []provedAnswer
}

// run plays one fixture and compares.
func (p player) run(ctx context.Context, fx fixture) (Case, played, error) {
	start := time.Now()
	g, err := p.play(ctx, fx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Case{}, played{}, fmt.Errorf("%s: %w", fx.file, err)
	}
	c := Case{
		Action: fx.action, Fixture: fx.name, File: fx.file, Path: fx.path, Line: fx.line, Era: fx.era, Layer: g.layer(),
		Want: outcomeOf(fx.want.ok, fx.want.code, fx.want.layer),
		Got:  outcomeOf(g.ok, g.code(), g.layer()),
	}
	c.Diffs = compare(fx.want, g)
	c.OK = len(c.Diffs) == 0
	c.Reason = reason(g)
	if n := len(g.trace); n > 0 && g.trace[n-1].rejection == nil {
		c.Row = g.trace[n-1].proved.Row()
	}
	c.Took = time.Since(start)
	contract, _ := p.set.Contract(fx.action)
	for i, a := range g.trace {
		g.trace[i].known, g.trace[i].named = knownTexts(p.outlines[fx.action], contract, fx.input, a.scope)
	}
	return c, played{fx, c.OK, g.trace}, nil
}

// orInput names a place of the input.
func orInput(pointer string) string {
	if pointer == "" {
		return "the input"
	}
	return "input " + pointer
}

// reason is the operator's words for a refusal, without the planted secret, with
// the fields of an input that was refused.
func reason(g got) string {
	text := ""
	switch {
	case g.rejection != nil:
		text = g.rejection.Error()
	case g.fault != nil:
		text = g.fault.Error()
		for _, f := range g.fault.Fields() {
			text += "; " + orInput(f.Pointer) + " " + f.Reason
		}
	}
	return (&comparison{g: g}).clean(text)
}
