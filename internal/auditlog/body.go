package auditlog

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// errBody says that a control record's body does not have the layout of its
// kind.
var errBody = errors.New("the body does not have the layout of its kind")

// cursor takes fixed-size fields off the front of a body. Once a field is
// missing every later one is zero and ok is false.
type cursor struct {
	b  []byte
	ok bool
}

func newCursor(b []byte) *cursor { return &cursor{b: b, ok: true} }

func (c *cursor) take(n int) []byte {
	if !c.ok || len(c.b) < n {
		c.ok = false
		return make([]byte, n)
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u8() uint8      { return c.take(1)[0] }
func (c *cursor) u16() uint16    { return binary.BigEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32    { return binary.BigEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64    { return binary.BigEndian.Uint64(c.take(8)) }
func (c *cursor) b32() (h hash)  { copy(h[:], c.take(hashSize)); return h }
func (c *cursor) finished() bool { return c.ok && len(c.b) == 0 }

// segmentBody is the first record of each file: enough to check the file
// without those before it.
type segmentBody struct {
	logID  [32]byte
	number uint32
	prev   hash
	epoch  uint64 // the epoch before this file's first EPOCH record; 0 at the start
	signer [32]byte
	tree   tree
}

// segmentFixed is the size of a SEGMENT body without the frontier.
const segmentFixed = 32 + 4 + 32 + 8 + 32 + 8

func (s *segmentBody) encode() []byte {
	b := make([]byte, 0, segmentFixed+hashSize*len(s.tree.frontier))
	b = append(b, s.logID[:]...)
	b = binary.BigEndian.AppendUint32(b, s.number)
	b = append(b, s.prev[:]...)
	b = binary.BigEndian.AppendUint64(b, s.epoch)
	b = append(b, s.signer[:]...)
	b = binary.BigEndian.AppendUint64(b, s.tree.size)
	for _, h := range s.tree.frontier {
		b = append(b, h[:]...)
	}
	return b
}

func parseSegment(body []byte) (segmentBody, error) {
	c := newCursor(body)
	s := segmentBody{logID: c.b32(), number: c.u32(), prev: c.b32(), epoch: c.u64(), signer: c.b32()}
	s.tree.size = c.u64()
	for range frontierLen(s.tree.size) {
		s.tree.frontier = append(s.tree.frontier, c.b32())
	}
	if !c.finished() {
		return segmentBody{}, errBody
	}
	return s, nil
}

// wrap is one recipient's copy of an epoch's seed.
type wrap struct {
	id     [8]byte // SHA-256 of the public key, first 8 bytes
	sealed []byte  // HPKE encapsulation and ciphertext
}

// epochBody starts an epoch: the seed for each recipient, and the signer's
// next key, signed with the current one.
type epochBody struct {
	epoch          uint64
	kem, kdf, aead uint16
	wraps          []wrap
	seedCommit     hash
	next           [32]byte
	sig            [ed25519.SignatureSize]byte
}

// HPKE suites that an EPOCH record may name (RFC 9180 and its registry). This
// release writes X-Wing; a reader also accepts plain X25519.
const (
	kemXWing   = 0x647a
	kemX25519  = 0x0020
	kdfSHA256  = 0x0001
	aeadAES256 = 0x0002
)

// minRecipients keeps one lost key from making the record unreadable.
const minRecipients = 2

// unsigned encodes the body without its signature.
func (e *epochBody) unsigned() []byte {
	b := binary.BigEndian.AppendUint64(nil, e.epoch)
	for _, v := range []uint16{e.kem, e.kdf, e.aead} {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	b = append(b, byte(len(e.wraps)))
	for _, w := range e.wraps {
		b = append(b, w.id[:]...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(w.sealed)))
		b = append(b, w.sealed...)
	}
	b = append(b, e.seedCommit[:]...)
	return append(b, e.next[:]...)
}

func parseEpoch(body []byte) (epochBody, error) {
	c := newCursor(body)
	e := epochBody{epoch: c.u64(), kem: c.u16(), kdf: c.u16(), aead: c.u16()}
	n := int(c.u8())
	for i := 0; i < n && c.ok; i++ {
		var w wrap
		copy(w.id[:], c.take(len(w.id)))
		w.sealed = c.take(int(c.u16()))
		e.wraps = append(e.wraps, w)
	}
	e.seedCommit, e.next = c.b32(), c.b32()
	copy(e.sig[:], c.take(len(e.sig)))
	if !c.finished() || n < minRecipients {
		return epochBody{}, errBody
	}
	if (e.kem != kemXWing && e.kem != kemX25519) || e.kdf != kdfSHA256 || e.aead != aeadAES256 {
		return epochBody{}, errors.New("the epoch names an unknown HPKE suite")
	}
	return e, nil
}

// epochMessage is what the previous epoch's key signs. The body enters by its
// hash, so that a 168-byte skeleton is enough to follow the keys after the
// body is gone.
func epochMessage(logID [32]byte, seq uint64, prev hash, unsigned []byte) []byte {
	m := append([]byte(tagEpochSig), logID[:]...)
	m = binary.BigEndian.AppendUint64(m, seq)
	m = append(m, prev[:]...)
	d := sha256.Sum256(unsigned)
	return append(m, d[:]...)
}

// Reasons of a RECOVER record.
const (
	recoverTorn   = 1 // the unacknowledged last batch was cut off
	recoverDamage = 2 // an operator declared a gap
)

// recoverBody makes a cut legal: what was cut is kept beside the log and named
// here by its hash.
type recoverBody struct {
	bytes   uint64
	sum     hash
	reason  uint8
	lastSeq uint64 // the last record before the cut
}

func (r *recoverBody) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, r.bytes)
	b = append(b, r.sum[:]...)
	b = append(b, r.reason)
	return binary.BigEndian.AppendUint64(b, r.lastSeq)
}

func parseRecover(body []byte) (recoverBody, error) {
	c := newCursor(body)
	r := recoverBody{bytes: c.u64(), sum: c.b32(), reason: c.u8(), lastSeq: c.u64()}
	if !c.finished() || (r.reason != recoverTorn && r.reason != recoverDamage) {
		return recoverBody{}, errBody
	}
	return r, nil
}

// pruneBody covers the removal of old segments. Written by a later release;
// this one reads it.
type pruneBody struct {
	first  uint64 // first retained sequence
	prev   hash   // chain value before it
	signer [32]byte
	policy uint16
	keys   [][8]byte // body keys destroyed
}

func parsePrune(body []byte) (pruneBody, error) {
	c := newCursor(body)
	p := pruneBody{first: c.u64(), prev: c.b32(), signer: c.b32(), policy: c.u16()}
	for n := int(c.u16()); n > 0 && c.ok; n-- {
		var k [8]byte
		copy(k[:], c.take(len(k)))
		p.keys = append(p.keys, k)
	}
	if !c.finished() {
		return pruneBody{}, errBody
	}
	return p, nil
}

// closeBody ends a run: the epoch's key signs the place and names the next
// key. Written by a later release; this one reads it.
type closeBody struct {
	next [32]byte
	sig  [ed25519.SignatureSize]byte
}

func parseClose(body []byte) (closeBody, error) {
	c := newCursor(body)
	k := closeBody{next: c.b32()}
	copy(k.sig[:], c.take(len(k.sig)))
	if !c.finished() {
		return closeBody{}, errBody
	}
	return k, nil
}

// closeMessage is what a CLOSE record's signature covers.
func closeMessage(logID [32]byte, seq uint64, prev hash, next [32]byte) []byte {
	m := append([]byte(tagClose), logID[:]...)
	m = binary.BigEndian.AppendUint64(m, seq)
	m = append(m, prev[:]...)
	return append(m, next[:]...)
}
