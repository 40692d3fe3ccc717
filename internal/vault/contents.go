package vault

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/secret"
)

// Limits of what one vault holds.
const (
	maxItems      = 1000
	maxStates     = 256
	maxStateName  = 64
	maxStateBytes = 64 << 10
	maxName       = 64
	// maxSecret is far above any token that a server takes in a header.
	maxSecret = 8 << 10
	// maxPEM is for a chain of certificates with its key. Sealed and in base64 it
	// is below what a keychain entry may have.
	maxPEM = 12_000
)

// contents is the sealed part. A value is never changed once it is shared: a
// change clones, alters the clone and saves it.
type contents struct {
	operator *operator
	items    map[string]item
	states   map[string][]byte
	// root is what subkeys come from, once the data key was replaced; zero until
	// then. In the file it is the fact factRoot.
	root    secret.Secret
	hasRoot bool
}

// Facts that this package keeps for itself.
const (
	factRoot = "subkey root"
	factSlot = "slot " // and the slot's id in hex
)

// ownFact says whether a fact is this package's and not the daemon's.
func ownFact(name string) bool {
	return name == factRoot || strings.HasPrefix(name, factSlot) || strings.HasPrefix(name, factSource)
}

// operator is the verifier of the operator passphrase: the key that it
// derives, which checks proofs.
type operator struct {
	lock
	key secret.Secret
}

// item is one identity. Its secret is sealed once more, with its name, binding,
// generation and short flag as associated data, so that no entry can be
// swapped, renamed, bound anew or set back.
type item struct {
	name       string
	binding    Binding
	generation uint64
	updated    time.Time
	short      bool
	suspended  bool
	outside    bool   // the sealed secret is in the backend
	sealed     []byte // nil where outside

	label   string    // a person's own word for it
	expires time.Time // when the secret stops working; zero where that is not known
	source  string    // "NAME:REFERENCE" where the secret is fetched; what is sealed is empty then
}

const (
	flagShort     = 1
	flagSuspended = 2
	flagOutside   = 4
	flagMore      = 8 // more follows the sealed secret
	allFlags      = flagShort | flagSuspended | flagOutside | flagMore
)

func newContents() *contents {
	return &contents{items: map[string]item{}, states: map[string][]byte{}}
}

func (c *contents) clone() *contents {
	return &contents{operator: c.operator, items: maps.Clone(c.items), states: maps.Clone(c.states), root: c.root, hasRoot: c.hasRoot}
}

// encode fails where the operator's key was wiped by a lock meanwhile.
func (c *contents) encode() ([]byte, error) {
	w := &writer{}
	if c.operator == nil {
		w.u8(0)
	} else {
		w.u8(1)
		c.operator.encode(w)
		err := errLocked()
		c.operator.key.Use(func(b []byte) {
			if len(b) == keyBytes {
				w.raw(b)
				err = nil
			}
		})
		if err != nil {
			return nil, err
		}
	}
	w.u32(uint32(len(c.items)))
	for _, name := range slices.Sorted(maps.Keys(c.items)) {
		c.items[name].encode(w)
	}
	return w.b, c.encodeStates(w)
}

// encodeStates fails where the root was wiped by a lock meanwhile.
func (c *contents) encodeStates(w *writer) error {
	names := slices.Collect(maps.Keys(c.states))
	if c.hasRoot {
		names = append(names, factRoot)
	}
	slices.Sort(names)
	w.u32(uint32(len(names)))
	for _, name := range names {
		w.str(name)
		if name != factRoot {
			w.blob(c.states[name])
			continue
		}
		err := errLocked()
		c.root.Use(func(b []byte) {
			if len(b) == keyBytes {
				w.blob(b)
				err = nil
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wipe drops the keys that are in it.
func (c *contents) wipe() {
	if c == nil {
		return
	}
	if c.operator != nil {
		c.operator.key.Wipe()
	}
	c.root.Wipe()
}

func (it item) encode(w *writer) {
	w.str(it.name)
	it.binding.encode(w)
	w.u64(it.generation)
	w.u64(uint64(it.updated.UnixMilli()))
	var flags uint8
	if it.short {
		flags |= flagShort
	}
	if it.suspended {
		flags |= flagSuspended
	}
	if it.outside {
		flags |= flagOutside
	}
	if it.hasMore() {
		flags |= flagMore
	}
	w.u8(flags)
	w.blob(it.sealed)
	if it.hasMore() {
		it.encodeMore(w)
	}
}

// ad is the associated data of the sealed secret.
func (it item) ad(vaultID [idBytes]byte) []byte {
	w := &writer{b: []byte(infoItem)}
	w.raw(vaultID[:])
	w.str(it.name)
	it.binding.encode(w)
	w.u64(it.generation)
	if it.short {
		w.u8(1)
	} else {
		w.u8(0)
	}
	if it.hasBoundMore() {
		it.encodeBoundMore(w)
	}
	return w.b
}

// decodeContents accepts only what encode writes: names in order, no unknown
// flag, nothing left over.
func decodeContents(b []byte) (*contents, error) {
	r := &reader{b: b}
	c := newContents()
	switch r.u8() {
	case 0:
	case 1:
		c.operator = &operator{lock: decodeLock(r)}
		c.operator.key = secret.New(r.take(keyBytes))
	default:
		r.bad = true
	}
	decodeItems(r, c)
	decodeStates(r, c)
	if !r.done() {
		return nil, damaged("the structure of its contents is wrong")
	}
	return c, nil
}

func decodeItems(r *reader, c *contents) {
	n, last := r.u32(), ""
	if n > maxItems {
		r.bad = true
	}
	for range n {
		it := item{name: r.str(maxName), binding: decodeBinding(r), generation: r.u64()}
		it.updated = time.UnixMilli(int64(r.u64()))
		flags := r.u8()
		it.short = flags&flagShort != 0
		it.suspended = flags&flagSuspended != 0
		it.outside = flags&flagOutside != 0
		it.sealed = bytes.Clone(r.blob(maxPEM + sealExtra))
		if flags&flagMore != 0 {
			it.decodeMore(r)
		}
		wrong := flags > allFlags || it.name <= last || checkName(it.name) != nil ||
			it.binding.check() != nil || it.outside != (len(it.sealed) == 0)
		if r.bad || wrong {
			r.bad = true
			return
		}
		c.items[it.name], last = it, it.name
	}
}

func decodeStates(r *reader, c *contents) {
	n, last := r.u32(), ""
	if n > maxStates {
		r.bad = true
	}
	for range n {
		name := r.str(maxStateName)
		value := bytes.Clone(r.blob(maxStateBytes))
		root := name == factRoot
		if r.bad || name <= last || root && len(value) != keyBytes {
			r.bad = true
			return
		}
		last = name
		if root {
			c.root, c.hasRoot = secret.New(value), true
			clear(value)
			continue
		}
		c.states[name] = value
	}
}

// checkName holds identity names to what a site file and a keychain take.
func checkName(name string) error {
	ok := name != "" && len(name) <= maxName
	for i, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		ok = ok && (alnum || i > 0 && (c == '-' || c == '_' || c == '.'))
	}
	if !ok {
		return fmt.Errorf("%w: its name must be 1 to %d letters, digits, '-', '_' or '.', and begin with a letter or digit", ErrBadIdentity, maxName)
	}
	return nil
}
