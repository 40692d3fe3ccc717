package auditlog

import (
	"bytes"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Text forms: a prefix, then the key and four bytes of checksum. The public
// one is long and copied, so base64url; the private one may be typed from
// paper, so upper-case base32.
const (
	recipientPrefix = "chat-rec1"
	identityPrefix  = "CHAT-KEY1"
	checksumBytes   = 4
)

var identityEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// kemWritten is the KEM of the keys this release makes: X-Wing, that is
// ML-KEM-768 with X25519, since the record is kept for years.
func kemWritten() hpke.KEM { return hpke.MLKEM768X25519() }

// Recipient is the public half of a key that opens the record. The zero value
// is no recipient.
type Recipient struct{ pub hpke.PublicKey }

// Identity is the private half. Its bytes sit inside a function, so that no
// printing or marshalling of a value that holds one can show them. The zero
// value opens nothing.
type Identity struct{ key func() hpke.PrivateKey }

// GenerateIdentity makes a new key pair.
func GenerateIdentity() (Identity, error) {
	k, err := kemWritten().GenerateKey()
	if err != nil {
		return Identity{}, fmt.Errorf("auditlog: make a key: %w", err)
	}
	return Identity{key: func() hpke.PrivateKey { return k }}, nil
}

// IsZero says whether there is no key.
func (i Identity) IsZero() bool { return i.key == nil }

// Recipient returns the public half.
func (i Identity) Recipient() Recipient {
	if i.key == nil {
		return Recipient{}
	}
	return Recipient{pub: i.key().PublicKey()}
}

// Reveal returns the private key's text form ("CHAT-KEY1…", 67 characters),
// for the one time it is written down or sealed away. The zero value gives "".
func (i Identity) Reveal() string {
	if i.key == nil {
		return ""
	}
	b, err := i.key().Bytes() // the key's own memory, not a copy: never cleared
	if err != nil {
		return ""
	}
	return identityPrefix + identityEncoding.EncodeToString(withChecksum(identityPrefix, b))
}

// String never shows the key.
func (i Identity) String() string { return "[audit key]" }

// GoString never shows the key.
func (i Identity) GoString() string { return i.String() }

// MarshalText refuses: a private key is written down only through Reveal.
func (i Identity) MarshalText() ([]byte, error) {
	return nil, errors.New("auditlog: a private key is not marshalled")
}

// errKeyText never quotes what was given: it may be a private key.
var errKeyText = errors.New("auditlog: not a key in text form, or mistyped; it begins with " + identityPrefix + " (private) or " + recipientPrefix + " (public)")

// ParseIdentity reads the text form of a private key. Spaces, line ends and
// lower case are allowed. The error never quotes the text.
func ParseIdentity(s string) (Identity, error) {
	s = strings.ToUpper(strings.Join(strings.Fields(s), ""))
	rest, ok := strings.CutPrefix(s, identityPrefix)
	if !ok {
		return Identity{}, errKeyText
	}
	b, err := identityEncoding.DecodeString(rest)
	if err != nil || identityEncoding.EncodeToString(b) != rest {
		return Identity{}, errKeyText
	}
	defer clear(b)
	raw, ok := checked(identityPrefix, b)
	if !ok {
		return Identity{}, errKeyText
	}
	k, err := kemWritten().NewPrivateKey(bytes.Clone(raw)) // it keeps the slice
	if err != nil {
		return Identity{}, errKeyText
	}
	return Identity{key: func() hpke.PrivateKey { return k }}, nil
}

// ParseRecipient reads the text form of a public key.
func ParseRecipient(s string) (Recipient, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), recipientPrefix)
	if !ok {
		return Recipient{}, errKeyText
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return Recipient{}, errKeyText
	}
	raw, ok := checked(recipientPrefix, b)
	if !ok {
		return Recipient{}, errKeyText
	}
	k, err := kemWritten().NewPublicKey(raw)
	if err != nil {
		return Recipient{}, errKeyText
	}
	return Recipient{pub: k}, nil
}

// IsZero says whether there is no key.
func (r Recipient) IsZero() bool { return r.pub == nil }

// String returns the text form of the public key ("chat-rec1…").
func (r Recipient) String() string {
	if r.pub == nil {
		return ""
	}
	return recipientPrefix + base64.RawURLEncoding.EncodeToString(withChecksum(recipientPrefix, r.pub.Bytes()))
}

// ID returns the short name of the key as EPOCH records carry it: 16
// hexadecimal digits.
func (r Recipient) ID() string {
	id := r.id()
	return hex.EncodeToString(id[:])
}

func (r Recipient) id() (id [8]byte) {
	if r.pub != nil {
		d := sha256.Sum256(r.pub.Bytes())
		copy(id[:], d[:])
	}
	return id
}

// withChecksum appends the checksum of prefix and key to a copy of key.
func withChecksum(prefix string, key []byte) []byte {
	d := sha256.Sum256(append([]byte(prefix), key...))
	return append(append([]byte(nil), key...), d[:checksumBytes]...)
}

// checked takes the checksum off again.
func checked(prefix string, b []byte) ([]byte, bool) {
	if len(b) <= checksumBytes {
		return nil, false
	}
	key := b[:len(b)-checksumBytes]
	d := sha256.Sum256(append([]byte(prefix), key...))
	return key, string(d[:checksumBytes]) == string(b[len(key):])
}

// checkRecipients refuses fewer than two, an empty one, or one named twice.
func checkRecipients(rs []Recipient) error {
	if len(rs) < minRecipients {
		return fmt.Errorf("auditlog: the record needs at least %d recipients, so that one lost key does not lose it; %d given", minRecipients, len(rs))
	}
	seen := map[[8]byte]bool{}
	for i, r := range rs {
		if r.IsZero() {
			return fmt.Errorf("auditlog: recipient %d is empty", i+1)
		}
		if seen[r.id()] {
			return fmt.Errorf("auditlog: recipient %d (%s) is named twice", i+1, r.ID())
		}
		seen[r.id()] = true
	}
	return nil
}
