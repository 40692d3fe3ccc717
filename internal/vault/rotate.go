package vault

import (
	"context"
	"fmt"
	"time"

	"chatelaine/internal/secret"
)

// Rotation is what replacing the data key does to the slots: kept ones are
// wrapped anew, a recovery code is replaced by another, the rest is removed
// because nobody is there to open it.
type Rotation struct {
	Kept, Replaced, Removed []Slot
}

// PlanRotation says what RotateKey would do. keep names the passphrase slot
// whose passphrase will be given; it may be "" where there is one. It answers
// ErrNoSlot or VAULT_LOCKED.
func (v *Vault) PlanRotation(keep string) (Rotation, error) {
	if err := v.CheckOpen(); err != nil {
		return Rotation{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	kept, err := keptPassphrase(v.head, keep)
	if err != nil {
		return Rotation{}, err
	}
	var r Rotation
	for _, s := range v.head.slots {
		view := v.viewLocked(s)
		switch {
		case s.id == kept.id || s.opensUnattended():
			r.Kept = append(r.Kept, view)
		case s.kind == slotRecoveryCode && len(r.Replaced) == 0:
			r.Replaced = append(r.Replaced, view)
		default:
			r.Removed = append(r.Removed, view)
		}
	}
	return r, nil
}

// keptPassphrase is the passphrase slot that a rotation keeps.
func keptPassphrase(h header, id string) (slot, error) {
	var all []slot
	for _, s := range h.slots {
		if s.kind == slotPassphrase {
			all = append(all, s)
		}
	}
	switch {
	case len(all) == 0:
		return slot{}, fmt.Errorf("%w: no passphrase slot; add one first", ErrNoSlot)
	case id == "" && len(all) == 1:
		return all[0], nil
	case id == "":
		return slot{}, fmt.Errorf("%w: there are %d passphrase slots; name the one whose passphrase you give", ErrNoSlot, len(all))
	}
	for _, s := range all {
		if s.hex() == id {
			return s, nil
		}
	}
	return slot{}, fmt.Errorf("%w: no passphrase slot %q", ErrNoSlot, id)
}

// RotateKey seals everything under a new data key, so that whoever had the old
// one, or a slot that is removed here, opens nothing that is saved from now on.
// keep is as for PlanRotation, pass opens that slot. Every identity gets a new
// generation. The code is the new recovery code, zero where there was none. It
// answers ErrWrongPassphrase, *ProofError, ErrUnattended where an unattended
// slot cannot be wrapped anew, ErrNoSlot or VAULT_LOCKED; nothing is changed
// then.
func (v *Vault) RotateKey(ctx context.Context, keep string, pass secret.Secret) (Code, error) {
	var code Code
	err := v.unlocks.try(func() error {
		v.write.Lock()
		defer v.write.Unlock()
		var err error
		code, err = v.rotateLocked(ctx, keep, pass)
		return err
	}, ErrWrongPassphrase)
	v.settle(ctx)
	if err != nil {
		code.Wipe()
		return Code{}, err
	}
	return code, nil
}

func (v *Vault) rotateLocked(ctx context.Context, keep string, pass secret.Secret) (code Code, err error) {
	fresh, used := newKey(), false
	var before secret.Secret
	_, err = v.commitLocked(ctx, func(old opened, d *draft) error {
		before = old.dataKey
		kept, err := keptPassphrase(old.head, keep)
		if err != nil {
			return err
		}
		if err := opensWith(old.head, kept, pass); err != nil {
			return err
		}
		d.dataKey, used = fresh, true
		if code, err = v.rewrapSlots(ctx, d, kept, pass); err != nil {
			return err
		}
		d.contents.keepRoot(old)
		return v.resealItems(ctx, old, d)
	})
	if err == nil {
		// The generation before it follows. Where that fails it does so with the
		// next save; the new code must reach its owner all the same.
		_, _ = v.commitLocked(context.WithoutCancel(ctx), func(opened, *draft) error { return nil })
	}
	v.dropUnused(fresh, before, used)
	return code, err
}

// dropUnused wipes the old key where the new one is in force, and else the new
// one. A lock may have come in between; it has wiped the one in force.
func (v *Vault) dropUnused(fresh, before secret.Secret, used bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	inForce := v.state == StateOpen && v.dataKey.Equal(fresh)
	switch {
	case used && inForce:
		before.Wipe()
	default:
		fresh.Wipe()
	}
}

// opensWith checks the passphrase of one slot.
func opensWith(h header, s slot, pass secret.Secret) error {
	key := decodeLock(&reader{b: s.params}).key(pass)
	defer key.Wipe()
	out, err := s.unwrap(h.id, key)
	if err != nil {
		return ErrWrongPassphrase
	}
	out.Wipe()
	return nil
}

// rewrapSlots gives the draft the slots of a rotation; v.write is held.
func (v *Vault) rewrapSlots(ctx context.Context, d *draft, kept slot, pass secret.Secret) (code Code, err error) {
	old := d.head.slots
	for _, s := range old {
		var next slot
		switch {
		case s.id == kept.id:
			next, err = newPassphraseSlot(d.head.id, newSlotID(), decodeLock(&reader{b: s.params}).kdf, pass, d.dataKey)
		case s.kind == slotRecoveryCode && code.IsZero():
			next, code, err = v.makeSlot(ctx, d.opened, NewSlot{Kind: SlotRecovery})
		case s.opensUnattended():
			p, _ := decodePlain(s.kind, s.params)
			next, _, err = v.makeSlot(ctx, d.opened, NewSlot{Kind: slotNames[s.kind], Credential: p.name})
		default:
			if err := v.dropSlot(d, s); err != nil {
				return code, err
			}
			continue
		}
		if err != nil {
			return code, fmt.Errorf("slot %s: %w", s.hex()[:slotShown], err)
		}
		_, label := decodeLabel(d.contents.states[factSlot+s.hex()])
		if err := v.dropSlot(d, s); err != nil {
			return code, err
		}
		d.head = d.head.with(next)
		d.contents.states[factSlot+next.hex()] = encodeLabel(time.Now(), label)
	}
	return code, nil
}

// keepRoot keeps what subkeys come from: ledger and sessions are sealed under
// them and are not sealed anew.
func (c *contents) keepRoot(old opened) {
	if old.contents.hasRoot {
		return
	}
	old.dataKey.Use(func(b []byte) { c.root, c.hasRoot = secret.New(b), true })
}

// resealItems seals every identity's secret under the draft's key; v.write is
// held.
func (v *Vault) resealItems(ctx context.Context, old opened, d *draft) error {
	for name, it := range old.contents.items {
		s, err := v.unsealItem(ctx, old, it)
		if err != nil {
			return err
		}
		it.suspended = d.contents.items[name].suspended
		it.generation, it.sealed = d.head.generation, nil
		err = v.place(ctx, d.opened, d.contents, it, s)
		s.Wipe()
		if err != nil {
			return err
		}
	}
	return nil
}
