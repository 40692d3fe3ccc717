package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) identityShowCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show where a secret may go, and how it stands",
		Long: `Show everything about an identity but its secret: each part of what it is bound to,
what of that targets.yaml has otherwise now, the actions that use it, its last use
and failure, and why it cannot be used where that is so. Of a locked vault it shows
what targets.yaml says.`,
		Example: "  chatelaine identity show deploy-test-bot\n  chatelaine identity show deploy-test-bot --json",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.withOperator(func(op *client.Operator) error {
				d, err := findIdentity(cmd.Context(), op, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(d)
				}
				a.showIdentity(d)
				return nil
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showIdentity(d client.IdentityDetail) {
	a.pairs(identityRows(d))
	if len(d.Binding) > 0 {
		fmt.Fprintln(a.out)
		var rows []row
		for _, p := range d.Binding {
			rows = append(rows, row{cc(dimmed, p.Part), c(partText(p.Part, p.Value))})
		}
		a.table([]string{"bound to", ""}, rows)
	}
	if len(d.Differs) > 0 {
		fmt.Fprintln(a.out)
		a.differences(d.Differs)
	}
	if len(d.Actions) > 0 {
		fmt.Fprintln(a.out)
		var rows []row
		for _, x := range d.Actions {
			rows = append(rows, row{cc(bold, x.Action), c(x.Effect), c(x.Target)})
		}
		a.table([]string{"action", "effect", "target"}, rows)
	}
	a.identityHint(d)
}

// differences shows old and new, part by part.
func (a *app) differences(all []client.IdentityDifference) {
	var rows []row
	for _, x := range all {
		rows = append(rows, row{cc(bold, x.Target), cc(dimmed, x.Part), c(partText(x.Part, x.Bound)), cc(warn, partText(x.Part, x.Now))})
	}
	a.table([]string{"target", "part", "bound", "targets.yaml now"}, rows)
}

// partText is a part of a binding; what is not there has a meaning of its own.
func partText(part, value string) string {
	switch {
	case value != "":
		return value
	case strings.HasSuffix(part, "CA"):
		return "the system's roots"
	case strings.HasSuffix(part, "pins"):
		return "none"
	}
	return dash("")
}

func identityRows(d client.IdentityDetail) []row {
	l := func(label string, value cell) row { return row{cc(dimmed, label), value} }
	rows := []row{l("identity", cc(bold, d.Name)), l("kind", c(dash(d.Kind)))}
	if d.Label != "" {
		rows = append(rows, l("label", c(d.Label)))
	}
	rows = append(rows, l("state", identityState(d.Identity)))
	if d.Why != "" {
		rows = append(rows, l("because", c(d.Why)))
	}
	if d.Stored {
		rows = append(rows, l("generation", c(fmt.Sprint(d.Generation))), l("stored", c(clock(d.Updated)+", "+ago(d.Updated))))
	}
	if d.Source != "" {
		rows = append(rows, l("source", c(d.Source)))
	}
	if !d.Expires.IsZero() {
		x := expiryCell(d.Identity)
		rows = append(rows, l("expires", cell{clock(d.Expires) + ", " + x.text, x.colour}))
	}
	if !d.LastUsed.IsZero() {
		rows = append(rows, l("last use", c(clock(d.LastUsed)+", "+ago(d.LastUsed))))
	}
	if d.LastFailure != nil {
		rows = append(rows, l("last failure", failureCell(d.Identity)))
	}
	if d.Check != "" {
		rows = append(rows, l("proved by", c(d.Check)))
	}
	return append(rows, l("targets", c(dash(strings.Join(d.Targets, " ")))))
}

// identityHint names the one next step for a person.
func (a *app) identityHint(d client.IdentityDetail) {
	name := printable(d.Name)
	switch d.State {
	case "missing":
		a.note("store its secret: chatelaine identity put %s", name)
	case "suspended":
		a.note("replace it at its issuer, then: chatelaine identity rotate %s", name)
	case "bound elsewhere":
		a.note("if the new destination is meant: chatelaine identity rebind %s", name)
	case "expired", "expires soon":
		a.note("get a new one from its issuer, then: chatelaine identity rotate %s", name)
	case "not in targets.yaml":
		a.note("if it is not needed any more: chatelaine identity remove %s", name)
	case "vault locked":
		a.note("what is stored shows after chatelaine unlock")
	}
}
