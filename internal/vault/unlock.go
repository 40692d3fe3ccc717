package vault

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"chatelaine/internal/secret"
)

// Unlock opens the vault with its passphrase. On an open vault it checks the
// passphrase and the file, and changes nothing. It answers ErrWrongPassphrase,
// *ProofError when it comes too soon after wrong ones, ErrDamaged,
// ErrRolledBack, or VAULT_LOCKED when a Lock came meanwhile.
//
// A wrong passphrase is told from a damaged file by a checksum that needs no
// key; it says nothing about the passphrase.
func (v *Vault) Unlock(ctx context.Context, pass secret.Secret) error {
	if err := checkPassphrase(pass); err != nil {
		return err
	}
	open := false
	err := v.unlocks.try(func() error {
		v.write.Lock()
		defer v.write.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		var before standing
		before, open = v.beginUnlock()
		if open {
			return v.recheckLocked(pass)
		}
		err := v.unlockLocked(ctx, pass, before.epoch)
		if err != nil {
			v.failUnlock(before, err)
		}
		return err
	}, ErrWrongPassphrase)
	if open && (errors.Is(err, ErrDamaged) || errors.Is(err, ErrChanged)) {
		// What an open vault saves next must not rest on a file that it cannot
		// trust.
		v.lockAs(StateDamaged, err.Error())
	}
	return err
}

// standing is where an unlock began.
type standing struct {
	epoch  uint64
	reason string
	since  time.Time
}

// beginUnlock says whether the vault is open already.
func (v *Vault) beginUnlock() (before standing, open bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before = standing{v.epoch, v.reason, v.since}
	if v.state == StateOpen {
		return before, true
	}
	v.setStateLocked(StateOpening, "")
	return before, false
}

// recheckLocked checks the passphrase of an open vault against the file, which
// must be the one that is open. v.write is held.
func (v *Vault) recheckLocked(pass secret.Secret) error {
	o, sum, err := v.load(pass)
	o.dataKey.Wipe()
	if err == nil && sum != v.disk {
		err = fmt.Errorf("%s: %w", v.path, ErrChanged)
	}
	return err
}

// unlockLocked opens the vault unless a lock came since epoch. v.write is held.
func (v *Vault) unlockLocked(ctx context.Context, pass secret.Secret, epoch uint64) error {
	o, sum, err := v.load(pass)
	if err == nil {
		err = v.checkAge(ctx, o)
	}
	if err != nil {
		o.dataKey.Wipe()
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.epoch != epoch {
		o.dataKey.Wipe()
		return errLocked()
	}
	v.disk = sum
	v.head, v.dataKey, v.contents = o.head, o.dataKey, o.contents
	v.setStateLocked(StateOpen, "")
	return nil
}

// load reads the file anew and opens it.
func (v *Vault) load(pass secret.Secret) (opened, [sha256.Size]byte, error) {
	b, err := readFile(v.path)
	if err != nil {
		return opened{}, [sha256.Size]byte{}, err
	}
	sum := sha256.Sum256(b)
	img, err := decodeFile(b)
	if err != nil {
		return opened{}, sum, withPrevious(v.path, err)
	}
	key, err := img.unwrap(pass)
	if err != nil {
		return opened{}, sum, err
	}
	c, err := img.open(key)
	if err != nil {
		return opened{dataKey: key}, sum, withPrevious(v.path, err)
	}
	return opened{head: img.header, dataKey: key, contents: c}, sum, nil
}

// checkAge refuses another vault and an older generation than this process has
// seen or the second counter says.
func (v *Vault) checkAge(ctx context.Context, o opened) error {
	v.mu.Lock()
	seen := v.head
	v.mu.Unlock()
	if o.head.id != seen.id {
		return fmt.Errorf("%s: %w: it is another vault now", v.path, ErrChanged)
	}
	if o.head.generation < seen.generation {
		return fmt.Errorf("%w: %s has generation %d, this process has seen %d", ErrRolledBack, v.path, o.head.generation, seen.generation)
	}
	return v.compareGeneration(ctx, o)
}

// failUnlock says what is wrong with the file. After a wrong passphrase the
// vault is sealed for the reason and since the time that it was before.
func (v *Vault) failUnlock(before standing, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.epoch != before.epoch {
		return
	}
	switch {
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrChanged):
		v.setStateLocked(StateDamaged, err.Error())
	case errors.Is(err, ErrRolledBack):
		v.setStateLocked(StateRolledBack, err.Error())
	default:
		v.setStateLocked(StateSealed, before.reason)
		v.since = before.since
	}
}

// Lock drops the data key and everything read with it, at once. Leases taken
// before stay good until they are closed. The functions given to OnLock run
// before Lock returns; a vault that is not open or opening is left alone.
func (v *Vault) Lock(reason string) { v.lockAs(StateSealed, reason) }

func (v *Vault) lockAs(state, reason string) {
	v.mu.Lock()
	if v.state != StateOpen && v.state != StateOpening {
		v.mu.Unlock()
		return
	}
	v.epoch++
	v.dataKey.Wipe()
	if v.contents != nil && v.contents.operator != nil {
		v.contents.operator.key.Wipe()
	}
	v.contents = nil
	v.setStateLocked(state, reason)
	calls := append([]func(string){}, v.onLock...)
	v.mu.Unlock()
	for _, f := range calls {
		f(reason)
	}
}

// OnLock adds a function that is called after each lock, in the order of
// adding, without any lock of the vault held.
func (v *Vault) OnLock(f func(reason string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.onLock = append(v.onLock, f)
}
