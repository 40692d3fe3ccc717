package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) identityRemoveCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"delete"}, Short: "Remove a secret from the vault",
		Long: `Remove the secret of an identity from the vault. What works no more without it is
shown before the operator passphrase is asked: those actions then answer
IDENTITY_UNAVAILABLE. At its issuer the secret goes on working until it is revoked
there.`,
		Example: "  chatelaine identity remove deploy-test-bot",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return a.proveRun(cmd, fd, &provenRun{
				operation: client.OpIdentityDelete, subject: name,
				look: func(ctx context.Context, op *client.Operator, _ *passSource) error {
					x, err := writable(ctx, op, name)
					if err == nil && !x.Stored {
						err = refused("identity "+name+" has no secret in the vault; there is nothing to remove", "to take the name away too, edit targets.yaml")
					}
					return err
				},
				use: func(op *client.Operator, p client.Proof) error {
					if err := op.DeleteIdentity(cmd.Context(), name, p); err != nil {
						return err
					}
					return a.changed(asJSON, "name", name, "deleted")
				},
			})
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) identityRebindCmd() *cobra.Command {
	var asJSON bool
	var target string
	fd := -1
	cmd := &cobra.Command{
		Use: "rebind NAME", Short: "Bind a stored secret to the destination that targets.yaml names now",
		Long: `Bind a stored secret to the destination that targets.yaml names now. Until then a
changed destination is refused as TARGET_NOT_ALLOWED. Old and new are shown, part by
part, before the passphrase is asked. Look at the new ones: from now on the secret
goes there.`,
		Example: "  chatelaine identity rebind deploy-test-bot\n  chatelaine identity rebind deploy-test-bot --target deploy-test",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return a.proveRun(cmd, fd, &provenRun{
				operation: client.OpIdentityRebind, subject: name, of: client.TargetParams(target),
				look: func(ctx context.Context, op *client.Operator, src *passSource) error {
					x, err := writable(ctx, op, name)
					if err == nil && src.interactive() {
						a.showChange(src, x, target)
					}
					return err
				},
				use: func(op *client.Operator, p client.Proof) error {
					s, err := op.RebindIdentity(cmd.Context(), name, target, p)
					if err != nil {
						return err
					}
					return a.stored(s, "rebound", asJSON)
				},
			})
		}),
	}
	cmd.Flags().StringVar(&target, "target", "", "the target to bind to, where several use this identity")
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// showChange writes old and new to the terminal, since standard output may be
// for a program.
func (a *app) showChange(src *passSource, x client.IdentityDetail, target string) {
	var rows []row
	for _, d := range x.Differs {
		if target == "" || d.Target == target {
			rows = append(rows, row{cc(dimmed, d.Part), c(partText(d.Part, d.Bound)), cc(warn, partText(d.Part, d.Now))})
		}
	}
	if len(rows) == 0 {
		return
	}
	head := row{cc(dimmed, "part"), cc(dimmed, "bound"), cc(dimmed, "targets.yaml now")}
	writeTable(src.tty, a.colour, append([]row{head}, rows...), "")
}

// fillIn puts the identity's name and the call's id into a hint.
func fillIn(text, name, id string) string {
	return strings.NewReplacer("NAME", name, "ID", id).Replace(text)
}
