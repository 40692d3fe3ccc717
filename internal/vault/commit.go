package vault

import (
	"context"
	"fmt"
	"math"
)

// commit makes one change: it clones the contents, lets alter change the clone
// for the new generation, saves, and then shows the clone. Generations of
// identities are generations of the vault, so that a name deleted and put again
// never gets an old number.
func (v *Vault) commit(ctx context.Context, alter func(o opened, c *contents, generation uint64) error) (uint64, error) {
	v.write.Lock()
	defer v.write.Unlock()
	return v.commitLocked(ctx, func(old opened, d *draft) error { return alter(old, d.contents, d.head.generation) })
}

// draft is what is about to be saved: a header of the next generation, the key
// that it is sealed under, and contents that nobody else has.
//
// quiet says that no person and no call asked for the change: it does not put off
// the vault's locking by itself.
type draft struct {
	opened
	quiet bool
}

// commitLocked is commit for changes that also touch slots or the data key.
// v.write is held.
func (v *Vault) commitLocked(ctx context.Context, alter func(old opened, d *draft) error) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	old, err := v.current()
	if err != nil {
		return 0, err
	}
	if old.head.generation == math.MaxUint64 {
		return 0, fmt.Errorf("%w: its generations are used up", ErrTooLarge)
	}
	d := &draft{opened: opened{old.head, old.dataKey, old.contents.clone()}}
	d.head.generation++
	v.markSuspended(d.contents)
	if err := alter(old, d); err != nil {
		return 0, err
	}
	b, err := encodeFile(d.head, d.dataKey, d.contents)
	if err != nil {
		return 0, err
	}
	placed, err := v.replaceLocked(b)
	if placed {
		v.show(d)
		v.noteGeneration(ctx)
	}
	if err != nil {
		return 0, err
	}
	return d.head.generation, nil
}

// show makes saved contents the current ones, unless the vault was locked
// meanwhile.
func (v *Vault) show(d *draft) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.head = d.head
	if v.state != StateOpen {
		return
	}
	v.contents, v.dataKey = d.contents, d.dataKey
	v.dropOldTokensLocked()
	if !d.quiet {
		v.auto.touch()
	}
}

// PutState keeps a small fact of the daemon sealed in the vault, under a name
// of 1 to 64 bytes. It fails with VAULT_LOCKED.
func (v *Vault) PutState(name string, b []byte) error {
	if name == "" || ownFact(name) || len(name) > maxStateName || len(b) > maxStateBytes {
		return fmt.Errorf("%w: a fact has a name of 1 to %d bytes and at most %d bytes", ErrTooLarge, maxStateName, maxStateBytes)
	}
	kept := append([]byte(nil), b...)
	_, err := v.commit(context.Background(), func(_ opened, c *contents, _ uint64) error {
		c.states[name] = kept
		if len(c.states) > maxStates {
			return fmt.Errorf("%w: more than %d facts", ErrTooLarge, maxStates)
		}
		return nil
	})
	return err
}

// GetState returns a fact and whether there is one. It fails with
// VAULT_LOCKED.
func (v *Vault) GetState(name string) ([]byte, bool, error) {
	o, err := v.current()
	if err != nil {
		return nil, false, err
	}
	b, ok := o.contents.states[name]
	return append([]byte(nil), b...), ok, nil
}
