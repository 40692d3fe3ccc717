package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) unlockCmd() *cobra.Command {
	var asJSON, byCode, byNobody bool
	fd := -1
	cmd := &cobra.Command{
		Use:   "unlock",
		Short: "Open the vault",
		Long: `Open the vault with its passphrase, read from the terminal without echo or from a
descriptor. The vault's passphrase is not the operator passphrase. With
--recovery-code the code that was printed once opens it instead; wrong passphrases
of somebody else do not hold that up. With --unattended the daemon tries again what
needs no person (a credential, a keychain); it does that at its start by itself,
and no more once the vault was locked.`,
		Example: "  chatelaine unlock\n  chatelaine unlock --passphrase-fd 3 3<passphrase-file\n  chatelaine unlock --recovery-code",
		Args:    noPassphrase,
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			fd, err := fdGiven(cmd, "passphrase-fd", fd)
			switch {
			case err != nil:
				return err
			case byNobody && (byCode || fd >= 0):
				return usage("--unattended takes neither a passphrase nor a code", "leave the other flags out")
			case byNobody:
				return a.unlockUnattended(cmd.Context(), asJSON)
			case byCode:
				return a.unlock(cmd.Context(), recoveryWay, fd, asJSON)
			}
			return a.unlock(cmd.Context(), passphraseWay, fd, asJSON)
		}),
	}
	cmd.Flags().IntVar(&fd, "passphrase-fd", -1, "read the vault's passphrase, or the recovery code, from this open descriptor instead of the terminal")
	cmd.Flags().BoolVar(&byCode, "recovery-code", false, "open it with the recovery code instead of the passphrase")
	cmd.Flags().BoolVar(&byNobody, "unattended", false, "have the daemon try the slots that need no person")
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

// wayIn is what a person opens the vault with.
type wayIn struct {
	what, prompt, hint string
	wrong              string // says so; "": the daemon's own sentence
	open               func(*client.Operator, context.Context, string) (client.VaultStatus, error)
}

var (
	passphraseWay = wayIn{"the vault's passphrase", "vault passphrase: ", "this wants the vault's passphrase, which is not the operator passphrase", "", (*client.Operator).Unlock}
	recoveryWay   = wayIn{"the recovery code", "recovery code of the vault: ", "this is a well-formed code, but of another vault, or an older one of this", "the recovery code is wrong (PROOF_REFUSED)", (*client.Operator).UnlockWithCode}
)

func (a *app) unlockUnattended(ctx context.Context, asJSON bool) error {
	return a.withOperator(func(op *client.Operator) error {
		v, err := op.UnlockUnattended(ctx)
		if err != nil {
			return err
		}
		return a.vaultIs(v, asJSON)
	})
}

func (a *app) unlock(ctx context.Context, way wayIn, fd int, asJSON bool) error {
	src, err := passphraseSource(way.what, "passphrase-fd", fd)
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
		v, err := unlockWith(ctx, way, src, op)
		if err != nil {
			return err
		}
		return a.vaultIs(v, asJSON)
	})
}

// unlockWith lets a person at a terminal mistype.
func unlockWith(ctx context.Context, way wayIn, src *passSource, op *client.Operator) (client.VaultStatus, error) {
	for try := 1; ; try++ {
		pass, err := src.read(ctx, way.prompt)
		if err != nil {
			return client.VaultStatus{}, err
		}
		v, err := unlockOnce(ctx, way, op, pass)
		clear(pass)
		if client.CodeOf(err) != client.ProofRefused {
			return v, err
		}
		if !src.interactive() || try == proofTries {
			msg := err.Error()
			if way.wrong != "" {
				msg = way.wrong
			}
			return v, &failure{exit: exitRefused, cause: err, msg: msg,
				hints: []string{way.hint}}
		}
		fmt.Fprintln(src.tty, "chatelaine: "+way.what+" was not taken; try again")
		if err := pause(ctx, proofPause); err != nil {
			return v, err
		}
	}
}

// unlockOnce waits for the daemon's own limit, where it is short.
func unlockOnce(ctx context.Context, way wayIn, op *client.Operator, pass []byte) (client.VaultStatus, error) {
	v, err := way.open(op, ctx, string(pass))
	var told *client.Error
	if !errors.As(err, &told) || told.Code != client.ProofTooSoon || told.RetryAfter > longestPause {
		return v, err
	}
	if err := pause(ctx, max(told.RetryAfter, proofPause)); err != nil {
		return v, err
	}
	return way.open(op, ctx, string(pass))
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
