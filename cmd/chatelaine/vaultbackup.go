package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

// maxBackup is above the largest vault in an age file.
const maxBackup = 17 << 20

type backupFlags struct {
	to   []string
	out  string
	json bool
	fd   int
}

func (a *app) exportBackupCmd() *cobra.Command {
	f := backupFlags{fd: -1}
	cmd := &cobra.Command{
		Use: "export-backup --to RECIPIENT --out FILE", Short: "Write a sealed copy of the vault",
		Long: `Write a copy of the vault, in an age file for the named recipients. It is sealed
twice: the recipients unpack it with their age identity, and then it still wants a
passphrase or the recovery code of the vault. It holds what lies in a keychain too,
and no slot that opens without a person. chatelaine vault import takes identities
out of it, chatelained recover puts it in the vault's place.`,
		Example: "  chatelaine vault export-backup --to age1qyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqs3290gq --out vault.age",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.fd, err = fdGiven(cmd, "proof-fd", f.fd); err != nil {
				return err
			}
			return a.exportBackup(cmd, f)
		}),
	}
	cmd.Flags().StringArrayVar(&f.to, "to", nil, "a public key of age that may unpack it; may be given several times")
	cmd.Flags().StringVar(&f.out, "out", "", "the new file")
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
	return cmd
}

func (a *app) exportBackup(cmd *cobra.Command, f backupFlags) error {
	switch {
	case len(f.to) == 0:
		return usage("say who may unpack the backup: --to age1…", "age-keygen makes a key; its public half begins with age1")
	case f.out == "":
		return usage("say where the backup goes: --out FILE")
	}
	for _, r := range f.to {
		if strings.HasPrefix(strings.ToUpper(r), "AGE-SECRET-KEY-") {
			return usage("--to wants a public key, and this is a private one; it is in your shell's history now", "make another key with age-keygen")
		}
	}
	if err := refuseExisting("out", f.out); err != nil {
		return err
	}
	return a.proven(cmd, f.fd, client.OpBackup, "", client.BackupParams(f.to), func(op *client.Operator, p client.Proof) error {
		b, err := op.Backup(cmd.Context(), f.to, p)
		if err != nil {
			return err
		}
		if err := writeNew("out", f.out, b.File); err != nil {
			return err
		}
		if f.json {
			return a.printJSON(map[string]any{"file": f.out, "vault": b.Vault, "generation": b.Generation, "identities": b.Identities})
		}
		fmt.Fprintf(a.out, "%s: %s, generation %d, for %s\n", printable(f.out), plural(b.Identities, "identity", "identities"), b.Generation, plural(len(f.to), "recipient", "recipients"))
		return nil
	})
}

type importFlags struct {
	identity      string
	code, replace bool
	json          bool
	fd, backupFD  int
}

