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
			if err := descriptors(cmd, map[string]*int{"proof-fd": &f.fd, "passphrase-fd": &f.passFD}); err != nil {
				return err
			}
			if err := refuseExisting("code-out", f.codeOut); err != nil {
				return err
			}
			return a.rotateKey(cmd, f)
		}),
	}
	cmd.Flags().StringVar(&f.slot, "slot", "", "the passphrase slot that stays, where there are several")
	cmd.Flags().IntVar(&f.passFD, "passphrase-fd", -1, "read the vault's passphrase from this open descriptor instead of the terminal")
	codeOutFlag(cmd, &f.codeOut)
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
	return cmd
}

func (a *app) rotateKey(cmd *cobra.Command, f rotateFlags) error {
	vault, err := passphraseSource("the vault's passphrase", "passphrase-fd", f.passFD)
	if err != nil {
		return err
	}
	defer vault.close()
	slot := ""
	var pass []byte
	defer func() { clear(pass) }()
	r := &provenRun{operation: client.OpRotateKey}
	r.look = func(ctx context.Context, op *client.Operator, _ *passSource) error {
		if f.slot != "" {
			s, err := findSlot(ctx, op, f.slot)
			if err != nil {
				return err
			}
			slot = s.ID
		}
		r.of = client.RotateParams(slot)
		return nil
	}
	r.read = func(ctx context.Context, _ *passSource) (err error) {
		pass, err = vault.read(ctx, passphraseWay.prompt)
		return err
	}
	r.use = func(op *client.Operator, p client.Proof) error {
		out, err := op.RotateKey(cmd.Context(), slot, pass, p)
		if err != nil {
			return err
		}
		return a.rotated(out, f)
	}
	return a.proveRun(cmd, f.fd, r)
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
