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
	by := func(h header) (secret.Secret, error) { return h.unwrap(pass) }
	return v.attended(v.unlockBy(ctx, &v.unlocks, ErrWrongPassphrase, by))
}

// UnlockWithCode opens the vault with a recovery code, as ParseRecoveryCode
// returns it. It answers ErrWrongCode, ErrNoSlot where there is none, and else
// what Unlock answers. Wrong passphrases do not hold it up.
func (v *Vault) UnlockWithCode(ctx context.Context, code secret.Secret) error {
	by := func(h header) (secret.Secret, error) { return h.unwrapCode(code) }
	return v.attended(v.unlockBy(ctx, &v.codes, ErrWrongCode, by))
}

// UnlockUnattended opens the vault with a slot that needs no person, but not
// once it was locked in this run: who locks it, and what locks it by itself,
// wants a person back. It answers ErrUnattended with the reason of each slot,
// ErrNoSlot where there is none, ErrLockedByHand, and else what Unlock answers.
func (v *Vault) UnlockUnattended(ctx context.Context) error {
	v.mu.Lock()
	locked := v.lockedOnce
	v.mu.Unlock()
	if locked {
		return ErrLockedByHand
	}
	by := func(h header) (secret.Secret, error) { return v.unwrapUnattended(ctx, h) }
	return v.unlockBy(ctx, &limiter{}, errNothing, by)
}

// errNothing is met by no error: what cannot be guessed is not slowed down.
var errNothing = errors.New("nothing")

// attended sets back the count of wrong proofs after a person has shown that
// they may open the vault: a stranger's guesses then no longer hold them up.
func (v *Vault) attended(err error) error {
	if err == nil {
		v.proofs.reset()
	}
	return err
}

// opener reaches the data key by one kind of slot.
type opener func(h header) (secret.Secret, error)

func (v *Vault) unlockBy(ctx context.Context, l *limiter, wrong error, by opener) error {
	open := false
	err := l.try(func() error {
		v.write.Lock()
		defer v.write.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		var before standing
		before, open = v.beginUnlock()
		if open {
			return v.recheckLocked(by)
		}
		err := v.unlockLocked(ctx, by, before.epoch)
		if err != nil {
			v.failUnlock(before, err)
		}
		return err
	}, wrong)
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
func (v *Vault) recheckLocked(by opener) error {
	o, sum, err := v.load(by)
	o.dataKey.Wipe()
	o.contents.wipe()
	if err == nil && sum != v.disk {
		err = fmt.Errorf("%s: %w", v.path, ErrChanged)
	}
	return err
}

// unlockLocked opens the vault unless a lock came since epoch. v.write is held.
func (v *Vault) unlockLocked(ctx context.Context, by opener, epoch uint64) error {
	o, sum, err := v.load(by)
	if err == nil {
		err = v.checkAge(ctx, o)
	}
	if err != nil {
		o.dataKey.Wipe()
		return err
	}
	if err := v.takeOver(o, sum, epoch); err != nil {
		return err
	}
	v.settleLocked(ctx)
	return nil
}

func (v *Vault) takeOver(o opened, sum [sha256.Size]byte, epoch uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.epoch != epoch {
		o.dataKey.Wipe()
		o.contents.wipe()
		return errLocked()
	}
	v.disk = sum
	v.head, v.dataKey, v.contents = o.head, o.dataKey, o.contents
	v.setStateLocked(StateOpen, "")
	v.unlockRotations()
	return nil
}

// load reads the file anew and opens it.
func (v *Vault) load(by opener) (opened, [sha256.Size]byte, error) {
	b, err := readFile(v.path)
	if err != nil {
		return opened{}, [sha256.Size]byte{}, err
	}
	sum := sha256.Sum256(b)
	o, err := openBytes(b, by)
	if errors.Is(err, ErrDamaged) {
		err = withPrevious(v.path, err)
	}
	return o, sum, err
}

// openBytes opens a whole file; on an error what it returns holds no key.
func openBytes(b []byte, by opener) (opened, error) {
	img, err := decodeFile(b)
	if err != nil {
		return opened{}, err
	}
	key, err := by(img.header)
	if err != nil {
		return opened{}, err
	}
	c, err := img.open(key)
	if err != nil {
		key.Wipe()
		return opened{}, err
	}
	return opened{head: img.header, dataKey: key, contents: c}, nil
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
	v.lockedOnce = true
	v.tokens.drop(allTokens, errLocked())
	v.lockRotations()
	v.dataKey.Wipe()
	v.contents.wipe()
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
