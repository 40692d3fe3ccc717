package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

func (a *app) identityCmd() *cobra.Command {
	return group("identity", "Store and bind secrets; never read them",
		`An identity is a name in targets.yaml; its secret is in the vault, bound to one
destination. Secrets go in and never come out.`,
		"  chatelaine identity list\n  chatelaine identity put deploy-test-bot",
		a.identityListCmd(), a.identityCheckCmd(), a.identityPutCmd(), a.identityDeleteCmd(), a.identityRebindCmd())
}

func (a *app) identityListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List identities and where they are bound",
		Long:    "List identities, whether a secret is stored, and the one destination it may go to.",
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
		rows = append(rows, row{cc(bold, x.Name), c(x.Kind), stateCell(storedWord(x)), c(generationText(x)), c(dash(strings.Join(x.Targets, " "))), c(dash(x.Destination))})
	}
	a.table([]string{"identity", "kind", "secret", "generation", "targets", "destination"}, rows)
	return nil
}

// generationText is empty for an identity that was never stored.
func generationText(x client.Identity) string {
	if x.Generation == 0 {
		return dash("")
	}
	return fmt.Sprint(x.Generation)
}

func storedWord(x client.Identity) string {
	switch {
	case x.Suspended:
		return "suspended"
	case x.Stored:
		return "stored"
	case x.Kind == "none":
		return "none needed"
	}
	return "missing"
}

// shortSecret is below what the daemon takes without being told: a shorter one
// is easier to guess and harder to find in an answer.
const shortSecret = 16

type putFlags struct {
	target string
	short  bool
	json   bool
	fd     int
}

func (a *app) identityPutCmd() *cobra.Command {
	f := putFlags{fd: -1}
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Store a secret, bound to its destination",
		Long: `Store the secret of an identity, bound to the destination that targets.yaml names
for it now. The secret is read from the terminal without echo, twice, or from
standard input, without one trailing newline. It is never an argument. The
operator passphrase comes from the terminal or from --proof-fd.`,
		Example: "  chatelaine identity put deploy-test-bot\n  pass show deploy | chatelaine identity put deploy-test-bot --proof-fd 3 3<passphrase-file",
		Args:    putArgs,
		RunE: do(func(cmd *cobra.Command, args []string) error {
			var err error
			if f.fd, err = fdGiven(cmd, "proof-fd", f.fd); err != nil {
				return err
			}
			return a.putIdentity(cmd.Context(), args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.target, "target", "", "the target to bind to, where several use this identity")
	cmd.Flags().BoolVar(&f.short, "short", false, "take a secret of fewer than 16 bytes; it is easier to guess and to miss in an answer")
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
	return cmd
}

// putArgs refuses a second argument without repeating it: it may be the secret.
func putArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("identity put takes only NAME: a secret is never an argument, because other users can see arguments",
			"if that was the secret, replace it: it is in your shell's history now", "give it on standard input or type it when asked")
	}
	return exactly("NAME")(cmd, args)
}

func (a *app) putIdentity(ctx context.Context, name string, f putFlags) error {
	if f.fd == 0 {
		return usage("--proof-fd 0 is standard input, which is for the secret", "use 3 or above")
	}
	src, err := passphraseSource("the operator passphrase", "proof-fd", f.fd)
	if err != nil {
		return err
	}
	defer src.close()
	return a.withOperator(func(op *client.Operator) error {
		x, err := findIdentity(ctx, op, name)
		if err != nil {
			return err
		}
		if src.interactive() {
			fmt.Fprintf(src.tty, "%s (%s) will be bound to %s\n", printable(x.Name), printable(x.Kind), printable(boundTo(x, f.target)))
		}
		secret, err := a.readSecret(ctx, src)
		if err != nil {
			return err
		}
		defer clear(secret)
		if len(secret) < shortSecret && !f.short {
			return usage(fmt.Sprintf("the secret has fewer than %d bytes; nothing was stored", shortSecret),
				"is it whole? if it really is that short, say --short")
		}
		var stored client.StoredIdentity
		err = proveWith(ctx, src, operatorPrompt,
			func() (client.Challenge, error) {
				return op.Challenge(ctx, client.OpIdentityPut, name, client.BindParams(f.target, f.short))
			},
			func(p client.Proof) error {
				stored, err = op.PutIdentity(ctx, name, client.PutIdentity{Secret: secret, Target: f.target, Short: f.short, Proof: p})
				return err
			})
		if err != nil {
			return err
		}
		return a.stored(stored, "stored", f.json)
	})
}

