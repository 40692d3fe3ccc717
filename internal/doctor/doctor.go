// Package doctor tries, as whoever calls it, what a hostile program of that user
// would try on an installation: read the daemon's memory, replace its files, sit
// on its socket. It says of each whether it is solved, and the way out.
//
// It must never do harm: what it can open it closes at once, what it can attach
// to it lets go, what it can read it neither keeps nor shows. It opens no
// connection outward, and holds no secret of its own. Only cmd/chatelaine
// imports it.
package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Verdict is what became of one attack.
type Verdict string

// The verdicts, as --json writes them. What could not be looked at is none of
// the others: silence never means that it is well.
const (
	Solved    Verdict = "solved"
	Partial   Verdict = "partial"
	NotSolved Verdict = "not_solved"
	Unseen    Verdict = "not_looked_at"
)

// Word is the verdict for a person.
func (v Verdict) Word() string {
	switch v {
	case Solved:
		return "SOLVED"
	case Partial:
		return "PARTIAL"
	case NotSolved:
		return "NOT SOLVED"
	}
	return "NOT LOOKED AT"
}

// The modes of an installation (docs/threat-model.md). Unknown is where nobody
// told and nothing shows.
const (
	ModeIsolated = "isolated"
	ModeShared   = "shared-operator"
	ModeSame     = "same-user"
	ModeUnknown  = "unknown"
)

// Finding is one attack and what became of it. ID is stable.
type Finding struct {
	ID      string  `json:"id"`
	Verdict Verdict `json:"verdict"`
	Attack  string  `json:"attack"`            // what an enemy would do
	Detail  string  `json:"detail"`            // what was seen
	WayOut  string  `json:"way_out,omitempty"` // what to do about it

	still string // what an enemy can still do, as words after "can still"
}

// Still adds what an enemy can do as long as the finding stands.
func (f Finding) Still(words string) Finding { f.still = words; return f }

// Report is all of it.
type Report struct {
	Mode     string
	Findings []Finding
	Still    string // one sentence: what a hostile program of the caller's user can still do
}

// Counts says how many findings have each verdict.
func (r Report) Counts() map[Verdict]int {
	n := map[Verdict]int{Solved: 0, Partial: 0, NotSolved: 0, Unseen: 0}
	for _, f := range r.Findings {
		n[f.Verdict]++
	}
	return n
}

// check is one question; it may have several findings, or none where it does not
// apply.
type check struct {
	ids []string
	run func(context.Context, *exam) []Finding
}

// checks are asked in this order, the most telling first.
func checks() []check {
	all := []check{
		{[]string{"mode"}, one((*exam).modeFinding)},
		{[]string{"user"}, one((*exam).user)},
		{[]string{"operator-socket"}, one((*exam).operatorSocket)},
		{[]string{"socket-owner"}, one((*exam).socketOwner)},
		{[]string{"port-owner"}, one((*exam).portOwner)},
		{pathIDs(), func(_ context.Context, e *exam) []Finding { return e.paths() }},
		{[]string{"vault-read"}, one((*exam).vaultRead)},
	}
	all = append(all, systemChecks()...)
	return append(all,
		check{[]string{"groups"}, one((*exam).groups)},
		check{[]string{"caller-environment"}, one((*exam).callerEnvironment)},
		check{[]string{"daemon-environment"}, one((*exam).daemonEnvironment)},
		check{[]string{"proofs"}, one((*exam).proofs)},
		check{[]string{"unattended"}, one((*exam).unattended)},
		check{[]string{"rollback"}, one((*exam).rollback)},
		check{[]string{"keychain"}, func(ctx context.Context, e *exam) []Finding { return []Finding{e.keychain(ctx)} }},
		check{[]string{"disk"}, one((*exam).disk)},
	)
}

func one(f func(*exam) Finding) func(context.Context, *exam) []Finding {
	return func(_ context.Context, e *exam) []Finding { return []Finding{f(e)} }
}

// IDs are the checks of this system in their order.
func IDs() []string {
	var out []string
	for _, c := range checks() {
		out = append(out, c.ids...)
	}
	return out
}

// exam is one run.
type exam struct {
	Facts
	mode  string
	proc  string   // where the kernel shows processes; another folder in tests
	doors []string // rootSockets; others in tests
}

// Run asks everything that can be asked. more are findings of the caller's own,
// put at the end.
func Run(ctx context.Context, f Facts, more ...Finding) Report {
	e := &exam{Facts: f, proc: "/proc", doors: rootSockets}
	return e.report(ctx, more)
}

func (e *exam) report(ctx context.Context, more []Finding) Report {
	e.mode = e.findMode()
	r := Report{Mode: e.mode}
	for _, c := range checks() {
		r.Findings = append(r.Findings, c.run(ctx, e)...)
	}
	r.Findings = append(r.Findings, more...)
	r.Still = e.still(r.Findings)
	return r
}

// still is the last line: what is left to an enemy, in one sentence.
func (e *exam) still(all []Finding) string {
	var can []string
	for _, f := range all {
		if f.still != "" && !slices.Contains(can, f.still) {
			can = append(can, f.still)
		}
	}
	unseen := 0
	for _, f := range all {
		if f.Verdict == Unseen {
			unseen++
		}
	}
	s := "A hostile program of " + e.whose() + " can still "
	if e.mode == ModeSame {
		s = "NOT ISOLATED: a hostile program of " + e.whose() + " can still "
	}
	if len(can) == 0 {
		s += "ask for what contracts and approvals permit, and no more that was found"
	} else {
		s += andList(can)
	}
	switch unseen {
	case 0:
		return s + "."
	case 1:
		return s + "; one thing was not looked at."
	}
	return fmt.Sprintf("%s; %d things were not looked at.", s, unseen)
}

// whose names the user whom the report is about.
func (e *exam) whose() string {
	if e.bystander() {
		return "an agent's user"
	}
	return "your user"
}

func andList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// unseen is a finding for what could not be looked at.
func unseen(id, attack, why, way string) Finding {
	return Finding{ID: id, Verdict: Unseen, Attack: attack, Detail: why, WayOut: way}
}

// System names where the doctor runs.
func System() string { return runtime.GOOS }

// isRoot says that nothing is refused to the caller, so that trying proves nothing.
func (e *exam) isRoot() bool { return e.Caller.UID == 0 }

const (
	asAgent   = "run chatelaine doctor as the agents' user too: nothing is refused to root"
	ownUser   = "run the daemon as its own user, with files of root: docs/operations.md, \"As a system service on Linux\""
	startIt   = "start the daemon and ask again"
	asOwner   = "ask again as an operator: only the operator socket tells it"
	rootTries = "you are root, to whom nothing is refused"
	ownTries  = "you are the daemon's own user, and no agent is"
	theUnit   = "install the unit: docs/operations.md, \"As a system service on Linux\""
)

// exists says whether something is at path, links not followed.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
