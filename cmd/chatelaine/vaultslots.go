package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) vaultCmd() *cobra.Command {
	return group("vault", "Ways to open the vault, its key, and sealed copies of it",
		`What opens the vault is a slot: a passphrase, a recovery code that was printed once,
a credential of the service manager, or a secret in the OS keychain. The last two
open it without a person. To open and close it, see chatelaine unlock and lock.`,
		"  chatelaine vault slots\n  chatelaine vault add-slot recovery",
		a.slotsCmd(), a.addSlotCmd(), a.removeSlotCmd(), a.rotateKeyCmd(), a.exportBackupCmd(), a.importCmd(), a.sourceCmd())
}

// shownID is how much of a slot's id a table has: sixteen slots are told apart.
const shownID = 8

func shortID(s client.Slot) string { return s.ID[:min(len(s.ID), shownID)] }

func (a *app) slotsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "slots", Short: "List what opens the vault",
		Long:    "List the slots of the vault. Labels and dates are known while it is open.",
		Example: "  chatelaine vault slots\n  chatelaine vault slots --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error {
				list, err := op.Slots(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(map[string]any{"slots": list})
				}
				a.slotTable(list)
				return nil
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) slotTable(list []client.Slot) {
	var rows []row
	for _, s := range list {
		needs := c("a person")
		if s.Unattended {
			needs = cc(warn, "nobody")
		}
		rows = append(rows, row{cc(bold, shortID(s)), c(s.Kind), needs, c(dash(s.Label)), c(clock(s.Created)), c(s.Detail)})
	}
	a.table([]string{"slot", "kind", "needs", "label", "added", "detail"}, rows)
}

// findSlot takes an id or its beginning.
func findSlot(ctx context.Context, op *client.Operator, typed string) (client.Slot, error) {
	list, err := op.Slots(ctx)
	if err != nil {
		return client.Slot{}, err
	}
	var found []client.Slot
	for _, s := range list {
		if strings.HasPrefix(s.ID, strings.ToLower(typed)) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return client.Slot{}, refused(fmt.Sprintf("the vault has no slot %q", typed), "see chatelaine vault slots")
	}
	return client.Slot{}, usage(fmt.Sprintf("%d slots begin with %q", len(found), typed), "give more of the id; see chatelaine vault slots")
}

type addSlotFlags struct {
	label, credential, codeOut string
	json, byCode               bool
	fd, newFD, passFD          int
}

// slotKinds are the kinds that can be added.
var slotKinds = []string{"passphrase", "recovery", "credential", "keychain"}

// credentialName is the name of the credential in the unit that is shipped.
const credentialName = "chatelaine-vault"

