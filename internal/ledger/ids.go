package ledger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"regexp"
	"strings"
	"time"

	"chatelaine/internal/fault"
)

// idForm is the form of a caller's request id (http-api.md, "Once").
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{7,63}$`)

// ownPrefix begins the daemon's own ids, and no caller's.
const ownPrefix = "act_"

// An own id is 48 bits of milliseconds, 40 random bits and a 40-bit mark, in 26
// letters as a ULID has. The mark lets the daemon know its own ids again after
// it forgot the call; guessing one wins nothing but a form of id.
const (
	ownTimeBytes   = 6
	ownRandomBytes = 5
	ownMarkBytes   = 5
	ownBytes       = ownTimeBytes + ownRandomBytes + ownMarkBytes
)

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// NewID makes a request id of the daemon's own. It works while locked, for
// answers outside any call.
func (l *Ledger) NewID() string {
	var b [ownBytes]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(l.now().UnixMilli()))
	copy(b[:ownTimeBytes], ms[2:])
	_, _ = rand.Read(b[ownTimeBytes : ownTimeBytes+ownRandomBytes]) // never fails
	copy(b[ownTimeBytes+ownRandomBytes:], l.mark(b[:ownTimeBytes+ownRandomBytes]))
	return ownPrefix + crockford.EncodeToString(b[:])
}

func (l *Ledger) mark(head []byte) []byte {
	m := hmac.New(sha256.New, l.idKey)
	m.Write([]byte("chatelaine/v1 request id\x00"))
	m.Write(head)
	return m.Sum(nil)[:ownMarkBytes]
}

// isOwn says whether id is one that NewID made.
func (l *Ledger) isOwn(id string) bool {
	text := strings.TrimPrefix(id, ownPrefix)
	b, err := crockford.DecodeString(text)
	if err != nil || len(b) != ownBytes || crockford.EncodeToString(b) != text {
		return false // the last letter has two bits to spare: one spelling
	}
	n := ownTimeBytes + ownRandomBytes
	return hmac.Equal(b[n:], l.mark(b[:n]))
}

// checkID refuses a caller's id that has not the form, or that takes the
// daemon's prefix without being the daemon's.
func (l *Ledger) checkID(id string) error {
	reason := ""
	switch {
	case !idForm.MatchString(id):
		reason = "must have 8 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit"
	case strings.HasPrefix(id, ownPrefix) && !l.isOwn(id):
		reason = "ids beginning act_ are the daemon's; repeat one it gave, or choose another"
	default:
		return nil
	}
	return fault.Invalid(nil, fault.Field{Pointer: "/request_id", Reason: reason})
}

// recordKey names an entry on the disk, inputKey an action with its input; both
// are keyed digests and both belong to one owner.
type (
	recordKey [sha256.Size]byte
	inputKey  [sha256.Size]byte
)

func (l *Ledger) recordKeyLocked(o Owner, id string) recordKey {
	return recordKey(digest(l.index, "chatelaine/v1 ledger call", o, id))
}

func (l *Ledger) inputKeyLocked(o Owner, action string, input [32]byte) inputKey {
	return inputKey(digest(l.index, "chatelaine/v1 ledger input", o, action, string(input[:])))
}

// operatorKeyLocked finds the entries of an id whoever owns them.
func (l *Ledger) operatorKeyLocked(id string) []byte {
	d := digest(l.index, "chatelaine/v1 ledger id", Owner{}, id)
	return d[:]
}

// digest is HMAC-SHA256 over length-prefixed parts, so that no two lists of
// parts have one spelling.
func digest(key []byte, domain string, o Owner, parts ...string) [sha256.Size]byte {
	m := hmac.New(sha256.New, key)
	var n [8]byte
	for _, p := range append([]string{domain, o.Agent}, parts...) {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		m.Write(n[:])
		m.Write([]byte(p))
	}
	binary.BigEndian.PutUint64(n[:], uint64(o.UID))
	m.Write(n[:])
	return [sha256.Size]byte(m.Sum(nil))
}

// newIdempotencyKey returns a random UUID (RFC 9562, version 4).
func newIdempotencyKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	const hexDigits = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i, x := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hexDigits[x>>4], hexDigits[x&15])
	}
	return string(out)
}

// wallTime drops the monotonic reading and what does not survive the disk.
func wallTime(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }

// wallOrZero keeps the zero time, which has no count of nanoseconds.
func wallOrZero(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return wallTime(t)
}
