package sessions

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

const (
	// tokenBytes is the size of a token (http-api.md, "Sessions").
	tokenBytes = 32
	idBytes    = 10

	// codeAlphabet has no two signs that look or sound alike.
	codeAlphabet = "ACEFHJKMPRTWXY3479"
	codeGroup    = 4
	codeGroups   = 2
)

// tokenDigest is what is kept of a token.
type tokenDigest [sha256.Size]byte

// newToken returns a token in the form that travels.
func newToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// digestToken is HMAC-SHA256 under the store's own key. A token has 256 random
// bits, so the digest may be compared while the vault is locked: an agent
// learns at once after a restart that its session is gone.
func (r *Registry) digestToken(token string) tokenDigest {
	return tokenDigest(keyed(r.tokenKey, "chatelaine/v1 session token", token))
}

func keyed(key []byte, domain, text string) [sha256.Size]byte {
	m := hmac.New(sha256.New, key)
	var n [8]byte
	for _, p := range []string{domain, text} {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		m.Write(n[:])
		m.Write([]byte(p))
	}
	return [sha256.Size]byte(m.Sum(nil))
}

func newID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	const hexDigits = "0123456789abcdef"
	out := []byte("ses_")
	for _, x := range b {
		out = append(out, hexDigits[x>>4], hexDigits[x&15])
	}
	return string(out)
}

// newPairingCode returns a code to read aloud, as in "KTR4-M7HX".
func newPairingCode() string {
	var s strings.Builder
	for i := range codeGroup * codeGroups {
		if i > 0 && i%codeGroup == 0 {
			s.WriteByte('-')
		}
		s.WriteByte(codeAlphabet[below(len(codeAlphabet))])
	}
	return s.String()
}

// below returns an unbiased random number in [0, n).
func below(n int) int {
	limit := 256 - 256%n
	for {
		var b [1]byte
		_, _ = rand.Read(b[:]) // never fails
		if int(b[0]) < limit {
			return int(b[0]) % n
		}
	}
}
