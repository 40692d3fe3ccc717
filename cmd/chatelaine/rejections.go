package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) rejectionsCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "rejections", Short: "Count refused answers by action and rule",
		Long: `Count the answers that were refused since the daemon started, by action and rule,
the most frequent first: a remote system that changed shows at the top. The last
call is for chatelaine audit show. It needs the operator passphrase and is recorded.`,
		Example: "  chatelaine rejections\n  chatelaine rejections --json --proof-fd 3 3<passphrase-file",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.proven(cmd, fd, client.OpRead, "", nil, func(op *client.Operator, p client.Proof) error {
				if err := op.OpenRead(cmd.Context(), p); err != nil {
					return err
				}
				return a.rejections(cmd.Context(), op, asJSON)
			})
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) rejections(ctx context.Context, op *client.Operator, asJSON bool) error {
	list, err := op.Rejections(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if list == nil {
			list = []client.Rejection{}
		}
		return a.printJSON(map[string]any{"rejections": list})
	}
	if len(list) == 0 {
		a.note("no answer was refused since the daemon started")
		return nil
	}
	var rows []row
	for _, x := range list {
		rows = append(rows, row{cc(bold, x.Action), cc(warn, x.Rule), c(strconv.Itoa(x.Count)), c(clock(x.Last)), c(dash(x.Version)), c(dash(x.Owner)), c(x.RequestID)})
	}
	a.table([]string{"action", "rule", "count", "last", "version", "owner", "last call"}, rows)
	return nil
}
