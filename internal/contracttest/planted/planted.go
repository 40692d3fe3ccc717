// Package planted searches bytes for a secret that was made for a test, in the
// encodings in which secrets are found again: as it is, hex, base64, percent,
// JSON escapes, UTF-16, reversed. It is written apart from the product's own
// search, so that the two check each other, and it must never be given a real
// secret. Package contracttest, testkit and tests may import it; it imports
// nothing of ours.
package planted

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// MinLength is the shortest secret that is searched: chance finds shorter ones.
const MinLength = 12

// Secret is a planted secret with everything it may look like.
type Secret struct {
	text    string
	needles []needle
}

type needle struct {
	encoding string
	bytes    []byte
}

// Random makes a secret of 40 characters that needs no escaping anywhere.
func Random() *Secret {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return New("planted-" + hex.EncodeToString(b))
}

// New makes the searcher of a secret of at least MinLength bytes; it panics at
// a shorter one.
func New(text string) *Secret {
	if len(text) < MinLength {
		panic("planted: the secret is too short to be searched")
	}
	s, b := &Secret{text: text}, []byte(text)
	add := func(encoding string, n []byte) {
		if encoding == "raw" || !bytes.Equal(n, b) {
			s.needles = append(s.needles, needle{encoding, n})
		}
	}
	add("raw", b)
	add("hex", []byte(hex.EncodeToString(b)))
	add("HEX", []byte(strings.ToUpper(hex.EncodeToString(b))))
	add("percent", []byte(percent(b)))
	add("query", []byte(url.QueryEscape(text)))
	add("json", []byte(jsonEscaped(text)))
	r := slices.Clone(b)
	slices.Reverse(r)
	add("reversed", r)
	little, big := wide(text)
	add("utf-16le", little)
	add("utf-16be", big)
	for offset := range 3 {
		pad := append(make([]byte, offset), b...)
		add("base64", inner(base64.RawStdEncoding, pad, offset))
		add("base64url", inner(base64.RawURLEncoding, pad, offset))
	}
	return s
}

// Text returns the secret.
func (s *Secret) Text() string { return s.text }

// String keeps the secret out of output.
func (s *Secret) String() string { return "planted secret" }

// GoString keeps the secret out of output.
func (s *Secret) GoString() string { return s.String() }

// In returns the encodings in which the secret stands in b, each once.
func (s *Secret) In(b []byte) []string {
	var out []string
	for _, n := range s.needles {
		if !slices.Contains(out, n.encoding) && bytes.Contains(b, n.bytes) {
			out = append(out, n.encoding)
		}
	}
	return out
}

// Mask writes stars over the secret wherever it stands in b.
func (s *Secret) Mask(b []byte) []byte {
	out := slices.Clone(b)
	for _, n := range s.needles {
		out = bytes.ReplaceAll(out, n.bytes, bytes.Repeat([]byte("*"), len(n.bytes)))
	}
	return out
}

func percent(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		fmt.Fprintf(&s, "%%%02X", c)
	}
	return s.String()
}

func jsonEscaped(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, "\\u%04x", u)
	}
	return b.String()
}

func wide(s string) (little, big []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	return little, big
}

// inner is the part of an encoding that does not depend on what stands before
// and behind the secret: the first group where it is shifted, and the last
// group, are left out.
func inner(e *base64.Encoding, shifted []byte, offset int) []byte {
	whole := len(shifted) / 3 * 4
	start := 0
	if offset > 0 {
		start = 4
	}
	return []byte(e.EncodeToString(shifted))[start:whole]
}
