package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) identityRotateCmd() *cobra.Command {
	f := secretFlags{fd: -1}
	var action string
	var unproved bool
	cmd := &cobra.Command{
		Use: "rotate NAME", Short: "Replace a secret once the new one is proved",
		Long: `Replace the secret of an identity. The new one is read as identity put reads it and is
first used for one read, the action that targets.yaml names as the identity's check
or that --action names. Until that has worked the old secret goes on serving; where
it does not work nothing changes, and the exit code is 1. The binding stays as it
is. The identity gets a new generation, so what waits for an approval asks again. Of
the kinds that are exchanged for a token the exchange is proof enough where no action
is named.
With --unproved nothing is sent and the new secret is taken as it is.`,
		Example: "  chatelaine identity rotate deploy-test-bot\n  pass show deploy | chatelaine identity rotate deploy-test-bot --expires 2027-01-31 --proof-fd 3 3<passphrase-file",
		Args:    secretArgs("rotate"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			put, err := f.check(cmd)
			if err != nil {
				return err
			}
			if unproved && action != "" {
				return usage("--unproved and --action do not go together", "give one")
			}
			put.Action, put.Unproved = action, unproved
			return a.rotateIdentity(cmd, args[0], put, f)
		}),
	}
	cmd.Flags().StringVar(&action, "action", "", "the action that proves the new secret, where not that of targets.yaml")
	cmd.Flags().BoolVar(&unproved, "unproved", false, "replace the secret without proving the new one")
	f.add(cmd)
	return cmd
}

// unproved refuses a rotation that nothing can prove, unless the person wants that.
func unproved(name, kind string) error {
	if strings.HasPrefix(kind, "ssh_") {
		return usage("this release performs no action over SSH that could prove "+name+"; nothing was done", "--unproved replaces it without asking the host; try the key with ssh first")
	}
	return usage("targets.yaml names no action that proves "+name+"; nothing was done",
		"write `check: ACTION` under the identity and reload, name one with --action, or say --unproved")
}

func (a *app) rotateIdentity(cmd *cobra.Command, name string, put client.PutIdentity, f secretFlags) error {
	var x client.IdentityDetail
	defer func() { clear(put.Secret) }()
	r := &provenRun{operation: client.OpIdentityRotate, subject: name, of: put.Params()}
	r.look = func(ctx context.Context, op *client.Operator, _ *passSource) (err error) {
		if x, err = writable(ctx, op, name); err != nil {
			return err
		}
		switch {
		case !x.Stored:
			return refused("identity "+name+" has no secret to replace", "store one: chatelaine identity put "+name)
		case x.Check == "" && !x.Exchanges && put.Action == "" && !put.Unproved:
			return unproved(name, x.Kind)
		}
		return nil
	}
	r.read = func(ctx context.Context, src *passSource) (err error) {
		put.Secret, err = a.newSecret(ctx, src, x.Kind, f)
		return err
	}
	r.use = func(op *client.Operator, p client.Proof) error {
		put.Proof = p
		out, err := op.RotateIdentity(cmd.Context(), name, put)
		if err != nil {
			return err
		}
		return a.rotatedIdentity(x, out, f.json)
	}
	return a.proveRun(cmd, f.fd, r)
}

func (a *app) rotatedIdentity(x client.IdentityDetail, out client.RotatedIdentity, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if !out.Rotated {
		return notProved(x.Name, out.Proof, fmt.Sprintf("nothing changed: generation %d is still used", x.Generation))
	}
	if asJSON {
		return nil
	}
	if out.Stored == nil {
		return refused("the daemon does not say what it stored", "see chatelaine identity show "+x.Name)
	}
	if err := a.stored(*out.Stored, "rotated", false); err != nil {
		return err
	}
	if out.Proof != nil {
		return a.proofRows(*out.Proof)
	}
	return nil
}
