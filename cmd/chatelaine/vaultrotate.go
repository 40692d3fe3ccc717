package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

type rotateFlags struct {
	slot, codeOut string
	json          bool
	fd, passFD    int
}

func (a *app) rotateKeyCmd() *cobra.Command {
	f := rotateFlags{fd: -1, passFD: -1}
	cmd := &cobra.Command{
		Use: "rotate-key", Short: "Seal the vault under a new key",
		Long: `Seal everything in the vault under a new data key. Whoever had the old one, or a
slot that was removed, opens nothing that is saved from now on. Copies made before
stay readable for them: replace the credentials that were in those.
The passphrase of one slot is needed and that slot stays. A recovery code is
replaced by a new one, which is printed; other passphrases and codes are removed,
because nobody is there to open them. The challenge says which. Every identity gets
a new generation, so what waits for an approval asks again.`,
		Example: "  chatelaine vault rotate-key\n  chatelaine vault rotate-key --slot 1f8a22c0 --code-out /media/stick/code",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.fd, err = fdGiven(cmd, "proof-fd", f.fd); err != nil {
				return err
			}
			if f.passFD, err = fdGiven(cmd, "passphrase-fd", f.passFD); err != nil {
				return err
			}
			if f.fd >= 0 && f.fd == f.passFD {
				return usage("--passphrase-fd and --proof-fd cannot be the same descriptor", "give each its own")
			}
			if err := refuseExisting("code-out", f.codeOut); err != nil {
				return err
			}
			return a.rotateKey(cmd.Context(), f)
		}),
	}
	cmd.Flags().StringVar(&f.slot, "slot", "", "the passphrase slot that stays, where there are several")
	cmd.Flags().IntVar(&f.passFD, "passphrase-fd", -1, "read the vault's passphrase from this open descriptor instead of the terminal")
	codeOutFlag(cmd, &f.codeOut)
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
	return cmd
}

func (a *app) rotateKey(ctx context.Context, f rotateFlags) error {
	vault, err := passphraseSource("the vault's passphrase", "passphrase-fd", f.passFD)
	if err != nil {
		return err
	}
	defer vault.close()
	src, err := passphraseSource("the operator passphrase", "proof-fd", f.fd)
	if err != nil {
		return err
	}
	defer src.close()
	return a.withOperator(func(op *client.Operator) error {
		slot := ""
		if f.slot != "" {
			s, err := findSlot(ctx, op, f.slot)
			if err != nil {
				return err
			}
			slot = s.ID
		}
		challenge := func() (client.Challenge, error) {
			return op.Challenge(ctx, client.OpRotateKey, "", client.RotateParams(slot))
		}
		if _, err := challenge(); err != nil {
			return err // before a person types
		}
		pass, err := vault.read(ctx, passphraseWay.prompt)
		if err != nil {
			return err
		}
		defer clear(pass)
		var out client.RotatedKey
		err = proveWith(ctx, src, operatorPrompt, challenge, func(p client.Proof) (err error) {
			out, err = op.RotateKey(ctx, slot, pass, p)
			return err
		})
		if err != nil {
			return err
		}
		return a.rotated(out, f)
	})
}

func (a *app) rotated(out client.RotatedKey, f rotateFlags) error {
	if f.codeOut != "" {
		if err := a.showCode(out.RecoveryCode, f.codeOut); err != nil {
			return err
		}
		out.RecoveryCode = ""
	}
	if f.json {
		return a.printJSON(out)
	}
	fmt.Fprintln(a.out, "vault: sealed under a new key")
	return a.showCode(out.RecoveryCode, "")
}
