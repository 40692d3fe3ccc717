package vault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// A server may replace the refresh token with each use (RFC 6749 section 6), and
// then takes the old one no more. What happens, and what a crash leaves:
//
//  1. the old one is sent: it is on disk;
//  2. the answer is read: until the next step only this process knows the new one,
//     and a crash here needs a person to sign in again;
//  3. the new one is saved, whole, by the steps of replaceLocked: a crash leaves the
//     old file or the new one;
//  4. the access token is given out. So whoever has seen one knows that its refresh
//     token is on disk.
//
// Where step 3 fails the call ends IDENTITY_UNAVAILABLE, the new one stays in
// memory, and it is saved before anything else is sent. A lock seals it, so that
// none is in clear then.

// infoRotated is the label of the key that a refresh token waits under while the
// vault is locked, and the beginning of its associated data.
const infoRotated = "chatelaine/v1 rotated"

// rotation is a secret that took another's place at its server and is not saved.
type rotation struct {
	used, fresh secret.Secret // zero while sealed
	sealed      []byte
}

func (r rotation) wipe() {
	r.used.Wipe()
	r.fresh.Wipe()
}

// rotations are what is to be saved, by identity.
type rotations struct {
	mu     sync.Mutex // guards all below; may be taken while Vault.mu is held
	saving map[string]rotation
	trials map[string]rotation // of secrets that are not stored yet
}

// mintOnce is the exchange of a secret that the server replaces with each. No two
// of one identity run at once, whatever generation or call they are for.
func (v *Vault) mintOnce(ctx context.Context, key tokenKey, e exchanging) (minted, error) {
	free, err := v.tokens.queue(ctx, key.name)
	if err != nil {
		return minted{}, err
	}
	defer free()
	if err := v.saveRotation(ctx, key.name); err != nil {
		return minted{}, err
	}
	o, it, err := v.exchanged(key)
	if err != nil {
		return minted{}, err
	}
	if e.secret, err = v.secretOf(ctx, o, it); err != nil {
		return minted{}, err
	}
	defer e.secret.Wipe()
	// Taken now: after a lock there is nothing left to derive it from.
	cold, err := derive(o.dataKey, infoRotated)
	if err != nil {
		return minted{}, err
	}
	defer cold.Wipe()
	e.keep = func(fresh secret.Secret) error {
		if fresh.Equal(e.secret) {
			fresh.Wipe()
			return nil
		}
		v.noteRotation(key.name, rotation{used: copied(e.secret), fresh: fresh}, cold)
		return v.saveRotation(context.WithoutCancel(ctx), key.name)
	}
	out, err := e.run(ctx)
	v.sources.refused(it.source, e.secret, err)
	return out, err
}

// noteRotation keeps what is to be saved; sealed, where the vault was locked
// meanwhile.
func (v *Vault) noteRotation(name string, r rotation, cold secret.Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := &v.rotations
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saving == nil {
		b.saving = map[string]rotation{}
	}
	if v.state != StateOpen {
		r = r.seal(cold, rotationAD(v.head.id, name))
	}
	b.saving[name] = r
}

