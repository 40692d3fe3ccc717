package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/doctor"
)

// doctorFlags are those of doctor.
type doctorFlags struct {
	asJSON, online bool
	accept         string
}

func (a *app) doctorCmd() *cobra.Command {
	var o doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Try what a hostile program of your user would try",
		Long: `Try, as your user, what a hostile program of your user would try: read the daemon's
memory, files and keychain items, replace what it loads, sit on its socket. Nothing
is changed, kept or shown, and what could be attached to is let go at once. Each line
says SOLVED, PARTIAL, NOT SOLVED or NOT LOOKED AT, and below it the way out; the last
one says what such a program can still do.

It works without a daemon and with a locked vault, and says what it could not look
at. Run it as an operator, who is told most, and as the agents' user, for whom it is
meant. Nothing is refused to root, so root is shown files and settings only.

With --online it also connects from here, as your user, to each target and token
endpoint of targets.yaml, and ends after the TLS handshake: no request is sent, and
no credential is near.

It ends with 0 where everything is SOLVED, with 1 where something is not. What you
have decided to live with does not count when you name it with --accept.`,
		Example: "  chatelaine doctor\n  chatelaine doctor --online --accept proofs,yama\n  chatelaine doctor --json",
		Args:    exactly(),
		RunE:    do(func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), o) }),
	}
	jsonFlag(cmd, &o.asJSON)
	cmd.Flags().BoolVar(&o.online, "online", false, "also connect to each target, up to the TLS handshake")
	cmd.Flags().StringVar(&o.accept, "accept", "", "names of checks, with commas between, that may be other than SOLVED")
	_ = cmd.RegisterFlagCompletionFunc("accept", cobra.FixedCompletions(doctor.IDs(), cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	return cmd
}

func (a *app) doctor(ctx context.Context, o doctorFlags) error {
	accepted, err := knownChecks(o.accept)
	if err != nil {
		return err
	}
	facts, err := a.doctorFacts(ctx)
	if err != nil {
		return err
	}
	var more []doctor.Finding
	if o.online {
		more = a.online(ctx, facts.Places)
	}
	r := doctor.Run(ctx, facts.Facts, more...)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if o.asJSON {
		err = a.printJSON(doctorValue(facts, r, accepted))
	} else {
		a.printDoctor(facts, r, accepted, a.terminalWidth())
	}
	if n := len(findingsLeft(r, accepted)); err == nil && n > 0 {
		return refused(plural(n, "check is", "checks are")+" not SOLVED", "chatelaine doctor --help says what the words mean; --accept NAME leaves one out of the exit code")
	}
	return err
}

// onlinePrefix begins the names of the checks of --online, whose rest is a
// target's or an identity's name.
const (
	onlineTarget = "target."
	onlineToken  = "token."
	onlineSite   = "targets"
)

// knownChecks splits the names that were given with --accept.
func knownChecks(given string) ([]string, error) {
	if given == "" {
		return nil, nil
	}
	known := append(doctor.IDs(), onlineSite)
	names := strings.Split(given, ",")
	for _, n := range names {
		if slices.Contains(known, n) || strings.HasPrefix(n, onlineTarget) || strings.HasPrefix(n, onlineToken) {
			continue
		}
		hints := []string{"the checks are " + strings.Join(known, ", ")}
		if near := nearest(n, known); near != "" {
			hints = append([]string{"did you mean " + near + "?"}, hints...)
		}
		return nil, usage(fmt.Sprintf("there is no check %q", n), hints...)
	}
	return names, nil
}

// findingsLeft are those that count for the exit code.
func findingsLeft(r doctor.Report, accepted []string) []doctor.Finding {
	var out []doctor.Finding
	for _, f := range r.Findings {
		if f.Verdict != doctor.Solved && !slices.Contains(accepted, f.ID) {
			out = append(out, f)
		}
	}
	return out
}

// doctorJSON is what --json prints. Members may come; none changes its meaning.
type doctorJSON struct {
	System string `json:"system"`
	Mode   string `json:"mode"`
	Caller struct {
		UID    int      `json:"uid"`
		Groups []string `json:"groups"`
	} `json:"caller"`
	Daemon struct {
		Running bool   `json:"running"`
		PID     int    `json:"pid,omitzero"`
		UID     int    `json:"uid"`
		Told    bool   `json:"told"` // the operator socket answered
		Version string `json:"version,omitzero"`
	} `json:"daemon"`
	Findings []doctor.Finding       `json:"findings"`
	Accepted []string               `json:"accepted"`
	Counts   map[doctor.Verdict]int `json:"counts"`
	Still    string                 `json:"still"`
}

func doctorValue(f doctorFacts, r doctor.Report, accepted []string) doctorJSON {
	v := doctorJSON{System: doctor.System(), Mode: r.Mode, Findings: r.Findings, Accepted: append([]string{}, accepted...), Counts: r.Counts(), Still: r.Still}
	v.Caller.UID, v.Caller.Groups = f.Caller.UID, []string{}
	for _, g := range f.Caller.Groups {
		v.Caller.Groups = append(v.Caller.Groups, g.Name)
	}
	if f.Daemon != nil {
		v.Daemon.Running, v.Daemon.PID, v.Daemon.UID, v.Daemon.Told, v.Daemon.Version = true, f.Daemon.PID, f.Daemon.UID, f.Daemon.Told != nil, f.version
	}
	return v
}

func verdictColour(v doctor.Verdict) string {
	switch v {
	case doctor.Solved:
		return good
	case doctor.NotSolved:
		return bad
	}
	return warn
}

// terminalWidth is how wide a report may be at a terminal, 0 elsewhere: there a
// program or a pager decides.
func (a *app) terminalWidth() int {
	if !isTerminal(a.out) {
		return 0
	}
	return a.width()
}

// printDoctor writes two lines an attack, three with a way out, folded to the width
// where that is not 0.
func (a *app) printDoctor(f doctorFacts, r doctor.Report, accepted []string, across int) {
	what := "no daemon"
	if f.Daemon != nil {
		what = strings.TrimSpace("daemon "+f.version) + fmt.Sprintf(" of user %d", f.Daemon.UID)
	}
	fmt.Fprintf(a.out, "%s, mode %s; asked as user %d\n\n", printable(what), printable(r.Mode), f.Caller.UID)
	width, word := 0, 0
	for _, x := range r.Findings {
		width, word = max(width, len(x.ID)), max(word, len(x.Verdict.Word()))
	}
	way := ""
	for _, x := range r.Findings {
		state := a.paint(verdictColour(x.Verdict), x.Verdict.Word()) + strings.Repeat(" ", word-len(x.Verdict.Word()))
		mark := ""
		if x.Verdict != doctor.Solved && slices.Contains(accepted, x.ID) {
			mark = " (accepted)"
		}
		indent := strings.Repeat(" ", word+width+4)
		writeFolded(a.out, fmt.Sprintf("%s  %-*s  ", state, width, printable(x.ID)), indent, x.Attack+mark, across)
		if x.Detail != "" {
			writeFolded(a.out, indent, indent, x.Detail, across)
		}
		if x.WayOut != "" && x.WayOut != way { // said once, it holds for what follows
			writeFolded(a.out, indent, indent, "way out: "+x.WayOut, across)
		}
		way = x.WayOut
	}
	n := r.Counts()
	fmt.Fprintf(a.out, "\n%d solved, %d partial, %d not solved, %d not looked at\n", n[doctor.Solved], n[doctor.Partial], n[doctor.NotSolved], n[doctor.Unseen])
	writeFolded(a.out, "", "", r.Still, across)
}

// writeFolded writes a text behind a heading, its further lines behind the indent,
// which is as wide. An across of 0 folds nothing.
func writeFolded(w io.Writer, heading, indent, text string, across int) {
	lines := []string{printable(text)}
	if across > 0 {
		lines = fold(lines[0], across-len(indent), 0)
	}
	for i, line := range lines {
		if i > 0 {
			heading = indent
		}
		fmt.Fprintln(w, heading+line)
	}
}

// reachedWord says why a daemon was not reached, for a person.
func reachedWord(err error) string {
	switch {
	case errors.Is(err, client.ErrNoSocket):
		return "there is no socket"
	case errors.Is(err, client.ErrNobody):
		return "nobody listens on its socket"
	case errors.Is(err, client.ErrForbidden):
		return "permission denied"
	}
	return lowerFirst(err.Error())
}
