package auditlog

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	seedSize  = 32
	keySize   = 32
	nonceSize = 12
	sealExtra = nonceSize + 16 // nonce and tag of AES-256-GCM
)

// errOpen says that a sealed record does not open: another log, another place,
// another epoch or altered bytes.
var errOpen = errors.New("auditlog: a sealed record does not open with this epoch's key")

// ratchet gives one key a record and forgets the way back: who reads the
// memory sees the rest of the epoch and nothing before.
type ratchet struct{ state [seedSize]byte }

// next returns the key of the next record and moves on.
func (r *ratchet) next() (key [keySize]byte) {
	out := expand(r.state[:], tagRatchet, keySize+seedSize)
	copy(key[:], out)
	copy(r.state[:], out[keySize:])
	clear(out)
	return key
}

func (r *ratchet) wipe() { clear(r.state[:]) }

// expand is HKDF-Expand with SHA-256 (RFC 5869). It fails only for lengths
// that no caller here asks for.
func expand(key []byte, info string, n int) []byte {
	out, err := hkdf.Expand(sha256.New, key, info, n)
	if err != nil {
		panic("auditlog: hkdf: " + err.Error())
	}
	return out
}

// seedCommit binds all recipients to one seed.
func seedCommit(seed []byte) (h hash) {
	copy(h[:], expand(seed, tagSeedCommit, hashSize))
	return h
}

// seedInfo is the HPKE info of an epoch's seed: it ties the wrapped seed to
// one place of one log.
func seedInfo(logID [32]byte, epoch uint64, prev hash) []byte {
	b := append([]byte(tagSeed), logID[:]...)
	b = binary.BigEndian.AppendUint64(b, epoch)
	return append(b, prev[:]...)
}

// wrapSeed seals the seed to every recipient.
func wrapSeed(seed []byte, rs []Recipient, info []byte) ([]wrap, error) {
	var out []wrap
	for _, r := range rs {
		sealed, err := hpke.Seal(r.pub, hpke.HKDFSHA256(), hpke.AES256GCM(), info, seed)
		if err != nil {
			return nil, fmt.Errorf("auditlog: wrap the seed for %s: %w", r.ID(), err)
		}
		out = append(out, wrap{id: r.id(), sealed: sealed})
	}
	return out, nil
}

// unwrapSeed opens the seed with one recipient's key. ok is false when the
// epoch is not sealed to that key.
func unwrapSeed(e *epochBody, id Identity, info []byte) (seed []byte, ok bool, err error) {
	me := id.Recipient().id()
	for _, w := range e.wraps {
		if w.id != me || id.key().KEM().ID() != e.kem {
			continue
		}
		seed, err := hpke.Open(id.key(), hpke.HKDFSHA256(), hpke.AES256GCM(), info, w.sealed)
		if err != nil || len(seed) != seedSize {
			return nil, true, fmt.Errorf("auditlog: the seed of epoch %d does not open with key %s", e.epoch, id.Recipient().ID())
		}
		if seedCommit(seed) != e.seedCommit {
			return nil, true, fmt.Errorf("auditlog: the seed of epoch %d is not the one all recipients hold", e.epoch)
		}
		return seed, true, nil
	}
	return nil, false, nil
}

// sealAAD fills the associated data of a SEALED record. A ciphertext therefore
// cannot be moved to another place, even by someone who chains anew.
func sealAAD(logID [32]byte, epoch uint64, header []byte, prev hash) []byte {
	b := make([]byte, 0, 32+8+headerSize+hashSize)
	b = append(b, logID[:]...)
	b = binary.BigEndian.AppendUint64(b, epoch)
	b = append(b, header...)
	return append(b, prev[:]...)
}

func newGCM(key *[keySize]byte) cipher.AEAD {
	block, err := aes.NewCipher(key[:])
	if err == nil {
		var g cipher.AEAD
		if g, err = cipher.NewGCM(block); err == nil {
			return g
		}
	}
	panic("auditlog: aes-gcm: " + err.Error()) // only for a wrong key length
}

// appendSealed appends a whole SEALED frame to b. The key is used once; the
// random nonce is there because a snapshot of the machine could rewind the
// ratchet.
func appendSealed(b []byte, r *ratchet, logID [32]byte, epoch, seq uint64, flags uint8, prev hash, plain []byte) ([]byte, hash) {
	key := r.next()
	defer clear(key[:])
	start := len(b)
	b = append(b, make([]byte, headerSize+nonceSize)...)
	putHeader(b[start:], kindSealed, flags, len(plain)+sealExtra, seq)
	nonce := b[start+headerSize:]
	rand.Read(nonce)
	aad := sealAAD(logID, epoch, b[start:start+headerSize], prev)
	b = newGCM(&key).Seal(b, nonce, plain, aad)
	h := chainNext(prev, b[start:])
	return append(b, h[:]...), h
}

// openSealed opens the body of a SEALED frame with the ratchet's next key.
func openSealed(r *ratchet, logID [32]byte, epoch uint64, prev hash, f *frame) ([]byte, error) {
	key := r.next()
	defer clear(key[:])
	body := f.body
	if f.flags&flagBodyRef != 0 {
		body = body[bodyRefSize:]
	}
	aad := sealAAD(logID, epoch, f.raw[:headerSize], prev)
	plain, err := newGCM(&key).Open(nil, body[:nonceSize], body[nonceSize:], aad)
	if err != nil {
		return nil, errOpen
	}
	return plain, nil
}