func (a *app) stored(s client.StoredIdentity, word string, asJSON bool) error {
	if asJSON {
		return a.printJSON(s)
	}
	fmt.Fprintf(a.out, "%s: %s, generation %d, bound to %s\n", printable(s.Name), word, s.Generation, printable(s.Destination))
	return nil
}

// boundTo says where a secret will go, as far as is known before it is stored.
func boundTo(x client.Identity, target string) string {
	if target == "" {
		target = strings.Join(x.Targets, ", ")
	}
	text := "the destination of target " + dash(target)
	if x.Destination != "" {
		text += "; now it is bound to " + x.Destination
	}
	return text
}

// findIdentity refuses a name that the site file does not have, before a person
// types a secret for it.
func findIdentity(ctx context.Context, op *client.Operator, name string) (client.Identity, error) {
	list, err := op.Identities(ctx)
	if err != nil {
		return client.Identity{}, err
	}
	var names []string
	for _, x := range list {
		if x.Name == name {
			return x, nil
		}
		names = append(names, x.Name)
	}
	hint := "add it to targets.yaml and run chatelaine reload; see chatelaine identity list"
	if near := nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return client.Identity{}, refused(fmt.Sprintf("there is no identity %q in targets.yaml (%s)", name, fault.NotFound), hint)
}

// readSecret takes the secret from standard input, or twice from the terminal
// where standard input is one.
func (a *app) readSecret(ctx context.Context, src *passSource) ([]byte, error) {
	if !isTerminal(a.in) {
		return readCapped(a.in, maxSecret, "the secret on standard input")
	}
	tty := src.tty
	if tty == nil {
		t, err := passphraseSource("the secret", "proof-fd", -1)
		if err != nil {
			return nil, err
		}
		defer t.close()
		tty = t.tty
	}
	first, err := readHidden(ctx, tty, "secret (not shown): ")
	if err != nil {
		return nil, err
	}
	second, err := readHidden(ctx, tty, "once more: ")
	if err != nil {
		clear(first)
		return nil, err
	}
	defer clear(second)
	if subtle.ConstantTimeCompare(first, second) != 1 {
		clear(first)
		return nil, usage("the two entries differ; nothing was stored")
	}
	if len(first) != len(bytes.TrimSpace(first)) {
		fmt.Fprintln(tty, "chatelaine: note: the secret begins or ends with a space, which is kept")
	}
	return first, nil
}

func (a *app) identityDeleteCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Remove a secret from the vault",
		Long:    "Remove the secret of an identity from the vault. Actions that need it then answer IDENTITY_UNAVAILABLE.",
		Example: "  chatelaine identity delete deploy-test-bot",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return a.proven(cmd, fd, client.OpIdentityDelete, name, nil, func(op *client.Operator, p client.Proof) error {
				if err := op.DeleteIdentity(cmd.Context(), name, p); err != nil {
					return err
				}
				return a.changed(asJSON, "name", name, "deleted")
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
changed destination is refused as TARGET_NOT_ALLOWED. Look at the new destination,
which is shown before the passphrase is asked: from now on the secret goes there.`,
		Example: "  chatelaine identity rebind deploy-test-bot\n  chatelaine identity rebind deploy-test-bot --target deploy-test",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return a.proven(cmd, fd, client.OpIdentityRebind, name, client.BindParams(target, false), func(op *client.Operator, p client.Proof) error {
				s, err := op.RebindIdentity(cmd.Context(), name, target, p)
				if err != nil {
					return err
				}
				return a.stored(s, "rebound", asJSON)
			})
		}),
	}
	cmd.Flags().StringVar(&target, "target", "", "the target to bind to, where several use this identity")
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// proven runs one operation that needs the operator passphrase and nothing to
// look at first but what the challenge says.
func (a *app) proven(cmd *cobra.Command, fd int, operation, subject string, of client.Params, use func(*client.Operator, client.Proof) error) error {
	fd, err := fdGiven(cmd, "proof-fd", fd)
	if err != nil {
		return err
	}
	src, err := passphraseSource("the operator passphrase", "proof-fd", fd)
	if err != nil {
		return err
	}
	defer src.close()
	ctx := cmd.Context()
	return a.withOperator(func(op *client.Operator) error {
		return proveWith(ctx, src, operatorPrompt,
			func() (client.Challenge, error) { return op.Challenge(ctx, operation, subject, of) },
			func(p client.Proof) error { return use(op, p) })
	})
}