func (a *app) importCmd() *cobra.Command {
	f := importFlags{fd: -1, backupFD: -1}
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Take the identities of a backup into the vault",
		Long: `Take the identities of a backup into the open vault, each bound to the destination
that it had there. One that is stored already is kept, unless --replace is given. The
backup's own passphrase is asked for, or with --recovery-code its recovery code; the
age identity that unpacks it stays on this side. Nothing but identities is taken; to
put a whole vault back, see chatelained recover.`,
		Example: "  chatelaine vault import vault.age --age-identity key.txt\n  chatelaine vault import vault.age --age-identity key.txt --recovery-code --replace",
		Args:    exactly("FILE"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := descriptors(cmd, map[string]*int{"proof-fd": &f.fd, "backup-fd": &f.backupFD}); err != nil {
				return err
			}
			return a.importBackup(cmd, args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.identity, "age-identity", "", "the age identity file that unpacks the backup")
	cmd.Flags().BoolVar(&f.code, "recovery-code", false, "open the backup with its recovery code instead of a passphrase")
	cmd.Flags().BoolVar(&f.replace, "replace", false, "replace identities that are stored already")
	cmd.Flags().IntVar(&f.backupFD, "backup-fd", -1, "read the backup's passphrase or code from this open descriptor instead of the terminal")
	proofFlag(cmd, &f.fd)
	jsonFlag(cmd, &f.json)
	return cmd
}

func (a *app) importBackup(cmd *cobra.Command, file string, f importFlags) error {
	sealed, err := unpackBackup(file, f.identity)
	if err != nil {
		return err
	}
	in := client.Import{Sealed: sealed, Opens: "passphrase", Replace: f.replace}
	what := "passphrase of the backup"
	if f.code {
		in.Opens, what = "recovery", "recovery code of the backup"
	}
	backup, err := passphraseSource("the "+what, "backup-fd", f.backupFD)
	if err != nil {
		return err
	}
	defer backup.close()
	var pass []byte
	defer func() { clear(pass) }()
	return a.proveRun(cmd, f.fd, &provenRun{
		operation: client.OpImport, of: in.Params(),
		read: func(ctx context.Context, _ *passSource) (err error) {
			pass, err = backup.read(ctx, what+": ")
			return err
		},
		use: func(op *client.Operator, p client.Proof) error {
			if err := op.SendBackup(cmd.Context(), sealed); err != nil {
				return err
			}
			out, err := op.Import(cmd.Context(), in, pass, p)
			if err != nil {
				return err
			}
			return a.imported(out, f.json)
		},
	})
}

func (a *app) imported(out client.Imported, asJSON bool) error {
	if asJSON {
		return a.printJSON(out)
	}
	var rows []row
	for _, part := range []struct {
		word  string
		names []string
	}{{"added", out.Added}, {"replaced", out.Replaced}, {"kept", out.Kept}} {
		for _, name := range part.names {
			rows = append(rows, row{cc(bold, name), c(part.word)})
		}
	}
	if len(rows) == 0 {
		a.note("the backup holds no identity")
		return nil
	}
	a.table([]string{"identity", "backup"}, rows)
	return nil
}

// vaultMark begins a vault file, which is what an unpacked backup is.
const vaultMark = "chatelaine-vault"

// unpackBackup reads a backup: an age file, or one that was unpacked already.
func unpackBackup(file, identity string) ([]byte, error) {
	b, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(b, []byte(ageMark)) {
		if identity == "" {
			return nil, usage(fmt.Sprintf("%s is an age file: say what unpacks it with --age-identity FILE", file))
		}
		if b, err = decryptFor(file, b, identity); err != nil {
			return nil, err
		}
	} else if identity != "" {
		return nil, usage(fmt.Sprintf("%s is no age file", file), "leave --age-identity out")
	}
	if !bytes.HasPrefix(b, []byte(vaultMark)) {
		return nil, usage(fmt.Sprintf("%s is no backup of a vault", file), "chatelaine vault export-backup writes one")
	}
	return b, nil
}

func decryptFor(file string, b []byte, identity string) ([]byte, error) {
	text, err := readBounded(identity)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the library's error may quote a line of the key
		return nil, usage(fmt.Sprintf("%s holds no age identity", identity), "it has a line that begins with AGE-SECRET-KEY-")
	}
	r, err := age.Decrypt(bytes.NewReader(b), ids...)
	if err != nil {
		return nil, usage(fmt.Sprintf("%s does not open with %s", file, identity), "is it for another recipient, or damaged?")
	}
	out, err := io.ReadAll(io.LimitReader(r, maxBackup))
	if err != nil {
		return nil, usage(fmt.Sprintf("%s is damaged", file))
	}
	return out, nil
}

func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage(fmt.Sprintf("cannot read %s: %v", file, plainCause(err)))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBackup+1))
	if err != nil {
		return nil, usage(fmt.Sprintf("cannot read %s: %v", file, plainCause(err)))
	}
	if len(b) > maxBackup {
		return nil, usage(fmt.Sprintf("%s is larger than any backup (%d bytes)", file, maxBackup))
	}
	return b, nil
}
