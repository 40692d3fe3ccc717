package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

type rewrapOptions struct {
	oldFD, newFD int
	keep         bool
	cost         kdfCost
}

func rewrapCommand(p *program) *cobra.Command {
	o := rewrapOptions{}
	c := &cobra.Command{
		Use: "rewrap", Short: "Change a passphrase of the vault, or what guessing it costs",
		Long: "Change the passphrase of one slot of the vault. The daemon must not run. Without\n" +
			"cost flags the cost is measured anew, so that one try takes about half a second on\n" +
			"this machine. Nothing else changes: other slots, secrets and the recovery code\n" +
			"stay. Copies of the vault that were made before still open with the old\n" +
			"passphrase; `chatelaine vault rotate-key` helps against those.",
		Example: "  chatelained rewrap\n  chatelained rewrap --keep-passphrase --passes 8 --memory-mib 256",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pl, err := p.places()
			if err != nil {
				return err
			}
			return runRewrap(cmd.Context(), pl, o, cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.BoolVar(&o.keep, "keep-passphrase", false, "keep the passphrase and change only the cost")
	o.cost.flags(f)
	descriptors(c, map[string]*int{"passphrase-fd": &o.oldFD, "new-passphrase-fd": &o.newFD}, map[string]string{
		"passphrase-fd": "read the present passphrase from this descriptor", "new-passphrase-fd": "read the new passphrase from this descriptor",
	})
	return c
}

func (o rewrapOptions) check() error {
	for what, fd := range map[string]int{"old passphrase": o.oldFD, "new passphrase": o.newFD} {
		if err := checkDescriptor(what, fd); err != nil {
			return err
		}
	}
	switch {
	case o.keep && o.newFD >= 0:
		return usageError{errors.New("--keep-passphrase and --new-passphrase-fd do not go together")}
	case o.newFD >= 0 && o.newFD == o.oldFD:
		return usageError{fmt.Errorf("both passphrases cannot come from descriptor %d; give each its own", o.newFD)}
	}
	return nil
}

func runRewrap(ctx context.Context, pl client.Places, o rewrapOptions, log io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	kdf, err := o.cost.params()
	if err != nil {
		return err
	}
	cfg, self, lock, err := offline(pl, "rewrap")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	v, err := vault.Open(vaultPath(pl), vaultOptions(cfg, self))
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	defer v.Lock("rewrap is done")
	old, err := askSecret(ctx, "vault passphrase", "passphrase-fd", o.oldFD)
	if err != nil {
		return err
	}
	defer old.Wipe()
	if err := v.Unlock(ctx, old); err != nil { // before a new one is asked for
		return typed(err)
	}
	next, err := o.next(ctx, old)
	if err != nil {
		return err
	}
	defer next.Wipe()
	if err := v.Rewrap(ctx, old, next, kdf); err != nil {
		return typed(err)
	}
	if err := noteOffline(v, "vault.rewrap", map[string]any{"passphrase_changed": !o.keep}); err != nil {
		fmt.Fprintln(log, "chatelained: the record will not tell of this: "+err.Error())
	}
	for _, s := range v.Slots() {
		if s.Kind == vault.SlotPassphrase {
			fmt.Fprintf(log, "chatelained: slot %s: %s\n", s.ID[:8], s.Detail)
		}
	}
	return nil
}

func (o rewrapOptions) next(ctx context.Context, old secret.Secret) (secret.Secret, error) {
	if !o.keep {
		return readPassphrase(ctx, "vault", "new-passphrase-fd", o.newFD)
	}
	var same secret.Secret
	old.Use(func(b []byte) { same = secret.New(b) })
	return same, nil
}
