package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/durable"
)

func (a *app) operatorCmd() *cobra.Command {
	return group("operator", "What decisions are proved with",
		`An operator proves decisions with the operator passphrase: approvals, sessions,
identities, slots. It is not the vault's, and does not open it.`,
		"  chatelaine operator passphrase", a.operatorPassphraseCmd())
}

func (a *app) operatorPassphraseCmd() *cobra.Command {
	var asJSON bool
	fd, newFD := -1, -1
	cmd := &cobra.Command{
		Use: "passphrase", Short: "Change the operator passphrase",
		Long: `Change the passphrase that decisions are proved with. The vault must be open; the
present passphrase is asked for, from the terminal or --proof-fd, and the new one
twice, or from --new-passphrase-fd. It must not be one that opens the vault. The key
to the record in the state folder, audit-key.age, is sealed under the operator
passphrase too: it is sealed anew where this user may write it; otherwise it goes on
opening with the present one, and the command says so.`,
		Example: "  chatelaine operator passphrase\n  chatelaine operator passphrase --proof-fd 3 3<present-file --new-passphrase-fd 4 4<new-file",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			if err := descriptors(cmd, map[string]*int{"proof-fd": &fd, "new-passphrase-fd": &newFD}); err != nil {
				return err
			}
			return a.changeOperatorPassphrase(cmd, fd, newFD, asJSON)
		}),
	}
	cmd.Flags().IntVar(&newFD, "new-passphrase-fd", -1, "read the new passphrase from this open descriptor instead of the terminal")
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) changeOperatorPassphrase(cmd *cobra.Command, fd, newFD int, asJSON bool) error {
	var src *passSource
	var next []byte
	defer func() { clear(next) }()
	return a.proveRun(cmd, fd, &provenRun{
		operation: client.OpPassphrase,
		look: func(_ context.Context, _ *client.Operator, from *passSource) error {
			src = from
			src.keeps = true
			return nil
		},
		read: func(ctx context.Context, _ *passSource) (err error) {
			next, err = newPassphrase(ctx, "operator passphrase", newFD)
			return err
		},
		use: func(op *client.Operator, p client.Proof) error {
			if err := op.SetOperatorPassphrase(cmd.Context(), next, p); err != nil {
				return err
			}
			defer clear(src.kept)
			key, err := a.resealAuditKey(src.kept, next)
			if asJSON {
				if perr := a.printJSON(map[string]any{"changed": true, "audit_key": key}); perr != nil {
					return perr
				}
			} else {
				fmt.Fprintln(a.out, "operator passphrase: changed")
			}
			if err != nil {
				a.note("%s goes on opening with the former passphrase: %v", auditKeyName, err)
				a.note("hint: keep the former passphrase for it, or run this as the daemon's user; the recovery key opens the record too")
			}
			return nil
		},
	})
}

// auditKeyName is the operator's key to the record, in the state folder.
const auditKeyName = "audit-key.age"

// What became of that key, for a program.
const (
	keySealedAnew = "sealed anew"
	keyAsItWas    = "as it was"
	keyNone       = "none"
)

// resealAuditKey seals the operator's key to the record under the new passphrase.
// The file is replaced whole or not at all.
func (a *app) resealAuditKey(former, next []byte) (string, error) {
	p, err := a.places()
	if err != nil {
		return keyAsItWas, err
	}
	path := filepath.Join(p.State, auditKeyName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keyNone, nil
	}
	if err != nil {
		return keyAsItWas, plainCause(err)
	}
	defer f.Close()
	sealed, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return keyAsItWas, plainCause(err)
	}
	text, err := openAge(sealed, former)
	if err != nil {
		return keyAsItWas, errors.New("it does not open with it either")
	}
	defer clear(text)
	again, err := sealAge(text, next)
	if err == nil {
		err = durable.WriteFile(path, again, keyFileMode)
	}
	if err != nil {
		return keyAsItWas, plainCause(err)
	}
	return keySealedAnew, nil
}

// keyFileMode keeps the key to its owner.
const keyFileMode = 0o600

func sealAge(text, pass []byte) ([]byte, error) {
	r, err := age.NewScryptRecipient(string(pass))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, r)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil { // writes the last piece
		return nil, err
	}
	return out.Bytes(), nil
}

// leastPassphrase is what the daemon takes at least.
const leastPassphrase = 8

// newPassphrase reads a new passphrase: from a descriptor, or twice from the
// terminal. The caller wipes it.
func newPassphrase(ctx context.Context, what string, fd int) ([]byte, error) {
	src, err := passphraseSource("the new "+what, "new-passphrase-fd", fd)
	if err != nil {
		return nil, err
	}
	defer src.close()
	first, err := src.read(ctx, "new "+what+": ")
	if err != nil {
		return nil, err
	}
	if len(first) < leastPassphrase {
		clear(first)
		return nil, usage(fmt.Sprintf("the new passphrase is shorter than %d bytes; nothing was changed", leastPassphrase))
	}
	if !src.interactive() {
		return first, nil
	}
	second, err := src.read(ctx, "once more: ")
	if err != nil {
		clear(first)
		return nil, err
	}
	defer clear(second)
	if subtle.ConstantTimeCompare(first, second) != 1 {
		clear(first)
		return nil, usage("the two entries differ; nothing was changed")
	}
	return first, nil
}
