package vault

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"chatelaine/internal/secret"
)

// Slot is what may be shown of one way to open the vault.
type Slot struct {
	ID         string // hexadecimal
	Kind       string // one of SlotPassphrase and its like
	Label      string // as it was given; "" while the vault is locked
	Created    time.Time
	Unattended bool // it opens without a person
	Opens      bool // this version can open it
	Detail     string
}

// maxLabel bounds what a person calls a slot.
const maxLabel = 64

// Slots lists the ways in. While the vault is locked they are read from the
// file's head, which nobody has vouched for until the next unlock.
func (v *Vault) Slots() []Slot {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]Slot, 0, len(v.head.slots))
	for _, s := range v.head.slots {
		out = append(out, v.viewLocked(s))
	}
	return out
}

// viewLocked describes a slot; v.mu is held.
func (v *Vault) viewLocked(s slot) Slot {
	out := Slot{ID: s.hex(), Kind: slotNames[s.kind], Unattended: s.opensUnattended(), Opens: s.kind != slotPasskey, Detail: s.detail()}
	if v.contents != nil {
		out.Created, out.Label = decodeLabel(v.contents.states[factSlot+s.hex()])
	}
	return out
}

func (s slot) detail() string {
	switch s.kind {
	case slotPassphrase:
		k := decodeLock(&reader{b: s.params}).kdf
		return fmt.Sprintf("argon2id, %d passes over %d MiB, %d threads", k.Time, k.MemoryKiB>>10, k.Threads)
	case slotSystemdCredential:
		p, _ := decodePlain(s.kind, s.params)
		return "credential " + p.name + ": whoever starts the unit opens the vault"
	case slotKeychain:
		return "convenience: any process of this user can read it"
	case slotRecoveryCode:
		return "printed once"
	}
	return "not opened by this version"
}

// encodeLabel is the fact that goes with a slot: when, and what it is called.
func encodeLabel(t time.Time, label string) []byte {
	w := &writer{}
	w.u64(uint64(t.UnixMilli()))
	w.str(label)
	return w.b
}

func decodeLabel(b []byte) (time.Time, string) {
	r := &reader{b: b}
	ms, label := r.u64(), r.str(maxLabel)
	if !r.done() {
		return time.Time{}, ""
	}
	return time.UnixMilli(int64(ms)), label
}

// NewSlot says what slot to add. Passphrase is for SlotPassphrase, Credential
// names the one that SlotCredential reads.
type NewSlot struct {
	Kind       string
	Label      string
	Passphrase secret.Secret
	Credential string
}

// Added is a new slot, and the recovery code where it is one. The code is shown
// to the person and then wiped.
type Added struct {
	Slot Slot
	Code Code
}

// minPassphrase is the least for a new one. It says nothing about how good it
// is.
const minPassphrase = 8

func checkNewPassphrase(pass secret.Secret) error {
	if pass.Len() < minPassphrase {
		return fmt.Errorf("%w: it is shorter than %d bytes", ErrBadPassphrase, minPassphrase)
	}
	return checkPassphrase(pass)
}

// Check says what is wrong with a slot before anything is asked of a person.
func (n NewSlot) Check() error {
	if len(n.Label) > maxLabel {
		return fmt.Errorf("%w: its label is longer than %d bytes", ErrBadSlot, maxLabel)
	}
	for _, r := range n.Label {
		if r < ' ' || r == 0x7f {
			return fmt.Errorf("%w: its label has control characters", ErrBadSlot)
		}
	}
	switch n.Kind {
	case SlotCredential:
		return checkSlotName(slotSystemdCredential, n.Credential)
	case SlotPassphrase, SlotKeychain, SlotRecovery:
		return nil
	case SlotPasskey:
		return fmt.Errorf("%w: this version makes no passkey slots", ErrBadSlot)
	}
	return fmt.Errorf("%w: its kind must be %s, %s, %s or %s", ErrBadSlot, SlotPassphrase, SlotRecovery, SlotCredential, SlotKeychain)
}