// saveRotation saves what waits for this identity, nil where nothing does. It fails
// with VAULT_LOCKED or IDENTITY_UNAVAILABLE, and keeps it then. It drops what is of
// no use: another secret was put meanwhile.
func (v *Vault) saveRotation(ctx context.Context, name string) error {
	b := &v.rotations
	b.mu.Lock()
	r, waits := b.saving[name]
	r = rotation{used: copied(r.used), fresh: copied(r.fresh)} // a lock may wipe the other one
	b.mu.Unlock()
	defer r.wipe()
	if !waits {
		return nil
	}
	if err := v.CheckOpen(); err != nil {
		return err
	}
	if r.fresh.IsZero() {
		return errLocked() // it was sealed, and the unlock is not over
	}
	err := v.replaceSecret(ctx, name, r)
	if err != nil && !errors.Is(err, errOvertaken) {
		if fault.CodeOf(err) == fault.VaultLocked {
			return err
		}
		return fault.Newf(fault.IdentityUnavailable, "identity %s: the server replaced its refresh token, and the new one cannot be saved: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saving[name].fresh.Equal(r.fresh) {
		b.saving[name].wipe()
		delete(b.saving, name)
	}
	return nil
}

// errOvertaken says that neither the old secret nor the new one is stored.
var errOvertaken = errors.New("another secret is stored")

// errSaved ends a change that is made already.
var errSaved = errors.New("saved already")

// replaceSecret puts the fresh secret where the used one is, in the same generation:
// what was approved for the identity stays approved.
func (v *Vault) replaceSecret(ctx context.Context, name string, r rotation) error {
	o, err := v.current()
	if err != nil {
		return err
	}
	if it := o.contents.items[name]; it.source != "" {
		return v.replaceAtSource(ctx, it, r) // not under the lock: a manager may take its time
	}
	v.write.Lock()
	defer v.write.Unlock()
	_, err = v.commitLocked(ctx, func(old opened, d *draft) error {
		d.quiet = true
		it, ok := d.contents.items[name]
		if !ok || it.source != "" {
			return errOvertaken
		}
		stored, err := v.unsealItem(ctx, old, it)
		if err != nil {
			return err
		}
		defer stored.Wipe()
		switch {
		case stored.Equal(r.fresh):
			return errSaved
		case !stored.Equal(r.used):
			return errOvertaken
		}
		return v.place(ctx, old, d.contents, it, r.fresh)
	})
	v.settleLocked(ctx)
	if errors.Is(err, errSaved) {
		return nil
	}
	return err
}

// replaceAtSource is replaceSecret where the secret lies elsewhere.
func (v *Vault) replaceAtSource(ctx context.Context, it item, r rotation) error {
	err := v.storeAtSource(ctx, it.source, r.used, r.fresh)
	if errors.Is(err, ErrSourceChanged) {
		return errOvertaken // by another daemon, and it has what it put there
	}
	return err
}

// retryRotations saves what could not be saved before.
func (v *Vault) retryRotations(ctx context.Context) {
	b := &v.rotations
	b.mu.Lock()
	names := slices.Sorted(maps.Keys(b.saving))
	b.mu.Unlock()
	for _, name := range names {
		_ = v.saveRotation(ctx, name) // it stays, and the next call that needs it says so
	}
}

// noteTrial remembers what took the place of a secret on trial, so that a put of the
// one that a person gave stores the one that still works.
func (v *Vault) noteTrial(name string, used, fresh secret.Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := &v.rotations
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.state != StateOpen {
		return
	}
	if b.trials == nil {
		b.trials = map[string]rotation{}
	}
	r, ok := b.trials[name]
	if !ok || !r.fresh.Equal(used) {
		r.wipe()
		r = rotation{used: copied(used)}
	}
	r.fresh.Wipe()
	r.fresh = copied(fresh)
	b.trials[name] = r
}

// tried returns what took the place of a secret while it was tried. The caller wipes
// it.
func (v *Vault) tried(name string, s secret.Secret) (secret.Secret, bool) {
	b := &v.rotations
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.trials[name]
	if !ok || s.IsZero() || !r.used.Equal(s) {
		return secret.Secret{}, false
	}
	return copied(r.fresh), true
}

// lockRotations seals what waits, and forgets what was tried. v.mu is held and the
// data key still there.
func (v *Vault) lockRotations() {
	b := &v.rotations
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.trials {
		r.wipe()
	}
	b.trials = nil
	cold, err := derive(v.dataKey, infoRotated)
	if err != nil {
		return // it was never open
	}
	defer cold.Wipe()
	for name, r := range b.saving {
		if r.sealed == nil {
			b.saving[name] = r.seal(cold, rotationAD(v.head.id, name))
		}
	}
}

// unlockRotations opens what was sealed at the lock. v.mu is held.
func (v *Vault) unlockRotations() {
	b := &v.rotations
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.saving) == 0 {
		return
	}
	cold, err := derive(v.dataKey, infoRotated)
	if err != nil {
		return
	}
	defer cold.Wipe()
	for name, r := range b.saving {
		if r.sealed == nil {
			continue
		}
		if r, err = r.unseal(cold, rotationAD(v.head.id, name)); err != nil {
			delete(b.saving, name) // the data key is another one by now
			continue
		}
		b.saving[name] = r
	}
}

func rotationAD(id [idBytes]byte, name string) []byte {
	return fmt.Appendf([]byte(infoRotated), "%s%s", id[:], name)
}

func (r rotation) seal(key secret.Secret, ad []byte) rotation {
	defer r.wipe()
	w := &writer{}
	r.used.Use(w.blob)
	r.fresh.Use(w.blob)
	sealed, err := seal(key, w.b, ad)
	clear(w.b)
	if err != nil {
		return rotation{sealed: []byte{}} // the key is gone: nothing opens it
	}
	return rotation{sealed: sealed}
}

func (r rotation) unseal(key secret.Secret, ad []byte) (rotation, error) {
	text, err := unseal(key, r.sealed, ad)
	if err != nil {
		return rotation{}, err
	}
	defer clear(text)
	in := &reader{b: text}
	out := rotation{used: secret.New(in.blob(maxSecret)), fresh: secret.New(in.blob(maxSecret))}
	if !in.done() {
		out.wipe()
		return rotation{}, errUnsealed
	}
	return out, nil
}
