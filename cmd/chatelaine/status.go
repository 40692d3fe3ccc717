package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) statusCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the daemon is",
		Long: `Show the daemon at one glance: vault, contracts, record, what waits for a person,
and where it listens. It reads the operator socket; a user who may not use that
socket is shown only what every agent may know.`,
		Example: "  chatelaine status\n  chatelaine status --json",
		Args:    exactly(),
		RunE:    do(func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context(), asJSON) }),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) status(ctx context.Context, asJSON bool) error {
	return a.withOperator(func(op *client.Operator) error {
		s, err := op.Status(ctx)
		if errors.Is(err, client.ErrForbidden) {
			return a.health(ctx, asJSON, err)
		}
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(s)
		}
		a.pairs(statusRows(s))
		for _, p := range s.Contracts.Problems {
			a.note("contracts: %s", printable(p))
		}
		for _, p := range s.Identities.Problems {
			a.note("identity %s", printable(p))
		}
		a.nextSteps(s)
		return nil
	})
}

// health is what an agent may know; cause is why the operator's view is closed.
func (a *app) health(ctx context.Context, asJSON bool, cause error) error {
	r, err := a.agentRun(agentFlags{})
	if err != nil {
		return cause
	}
	defer r.agent.Close()
	h, err := r.agent.Health(ctx)
	if err != nil {
		return cause
	}
	if asJSON {
		return a.printJSON(h)
	}
	a.pairs([]row{{cc(dimmed, "vault"), stateCell(h.Vault)}, {cc(dimmed, "contracts"), c(fmt.Sprint(h.Contracts))}})
	a.note("this is the agents' view: your user may not use the operator socket")
	return nil
}

func statusRows(s client.Status) []row {
	l := func(label string, state cell, more string) row { return row{cc(dimmed, label), state, c(more)} }
	rows := []row{
		l("daemon", cc(good, "up"), fmt.Sprintf("%s, mode %s, since %s", s.Version, s.Mode, clock(s.StartedAt))),
		l("vault", stateCell(s.Vault.State), vaultText(s.Vault)),
		l("contracts", c(fmt.Sprintf("%d loaded", s.Contracts.Loaded)), plural(len(s.Contracts.Problems), "problem", "problems")),
		l("record", stateCell(s.Record.State), fmt.Sprintf("next sequence %d, epoch %d", s.Record.NextSeq, s.Record.Epoch)),
		l("approvals", countCell(s.Approvals.Open, "open"), ""),
		l("sessions", countCell(s.Sessions.Pending, "pending"), fmt.Sprintf("%d authorised", s.Sessions.Authorised)),
		l("calls", countCell(s.Calls.Unresolved, "unresolved"), fmt.Sprintf("%d running", s.Calls.Running)),
	}
	if len(s.Vault.Sources) > 0 {
		rows = append(rows, l("sources", c(fmt.Sprint(len(s.Vault.Sources))), sourceNames(s.Vault.Sources)))
	}
	for _, x := range s.Listeners {
		rows = append(rows, l("listener "+x.Name, stateCell(x.State), x.Address))
	}
	return rows
}

// vaultText leaves the identities out of a vault that is shut: nobody can count
// them.
func vaultText(v client.VaultStatus) string {
	text := fmt.Sprintf("backend %s, rollback %s", dash(v.Backend), dash(v.Rollback))
	if v.State != "open" {
		if v.Reason != "" {
			text += "; " + v.Reason + ", since " + clock(v.Since)
		}
		return text
	}
	if v.AutoLock != "" {
		text += ", locks " + v.AutoLock
	}
	return plural(v.Identities, "identity", "identities") + ", " + text
}

func countCell(n int, word string) cell {
	if n == 0 {
		return c("0 " + word)
	}
	return cc(warn, fmt.Sprintf("%d %s", n, word))
}

// nextSteps tells a tired person what wants them.
func (a *app) nextSteps(s client.Status) {
	if s.Vault.State != "open" {
		a.note("the vault is %s: chatelaine unlock", printable(s.Vault.State))
	}
	for _, x := range s.Vault.Unattended {
		a.note("the vault opens without a person at the daemon's start: %s slot %s, %s", printable(x.Kind), printable(shortID(x)), printable(x.Detail))
	}
	for _, x := range s.Vault.Sources {
		a.sourceNote(x)
	}
	if s.Approvals.Open > 0 {
		a.note("%s for a decision: chatelaine approvals", plural(s.Approvals.Open, "card waits", "cards wait"))
	}
	if s.Sessions.Pending > 0 {
		a.note("%s for a decision: chatelaine session list", plural(s.Sessions.Pending, "session waits", "sessions wait"))
	}
	if s.Calls.Unresolved > 0 {
		a.note("%s: chatelaine calls list --unresolved", plural(s.Calls.Unresolved, "call may or may not have happened", "calls may or may not have happened"))
	}
	if n := len(s.Calls.Damaged); n > 0 {
		a.note("%s cannot be read (%s): find the call in the record and look at the remote system; it is never sent again", plural(n, "entry of the ledger", "entries of the ledger"), printable(strings.Join(s.Calls.Damaged, ", ")))
	}
	if s.Record.Warning != "" {
		a.note("record: %s", printable(s.Record.Warning))
	}
	if s.Record.State == "latched" {
		a.note("the record cannot be written, so nothing is sent; free the disk and restart the daemon")
	}
}