// AddSlot adds a way to open the vault. Only who can open it already may: the
// operator's proof is for decisions, and who learns it must not be able to
// unlock. It answers ErrBadSlot, ErrWrongPassphrase or ErrWrongCode, *ProofError
// when it comes too soon after wrong ones, ErrBadPassphrase, ErrSamePassphrase,
// ErrUnattended where the credential or keychain cannot be read, ErrTooLarge or
// VAULT_LOCKED.
func (v *Vault) AddSlot(ctx context.Context, n NewSlot, w Way) (Added, error) {
	if err := n.Check(); err != nil {
		return Added{}, err
	}
	out := Added{}
	var id [idBytes]byte
	l, wrong := v.guesses(w)
	err := l.try(func() error {
		err, _ := v.saveTwice(ctx, func(old opened, d *draft) error {
			if err := w.opens(old.head); err != nil {
				return err
			}
			s, code, err := v.makeSlot(ctx, d.opened, n)
			if err != nil {
				return err
			}
			id, out.Code = s.id, code
			d.head = d.head.with(s)
			d.contents.states[factSlot+s.hex()] = encodeLabel(time.Now(), n.Label)
			return nil
		})
		return err
	}, wrong)
	v.settle(ctx)
	if err != nil {
		out.Code.Wipe()
		return Added{}, err
	}
	for _, s := range v.Slots() {
		if s.ID == fmt.Sprintf("%x", id) {
			out.Slot = s
		}
	}
	return out, nil
}

// opens says whether somebody could open the vault in this way.
func (w Way) opens(h header) error {
	if w.by == nil {
		return ErrWrongPassphrase
	}
	key, err := w.by(h)
	key.Wipe()
	return err
}

// makeSlot wraps the draft's data key in a new way; v.write is held.
func (v *Vault) makeSlot(ctx context.Context, o opened, n NewSlot) (slot, Code, error) {
	switch n.Kind {
	case SlotPassphrase:
		s, err := v.makePassphraseSlot(o, n.Passphrase, KDFParams{})
		return s, Code{}, err
	case SlotRecovery:
		code := newCode()
		s, err := newPlainSlot(o.head.id, newSlotID(), slotRecoveryCode, "", code, o.dataKey)
		return s, Code{code}, err
	case SlotCredential:
		from, err := v.readCredential(n.Credential)
		if err != nil {
			return slot{}, Code{}, err
		}
		defer from.Wipe()
		s, err := newPlainSlot(o.head.id, newSlotID(), slotSystemdCredential, n.Credential, from, o.dataKey)
		return s, Code{}, err
	}
	s, err := v.makeKeychainSlot(ctx, o)
	return s, Code{}, err
}

// makePassphraseSlot refuses the operator's passphrase and one that opens the
// vault already. The zero value of p asks for the measured default.
func (v *Vault) makePassphraseSlot(o opened, pass secret.Secret, p KDFParams) (slot, error) {
	if err := checkNewPassphrase(pass); err != nil {
		return slot{}, err
	}
	if err := o.refuseOperators(pass); err != nil {
		return slot{}, err
	}
	if key, err := o.head.unwrap(pass); err == nil {
		key.Wipe()
		return slot{}, fmt.Errorf("%w: it opens this vault already", ErrBadPassphrase)
	}
	kdf, err := v.kdfFor(p)
	if err != nil {
		return slot{}, err
	}
	return newPassphraseSlot(o.head.id, newSlotID(), kdf, pass, o.dataKey)
}

// refuseOperators refuses the passphrase that decides: who learns that one must
// not be able to unlock.
func (o opened) refuseOperators(pass secret.Secret) error {
	op := o.contents.operator
	if op == nil {
		return nil
	}
	key := op.lock.key(pass)
	defer key.Wipe()
	if key.Equal(op.key) {
		return ErrSamePassphrase
	}
	return nil
}

func (v *Vault) kdfFor(p KDFParams) (KDFParams, error) {
	o := v.o
	if p != (KDFParams{}) {
		o.KDF = p
	}
	return newKDF(o)
}

