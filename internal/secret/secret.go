// Package secret holds bytes that must not get out by accident: credentials,
// passphrases and keys. A Secret cannot be printed, logged, marshalled or
// compared with ==, also not inside another struct's unexported field, because
// its bytes live inside a function value. The package also searches foreign
// bytes for a secret in the common encodings.
//
// It must never put a secret's byte, length or position into an error. Any
// package may import it; it imports nothing of ours. It does not promise that
// the Go runtime erases every copy: Wipe clears the one that is held here.
package secret

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// placeholder is what every way of printing a Secret shows.
const placeholder = "[secret]"

// ErrNoMarshal is what every marshaller of a Secret answers.
var ErrNoMarshal = errors.New("a secret cannot be marshalled")

// Secret is a handle on secret bytes. Copies of a Secret share the bytes, so
// that one Wipe clears them all. The zero value holds nothing. It is safe for
// concurrent use.
type Secret struct {
	// cell is nil for the zero value. It calls f with the live bytes; with a
	// nil f it clears them. A function is the one kind of field that fmt
	// shows only as an address, whatever the verb and however deep.
	cell func(f func([]byte))
}

// New makes a Secret from a copy of b. The caller keeps b and may clear it.
func New(b []byte) Secret {
	var mu sync.RWMutex
	buf := bytes.Clone(b)
	return Secret{cell: func(f func([]byte)) {
		if f == nil {
			mu.Lock()
			defer mu.Unlock()
			clear(buf)
			buf = nil
			return
		}
		mu.RLock()
		defer mu.RUnlock()
		f(buf)
	}}
}

// IsZero says whether there are no bytes: the zero value, an empty secret or a
// wiped one.
func (s Secret) IsZero() bool { return s.Len() == 0 }

// Len returns the number of bytes.
func (s Secret) Len() int {
	n := 0
	s.Use(func(b []byte) { n = len(b) })
	return n
}

// Use calls f once with the bytes; they are nil for a secret that holds
// nothing. f must not keep the slice, change it, or call a method of the same
// secret.
func (s Secret) Use(f func([]byte)) {
	if s.cell == nil {
		f(nil)
		return
	}
	s.cell(f)
}

// Equal compares in constant time, for secrets of whatever lengths. Two
// secrets that hold nothing are equal.
func (s Secret) Equal(o Secret) bool {
	var key [sha256.Size]byte
	_, _ = rand.Read(key[:]) // crypto/rand.Read never fails
	return hmac.Equal(s.digest(key[:]), o.digest(key[:]))
}

// digest is taken apart for each side, so that Equal never holds two locks.
func (s Secret) digest(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	s.Use(func(b []byte) { h.Write(b) })
	return h.Sum(nil)
}

// Wipe clears the bytes. Every copy of this Secret holds nothing afterwards.
func (s Secret) Wipe() {
	if s.cell != nil {
		s.cell(nil)
	}
}

// String hides the secret.
func (s Secret) String() string { return placeholder }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return placeholder }

// Format hides the secret from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, placeholder) }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(placeholder) }

// MarshalJSON fails.
func (s Secret) MarshalJSON() ([]byte, error) { return nil, ErrNoMarshal }

// MarshalText fails; it also stops XML, TOML and map keys.
func (s Secret) MarshalText() ([]byte, error) { return nil, ErrNoMarshal }

// MarshalBinary fails.
func (s Secret) MarshalBinary() ([]byte, error) { return nil, ErrNoMarshal }

// MarshalYAML fails.
func (s Secret) MarshalYAML() (any, error) { return nil, ErrNoMarshal }

// GobEncode fails.
func (s Secret) GobEncode() ([]byte, error) { return nil, ErrNoMarshal }
