package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) unlockCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use:   "unlock",
		Short: "Open the vault",
		Long: `Open the vault with its passphrase, read from the terminal without echo or from a
descriptor. The vault's passphrase is not the operator passphrase.`,
		Example: "  chatelaine unlock\n  chatelaine unlock --passphrase-fd 3 3<passphrase-file",
		Args:    noPassphrase,
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			fd, err := fdGiven(cmd, "passphrase-fd", fd)
			if err != nil {
				return err
			}
			return a.unlock(cmd.Context(), fd, asJSON)
		}),
	}
	cmd.Flags().IntVar(&fd, "passphrase-fd", -1, "read the vault's passphrase from this open descriptor instead of the terminal")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// noPassphrase says why there is no argument.
func noPassphrase(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("unlock takes no argument: a passphrase is never one, because other users can see arguments",
		"if that was the passphrase, change it: it is in your shell's history now", "type it when asked, or give --passphrase-fd N")
}

func (a *app) unlock(ctx context.Context, fd int, asJSON bool) error {
	src, err := passphraseSource("the vault's passphrase", "passphrase-fd", fd)
	if err != nil {
		return err
	}
	defer src.close()
	return a.withOperator(func(op *client.Operator) error {
		if src.interactive() {
			// A person should not type for a daemon that is not there.
			if _, err := op.Status(ctx); err != nil {
				return err
			}
		}
		v, err := unlockWith(ctx, src, op)
		if err != nil {
			return err
		}
		return a.vaultIs(v, asJSON)
	})
}

// unlockWith lets a person at a terminal mistype.
func unlockWith(ctx context.Context, src *passSource, op *client.Operator) (client.VaultStatus, error) {
	for try := 1; ; try++ {
		pass, err := src.read(ctx, "vault passphrase: ")
		if err != nil {
			return client.VaultStatus{}, err
		}
		v, err := unlockOnce(ctx, op, pass)
		clear(pass)
		if client.CodeOf(err) != client.ProofRefused {
			return v, err
		}
		if !src.interactive() || try == proofTries {
			return v, &failure{exit: exitRefused, cause: err, msg: err.Error(),
				hints: []string{"this wants the vault's passphrase, which is not the operator passphrase"}}
		}
		fmt.Fprintln(src.tty, "chatelaine: the passphrase was not taken; try again")
		if err := pause(ctx, proofPause); err != nil {
			return v, err
		}
	}
}

// unlockOnce waits for the daemon's own limit, where it is short.
func unlockOnce(ctx context.Context, op *client.Operator, pass []byte) (client.VaultStatus, error) {
	v, err := op.Unlock(ctx, string(pass))
	var told *client.Error
	if !errors.As(err, &told) || told.Code != client.ProofTooSoon || told.RetryAfter > longestPause {
		return v, err
	}
	if err := pause(ctx, max(told.RetryAfter, proofPause)); err != nil {
		return v, err
	}
	return op.Unlock(ctx, string(pass))
}

func (a *app) vaultIs(v client.VaultStatus, asJSON bool) error {
	if asJSON {
		return a.printJSON(v)
	}
	fmt.Fprintf(a.out, "vault: %s\n", a.paint(stateColour(v.State), printable(v.State)))
	return nil
}

func (a *app) lockCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Close the vault",
		Long: `Close the vault. No passphrase is asked: this only narrows. Nothing new is sent,
what waits for a person ends, what was sent goes on to its time-out.`,
		Example: "  chatelaine lock",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error {
				v, err := op.Lock(cmd.Context())
				if err != nil {
					return err
				}
				return a.vaultIs(v, asJSON)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
