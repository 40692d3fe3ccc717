package vault

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"

	"chatelaine/internal/secret"
)

// A recovery code is 160 random bits, far more than can be guessed, so that it
// needs no slow derivation. It is written in Crockford's base 32, which has no
// letters that look alike, with four check letters: a typo is told from a wrong
// code. docs/vault.md says how.
const (
	codeBytes   = 20
	codeLetters = 32 // of the code itself
	codeCheck   = 4
	codeGroup   = 4 // letters between two dashes
	codeDigits  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeDomain  = "chatelaine/v1 recovery code\x00"
)

// newCode makes a code.
func newCode() secret.Secret {
	var b [codeBytes]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	defer clear(b[:])
	return secret.New(b[:])
}

// Code is a recovery code that was just made. It is shown once and kept
// nowhere; the zero value is none.
type Code struct{ raw secret.Secret }

// IsZero says that there is no code.
func (c Code) IsZero() bool { return c.raw.IsZero() }

// Wipe clears it.
func (c Code) Wipe() { c.raw.Wipe() }

// Reveal returns the code as it is shown to the person who writes it down: nine
// groups of four letters.
func (c Code) Reveal() string {
	var out strings.Builder
	c.raw.Use(func(b []byte) {
		letters := base32(b) + base32(codeSum(b))[:codeCheck]
		for i := range len(letters) {
			if i > 0 && i%codeGroup == 0 {
				out.WriteByte('-')
			}
			out.WriteByte(letters[i])
		}
	})
	return out.String()
}

// codeSum begins with the bits of the check letters.
func codeSum(b []byte) []byte {
	sum := sha256.Sum256(append([]byte(codeDomain), b...))
	return sum[:5] // eight letters, of which the first four are used
}

// base32 writes five bits a letter; len(b) is a multiple of five.
func base32(b []byte) string {
	var out strings.Builder
	acc, n := uint32(0), 0
	for _, c := range b {
		acc, n = acc<<8|uint32(c), n+8
		for n >= 5 {
			n -= 5
			out.WriteByte(codeDigits[acc>>n&31])
		}
	}
	return out.String()
}

// ParseRecoveryCode reads what a person typed: case, spaces and dashes do not
// matter, I and L are 1, O is 0. Its error says whether the code is too short, or
// mistyped, and quotes nothing of it.
func ParseRecoveryCode(text []byte) (secret.Secret, error) {
	digits := make([]byte, 0, codeLetters+codeCheck)
	defer func() { clear(digits[:cap(digits)]) }()
	for _, c := range text {
		switch {
		case c == '-' || c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		switch c {
		case 'I', 'L':
			c = '1'
		case 'O':
			c = '0'
		}
		v := strings.IndexByte(codeDigits, c)
		if v < 0 {
			return secret.Secret{}, fmt.Errorf("%w: it has a character that no code has", ErrBadCode)
		}
		if len(digits) == codeLetters+codeCheck {
			return secret.Secret{}, fmt.Errorf("%w: it is longer than %d letters", ErrBadCode, codeLetters+codeCheck)
		}
		digits = append(digits, byte(v))
	}
	if len(digits) != codeLetters+codeCheck {
		return secret.Secret{}, fmt.Errorf("%w: it has %d letters and needs %d", ErrBadCode, len(digits), codeLetters+codeCheck)
	}
	b := decode32(digits[:codeLetters])
	defer clear(b)
	check := base32(codeSum(b))
	for i, v := range digits[codeLetters:] {
		if codeDigits[v] != check[i] {
			return secret.Secret{}, fmt.Errorf("%w: its last four letters do not fit, so one letter at least is mistyped", ErrBadCode)
		}
	}
	return secret.New(b), nil
}

// decode32 is the reverse of base32 for values of five bits.
func decode32(digits []byte) []byte {
	out := make([]byte, 0, codeBytes)
	acc, n := uint32(0), 0
	for _, v := range digits {
		acc, n = acc<<5|uint32(v), n+5
		if n >= 8 {
			n -= 8
			out = append(out, byte(acc>>n))
		}
	}
	return out
}
