package vault

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"chatelaine/internal/secret"
)

// Kinds of slot, by their numbers in the file. slotPasskey cannot be opened so
// far; it has its number, is kept as it is, and is covered by the header's MAC.
const (
	slotPassphrase        = 1
	slotSystemdCredential = 2
	slotKeychain          = 3
	slotPasskey           = 4
	slotRecoveryCode      = 5
)

// Kinds of slot, by their names. Passphrase, passkey and recovery code are
// attended: a person is there. The other two open by themselves.
const (
	SlotPassphrase = "passphrase"
	SlotCredential = "credential"
	SlotKeychain   = "keychain"
	SlotPasskey    = "passkey"
	SlotRecovery   = "recovery"
)

var slotNames = map[uint8]string{
	slotPassphrase: SlotPassphrase, slotSystemdCredential: SlotCredential, slotKeychain: SlotKeychain,
	slotPasskey: SlotPasskey, slotRecoveryCode: SlotRecovery,
}

// slot is one way to reach the data key.
type slot struct {
	id      [idBytes]byte
	kind    uint8
	params  []byte
	wrapped []byte // the data key, sealed under the slot's key
}

func (s slot) hex() string { return hex.EncodeToString(s.id[:]) }

// opensUnattended says whether no person is needed.
func (s slot) opensUnattended() bool {
	return s.kind == slotSystemdCredential || s.kind == slotKeychain
}

// attended says whether a person can open the vault with it, in this version.
func (s slot) attended() bool { return s.kind == slotPassphrase || s.kind == slotRecoveryCode }

// check refuses a slot that is not well formed and returns the cost of trying
// a passphrase on it.
func (s slot) check(r *reader) uint64 {
	switch s.kind {
	case slotPassphrase:
		p := &reader{b: s.params}
		l := decodeLock(p)
		if !p.done() || len(s.wrapped) != sealExtra+keyBytes {
			r.bad = true
		}
		return l.kdf.cost()
	case slotSystemdCredential, slotKeychain, slotRecoveryCode:
		_, ok := decodePlain(s.kind, s.params)
		if !ok || len(s.wrapped) != sealExtra+keyBytes {
			r.bad = true
		}
	case slotPasskey:
	default:
		r.bad = true
	}
	return 0
}

// ad binds a wrapped key to its vault and slot.
func (s slot) ad(id [idBytes]byte) []byte {
	w := &writer{b: []byte(adSlot)}
	w.raw(id[:])
	w.raw(s.id[:])
	w.u8(s.kind)
	w.blob(s.params)
	return w.b
}

// plain holds the parameters of a slot whose secret is random: it needs no slow
// derivation. name says where the secret lies; a recovery code has none.
type plain struct {
	salt [saltBytes]byte
	name string
}

// plainHKDF is the only derivation of these slots; another gets another number.
const plainHKDF = 1

// maxSlotName bounds the name of a credential or of a keychain item.
const maxSlotName = 128

// slotInfo is what a slot's key is for, after "chatelaine/v1 slot key ".
var slotInfo = map[uint8]string{
	slotSystemdCredential: "chatelaine/v1 slot key credential",
	slotKeychain:          "chatelaine/v1 slot key keychain",
	slotRecoveryCode:      "chatelaine/v1 slot key recovery",
}

func (p plain) encode(kind uint8) []byte {
	w := &writer{}
	w.u8(plainHKDF)
	w.raw(p.salt[:])
	if kind != slotRecoveryCode {
		w.str(p.name)
	}
	return w.b
}

func decodePlain(kind uint8, b []byte) (plain, bool) {
	r := &reader{b: b}
	var p plain
	if r.u8() != plainHKDF {
		r.bad = true
	}
	r.fill(p.salt[:])
	if kind != slotRecoveryCode {
		if p.name = r.str(maxSlotName); checkSlotName(kind, p.name) != nil {
			r.bad = true
		}
	}
	return p, r.done()
}

// checkSlotName holds a credential's name to a plain file name, since the daemon
// opens it in a folder, and a keychain item's to what this package makes.
func checkSlotName(kind uint8, name string) error {
	ok := name != "" && len(name) <= maxSlotName
	for i, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		mark := c == '-' || c == '_' || c == '.' || kind == slotKeychain && c == '/'
		ok = ok && (alnum || i > 0 && mark)
	}
	if !ok {
		return fmt.Errorf("%w: its name must be 1 to %d letters, digits, '-', '_' or '.', and begin with a letter or digit", ErrBadSlot, maxSlotName)
	}
	return nil
}

// key derives the slot's key from its secret (HKDF-SHA256, RFC 5869).
func (p plain) key(kind uint8, s secret.Secret) (secret.Secret, error) {
	var out secret.Secret
	var err error
	s.Use(func(b []byte) {
		var key []byte
		if key, err = hkdf.Key(sha256.New, b, p.salt[:], slotInfo[kind], keyBytes); err == nil {
			out = secret.New(key)
			clear(key)
		}
	})
	return out, err
}

