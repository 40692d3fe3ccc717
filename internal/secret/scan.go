package secret

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// WindowBytes is the length of secret that is recognised on its own: an echo
// of any WindowBytes bytes of a secret in a row is a hit. Shorter pieces occur
// by chance in long answers.
const WindowBytes = 12

// ShortBytes is the length below which a secret is searched whole only: its
// pieces would be too short to mean anything.
const ShortBytes = 16

// Hit is one place where secret bytes were found. Offset and Length are in
// bytes of the searched buffer; Encoding is one of raw, hex, base64, percent,
// json, utf-16le, utf-16be, a nested form such as percent-base64, or one of
// them with "reversed".
type Hit struct {
	Offset, Length int
	Encoding       string
}

// Scanner searches buffers for some secrets: raw, in hex of either case, in
// base64 (standard and URL alphabet, any alignment, padded or not, wrapped or
// not), percent-encoded, JSON-escaped, in UTF-16 of either byte order, and each
// of them reversed; hex and base64 also inside percent and JSON escapes. It
// takes time linear in the buffer, whatever the buffer holds. It is safe for
// concurrent use. The zero value finds nothing.
type Scanner struct {
	// Only functions: keyed hashes and windows of a secret must not be
	// printable either.
	scan func([]byte) []Hit
	wipe func()
}

// NewScanner prepares a search for the secrets. It keeps its own copy of their
// bytes until Wipe. Secrets that hold nothing are left out.
func NewScanner(secrets ...Secret) *Scanner {
	t := newTables(secrets)
	return &Scanner{scan: t.scan, wipe: t.wipe}
}

// Scan returns where the secrets occur in b, in order of offset. Overlapping
// finds of one encoding are one hit.
func (s *Scanner) Scan(b []byte) []Hit {
	if s == nil || s.scan == nil {
		return nil
	}
	return s.scan(b)
}

// Wipe clears the copies of the secrets; the scanner finds nothing afterwards.
func (s *Scanner) Wipe() {
	if s != nil && s.wipe != nil {
		s.wipe()
	}
}

// Format hides the scanner's insides from every verb.
func (s *Scanner) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[scanner]") }

// Mask returns a copy of b in which the bytes of every hit are '*'. Hits that
// reach outside b are cut to it.
func Mask(b []byte, hits []Hit) []byte {
	out := bytes.Clone(b)
	for _, h := range hits {
		from := min(max(h.Offset, 0), len(out))
		to := min(max(h.Offset+h.Length, from), len(out))
		for i := from; i < to; i++ {
			out[i] = '*'
		}
	}
	return out
}

// sortHits puts hits in order and drops exact repetitions.
func sortHits(hits []Hit) []Hit {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Length, b.Length), cmp.Compare(a.Encoding, b.Encoding))
	})
	return slices.Compact(hits)
}
