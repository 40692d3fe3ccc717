package main

import (
	"context"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) identityCheckCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check NAME", Short: "Say whether an identity could be used now",
		Long: `Say whether a secret is stored for an identity and fits every target that uses it.
Nothing is sent. Exit code 1 where it could not be used.`,
		Example: "  chatelaine identity check deploy-test-bot",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.withOperator(func(op *client.Operator) error { return a.checkIdentity(cmd.Context(), op, args[0], asJSON) })
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) checkIdentity(ctx context.Context, op *client.Operator, name string, asJSON bool) error {
	x, err := op.CheckIdentity(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		if err := a.printJSON(x); err != nil {
			return err
		}
	} else {
		var rows []row
		for _, t := range x.Targets {
			word := "bound"
			if !t.Bound {
				word = "not bound"
			}
			rows = append(rows, row{cc(bold, t.Target), stateCell(word), c(dash(t.Detail))})
		}
		a.table([]string{"target", "secret", "reason"}, rows)
	}
	switch {
	case x.Usable:
		return nil
	case !x.Stored:
		return refused("identity "+name+" has no secret in the vault", "chatelaine identity put "+name)
	case x.Suspended:
		return refused("identity "+name+" is suspended: answers repeated its secret", "look at `chatelaine calls list`, then put a new secret: chatelaine identity put "+name)
	}
	return refused("identity "+name+" is bound to another destination", "if the new one is meant: chatelaine identity rebind "+name)
}
