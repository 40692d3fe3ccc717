package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/durable"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

type recoverOptions struct {
	from, ageIdentity    string
	previous, passphrase bool
	codeFD, oldFD, newFD int
	codeOut              string
}

func recoverCommand(p *program) *cobra.Command {
	o := recoverOptions{}
	c := &cobra.Command{
		Use: "recover", Short: "Put back a vault that does not open, with its recovery code",
		Long: "Put back a vault when its passphrase is forgotten, or its file is damaged, gone or\n" +
			"older than it should be. The daemon must not run. The source is the vault itself\n" +
			"where it can be read, else the generation before it; --previous and --from choose\n" +
			"another. It is opened with the recovery code, or with --passphrase, and gets a new\n" +
			"passphrase and a new recovery code; every older one then opens it no more. What\n" +
			"was in its place is set aside and never overwritten.",
		Example: "  chatelained recover\n  chatelained recover --previous --passphrase\n  chatelained recover --from vault.age --age-identity key.txt",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pl, err := p.places()
			if err != nil {
				return err
			}
			return runRecover(cmd.Context(), pl, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.from, "from", "", "put back this file: a vault, or a backup that export-backup wrote")
	f.StringVar(&o.ageIdentity, "age-identity", "", "the age identity file that opens the backup")
	f.BoolVar(&o.previous, "previous", false, "put back the generation before the present one")
	f.BoolVar(&o.passphrase, "passphrase", false, "open it with a passphrase of the vault instead of the recovery code")
	f.StringVar(&o.codeOut, "code-out", "", "write the new recovery code to this new file instead of showing it")
	descriptors(c, map[string]*int{"code-fd": &o.codeFD, "passphrase-fd": &o.oldFD, "new-passphrase-fd": &o.newFD}, map[string]string{
		"code-fd": "read the recovery code from this descriptor", "passphrase-fd": "open it with a passphrase from this descriptor",
		"new-passphrase-fd": "read the new passphrase from this descriptor",
	})
	return c
}

// descriptors adds flags that name descriptors; without one the terminal is
// asked, so help shows no default.
func descriptors(c *cobra.Command, into map[string]*int, help map[string]string) {
	for name, v := range into {
		c.Flags().IntVar(v, name, noDescriptor, help[name])
		c.Flags().Lookup(name).DefValue = "0"
	}
}

func (o recoverOptions) check() error {
	for what, fd := range map[string]int{"recovery code": o.codeFD, "old passphrase": o.oldFD, "new passphrase": o.newFD} {
		if err := checkDescriptor(what, fd); err != nil {
			return err
		}
	}
	byPassphrase := o.passphrase || o.oldFD >= 0
	switch {
	case byPassphrase && o.codeFD >= 0:
		return usageError{errors.New("the recovery code and a passphrase do not go together; give one")}
	case o.from != "" && o.previous:
		return usageError{errors.New("--from and --previous do not go together; give one")}
	case o.ageIdentity != "" && o.from == "":
		return usageError{errors.New("--age-identity needs the backup that it opens: --from FILE")}
	case o.newFD >= 0 && (o.newFD == o.codeFD || o.newFD == o.oldFD):
		return usageError{fmt.Errorf("descriptor %d cannot hold two things; give each its own", o.newFD)}
	}
	return refuseRecoveryFile("recovery code", o.codeOut)
}

func runRecover(ctx context.Context, pl client.Places, o recoverOptions, out, log io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	cfg, self, lock, err := offline(pl, "recover")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	source, name, err := o.source(vaultPath(pl))
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "chatelained: putting back %s\n", name)
	by, wipe, err := o.way(ctx)
	if err != nil {
		return err
	}
	defer wipe()
	pass, err := readPassphrase(ctx, "vault", "new-passphrase-fd", o.newFD)
	if err != nil {
		return err
	}
	defer pass.Wipe()
	r, err := vault.Recover(ctx, vaultPath(pl), vault.Rescue{Source: source, By: by, Passphrase: pass}, vaultOptions(cfg, self))
	if err != nil {
		return typed(err)
	}
	defer r.Code.Wipe()
	if err := noteRecovery(ctx, pl, vaultOptions(cfg, self), pass, r); err != nil {
		fmt.Fprintln(log, "chatelained: the record will not tell of this: "+err.Error())
	} else {
		r.Now++ // the note was saved too
	}
	fmt.Fprintf(log, "chatelained: the vault is back with generation %d of %d known, as generation %d; identities %d\n", r.Generation, r.Known, r.Now, r.Identities)
	if r.Generation < r.Known {
		fmt.Fprintln(log, "chatelained: this is an older one: what was stored, rotated or suspended since is not in it; look at `chatelaine identity list`")
	}
	if r.Aside != "" {
		fmt.Fprintf(log, "chatelained: what was in its place is in %s; remove it when you need it no more\n", r.Aside)
	}
	return showCode(r.Code, o.codeOut, out)
}

