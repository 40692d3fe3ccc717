package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

// shortSecret is below what the daemon takes without being told: a shorter one
// is easier to guess and harder to find in an answer.
const shortSecret = 16

// secretFlags are what may be said of a secret, for put and rotate.
type secretFlags struct {
	short          bool
	label, expires string
	json           bool
	fd             int
}

func (f *secretFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.short, "short", false, "take a secret of fewer than 16 bytes; it is easier to guess and to miss in an answer")
	cmd.Flags().StringVar(&f.label, "label", "", "what the secret is called, for people: which account, which key at the issuer")
	cmd.Flags().StringVar(&f.expires, "expires", "", "when the secret stops working: a date (from its beginning, UTC) or a time (RFC 3339)")
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
}

// check reads the flags that can be wrong.
func (f *secretFlags) check(cmd *cobra.Command) (client.PutIdentity, error) {
	fd, err := fdGiven(cmd, "proof-fd", f.fd)
	if err != nil {
		return client.PutIdentity{}, err
	}
	if fd == 0 {
		return client.PutIdentity{}, usage("--proof-fd 0 is standard input, which is for the secret", "use 3 or above")
	}
	when, err := expiryOf(f.expires, time.Now())
	return client.PutIdentity{Short: f.short, Label: f.label, Expires: when}, err
}

// expiryOf reads a date or a time that is still to come.
func expiryOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	switch {
	case err != nil:
		return t, usage(fmt.Sprintf("--expires %q is neither a date nor a time", text), "write 2027-01-31, or 2027-01-31T12:00:00Z")
	case !t.After(now):
		return t, usage(fmt.Sprintf("--expires %s is over already", text), "a secret that works no more is not stored; is the year right?")
	}
	return t, nil
}

func (a *app) identityPutCmd() *cobra.Command {
	f := secretFlags{fd: -1}
	var target, source string
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Store a secret, bound to its destination",
		Long: `Store the secret of an identity, bound to the destination that targets.yaml names
for it now. The secret is read from the terminal without echo, twice, or from
standard input, without one trailing newline; one of several lines, such as a PEM,
only from standard input. It is never an argument, and there is no flag for a file:
a file stays on the disk, so pipe it in and then remove it. What is stored under the
name is replaced; identity rotate proves a new secret first. The operator passphrase
comes from the terminal or from --proof-fd.

What the secret is, by the identity's kind:
` + kindTable(),
		Example: "  chatelaine identity put deploy-test-bot\n  pass show deploy | chatelaine identity put deploy-test-bot --proof-fd 3 3<passphrase-file\n  chatelaine identity put deploy-test-bot --from pass:deploy/bot\n  chatelaine identity put mesh --label 'issued by Jane' --expires 2027-01-31 <mesh.pem",
		Args:    secretArgs("put"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			put, err := f.check(cmd)
			if err != nil {
				return err
			}
			put.Target, put.Source = target, source
			return a.putIdentity(cmd, args[0], put, f)
		}),
	}
	cmd.Flags().StringVar(&target, "target", "", "the target to bind to, where several use this identity")
	cmd.Flags().StringVar(&source, "from", "", "fetch the secret from a source of chatelaine.yaml, SOURCE:REFERENCE, instead of storing it; see chatelaine vault source")
	f.add(cmd)
	return cmd
}

// secretArgs refuses a second argument without repeating it: it may be the secret.
func secretArgs(word string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("identity "+word+" takes only NAME: a secret is never an argument, because other users can see arguments",
				"if that was the secret, replace it: it is in your shell's history now", "give it on standard input or type it when asked")
		}
		return exactly("NAME")(cmd, args)
	}
}

func (a *app) putIdentity(cmd *cobra.Command, name string, put client.PutIdentity, f secretFlags) error {
	var kind string
	defer func() { clear(put.Secret) }()
	r := &provenRun{operation: client.OpIdentityPut, subject: name, of: put.Params()}
	r.look = func(ctx context.Context, op *client.Operator, src *passSource) error {
		x, err := writable(ctx, op, name)
		if err != nil {
			return err
		}
		kind = x.Kind
		if src.interactive() {
			fmt.Fprintf(src.tty, "%s (%s) will be bound to %s\n", printable(x.Name), printable(x.Kind), printable(boundTo(x.Identity, put.Target)))
		}
		return nil
	}
	r.read = func(ctx context.Context, src *passSource) (err error) {
		if put.Source == "" {
			put.Secret, err = a.newSecret(ctx, src, kind, f)
		}
		return err
	}
	r.use = func(op *client.Operator, p client.Proof) error {
		put.Proof = p
		stored, err := op.PutIdentity(cmd.Context(), name, put)
		if err != nil {
			return err
		}
		return a.stored(stored, "stored", f.json)
	}
	return a.proveRun(cmd, f.fd, r)
}

func (a *app) stored(s client.StoredIdentity, word string, asJSON bool) error {
	if asJSON {
		return a.printJSON(s)
	}
	fmt.Fprintf(a.out, "%s: %s, generation %d, bound to %s%s\n", printable(s.Name), word, s.Generation, printable(s.Destination), untilText(s))
	return nil
}

func untilText(s client.StoredIdentity) string {
	if s.Expires.IsZero() {
		return ""
	}
	return ", expires " + s.Expires.UTC().Format(time.RFC3339)
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
