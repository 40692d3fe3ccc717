package vault

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"chatelaine/internal/secret"
)

// Backup returns a whole vault file, still sealed: the generation that is open,
// with every secret in the file itself, and with only the slots that a person
// opens. It holds no secret in clear and opens with a passphrase or a recovery
// code of this vault, nothing else. It answers VAULT_LOCKED, or
// IDENTITY_UNAVAILABLE where a keychain does not answer.
func (v *Vault) Backup(ctx context.Context) ([]byte, error) {
	v.write.Lock()
	defer v.write.Unlock()
	o, err := v.current()
	if err != nil {
		return nil, err
	}
	head := o.head
	head.slots = nil
	c := o.contents.clone()
	for _, s := range o.head.slots {
		if s.attended() {
			head = head.with(s)
		} else {
			delete(c.states, factSlot+s.hex())
		}
	}
	for name, it := range c.items {
		if !it.outside {
			continue
		}
		if it.sealed, err = v.fetch(ctx, o, it); err != nil {
			return nil, err
		}
		it.outside = false
		c.items[name] = it
	}
	return encodeFile(head, o.dataKey, c)
}

// BackupFacts are what a backup shows to everybody, without a key.
type BackupFacts struct {
	Vault      string // the id of the vault that it was made of
	Generation uint64
	Digest     [sha256.Size]byte
	Passphrase bool // it opens with a passphrase
	Recovery   bool // it opens with a recovery code
}

// LookAtBackup reads what a backup shows without a key. It answers
// ErrBadBackup.
func LookAtBackup(b []byte) (BackupFacts, error) {
	img, err := decodeFile(b)
	if err != nil {
		return BackupFacts{}, fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	f := BackupFacts{Vault: fmt.Sprintf("%x", img.id), Generation: img.generation, Digest: sha256.Sum256(b)}
	for _, s := range img.slots {
		f.Passphrase = f.Passphrase || s.kind == slotPassphrase
		f.Recovery = f.Recovery || s.kind == slotRecoveryCode
	}
	return f, nil
}

// Way is how a person opens a file, or shows that they could: by a passphrase or
// by a recovery code. The zero value opens nothing.
type Way struct {
	by   opener
	code bool
}

// guesses are counted apart for each way; wrong is the error that counts.
func (v *Vault) guesses(w Way) (l *limiter, wrong error) {
	if w.code {
		return &v.codes, ErrWrongCode
	}
	return &v.unlocks, ErrWrongPassphrase
}

// ByPassphrase opens a file with one of its passphrases.
func ByPassphrase(pass secret.Secret) Way {
	return Way{by: func(h header) (secret.Secret, error) { return h.unwrap(pass) }}
}

// ByCode opens a file with its recovery code, as ParseRecoveryCode returns it.
func ByCode(code secret.Secret) Way {
	return Way{by: func(h header) (secret.Secret, error) { return h.unwrapCode(code) }, code: true}
}

// Imported says what became of the identities of a backup, by name.
type Imported struct {
	Added, Replaced, Kept []string
}

// Import takes the identities of a backup into the open vault, each with the
// binding that it had. One that is here already is kept, or replaced where
// replace says so. Nothing else of the backup is taken. It answers ErrBadBackup,
// ErrWrongPassphrase or ErrWrongCode, *ProofError when it comes too soon after
// wrong ones, or VAULT_LOCKED.
func (v *Vault) Import(ctx context.Context, b []byte, w Way, replace bool) (Imported, error) {
	if err := v.CheckOpen(); err != nil {
		return Imported{}, err
	}
	var from opened
	err := v.imports.try(func() (err error) {
		from, err = openBytes(b, w.by)
		if errors.Is(err, ErrWrongCode) {
			return fmt.Errorf("%w: %w", ErrWrongPassphrase, err)
		}
		return err
	}, ErrWrongPassphrase)
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	if err != nil {
		return Imported{}, err
	}
	defer from.dataKey.Wipe()
	defer from.contents.wipe()
	var out Imported
	_, err = v.commit(ctx, func(o opened, c *contents, generation uint64) error {
		out, err = v.takeItems(ctx, from, o, c, generation, replace)
		return err
	})
	v.settle(ctx)
	if err != nil {
		return Imported{}, err
	}
	return out, nil
}

// takeItems seals the other vault's secrets into c; v.write is held.
func (v *Vault) takeItems(ctx context.Context, from, o opened, c *contents, generation uint64, replace bool) (Imported, error) {
	var out Imported
	for _, name := range slices.Sorted(maps.Keys(from.contents.items)) {
		it := from.contents.items[name]
		if _, there := c.items[name]; there && !replace {
			out.Kept = append(out.Kept, name)
			continue
		} else if there {
			out.Replaced = append(out.Replaced, name)
		} else {
			out.Added = append(out.Added, name)
		}
		if it.outside {
			return Imported{}, fmt.Errorf("%w: the secret of %s is not in it, only its place in a keychain", ErrBadBackup, name)
		}
		s, err := v.unsealItem(ctx, from, it)
		if err != nil {
			return Imported{}, err
		}
		it.generation, it.updated, it.sealed = generation, time.Now(), nil
		err = v.place(ctx, o, c, it, s)
		s.Wipe()
		if err != nil {
			return Imported{}, err
		}
	}
	return out, nil
}