// noteRecovery leaves word of it in the vault that was put back.
func noteRecovery(ctx context.Context, pl client.Places, o vault.Options, pass secret.Secret, r vault.Rescued) error {
	v, err := vault.Open(vaultPath(pl), o)
	if err != nil {
		return err
	}
	defer v.Lock("recover is done")
	if err := v.Unlock(ctx, pass); err != nil {
		return err
	}
	return noteOffline(v, "vault.recover", map[string]any{"generation": r.Generation, "known": r.Known, "now": r.Now, "identities": r.Identities})
}

// offline takes the state folder for a command that the daemon must not run
// beside.
func offline(pl client.Places, what string) (Config, instance, *durable.Lock, error) {
	cfg, err := loadConfig(pl)
	if err != nil {
		return cfg, instance{}, nil, err
	}
	if _, err := os.Stat(pl.State); err != nil {
		return cfg, instance{}, nil, usageError{fmt.Errorf("no state in %s: run `chatelained init` first", pl.State)}
	}
	lock, err := durable.LockDir(pl.State, holder(what))
	if err != nil {
		return cfg, instance{}, nil, err
	}
	self, err := readInstance(pl.State)
	if err != nil {
		_ = lock.Unlock()
		return cfg, self, nil, usageError{err}
	}
	return cfg, self, lock, nil
}

// source reads what is put back, and says which file it is.
func (o recoverOptions) source(path string) ([]byte, string, error) {
	switch {
	case o.from != "":
		b, err := readBackup(o.from, o.ageIdentity)
		return b, o.from, err
	case o.previous:
		path = vault.Previous(path)
	default:
		if err := vault.Health(path); errors.Is(err, vault.ErrDamaged) || errors.Is(err, vault.ErrAbsent) {
			path = vault.Previous(path)
		}
	}
	b, err := vault.ReadSource(path)
	if err != nil {
		return nil, path, usageError{err}
	}
	return b, path, nil
}

// backupLimit is above the largest vault in an age file.
const backupLimit = 17 << 20

// ageMark begins every age file (age-encryption.org/v1).
const ageMark = "age-encryption.org/"

// readBackup reads a vault file, or one in an age file.
func readBackup(file, identity string) ([]byte, error) {
	b, err := readLimited(file, backupLimit)
	if err != nil {
		return nil, err
	}
	sealed := bytes.HasPrefix(b, []byte(ageMark))
	switch {
	case !sealed && identity != "":
		return nil, usageError{fmt.Errorf("%s is no age file; leave --age-identity out", file)}
	case !sealed:
		return b, nil
	case identity == "":
		return nil, usageError{fmt.Errorf("%s is an age file; say what opens it with --age-identity FILE", file)}
	}
	text, err := readLimited(identity, backupLimit)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the library's error may quote a line of the key
		return nil, usageError{fmt.Errorf("%s holds no age identity (lines that begin with AGE-SECRET-KEY-)", identity)}
	}
	r, err := age.Decrypt(bytes.NewReader(b), ids...)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s does not open with %s: %w", file, identity, err)}
	}
	out, err := io.ReadAll(io.LimitReader(r, backupLimit))
	if err != nil {
		return nil, usageError{fmt.Errorf("%s is damaged: %w", file, err)}
	}
	return out, nil
}

func readLimited(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, usageError{err}
	}
	if int64(len(b)) > limit {
		return nil, usageError{fmt.Errorf("%s is larger than %d bytes and is no such file", file, limit)}
	}
	return b, nil
}

// way asks for what opens the source. wipe clears it.
func (o recoverOptions) way(ctx context.Context) (by vault.Way, wipe func(), err error) {
	if o.passphrase || o.oldFD >= 0 {
		pass, err := askSecret(ctx, "old vault passphrase", "passphrase-fd", o.oldFD)
		return vault.ByPassphrase(pass), pass.Wipe, err
	}
	text, err := askSecret(ctx, "recovery code of the vault", "code-fd", o.codeFD)
	if err != nil {
		return vault.Way{}, nil, err
	}
	defer text.Wipe()
	var code secret.Secret
	text.Use(func(b []byte) { code, err = vault.ParseRecoveryCode(b) })
	if err != nil {
		return vault.Way{}, nil, usageError{err}
	}
	return vault.ByCode(code), code.Wipe, nil
}

// askSecret takes what exists already, from a descriptor or once from the
// terminal without echo.
func askSecret(ctx context.Context, what, flag string, fd int) (secret.Secret, error) {
	var b []byte
	var err error
	if fd >= 0 {
		b, err = fromDescriptor(what, fd)
	} else {
		b, err = askHidden(ctx, what+": ", fmt.Sprintf("no terminal to ask for the %s; give it on a descriptor: --%s 3 3<FILE", what, flag))
	}
	if err != nil {
		return secret.Secret{}, err
	}
	defer clear(b)
	return secret.New(b), nil
}

// typed marks the refusals that whoever typed can mend.
func typed(err error) error {
	for _, e := range []error{vault.ErrWrongPassphrase, vault.ErrWrongCode, vault.ErrNoSlot, vault.ErrBadPassphrase, vault.ErrSamePassphrase, vault.ErrBadBackup, vault.ErrWeakKDF} {
		if errors.Is(err, e) {
			return usageError{err}
		}
	}
	return err
}
