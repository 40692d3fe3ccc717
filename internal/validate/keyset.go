package validate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// KeySet is a set of public keys that signed answers may be signed with (a JWK
// Set, RFC 7517). It is immutable. A nil KeySet and the zero KeySet verify
// nothing.
type KeySet struct{ keys []verifyKey }

// verifyKey is one public key and the one algorithm it is used with. The
// algorithm comes from the operator's file; what a signature says about itself
// is only compared with it.
type verifyKey struct {
	kid, alg string
	public   crypto.PublicKey
}

const (
	keySetBytes = 256 << 10
	keySetKeys  = 64   // a service rotates through two or three
	keyIDBytes  = 256  // longer than any thumbprint
	rsaBitsMin  = 2048 // NIST SP 800-131A
	rsaBitsMax  = 8192 // keeps a verification under a millisecond
)

// KeyError says why a key set was not taken. It shows no member's value.
type KeyError struct {
	Rule    string // a stable id: key-set, key-private, key-symmetric, key-algorithm, key-use, key-id, key-form
	Index   int    // which of the keys, from zero; -1 for the set
	Message string
}

// Error gives the place and the sentence.
func (e *KeyError) Error() string {
	if e.Index < 0 {
		return e.Message
	}
	return fmt.Sprintf("keys[%d]: %s", e.Index, e.Message)
}

// The rules of a key set. Their ids are stable.
const (
	ruleKeySet       = "key-set"
	ruleKeyPrivate   = "key-private"
	ruleKeySymmetric = "key-symmetric"
	ruleKeyAlgorithm = "key-algorithm"
	ruleKeyUse       = "key-use"
	ruleKeyID        = "key-id"
	ruleKeyForm      = "key-form"
)

