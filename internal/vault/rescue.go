package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/secret"
)

// Rescue says how a vault is put back that does not open by itself.
type Rescue struct {
	// Source is the file to put back, whole: the vault itself, the generation
	// before it, or a backup.
	Source []byte
	By     Way
	// Passphrase is the new one; it takes the place of every passphrase slot.
	Passphrase secret.Secret
}

// Rescued says what was put back.
type Rescued struct {
	Generation uint64 // of the source
	Now        uint64 // of the vault that was written
	Known      uint64 // the newest generation that was known of this vault, 0: none
	Identities int
	Aside      string // where the file lies that was in its place; "" for none
	Code       Code   // the new recovery code, in place of every older one
}

// Recover puts a vault back from a source that a person can open. The daemon
// must not run. A file that is in the vault's place is set aside, never
// overwritten. The vault gets a generation above every one that was known, so
// that it opens although it is older: that is what the person decided. It
// answers ErrBadBackup, ErrWrongPassphrase, ErrWrongCode, ErrNoSlot,
// ErrSamePassphrase or ErrBadPassphrase; nothing is changed then.
//
// On disk after each step: (1) the old file also under its aside name; (2) the
// new file; (3) the same as the generation before. A crash leaves the old file
// or the new one in place, whole.
func Recover(ctx context.Context, path string, r Rescue, o Options) (Rescued, error) {
	if err := checkNewPassphrase(r.Passphrase); err != nil {
		return Rescued{}, err
	}
	from, err := openBytes(r.Source, r.By.by)
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	if err != nil {
		return Rescued{}, err
	}
	defer from.dataKey.Wipe()
	defer from.contents.wipe()
	v := newVault(path, o)
	out := Rescued{Generation: from.head.generation, Identities: len(from.contents.items)}
	if out.Known, err = v.known(ctx, from); err != nil {
		return Rescued{}, err
	}
	next, code, err := v.rescued(from, r.Passphrase, max(out.Known, from.head.generation))
	if err != nil {
		return Rescued{}, err
	}
	b, err := encodeFile(next.head, next.dataKey, next.contents)
	if err != nil {
		code.Wipe()
		return Rescued{}, err
	}
	if out.Aside, err = setAside(path); err == nil {
		err = errors.Join(durable.WriteFile(path, b, fileMode), durable.WriteFile(previousPath(path), b, fileMode))
	}
	if err != nil {
		code.Wipe()
		return Rescued{}, err
	}
	v.become(next)
	v.noteGeneration(ctx)
	out.Now, out.Code = next.head.generation, code
	return out, nil
}

// known is the newest generation that anything here says of the source's vault:
// the file in its place, and the second counter. Neither is needed.
func (v *Vault) known(ctx context.Context, from opened) (uint64, error) {
	newest := uint64(0)
	for _, p := range []string{v.path, previousPath(v.path)} {
		b, err := readFile(p)
		if err != nil {
			continue
		}
		img, err := decodeFile(b)
		if err == nil && img.id != from.head.id {
			return 0, fmt.Errorf("%w: it is of another vault than %s; move that file away first if this is right", ErrBadBackup, p)
		}
		// The number is not vouched for, but a head that was made up can only
		// raise it. One that would use the numbers up is not counted.
		if err == nil && img.generation < math.MaxUint64/2 {
			newest = max(newest, img.generation)
		}
	}
	c := v.counter(from.head.id)
	if c == nil {
		return newest, nil
	}
	key, err := from.rootKey(infoGeneration)
	if err != nil {
		return 0, err
	}
	defer key.Wipe()
	if b, err := c.load(ctx); err == nil {
		if generation, ok := decodeCopy(b, from.head.id, key); ok {
			newest = max(newest, generation)
		}
	}
	return newest, nil
}

// rescued gives the source new attended slots and a generation above after.
func (v *Vault) rescued(from opened, pass secret.Secret, after uint64) (opened, Code, error) {
	if after >= math.MaxUint64-1 {
		return opened{}, Code{}, fmt.Errorf("%w: its generations are used up", ErrTooLarge)
	}
	next := opened{head: from.head, dataKey: from.dataKey, contents: from.contents.clone()}
	next.head.generation = after + 1
	for _, s := range from.head.slots {
		if s.attended() {
			next.head = next.head.without(s.id)
			delete(next.contents.states, factSlot+s.hex())
		}
	}
	s, err := v.makePassphraseSlot(next, pass, KDFParams{})
	if err != nil {
		return opened{}, Code{}, err
	}
	code := newCode()
	rs, err := newPlainSlot(next.head.id, newSlotID(), slotRecoveryCode, "", code, next.dataKey)
	if err != nil {
		return opened{}, Code{}, err
	}
	next.head = next.head.with(s).with(rs)
	for _, s := range []slot{s, rs} {
		next.contents.states[factSlot+s.hex()] = encodeLabel(time.Now(), "recover")
	}
	return next, Code{code}, nil
}

// setAside gives the file in the vault's place a second name that nothing uses.
func setAside(path string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	aside := path + ".aside-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	if err := os.Link(path, aside); err != nil {
		return "", fmt.Errorf("vault: set %s aside: %w", path, err)
	}
	return aside, durable.SyncDir(filepath.Dir(path))
}

// ReadSource reads a vault file for Recover: it must be private, like the vault.
func ReadSource(path string) ([]byte, error) { return readFile(path) }

// Health says what stands in the vault's place, without a key: nil for a file
// that is whole in form, ErrAbsent, ErrNotPrivate or ErrDamaged.
func Health(path string) error {
	b, err := readFile(path)
	if err != nil {
		return err
	}
	_, err = decodeFile(b)
	return err
}

// Previous is where the generation before the vault's lies.
func Previous(path string) string { return previousPath(path) }
