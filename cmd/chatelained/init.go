package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/durable"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

type initOptions struct {
	vaultFD, operatorFD int
	recoveryOut         string
	codeOut             string
	noCode              bool
	cost                kdfCost
}

func initCommand(p *program) *cobra.Command {
	o := initOptions{}
	c := &cobra.Command{
		Use: "init", Short: "Make a new configuration, vault and record",
		Long: "Make the folders, a vault sealed under the vault passphrase, and a record that\n" +
			"is sealed to two keys: one kept beside the vault under the operator passphrase,\n" +
			"and a recovery key that is shown once and kept nowhere on this machine.\n" +
			"The vault also opens with a recovery code, which is shown once as well: it is for\n" +
			"the day when the passphrase is forgotten or the file is damaged.\n" +
			"The operator passphrase proves decisions; it must differ from the vault's.\n" +
			"Nothing that exists is overwritten.",
		Example: "  chatelained init\n  chatelained init --recovery-out /media/stick/chatelaine-recovery.key",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pl, err := p.places()
			if err != nil {
				return err
			}
			return runInit(cmd.Context(), pl, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.IntVar(&o.vaultFD, "vault-passphrase-fd", noDescriptor, "read the vault passphrase from this descriptor")
	f.IntVar(&o.operatorFD, "operator-passphrase-fd", noDescriptor, "read the operator passphrase from this descriptor")
	for _, name := range []string{"vault-passphrase-fd", "operator-passphrase-fd"} {
		f.Lookup(name).DefValue = "0" // help then shows no default: it is the terminal
	}
	f.StringVar(&o.recoveryOut, "recovery-out", "", "write the recovery key to this new file instead of showing it")
	f.StringVar(&o.codeOut, "code-out", "", "write the vault's recovery code to this new file instead of showing it")
	f.BoolVar(&o.noCode, "no-recovery-code", false, "make no recovery code: a forgotten passphrase then loses every secret")
	o.cost.flags(f)
	return c
}

func runInit(ctx context.Context, pl client.Places, o initOptions, out, log io.Writer) error {
	if err := o.check(); err != nil { // before anything of ours takes a number
		return err
	}
	kdf, err := o.cost.params()
	if err != nil {
		return err
	}
	if err := refuseState(pl); err != nil {
		return err
	}
	for what, file := range map[string]string{"recovery key": o.recoveryOut, "recovery code": o.codeOut} {
		if err := refuseRecoveryFile(what, file); err != nil {
			return err
		}
	}
	cfg, err := loadConfig(pl)
	if err != nil {
		return err
	}
	vaultPass, operatorPass, err := readBoth(ctx, o)
	if err != nil {
		return err
	}
	defer vaultPass.Wipe()
	defer operatorPass.Wipe()
	if err := makeFolders(pl); err != nil {
		return err
	}
	lock, err := durable.LockDir(pl.State, holder("init"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := refuseState(pl); err != nil { // another init may have been quicker
		return err
	}
	keys, err := makeAuditKeys()
	if err != nil {
		return err
	}
	if err := showRecovery(keys.recovery, o.recoveryOut, out); err != nil {
		return err
	}
	code, err := writeState(pl, cfg, kdf, keys, vaultPass, operatorPass, !o.noCode)
	if err != nil {
		return err
	}
	defer code.Wipe()
	if err := showCode(code, o.codeOut, out); err != nil {
		return err
	}
	fmt.Fprintf(log, "chatelained: ready\n  settings  %s\n  state     %s\n  next      write targets.yaml and contracts, `chatelained serve`, `chatelaine unlock`\n", pl.Config, pl.State)
	return nil
}

func makeFolders(pl client.Places) error {
	for _, d := range []string{pl.Config, pl.Contracts(), pl.State} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return usageError{fmt.Errorf("cannot make the folder: %w", err)}
		}
	}
	for path, text := range map[string]string{
		filepath.Join(pl.Config, configName): "# Settings of chatelained; every key has a default. See docs/configuration.md.\n{}\n",
		pl.SiteFile():                        "# The operator's targets and identities. See docs/contract-format.md.\ntargets: {}\nidentities: {}\n",
	} {
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := durable.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// readBoth reads the two passphrases. Nothing has been written until they are
// good.
func readBoth(ctx context.Context, o initOptions) (vaultPass, operatorPass secret.Secret, err error) {
	if vaultPass, err = readPassphrase(ctx, "vault", "vault-passphrase-fd", o.vaultFD); err != nil {
		return vaultPass, operatorPass, err
	}
	if operatorPass, err = readPassphrase(ctx, "operator", "operator-passphrase-fd", o.operatorFD); err != nil {
		vaultPass.Wipe()
		return vaultPass, operatorPass, err
	}
	if vaultPass.Equal(operatorPass) {
		vaultPass.Wipe()
		operatorPass.Wipe()
		err = usageError{errors.New("the operator passphrase must differ from the vault's; nothing was written")}
	}
	return vaultPass, operatorPass, err
}

// check refuses descriptors that cannot hold a passphrase.
func (o initOptions) check() error {
	if err := checkDescriptor("vault", o.vaultFD); err != nil {
		return err
	}
	if err := checkDescriptor("operator", o.operatorFD); err != nil {
		return err
	}
	if o.recoveryOut != "" && o.recoveryOut == o.codeOut {
		return usageError{errors.New("--recovery-out and --code-out must name two files: keep them in two places")}
	}
	if o.noCode && o.codeOut != "" {
		return usageError{errors.New("--code-out and --no-recovery-code do not go together")}
	}
	if o.vaultFD >= 0 && o.vaultFD == o.operatorFD {
		return usageError{fmt.Errorf("both passphrases cannot come from descriptor %d; give each its own", o.vaultFD)}
	}
	return nil
}

// refuseState refuses a folder with a state, whole or not. Traces of an init
// that did not end are named, so that nobody goes on with half a state.
func refuseState(pl client.Places) error {
	if _, err := os.Lstat(filepath.Join(pl.State, instanceName)); err == nil {
		return usageError{fmt.Errorf("there is a state in %s already; nothing was changed", pl.State)}
	}
	for _, path := range []string{vaultPath(pl), auditPath(pl), ledgerPath(pl)} {
		if _, err := os.Lstat(path); err == nil {
			return usageError{fmt.Errorf("%s is there but no %s: an earlier init did not end, or a file was lost; move the folder away and run init again, or put the file back", path, instanceName)}
		}
	}
	return nil
}

func refuseRecoveryFile(what, file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Lstat(file); err == nil {
		return usageError{fmt.Errorf("%s: %s is there already and is not overwritten; name a new file", what, file)}
	}
	if st, err := os.Stat(filepath.Dir(file)); err != nil || !st.IsDir() {
		return usageError{fmt.Errorf("%s: %s is not a folder", what, filepath.Dir(file))}
	}
	return nil
}

// auditKeys are the record's two readers.
type auditKeys struct{ own, recovery auditlog.Identity }

func makeAuditKeys() (auditKeys, error) {
	own, err := auditlog.GenerateIdentity()
	if err != nil {
		return auditKeys{}, err
	}
	recovery, err := auditlog.GenerateIdentity()
	return auditKeys{own, recovery}, err
}

func showRecovery(id auditlog.Identity, file string, out io.Writer) error {
	return showOnce("recovery key of the record", id.Reveal(), file, out)
}

// showCode shows the vault's recovery code, where there is a new one.
func showCode(code vault.Code, file string, out io.Writer) error {
	if code.IsZero() {
		return nil
	}
	return showOnce("recovery code of the vault", code.Reveal(), file, out)
}

// showOnce prints what is kept nowhere else, or writes it to a new file.
func showOnce(what, text, file string, out io.Writer) error {
	if file == "" {
		_, err := fmt.Fprintf(out, "%s (shown once; write it down and keep it off this machine):\n%s\n", what, text)
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", what, err)}
	}
	if _, err := f.WriteString(text + "\n"); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// writeState makes vault and record; the instance file comes last, so that a
// state with one is whole.
func writeState(pl client.Places, cfg Config, kdf vault.KDFParams, keys auditKeys, vaultPass, operatorPass secret.Secret, withCode bool) (vault.Code, error) {
	self := newInstance()
	options := vaultOptions(cfg, self)
	options.KDF = kdf
	v, err := vault.Create(vaultPath(pl), vaultPass, options)
	if err != nil {
		return vault.Code{}, fmt.Errorf("vault: %w", err)
	}
	defer v.Lock("init is done")
	if err := v.SetOperatorPassphrase(operatorPass); err != nil {
		return vault.Code{}, fmt.Errorf("operator passphrase: %w", err)
	}
	var added vault.Added
	if withCode {
		if added, err = v.AddSlot(context.Background(), vault.NewSlot{Kind: vault.SlotRecovery, Label: "init"}, vault.ByPassphrase(vaultPass)); err != nil {
			return vault.Code{}, fmt.Errorf("recovery code: %w", err)
		}
	}
	if err := writeRecord(pl, keys, operatorPass); err != nil {
		added.Code.Wipe()
		return vault.Code{}, err
	}
	return added.Code, self.write(pl.State)
}

// writeRecord makes the record and its keys.
func writeRecord(pl client.Places, keys auditKeys, operatorPass secret.Secret) error {
	recipients := []auditlog.Recipient{keys.own.Recipient(), keys.recovery.Recipient()}
	if err := auditlog.Create(auditPath(pl), recipients); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	lines := recipients[0].String() + "\n" + recipients[1].String() + "\n"
	if err := durable.WriteFile(recipientsPath(pl), []byte(lines), 0o600); err != nil {
		return err
	}
	sealed, err := sealWithPassphrase(keys.own.Reveal(), operatorPass)
	if err != nil {
		return err
	}
	return durable.WriteFile(auditKeyPath(pl), sealed, 0o600)
}

// sealWithPassphrase makes an ordinary age file, which any age tool opens with
// the operator passphrase (age-encryption.org/v1, scrypt recipient).
func sealWithPassphrase(text string, pass secret.Secret) ([]byte, error) {
	var r *age.ScryptRecipient
	var err error
	pass.Use(func(b []byte) { r, err = age.NewScryptRecipient(string(b)) })
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	w, err := age.Encrypt(&out, r)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, text+"\n"); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(out.String()), nil
}

// readRecipients reads the public keys that the record is sealed to.
func readRecipients(pl client.Places) ([]auditlog.Recipient, error) {
	b, err := os.ReadFile(recipientsPath(pl))
	if err != nil {
		return nil, fmt.Errorf("recipients of the record: %w", err)
	}
	var out []auditlog.Recipient
	for _, line := range strings.Fields(string(b)) {
		r, err := auditlog.ParseRecipient(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", recipientsPath(pl), err)
		}
		out = append(out, r)
	}
	return out, nil
}