// ParseKeySet reads a JWK Set strictly. Every key is public, says (or its curve
// says) one algorithm, and is for signatures; where there are several, each has
// its own kid. An error is a *KeyError.
func ParseKeySet(b []byte) (*KeySet, error) {
	l := CallerLimits()
	l.Bytes = keySetBytes
	doc, err := Parse(b, l)
	if err != nil {
		return nil, &KeyError{ruleKeySet, -1, "is not strict JSON: " + err.Error()}
	}
	m, _ := doc.(map[string]any)
	list, ok := m["keys"].([]any)
	if !ok || len(m) != 1 || len(list) == 0 || len(list) > keySetKeys {
		return nil, &KeyError{ruleKeySet, -1, fmt.Sprintf("is no JWK Set: one object whose only member keys lists 1 to %d keys", keySetKeys)}
	}
	s := &KeySet{}
	for i, item := range list {
		k, e := parseKey(item)
		if e == nil && len(list) > 1 && k.kid == "" {
			e = &KeyError{Rule: ruleKeyID, Message: "needs a kid, because the set has several keys"}
		}
		if e == nil && slices.ContainsFunc(s.keys, func(o verifyKey) bool { return o.kid == k.kid }) {
			e = &KeyError{Rule: ruleKeyID, Message: "has the kid of another key of the set"}
		}
		if e != nil {
			e.Index = i
			return nil, e
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

// Len returns the number of keys.
func (s *KeySet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.keys)
}

// KeyInfo describes one key of a set: public facts only.
type KeyInfo struct{ ID, Algorithm string }

// Keys describes the keys in the order of the file.
func (s *KeySet) Keys() []KeyInfo {
	if s == nil {
		return nil
	}
	out := make([]KeyInfo, len(s.keys))
	for i, k := range s.keys {
		out[i] = KeyInfo{k.kid, k.alg}
	}
	return out
}

var (
	privateMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "priv"}
	// keyMembers are read; certificates and thumbprints beside a key are let
	// stand, because vendors publish them, and are not looked at.
	keyMembers = []string{"kty", "use", "key_ops", "alg", "kid", "n", "e", "crv", "x", "y", "x5c", "x5t", "x5t#S256"}
	ecCurves   = map[string]curve{"P-256": {"ES256", 32}, "P-384": {"ES384", 48}, "P-521": {"ES512", 66}}
	rsaAlgs    = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
)

type curve struct {
	alg  string
	size int // bytes of a coordinate
}

func parseKey(item any) (verifyKey, *KeyError) {
	m, ok := item.(map[string]any)
	if !ok {
		return verifyKey{}, &KeyError{Rule: ruleKeyForm, Message: "is no object"}
	}
	if e := checkKeyMembers(m); e != nil {
		return verifyKey{}, e
	}
	alg, size, e := keyAlgorithm(m)
	if e != nil {
		return verifyKey{}, e
	}
	kid, ok := m["kid"].(string)
	if _, has := m["kid"]; has && (!ok || kid == "" || len(kid) > keyIDBytes) {
		return verifyKey{}, &KeyError{Rule: ruleKeyID, Message: fmt.Sprintf("kid is a text of 1 to %d bytes", keyIDBytes)}
	}
	public, e := publicKey(m, size)
	return verifyKey{kid, alg, public}, e
}

func checkKeyMembers(m map[string]any) *KeyError {
	if m["kty"] == "oct" || m["k"] != nil {
		return &KeyError{Rule: ruleKeySymmetric, Message: "is a symmetric key, which whoever verifies could also sign with; list the signer's public key"}
	}
	for name := range m {
		if slices.Contains(privateMembers, name) {
			return &KeyError{Rule: ruleKeyPrivate, Message: "holds a private key; take the file off this machine, change the key, and list the public half"}
		}
	}
	for name := range m {
		if !slices.Contains(keyMembers, name) {
			return &KeyError{Rule: ruleKeyForm, Message: "holds a member that is not read here; known are " + strings.Join(keyMembers, ", ")}
		}
	}
	if use, has := m["use"]; has && use != "sig" {
		return &KeyError{Rule: ruleKeyUse, Message: "use is not sig"}
	}
	if ops, has := m["key_ops"]; has {
		if list, ok := ops.([]any); !ok || len(list) != 1 || list[0] != "verify" {
			return &KeyError{Rule: ruleKeyUse, Message: "key_ops is not [verify]"}
		}
	}
	return nil
}

// keyAlgorithm fixes the one algorithm of a key: its curve does, or, for RSA,
// the file must say it.
func keyAlgorithm(m map[string]any) (alg string, size int, e *KeyError) {
	name, _ := m["crv"].(string)
	said, has := m["alg"]
	switch kty := m["kty"]; {
	case kty == "EC" && ecCurves[name].alg != "":
		alg, size = ecCurves[name].alg, ecCurves[name].size
	case kty == "OKP" && name == "Ed25519":
		alg, size = "EdDSA", ed25519.PublicKeySize
	case kty == "RSA":
		if alg, _ = said.(string); !slices.Contains(rsaAlgs, alg) {
			return "", 0, &KeyError{Rule: ruleKeyAlgorithm, Message: "an RSA key says its one algorithm: alg is one of " + strings.Join(rsaAlgs, ", ")}
		}
	default:
		return "", 0, &KeyError{Rule: ruleKeyForm, Message: "is of no kind that is taken: RSA, EC with P-256, P-384 or P-521, OKP with Ed25519"}
	}
	if has && said != alg {
		return "", 0, &KeyError{Rule: ruleKeyAlgorithm, Message: "alg is not that of the key's curve"}
	}
	return alg, size, nil
}

// publicKey reads the key itself through go-jose, which checks that a point
// lies on its curve. Coordinates have exactly the curve's length.
func publicKey(m map[string]any, size int) (crypto.PublicKey, *KeyError) {
	form := func(why string) (crypto.PublicKey, *KeyError) { return nil, &KeyError{Rule: ruleKeyForm, Message: why} }
	plain := map[string]any{}
	for _, name := range []string{"kty", "crv", "n", "e", "x", "y"} {
		v, has := m[name]
		if !has {
			continue
		}
		text, ok := v.(string)
		if !ok {
			return form(name + " is no text")
		}
		plain[name] = text
		if name == "kty" || name == "crv" {
			continue
		}
		raw, ok := base64URL(text)
		if !ok || len(raw) == 0 || (name == "x" || name == "y") && len(raw) != size || (name == "n" || name == "e") && raw[0] == 0 {
			return form(name + " is not the base64url of a number of the right length")
		}
	}
	var k jose.JSONWebKey
	if err := k.UnmarshalJSON(Canonical(plain)); err != nil || !k.Valid() || !k.IsPublic() {
		return form("the key's numbers are no public key of its kind")
	}
	switch public := k.Key.(type) {
	case *rsa.PublicKey:
		if n := public.N.BitLen(); n < rsaBitsMin || n > rsaBitsMax {
			return form(fmt.Sprintf("an RSA key has %d to %d bits", rsaBitsMin, rsaBitsMax))
		}
		if public.N.Bit(0) == 0 || public.E < 3 || public.E%2 == 0 {
			return form("the key's numbers are no public key of its kind")
		}
		return public, nil
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return public, nil
	}
	return form("the key's numbers are no public key of its kind")
}

// base64URL reads base64url without padding (RFC 7515, section 2) in its one
// spelling. The library's decoder leaves line breaks out, so that the alphabet
// is looked at first.
func base64URL(s string) ([]byte, bool) {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '-' && c != '_' {
			return nil, false
		}
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return b, err == nil
}

// find names the key that a signature must be by.
func (s *KeySet) find(kid string) (verifyKey, bool) {
	if s.Len() == 0 {
		return verifyKey{}, false
	}
	if len(s.keys) == 1 && (kid == "" || s.keys[0].kid == "") {
		return s.keys[0], true
	}
	i := slices.IndexFunc(s.keys, func(k verifyKey) bool { return kid != "" && k.kid == kid })
	if i < 0 {
		return verifyKey{}, false
	}
	return s.keys[i], true
}
