package auditlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// The frame: a 16-byte header, the body, and the 32-byte chain value. All
// integers are big-endian.
const (
	frameMagic   = 0xA7 // never zero, so that no cut can pass for preallocated space
	frameVersion = 1
	headerSize   = 16
	hashSize     = sha256.Size
	frameExtra   = headerSize + hashSize
	maxBody      = 1 << 24 // the format's bound; a segment's size bounds it further
)

// Kind is the kind of a frame.
type kind uint8

// The kinds. Any other makes the frame broken.
const (
	kindSegment kind = 1 + iota
	kindEpoch
	kindSealed
	kindCheck
	kindRecover
	kindPrune
	kindClose
)

// Flags of a frame. All other bits must be zero.
const (
	flagEnd     = 1 << 0 // the last frame of a batch
	flagBodyRef = 1 << 1 // SEALED only: a reference to an outside body comes first
)

// bodyRefSize is the size of the reference that flagBodyRef announces:
// SHA-256 of the outside ciphertext, its length u64, its period u16.
const bodyRefSize = 32 + 8 + 2

// Domain-separation tags. Their lengths are part of the format: the record
// tag, the previous chain value and the header fill one SHA-256 block.
const (
	tagRecord     = "chat/v1 record\x00\x00"
	tagGenesis    = "chat/v1 genesis\x00"
	tagSeed       = "chat/v1 epoch-seed\x00"
	tagSeedCommit = "chat/v1 seed-commit"
	tagRatchet    = "chat/v1 ratchet"
	tagEpochSig   = "chat/v1 epoch-sig\x00"
	tagClose      = "chat/v1 close\x00"
)

type hash = [hashSize]byte

// frame is one parsed frame. raw is header and body together, body a part of
// it; both point into the bytes that were parsed.
type frame struct {
	kind  kind
	flags uint8
	seq   uint64
	raw   []byte
	body  []byte
	chain hash
}

// size is the number of bytes that the frame takes in a file.
func (f *frame) size() int { return len(f.raw) + hashSize }

// end says whether the frame closes a batch.
func (f *frame) end() bool { return f.flags&flagEnd != 0 }

// Reasons for which bytes are not a frame. They go into the report as they
// are.
var (
	errShort   = errors.New("the record is cut off")
	errMagic   = errors.New("not the start of a record")
	errVersion = errors.New("unknown record version")
	errKind    = errors.New("unknown record kind")
	errFlags   = errors.New("reserved flags are set")
	errLength  = errors.New("the body length is out of range")
)

// putHeader writes the header of a frame into b.
func putHeader(b []byte, k kind, flags uint8, bodyLen int, seq uint64) {
	b[0], b[1], b[2], b[3] = frameMagic, frameVersion, byte(k), flags
	binary.BigEndian.PutUint32(b[4:], uint32(bodyLen))
	binary.BigEndian.PutUint64(b[8:], seq)
}

// parseHeader reads the header at the start of b and says what rule it breaks.
// It does not need the body to be there.
func parseHeader(b []byte) (k kind, flags uint8, bodyLen int, seq uint64, err error) {
	if len(b) == 0 || b[0] != frameMagic {
		return 0, 0, 0, 0, errMagic
	}
	if len(b) < headerSize {
		return 0, 0, 0, 0, errShort
	}
	k, flags = kind(b[2]), b[3]
	n := binary.BigEndian.Uint32(b[4:])
	switch {
	case b[1] != frameVersion:
		err = errVersion
	case k < kindSegment || k > kindClose:
		err = errKind
	case flags&^(flagEnd|flagBodyRef) != 0, flags&flagBodyRef != 0 && k != kindSealed:
		err = errFlags
	case n < 1 || n > maxBody:
		err = errLength
	}
	return k, flags, int(n), binary.BigEndian.Uint64(b[8:]), err
}

// parseFrame reads the frame at the start of b. It checks the form only: the
// sequence and the chain are the scanner's.
func parseFrame(b []byte) (frame, error) {
	k, flags, n, seq, err := parseHeader(b)
	if err != nil {
		return frame{}, err
	}
	if len(b) < n+frameExtra {
		return frame{}, errShort
	}
	f := frame{kind: k, flags: flags, seq: seq, raw: b[:headerSize+n], body: b[headerSize : headerSize+n]}
	copy(f.chain[:], b[headerSize+n:])
	return f, nil
}

// chainBuffer is the longest record that is hashed from one buffer on the
// stack; that is faster than a hash with state, and most records are shorter.
const chainBuffer = 1024

// chainNext gives the chain value of a record from the one before it and from
// its header and body.
func chainNext(prev hash, raw []byte) hash {
	var buf [len(tagRecord) + hashSize + chainBuffer]byte
	copy(buf[:], tagRecord)
	copy(buf[len(tagRecord):], prev[:])
	const first = len(tagRecord) + hashSize
	if len(raw) <= chainBuffer {
		return sha256.Sum256(buf[:first+copy(buf[first:], raw)])
	}
	h := sha256.New()
	h.Write(buf[:first])
	h.Write(raw)
	var out hash
	h.Sum(out[:0])
	return out
}

// genesis gives the chain value before the first record. It differs from log
// to log, so that no part of one fits into another.
func genesis(logID [32]byte) hash {
	return sha256.Sum256(append([]byte(tagGenesis), logID[:]...))
}

// appendFrame appends a whole frame to b and returns its chain value.
func appendFrame(b []byte, k kind, flags uint8, seq uint64, prev hash, body []byte) ([]byte, hash) {
	start := len(b)
	b = append(b, make([]byte, headerSize)...)
	putHeader(b[start:], k, flags, len(body), seq)
	b = append(b, body...)
	h := chainNext(prev, b[start:])
	return append(b, h[:]...), h
}

// allZero says whether b has no byte but zero: preallocated space that was
// never written.
func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
