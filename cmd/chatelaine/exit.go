package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

// The exit codes, as `chatelaine help exit-codes` tells them.
const (
	exitDone        = 0
	exitRefused     = 1
	exitUsage       = 2
	exitWaiting     = 3
	exitUnknown     = 4
	exitLater       = 5
	exitInterrupted = 130 // 128 + SIGINT, as shells do
)

// exitTable is the documentation of the codes; help and docs/cli.md print it.
var exitTable = []struct {
	code int
	text string
}{
	{exitDone, "done"},
	{exitRefused, "refused, or failed for good; the same again would fail again"},
	{exitUsage, "the command line or its input is wrong; nothing was done"},
	{exitWaiting, "waits for a person, or still runs; ask again with the same request id"},
	{exitUnknown, "it may or may not have happened: do not repeat it, find out first"},
	{exitLater, "try again later: locked, overloaded, not available, or no daemon there"},
	{exitInterrupted, "interrupted from the keyboard before an answer was due"},
}

var errInterrupted = errors.New("interrupted")

// failure is an error with its exit code and the way out.
type failure struct {
	exit  int
	msg   string
	hints []string
	cause error
}

func (f *failure) Error() string { return f.msg }
func (f *failure) Unwrap() error { return f.cause }

// lines are the message (more than one line where several things are wrong)
// and the hints, cleaned for a terminal.
func (f *failure) lines() []string {
	var out []string
	for _, l := range strings.Split(printableLines(f.msg), "\n") {
		out = append(out, lowerFirst(l))
	}
	for _, h := range f.hints {
		out = append(out, "hint: "+printable(h))
	}
	return out
}

// usage is a wrong command line or wrong input.
func usage(msg string, hints ...string) error {
	return &failure{exit: exitUsage, msg: msg, hints: hints}
}

// refused is a failure for good.
func refused(msg string, hints ...string) error {
	return &failure{exit: exitRefused, msg: msg, hints: hints}
}

// asFailure gives every error an exit code. What the command line parser
// returns was not classified: it is usage.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		c := *f
		return &c
	}
	return &failure{exit: exitUsage, msg: lowerFirst(err.Error()), hints: []string{"see chatelaine help"}, cause: err}
}

// classify maps what the client returns to exit codes and hints.
func classify(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return err
	}
	var stranger *client.StrangerError
	if errors.As(err, &stranger) {
		return &failure{exit: exitRefused, cause: err, msg: stranger.Error(),
			hints: []string{"if the daemon runs as that user on purpose, say so: --daemon-user NAME or " + envDaemonUser}}
	}
	var gone *client.UnreachableError
	if errors.As(err, &gone) {
		return unreachable(gone)
	}
	var told *client.Error
	if errors.As(err, &told) {
		return &failure{exit: exitOf(told.Code, told.Retryable, false), cause: err, msg: tell(told), hints: hintsFor(told)}
	}
	var reply *client.ReplyError
	if errors.As(err, &reply) {
		return &failure{exit: exitRefused, cause: err, msg: reply.Error(),
			hints: []string{"are chatelaine and chatelained of the same release? see chatelaine version and chatelaine status"}}
	}
	if errors.Is(err, context.Canceled) {
		return &failure{exit: exitInterrupted, msg: "interrupted", cause: err}
	}
	return &failure{exit: exitRefused, msg: lowerFirst(err.Error()), cause: err}
}

func unreachable(e *client.UnreachableError) error {
	f := &failure{exit: exitLater, msg: e.Error(), cause: e}
	switch {
	case errors.Is(e, context.Canceled):
		f.exit, f.msg = exitInterrupted, "interrupted"
	case errors.Is(e, client.ErrForbidden):
		f.exit = exitRefused
		f.hints = []string{"operators use operator.sock, agents agent.sock; ask who runs the daemon to add your user"}
	case errors.Is(e, client.ErrNoSocket), errors.Is(e, client.ErrNobody):
		f.hints = []string{"start it with chatelained serve, or name its runtime folder with --runtime or " + client.EnvRuntime}
	}
	return f
}

// exitOf is the exit code of a daemon's code. change says that the call may
// have changed something once it was sent.
func exitOf(code fault.Code, retryable, change bool) int {
	switch code {
	case fault.InvalidArgument, fault.UnknownAction:
		return exitUsage
	case fault.ApprovalRequired, fault.InProgress, fault.SessionPending:
		return exitWaiting
	case fault.OutcomeUnknown:
		return exitUnknown
	case fault.InvalidResponse, fault.Internal:
		if change {
			return exitUnknown
		}
		return exitRefused
	case fault.VaultLocked, client.ProofTooSoon, client.ChallengeExpired, fault.Overloaded, fault.AuditUnavailable:
		return exitLater
	}
	if retryable {
		return exitLater
	}
	return exitRefused
}

func hintsFor(e *client.Error) []string {
	var out []string
	switch e.Code {
	case fault.VaultLocked:
		out = append(out, "an operator opens it with chatelaine unlock")
	case client.ProofRefused:
		out = append(out, "this wants the operator passphrase, which is not the vault's")
	case client.ProofTooSoon:
		out = append(out, "were these tries not yours? chatelaine unlock with the vault's passphrase sets the count of wrong proofs back, and chatelaine unlock --recovery-code is not held up by wrong passphrases")
	case client.ProofRequired:
		out = append(out, "give the operator passphrase at a terminal or with --proof-fd N")
	case client.ChallengeExpired:
		out = append(out, "run the command again: it gets a new challenge")
	case fault.SessionRevoked:
		out = append(out, "run the command again to ask for a new session")
	case fault.AuditUnavailable:
		out = append(out, "see chatelaine status for what stops the record; nothing is sent while it cannot be written")
	case fault.UnknownAction:
		out = append(out, "see chatelaine actions")
	}
	if e.RetryAfter > 0 {
		out = append(out, fmt.Sprintf("try again in %d s", int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	return out
}

// tell is the daemon's sentence and, below it, each field that is wrong.
func tell(e *client.Error) string {
	lines := []string{e.Error()}
	if e.Code == fault.InvalidArgument && e.Detail != "" {
		lines = strings.Split(e.Error(), "\n") // a list of mistakes
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	for _, f := range e.Fields {
		if e.Detail != "" && strings.Contains(e.Detail, f.Reason) {
			continue // said already
		}
		lines = append(lines, printable(fieldText(f)))
	}
	return strings.Join(lines, "\n")
}

func fieldText(f fault.Field) string {
	where := f.Pointer
	if where == "" {
		where = "the input"
	}
	return where + ": " + f.Reason
}

// lowerFirst makes library messages fit the program's own style.
func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && !(s[1] >= 'A' && s[1] <= 'Z') {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
