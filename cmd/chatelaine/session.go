package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

func (a *app) sessionCmd() *cobra.Command {
	return group("session", "Open and decide about agent sessions",
		`An agent run begins with a session that the operator authorises once. The agent's
side: start and end. The operator's side: list, authorize and revoke.`,
		"  chatelaine session list\n  chatelaine session authorize ses_01JABCDEFGH",
		a.sessionListCmd(), a.sessionAuthorizeCmd(), a.sessionRevokeCmd(), a.sessionStartCmd(), a.sessionEndCmd())
}

func (a *app) sessionListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List agent sessions",
		Long:    "List agent sessions with their pairing codes and what is asked for.",
		Example: "  chatelaine session list\n  chatelaine session list --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error { return a.listSessions(cmd.Context(), op, asJSON) })
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) listSessions(ctx context.Context, op *client.Operator, asJSON bool) error {
	list, err := op.Sessions(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"sessions": list})
	}
	if len(list) == 0 {
		a.note("no agent has a session")
		return nil
	}
	var rows []row
	for _, s := range list {
		state := s.State
		if s.Conflict {
			state += " (conflict)"
		}
		rows = append(rows, row{c(s.ID), cc(bold, s.Name), cell{printable(state), stateColour(s.State)}, c(dash(s.PairingCode)), c(left(s.ExpiresAt)), c(who(s))})
	}
	a.table([]string{"session", "agent", "state", "pairing code", "lapses", "who"}, rows)
	return nil
}

// findSession takes a session's id or, for one that waits, its pairing code as
// the agent shows it.
func findSession(ctx context.Context, op *client.Operator, id string) (client.Session, error) {
	list, err := op.Sessions(ctx)
	if err != nil {
		return client.Session{}, err
	}
	var byCode []client.Session
	for _, s := range list {
		if s.ID == id {
			return s, nil
		}
		if s.State == "pending" && s.PairingCode != "" && strings.EqualFold(s.PairingCode, id) {
			byCode = append(byCode, s)
		}
	}
	switch len(byCode) {
	case 1:
		return byCode[0], nil
	case 0:
		return client.Session{}, refused(fmt.Sprintf("there is no session %q (%s)", id, fault.NotFound),
			"a session that waits lapses after ten minutes", "see chatelaine session list")
	}
	return client.Session{}, refused("several sessions show this pairing code; give the session's id", "see chatelaine session list")
}

func (a *app) sessionAuthorizeCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "authorize ID", Short: "Let an agent's session act",
		Long: `Show who asks and what the session would be allowed without further asking, then
authorise it with the operator passphrase. Compare the pairing code with the one
that the agent shows. ID is the session's id or its pairing code.`,
		Example: "  chatelaine session authorize ses_01JABCDEFGH\n  chatelaine session authorize ses_01JABCDEFGH --proof-fd 3 3<passphrase-file",
		Args:    exactly("ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			fd, err := fdGiven(cmd, "proof-fd", fd)
			if err != nil {
				return err
			}
			return a.authorize(cmd.Context(), args[0], fd, asJSON)
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) authorize(ctx context.Context, id string, fd int, asJSON bool) error {
	src, err := passphraseSource("the operator passphrase", "proof-fd", fd)
	if err != nil {
		return err
	}
	defer src.close()
	return a.withOperator(func(op *client.Operator) error {
		s, err := findSession(ctx, op, id)
		if err != nil {
			return err
		}
		if s.State != "pending" {
			return refused(fmt.Sprintf("session %s is already %s; nothing was done", s.ID, s.State))
		}
		w, colour := a.cardWriter(src, asJSON)
		writeSession(w, colour, s)
		err = proveWith(ctx, src, operatorPrompt,
			func() (client.Challenge, error) { return op.Challenge(ctx, client.OpAuthorize, s.ID, nil) },
			func(p client.Proof) error { return op.Authorize(ctx, s.ID, p) })
		if err != nil {
			return err
		}
		return a.changed(asJSON, "session_id", s.ID, "authorised")
	})
}

