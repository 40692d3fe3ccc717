package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

const cardOpen = "open"

func (a *app) approvalsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "approvals [ID]",
		Short: "List the cards that wait for a decision",
		Long: `List the cards that wait for a decision, or show one in full. ID is the card's id
or the request id of its call.`,
		Example: "  chatelaine approvals\n  chatelaine approvals act_01JABCDEFGH\n  chatelaine approvals --json",
		Args:    between(0, "ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.withOperator(func(op *client.Operator) error {
				if len(args) == 1 {
					return a.showCard(cmd.Context(), op, args[0], asJSON)
				}
				return a.listCards(cmd.Context(), op, asJSON)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) listCards(ctx context.Context, op *client.Operator, asJSON bool) error {
	cards, err := op.Approvals(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"approvals": cards})
	}
	if len(cards) == 0 {
		a.note("nothing waits for a decision")
		return nil
	}
	var rows []row
	for _, x := range cards {
		rows = append(rows, row{c(x.ID), stateCell(x.State), c(left(x.ExpiresAt)), c(x.RequestedBy), cc(bold, x.Sentence)})
	}
	a.table([]string{"card", "state", "lapses", "requested by", "sentence"}, rows)
	return nil
}

func (a *app) showCard(ctx context.Context, op *client.Operator, id string, asJSON bool) error {
	card, err := findCard(ctx, op, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(card)
	}
	writeCard(a.out, a.colour, card)
	return nil
}

// findCard takes the id of a card or of its call: the agent shows the latter.
// Where several cards name one call, the open one is meant.
func findCard(ctx context.Context, op *client.Operator, id string) (client.Card, error) {
	card, err := op.Approval(ctx, id)
	if client.CodeOf(err) != fault.NotFound {
		return card, err
	}
	cards, listErr := op.Approvals(ctx)
	if listErr != nil {
		return card, listErr
	}
	found := client.Card{}
	for _, x := range cards {
		if x.RequestID == id && (found.ID == "" || x.State == cardOpen) {
			found = x
		}
	}
	if found.ID == "" {
		return found, refused(fmt.Sprintf("there is no card for %q (%s)", id, fault.NotFound),
			"it may have lapsed, or a lock or a restart withdrew it: the agent asks again", "see chatelaine approvals")
	}
	return found, nil
}

// writeCard shows what a person decides about: the sentence, the daemon's own
// line under it, the shown values, who asks.
func writeCard(w io.Writer, colour bool, x client.Card) {
	fmt.Fprintln(w, paintIf(colour, bold, printable(x.Sentence)))
	if x.DaemonLine != "" {
		fmt.Fprintln(w, "  "+printable(x.DaemonLine))
	}
	var rows []row
	for _, l := range x.Lines {
		rows = append(rows, row{c(l.Label + ":"), c(l.Value)})
	}
	rows = append(rows, row{c("Requested by:"), c(x.RequestedBy)})
	for _, e := range x.Exceptions {
		rows = append(rows, row{cc(warn, "Exception:"), c(e)})
	}
	rows = append(rows, row{c("Card:"), c(x.ID + ", " + x.State)}, row{c("Request:"), c(x.RequestID)})
	if x.State == cardOpen {
		rows = append(rows, row{c("Lapses:"), c(left(x.ExpiresAt))})
	}
	writeTable(w, colour, rows, "  ")
}

func (a *app) approveCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve one card",
		Long: `Show one card and approve it with the operator passphrase. The passphrase is the
only question. The daemon then sends exactly what the card shows, once. ID is the
card's id or the request id that the agent printed.`,
		Example: "  chatelaine approve act_01JABCDEFGH\n  chatelaine approve apr_01JABCDEFGH --proof-fd 3 3<passphrase-file",
		Args:    exactly("ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			fd, err := fdGiven(cmd, "proof-fd", fd)
			if err != nil {
				return err
			}
			return a.approve(cmd.Context(), args[0], fd, asJSON)
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

const operatorPrompt = "operator passphrase: "

func (a *app) approve(ctx context.Context, id string, fd int, asJSON bool) error {
	src, err := passphraseSource("the operator passphrase", "proof-fd", fd)
	if err != nil {
		return err
	}
	defer src.close()
	return a.withOperator(func(op *client.Operator) error {
		card, err := findCard(ctx, op, id)
		if err != nil {
			return err
		}
		if card.State != cardOpen {
			return refused(fmt.Sprintf("card %s is already %s; nothing was done", card.ID, card.State))
		}
		w, colour := a.cardWriter(src, asJSON)
		writeCard(w, colour, card)
		err = proveWith(ctx, src, operatorPrompt,
			func() (client.Challenge, error) { return op.ApprovalChallenge(ctx, card.ID) },
			func(p client.Proof) error { card, err = approveKeeping(ctx, op, card, p); return err })
		if err != nil {
			return err
		}
		return a.decided(card, "approved", asJSON)
	})
}

// approveKeeping keeps the card that was shown where the daemon refuses.
func approveKeeping(ctx context.Context, op *client.Operator, card client.Card, p client.Proof) (client.Card, error) {
	next, err := op.Approve(ctx, card.ID, p)
	if err != nil {
		return card, err
	}
	return next, nil
}

// cardWriter is where a person sees what they decide about: the terminal that
// asks for the passphrase, whatever standard output is.
func (a *app) cardWriter(src *passSource, asJSON bool) (io.Writer, bool) {
	switch {
	case src.interactive():
		return src.tty, wantsColour(src.tty, a.getenv)
	case asJSON:
		return a.err, false
	}
	return a.out, a.colour
}

func (a *app) decided(card client.Card, word string, asJSON bool) error {
	if asJSON {
		return a.printJSON(card)
	}
	if card.State != "" && card.State != word && card.State != "spent" {
		word += ", now " + card.State
	}
	fmt.Fprintf(a.out, "%s: %s (request %s)\n", printable(card.ID), printable(word), printable(card.RequestID))
	return nil
}

func (a *app) denyCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "Deny one card",
		Long: `Deny one card. No passphrase is asked: saying no only narrows. ID is the card's id
or the request id that the agent printed.`,
		Example: "  chatelaine deny act_01JABCDEFGH",
		Args:    exactly("ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.withOperator(func(op *client.Operator) error {
				card, err := findCard(cmd.Context(), op, args[0])
				if err != nil {
					return err
				}
				denied, err := op.Deny(cmd.Context(), card.ID)
				if err != nil {
					return err
				}
				return a.decided(denied, "denied", asJSON)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// who is one line about an agent run: the daemon's label where it has one.
func who(s client.Session) string {
	text := s.Process
	if text == "" {
		text = fmt.Sprintf("uid %d", s.UID)
	}
	if s.Listener != "" {
		text += ", over " + s.Listener
	}
	return text
}
