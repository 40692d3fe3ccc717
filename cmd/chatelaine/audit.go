package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
)

func (a *app) auditCmd() *cobra.Command {
	return group("audit", "Check and read the record",
		`The record is a sealed chain. Checking it needs no key and no daemon, so that
anyone who has a copy can do it. Reading it needs one of the keys it is sealed to.`,
		"  chatelaine audit verify /var/lib/chatelaine/audit\n  chatelaine audit activity --since 2h --key recovery.key\n  chatelaine audit show act_01JABCDEFGH --key recovery.key",
		a.auditVerifyCmd(), a.auditShowCmd(), a.auditActivityCmd(), a.auditSessionsCmd(), a.auditExportCmd(), a.auditFollowCmd())
}

func (a *app) auditVerifyCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify PATH", Short: "Prove that a record was not edited",
		Long: `Prove that the records in a file, or in the whole folder, form the chain that was
written: none edited, moved or removed from within. It does not prove that
everything was recorded. It ends with 0 where the chain is whole, 1 where it is
not (the first broken sequence is named), 2 where it cannot be read.`,
		Example: "  chatelaine audit verify ~/.local/state/chatelaine/audit\n  chatelaine audit verify seg-00000000000000000001.alog --json",
		Args:    exactly("PATH"),
		RunE: do(func(_ *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil {
				return usage(fmt.Sprintf("cannot read %s: %v", args[0], plainCause(err)))
			}
			rep := auditlog.Verify(args[0])
			if asJSON {
				a.out.Write(rep.JSON())
			} else {
				fmt.Fprint(a.out, rep.Text())
			}
			switch code := rep.ExitCode(); code {
			case 0:
				return nil
			case 1:
				return refused("the record is not whole")
			default:
				return &failure{exit: code, msg: "the record cannot be read"}
			}
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