// makeKeychainSlot stores a new secret in the keychain. Its name is written
// down first; see pending.go.
func (v *Vault) makeKeychainSlot(ctx context.Context, o opened) (slot, error) {
	if v.o.SlotKeychain == nil {
		return slot{}, fmt.Errorf("%w: no keychain is configured", ErrBadSlot)
	}
	var b [keyBytes]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	defer clear(b[:])
	id := newSlotID()
	name := slotItem(o.head.id, id)
	if err := v.noteLocked(name); err != nil {
		return slot{}, err
	}
	if err := v.o.SlotKeychain.Put(ctx, name, b[:]); err != nil {
		return slot{}, err
	}
	from := secret.New(b[:])
	defer from.Wipe()
	return newPlainSlot(o.head.id, id, slotKeychain, name, from, o.dataKey)
}

// RemoveSlot takes a way in away. It answers ErrNoSlot, ErrLastSlot for the last
// one that a person can open, or VAULT_LOCKED. Copies of the vault that were
// made before still open with it; see RotateKey.
func (v *Vault) RemoveSlot(ctx context.Context, id string) error {
	err, again := v.saveTwice(ctx, func(_ opened, d *draft) error {
		s, err := removable(d.head, id)
		if err != nil {
			return err
		}
		return v.dropSlot(d, s)
	})
	v.settle(ctx)
	return done(err, again)
}

// done tells a change that was made, while the generation before it could not be
// replaced, from one that was not made.
func done(err, again error) error {
	if err != nil || again == nil {
		return err
	}
	return fmt.Errorf("it is done, but the generation before it still opens as it did, until the next save: %w", again)
}

// removable finds a slot that may go.
func removable(h header, id string) (slot, error) {
	s, ok := h.find(id)
	if !ok {
		return slot{}, fmt.Errorf("%w: %q", ErrNoSlot, id)
	}
	if s.attended() && h.attended() == 1 {
		return slot{}, fmt.Errorf("%w: add another passphrase or a recovery code first", ErrLastSlot)
	}
	return s, nil
}

// Removable says whether a slot may be removed, and which it is.
func (v *Vault) Removable(id string) (Slot, error) {
	if err := v.CheckOpen(); err != nil {
		return Slot{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s, err := removable(v.head, id)
	if err != nil {
		return Slot{}, err
	}
	return v.viewLocked(s), nil
}

// dropSlot takes a slot and its label out of the draft; v.write is held.
func (v *Vault) dropSlot(d *draft, s slot) error {
	d.head = d.head.without(s.id)
	delete(d.contents.states, factSlot+s.hex())
	if s.kind != slotKeychain {
		return nil
	}
	p, _ := decodePlain(s.kind, s.params)
	return v.noteLocked(p.name)
}

// saveTwice makes one change and then saves once more without any, so that the
// generation before, which stays on disk, opens with the same slots and key. err
// says that the change was not made, again that only the second save failed.
func (v *Vault) saveTwice(ctx context.Context, alter func(old opened, d *draft) error) (err, again error) {
	v.write.Lock()
	defer v.write.Unlock()
	if _, err = v.commitLocked(ctx, alter); err != nil {
		return err, nil
	}
	_, again = v.commitLocked(context.WithoutCancel(ctx), func(opened, *draft) error { return nil })
	return nil, again
}

// Rewrap replaces the passphrase slot that old opens by one for next, which may
// be the same passphrase, at the cost of p; the zero value asks for the measured
// default. It answers ErrWrongPassphrase, *ProofError when it comes too soon
// after wrong ones, and what AddSlot does.
func (v *Vault) Rewrap(ctx context.Context, old, next secret.Secret, p KDFParams) error {
	return v.unlocks.try(func() error {
		return done(v.saveTwice(ctx, func(o opened, d *draft) error {
			key, was, err := o.head.unwrapSlot(old)
			if err != nil {
				return err
			}
			key.Wipe()
			d.head = d.head.without(was.id)
			s, err := v.makePassphraseSlot(d.opened, next, p)
			if err != nil {
				return err
			}
			d.head = d.head.with(s)
			_, label := decodeLabel(d.contents.states[factSlot+was.hex()])
			delete(d.contents.states, factSlot+was.hex())
			d.contents.states[factSlot+s.hex()] = encodeLabel(time.Now(), label)
			return nil
		}))
	}, ErrWrongPassphrase)
}