func (a *app) addSlotCmd() *cobra.Command {
	f := addSlotFlags{fd: -1, newFD: -1, passFD: -1}
	cmd := &cobra.Command{
		Use: "add-slot KIND", Short: "Add a way to open the vault",
		Long: `Add a way to open the vault. KIND is one of:
  passphrase  another passphrase, read twice from the terminal or from --new-passphrase-fd
  recovery    a code that is printed once and kept nowhere
  credential  a credential of the service manager (systemd's LoadCredentialEncrypted=)
              that holds at least 32 random bytes; the daemon then opens at its start
  keychain    a secret in the keychain of the daemon's user: a convenience, since any
              process of that user can read it; the daemon then opens at its start
The vault must be open. What opens it already is asked for too, a passphrase or with
--recovery-code the code: who only decides must not be able to make a way in. The
operator passphrase is read from the terminal or from --proof-fd.`,
		Example:   "  chatelaine vault add-slot recovery\n  chatelaine vault add-slot passphrase --label 'night shift'\n  chatelaine vault add-slot credential --credential chatelaine-vault",
		ValidArgs: slotKinds,
		Args:      slotKindArg,
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := descriptors(cmd, map[string]*int{"proof-fd": &f.fd, "new-passphrase-fd": &f.newFD, "passphrase-fd": &f.passFD}); err != nil {
				return err
			}
			return a.addSlot(cmd, args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.label, "label", "", "what the slot is called, for people")
	cmd.Flags().StringVar(&f.credential, "credential", "", "the credential's name in the unit (default "+credentialName+")")
	cmd.Flags().BoolVar(&f.byCode, "recovery-code", false, "show with the recovery code that you can open the vault, instead of a passphrase")
	cmd.Flags().IntVar(&f.passFD, "passphrase-fd", -1, "read what opens the vault already from this open descriptor instead of the terminal")
	cmd.Flags().IntVar(&f.newFD, "new-passphrase-fd", -1, "read the new passphrase from this open descriptor instead of the terminal")
	codeOutFlag(cmd, &f.codeOut)
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
	return cmd
}

func slotKindArg(cmd *cobra.Command, args []string) error {
	if err := exactly("KIND")(cmd, args); err != nil {
		return err
	}
	if slices.Contains(slotKinds, args[0]) {
		return nil
	}
	hints := []string{"kinds: " + strings.Join(slotKinds, ", ")}
	if near := nearest(args[0], slotKinds); near != "" {
		hints = append([]string{"did you mean " + near + "?"}, hints...)
	}
	return usage("a slot is of another kind", hints...) // not repeated: it may be a passphrase
}

func (f addSlotFlags) check(kind string) error {
	switch {
	case f.newFD >= 0 && kind != "passphrase":
		return usage("--new-passphrase-fd is for a slot of kind passphrase")
	case f.credential != "" && kind != "credential":
		return usage("--credential is for a slot of kind credential")
	case f.codeOut != "" && kind != "recovery":
		return usage("--code-out is for a slot of kind recovery")
	}
	return refuseExisting("code-out", f.codeOut)
}

func (a *app) addSlot(cmd *cobra.Command, kind string, f addSlotFlags) error {
	if err := f.check(kind); err != nil {
		return err
	}
	n, way := client.NewSlot{Kind: kind, Label: f.label, Credential: f.credential, Opens: "passphrase"}, passphraseWay
	if f.byCode {
		n.Opens, way = "recovery", recoveryWay
	}
	if kind == "credential" && n.Credential == "" {
		n.Credential = credentialName
	}
	opens, err := passphraseSource(way.what, "passphrase-fd", f.passFD)
	if err != nil {
		return err
	}
	defer opens.close()
	var unlock, pass []byte
	defer func() { clear(unlock); clear(pass) }()
	return a.proveRun(cmd, f.fd, &provenRun{
		operation: client.OpAddSlot, of: n.Params(),
		read: func(ctx context.Context, _ *passSource) (err error) {
			if unlock, err = opens.read(ctx, way.prompt); err == nil && kind == "passphrase" {
				pass, err = newPassphrase(ctx, "passphrase of the vault", f.newFD)
			}
			return err
		},
		use: func(op *client.Operator, p client.Proof) error {
			added, err := op.AddSlot(cmd.Context(), n, unlock, pass, p)
			if err != nil {
				return err
			}
			return a.slotAdded(added, f)
		},
	})
}

func (a *app) slotAdded(added client.AddedSlot, f addSlotFlags) error {
	if f.codeOut != "" {
		if err := a.showCode(added.RecoveryCode, f.codeOut); err != nil {
			return err
		}
		added.RecoveryCode = ""
	}
	if f.json {
		return a.printJSON(added)
	}
	fmt.Fprintf(a.out, "slot %s: %s added\n", printable(shortID(added.Slot)), printable(added.Slot.Kind))
	return a.showCode(added.RecoveryCode, "")
}

// codeOutFlag adds --code-out.
func codeOutFlag(cmd *cobra.Command, v *string) {
	cmd.Flags().StringVar(v, "code-out", "", "write the recovery code to this new file instead of showing it")
}

// refuseExisting keeps a file from being overwritten, before anything is done.
func refuseExisting(flag, file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Lstat(file); err == nil {
		return usage(fmt.Sprintf("--%s: %s is there already and is not overwritten", flag, file), "name a new file")
	}
	return nil
}

// showCode prints a recovery code, or writes it to a new file; "" is none.
func (a *app) showCode(code, file string) error {
	if code == "" {
		return nil
	}
	if file != "" {
		return writeNew("code-out", file, []byte(code+"\n"))
	}
	_, err := fmt.Fprintf(a.out, "recovery code of the vault (shown once; write it down and keep it off this machine):\n%s\n", printable(code))
	return err
}

// writeNew writes a file that was not there, for its owner only.
func writeNew(flag, file string, b []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usage(fmt.Sprintf("--%s: cannot make %s: %v", flag, file, plainCause(err)))
	}
	_, err = f.Write(b)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (a *app) removeSlotCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "remove-slot SLOT", Short: "Remove a way to open the vault",
		Long: `Remove a slot, named by its id or the beginning of it. The last one that a person
can open is not removed. Copies of the vault that were made before still open with
what the slot needed; vault rotate-key helps against those.`,
		Example: "  chatelaine vault remove-slot 1f8a22c0",
		Args:    exactly("SLOT"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if err := a.withOperator(func(op *client.Operator) error {
				s, err := findSlot(cmd.Context(), op, id)
				id = s.ID
				return err
			}); err != nil {
				return err
			}
			return a.proven(cmd, fd, client.OpRemoveSlot, id, nil, func(op *client.Operator, p client.Proof) error {
				if err := op.RemoveSlot(cmd.Context(), id, p); err != nil {
					return err
				}
				return a.changed(asJSON, "slot", id, "removed")
			})
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}