// writeSession shows what a person decides about.
func writeSession(w io.Writer, colour bool, s client.Session) {
	fmt.Fprintln(w, paintIf(colour, bold, printable("Let agent "+s.Name+" act in a session")))
	rows := []row{
		{c("Pairing code:"), cc(bold, s.PairingCode)},
		{c("Requested by:"), c(who(s))},
		{c("Session:"), c(s.ID + ", lapses " + left(s.ExpiresAt))},
	}
	if s.Conflict {
		rows = append(rows, row{cc(warn, "Conflict:"), c("another session holds this name; authorising this one ends it")})
	}
	writeTable(w, colour, rows, "  ")
	if len(s.Permits) == 0 {
		fmt.Fprintln(w, "  It would be allowed to read; every change is asked about each time.")
		return
	}
	fmt.Fprintln(w, "  It would be allowed, without asking again:")
	var permits []row
	for _, p := range s.Permits {
		permits = append(permits, row{c(p.Action), c(p.Sentence), c("on " + p.Target), c("as " + dash(p.Identity))})
	}
	writeTable(w, colour, permits, "    ")
}

// changed prints one line, or one JSON value, about a thing that has a new
// state.
func (a *app) changed(asJSON bool, key, id, state string) error {
	if asJSON {
		return a.printJSON(map[string]string{key: id, "state": state})
	}
	fmt.Fprintf(a.out, "%s: %s\n", printable(id), printable(state))
	return nil
}

func (a *app) sessionRevokeCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "End an agent's session",
		Long:    "End an agent's session. No passphrase is asked: this only narrows. What waits for a person is withdrawn; what was sent goes on.",
		Example: "  chatelaine session revoke ses_01JABCDEFGH",
		Args:    exactly("ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.withOperator(func(op *client.Operator) error {
				s, err := findSession(cmd.Context(), op, args[0])
				if err != nil {
					return err
				}
				if err := op.Revoke(cmd.Context(), s.ID); err != nil {
					return err
				}
				return a.changed(asJSON, "session_id", s.ID, "revoked")
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) sessionStartCmd() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use: "start", Short: "Ask for a session, as an agent",
		Long: `Ask for a session and print its pairing code. Where one is stored already, print
its state. It ends with exit code 3 while the operator has not decided.`,
		Example: "  chatelaine session start --agent build-worker\n  chatelaine session start --wait 5m",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			r, err := a.agentRun(f)
			if err != nil {
				return err
			}
			defer r.agent.Close()
			var s client.SessionState
			err = r.in(cmd.Context(), func() error { s, err = r.authorised(cmd.Context()); return err })
			if err != nil {
				return err
			}
			if f.json {
				return a.printJSON(s)
			}
			fmt.Fprintf(a.out, "%s: %s, lapses %s\n", printable(s.ID), printable(s.State), left(s.ExpiresAt))
			return nil
		}),
	}
	f.add(cmd, true)
	jsonFlag(cmd, &f.json)
	return cmd
}

// authorised is the session's state; one that waits is SESSION_PENDING, so that
// it is treated as in a call.
func (r *agentRun) authorised(ctx context.Context) (client.SessionState, error) {
	s, err := r.agent.Session(ctx)
	if err == nil && s.State == "pending" {
		err = &client.Error{Code: fault.SessionPending, Message: "The operator has not decided about this session yet.", Retryable: true}
	}
	return s, err
}

func (a *app) sessionEndCmd() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use: "end", Short: "End the own session, as an agent",
		Long:    "End the session of this agent and forget its token.",
		Example: "  chatelaine session end --agent build-worker",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			r, err := a.agentRun(f)
			if err != nil {
				return err
			}
			defer r.agent.Close()
			if r.saved.Token == "" {
				return refused(fmt.Sprintf("agent %s has no session here", r.name))
			}
			if err := r.agent.EndSession(cmd.Context()); err != nil && !alreadyOver(err) {
				return err
			}
			id := r.saved.SessionID
			if err := r.forget(); err != nil {
				return err
			}
			return a.changed(f.json, "session_id", id, "ended")
		}),
	}
	f.add(cmd, false)
	jsonFlag(cmd, &f.json)
	return cmd
}

// alreadyOver says that the daemon no longer knows the session: it ended before.
func alreadyOver(err error) bool {
	code := client.CodeOf(err)
	return code == fault.SessionRequired || code == fault.SessionRevoked
}
