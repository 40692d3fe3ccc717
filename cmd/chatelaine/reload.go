package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

// shortDigest is how much of a digest a table shows.
const shortDigest = 12

func (a *app) listContracts(ctx context.Context, op *client.Operator, asJSON bool) error {
	list, err := op.Contracts(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(list)
	}
	if len(list.Contracts) == 0 {
		a.note("no contract is loaded")
		return nil
	}
	var rows []row
	for _, x := range list.Contracts {
		rows = append(rows, row{cc(bold, x.Action), c(x.Version), stateCell(x.Effect), c(strings.Join(x.Targets, " ")), c(cut(x.Digest, shortDigest)), c(x.Owner), c(x.Summary)})
	}
	a.table([]string{"action", "version", "effect", "targets", "digest", "owner", "summary"}, rows)
	return nil
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

func (a *app) reloadCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let the daemon read contracts and targets.yaml again",
		Long: `Let the daemon read contracts and targets.yaml again: the whole set or nothing. It
shows what would change and asks for the operator passphrase, because new files may
widen what agents can do. Files that change in between are not loaded: look again.`,
		Example: "  chatelaine contract lint && chatelaine reload",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			fd, err := fdGiven(cmd, "proof-fd", fd)
			if err != nil {
				return err
			}
			return a.reload(cmd.Context(), fd, asJSON)
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) reload(ctx context.Context, fd int, asJSON bool) error {
	return a.withOperator(func(op *client.Operator) error {
		err := op.Reload(ctx, nil)
		if client.CodeOf(err) == client.ProofRequired {
			err = a.reloadProven(ctx, op, fd)
		}
		var told *client.Error
		if errors.As(err, &told) && told.Code == fault.InvalidArgument {
			return &failure{exit: exitUsage, cause: err, msg: tell(told),
				hints: []string{"chatelaine contract lint shows each line and the way out"}}
		}
		if err != nil {
			return err
		}
		list, err := op.Contracts(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(list)
		}
		fmt.Fprintf(a.out, "loaded: %s, set %s\n", plural(len(list.Contracts), "contract", "contracts"), printable(cut(list.Digest, shortDigest)))
		return nil
	})
}

func (a *app) reloadProven(ctx context.Context, op *client.Operator, fd int) error {
	src, err := passphraseSource("the operator passphrase", "proof-fd", fd)
	if err != nil {
		return err
	}
	defer src.close()
	return proveWith(ctx, src, operatorPrompt,
		func() (client.Challenge, error) { return op.Challenge(ctx, client.OpReload, "", nil) },
		func(p client.Proof) error { return op.Reload(ctx, &p) })
}