func newSlotID() [idBytes]byte {
	var id [idBytes]byte
	_, _ = rand.Read(id[:]) // crypto/rand.Read never fails
	return id
}

// newPassphraseSlot wraps the data key under a passphrase.
func newPassphraseSlot(id, slotID [idBytes]byte, p KDFParams, pass, dataKey secret.Secret) (slot, error) {
	l := newLock(p)
	w := &writer{}
	l.encode(w)
	s := slot{id: slotID, kind: slotPassphrase, params: w.b}
	key := l.key(pass)
	defer key.Wipe()
	return s, s.wrap(id, key, dataKey)
}

// newPlainSlot wraps the data key under a random secret that lies elsewhere.
func newPlainSlot(id, slotID [idBytes]byte, kind uint8, name string, from, dataKey secret.Secret) (slot, error) {
	p := plain{name: name}
	_, _ = rand.Read(p.salt[:]) // crypto/rand.Read never fails
	s := slot{id: slotID, kind: kind, params: p.encode(kind)}
	key, err := p.key(kind, from)
	if err != nil {
		return slot{}, err
	}
	defer key.Wipe()
	return s, s.wrap(id, key, dataKey)
}

// wrap seals the data key under the slot's key.
func (s *slot) wrap(id [idBytes]byte, key, dataKey secret.Secret) error {
	err := errLocked()
	dataKey.Use(func(b []byte) {
		if len(b) == keyBytes {
			s.wrapped, err = seal(key, b, s.ad(id))
		}
	})
	return err
}

// unwrap opens the slot with its key; errUnsealed for another key.
func (s slot) unwrap(id [idBytes]byte, key secret.Secret) (secret.Secret, error) {
	b, err := unseal(key, s.wrapped, s.ad(id))
	if err != nil {
		return secret.Secret{}, err
	}
	defer clear(b)
	if len(b) != keyBytes {
		return secret.Secret{}, errUnsealed
	}
	return secret.New(b), nil
}

// openPlain opens a slot with the secret that it was made with.
func (s slot) openPlain(id [idBytes]byte, from secret.Secret) (secret.Secret, error) {
	p, _ := decodePlain(s.kind, s.params) // checked when the file was read
	key, err := p.key(s.kind, from)
	if err != nil {
		return secret.Secret{}, err
	}
	defer key.Wipe()
	return s.unwrap(id, key)
}

// unwrap tries the passphrase on each passphrase slot. It answers
// ErrWrongPassphrase where none opens.
func (h header) unwrap(pass secret.Secret) (secret.Secret, error) {
	key, _, err := h.unwrapSlot(pass)
	return key, err
}

// unwrapSlot also says which slot it was.
func (h header) unwrapSlot(pass secret.Secret) (secret.Secret, slot, error) {
	for _, s := range h.slots {
		if s.kind != slotPassphrase {
			continue
		}
		key := decodeLock(&reader{b: s.params}).key(pass)
		out, err := s.unwrap(h.id, key)
		key.Wipe()
		if err == nil {
			return out, s, nil
		}
	}
	return secret.Secret{}, slot{}, ErrWrongPassphrase
}

// unwrapCode tries a recovery code on each slot of its kind.
func (h header) unwrapCode(code secret.Secret) (secret.Secret, error) {
	there := false
	for _, s := range h.slots {
		if s.kind != slotRecoveryCode {
			continue
		}
		there = true
		out, err := s.openPlain(h.id, code)
		if err == nil || !errors.Is(err, errUnsealed) {
			return out, err
		}
	}
	if !there {
		return secret.Secret{}, fmt.Errorf("%w: this vault has no recovery code", ErrNoSlot)
	}
	return secret.Secret{}, ErrWrongCode
}

// find is the slot of that id, in hex.
func (h header) find(id string) (slot, bool) {
	for _, s := range h.slots {
		if s.hex() == id {
			return s, true
		}
	}
	return slot{}, false
}

// without is the header without one slot; its slots are never shared.
func (h header) without(id [idBytes]byte) header {
	out := h
	out.slots = nil
	for _, s := range h.slots {
		if !bytes.Equal(s.id[:], id[:]) {
			out.slots = append(out.slots, s)
		}
	}
	return out
}

// with is the header with one more slot.
func (h header) with(s slot) header {
	out := h
	out.slots = append(append([]slot{}, h.slots...), s)
	return out
}

// attended counts the slots with which a person can open the vault.
func (h header) attended() int {
	n := 0
	for _, s := range h.slots {
		if s.attended() {
			n++
		}
	}
	return n
}

// fits refuses a header that would not be read again.
func (h header) fits() error {
	if len(h.slots) > maxSlots {
		return fmt.Errorf("%w: a vault has at most %d slots; remove one first", ErrTooLarge, maxSlots)
	}
	var cost uint64
	for _, s := range h.slots {
		cost += s.check(&reader{})
	}
	if cost > maxKDFCost {
		return fmt.Errorf("%w: all passphrase slots together cost too much; remove one, or rewrap one with less", ErrTooLarge)
	}
	return nil
}
