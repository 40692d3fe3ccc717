package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

func (a *app) identityCmd() *cobra.Command {
	return group("identity", "Store, prove and replace secrets; never read them",
		`An identity is a name in targets.yaml; its secret is in the vault, bound to one
destination. Secrets go in and never come out. list and show tell how each stands,
check proves one, rotate replaces one once the new secret is proved.`,
		"  chatelaine identity list\n  chatelaine identity put deploy-test-bot",
		a.identityListCmd(), a.identityShowCmd(), a.identityCheckCmd(), a.identityPutCmd(), a.identityRotateCmd(),
		a.identityRebindCmd(), a.identityRemoveCmd())
}

func (a *app) identityListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List identities and how each stands",
		Long: `List identities: what each is, whether its secret can be used, how old that is, when
it was last used, how a use last failed, and when it expires. Where a secret may go
is in identity show. Times of use are kept once a minute.`,
		Example: "  chatelaine identity list\n  chatelaine identity list --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error { return a.listIdentities(cmd.Context(), op, asJSON) })
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) listIdentities(ctx context.Context, op *client.Operator, asJSON bool) error {
	list, err := op.Identities(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"identities": list})
	}
	if len(list) == 0 {
		a.note("targets.yaml names no identity")
		return nil
	}
	var rows []row
	for _, x := range list {
		rows = append(rows, row{
			cc(bold, x.Name), c(x.Kind), c(dash(x.Label)), identityState(x), c(oldness(x.Updated)), c(ago(x.LastUsed)), failureCell(x), expiryCell(x),
		})
	}
	a.table([]string{"identity", "kind", "label", "state", "age", "last use", "last failure", "expires"}, rows)
	return nil
}

// identityState colours the daemon's word for an identity.
func identityState(x client.Identity) cell {
	switch x.State {
	case "stored":
		return cc(good, x.State)
	case "missing", "expires soon", "not in targets.yaml":
		return cc(warn, x.State)
	case "suspended", "expired", "bound elsewhere", "vault locked":
		return cc(bad, x.State)
	}
	return c(dash(x.State))
}

// failureCell is a failure of the secret that is stored now; one of an older
// secret is history.
func failureCell(x client.Identity) cell {
	f := x.LastFailure
	if f == nil {
		return c(dash(""))
	}
	text := string(f.Code) + ", " + ago(f.At)
	if f.Generation != x.Generation {
		return cc(dimmed, text+" (older secret)")
	}
	return cc(warn, text)
}

func expiryCell(x client.Identity) cell {
	if x.Expires.IsZero() {
		return c(dash(""))
	}
	text := "in " + span(time.Until(x.Expires))
	switch {
	case time.Until(x.Expires) <= 0:
		return cc(bad, "over since "+span(-time.Until(x.Expires)))
	case x.State == "expires soon":
		return cc(warn, text)
	}
	return c(text)
}

// oldness is how long ago a secret was put, ago when something happened; "-" where
// that is not known.
func oldness(t time.Time) string {
	if t.IsZero() {
		return dash("")
	}
	return span(time.Since(t))
}

func ago(t time.Time) string {
	if t.IsZero() {
		return dash("")
	}
	return span(time.Since(t)) + " ago"
}

// span is a length of time in its largest unit: a person decides by that.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d/day))
}

// findIdentity refuses a name that the site file does not have, before a person
// types a secret for it.
func findIdentity(ctx context.Context, op *client.Operator, name string) (client.IdentityDetail, error) {
	d, err := op.Identity(ctx, name)
	if client.CodeOf(err) != fault.NotFound {
		return d, err
	}
	list, err := op.Identities(ctx)
	if err != nil {
		return d, err
	}
	var names []string
	for _, x := range list {
		names = append(names, x.Name)
	}
	hint := "add it to targets.yaml and run chatelaine reload; see chatelaine identity list"
	if near := nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return d, refused(fmt.Sprintf("there is no identity %q in targets.yaml (%s)", name, fault.NotFound), hint)
}

// writable is findIdentity for who wants to write: a locked vault takes nothing.
func writable(ctx context.Context, op *client.Operator, name string) (client.IdentityDetail, error) {
	d, err := findIdentity(ctx, op, name)
	if err == nil && d.State == "vault locked" {
		err = &failure{exit: exitLater, msg: "the vault is locked; the operator must unlock it (" + string(fault.VaultLocked) + ")",
			hints: []string{"an operator opens it with chatelaine unlock"}}
	}
	return d, err
}
