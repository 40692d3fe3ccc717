package vault

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// assertionSkew is how far our clock may run ahead of the server's: the
	// assertion says that it was made that long ago. GitHub asks for 60 seconds.
	assertionSkew = 60 * time.Second
	// assertionLife is for the one send that follows, and for a clock of ours
	// that runs behind. GitHub takes at most ten minutes from issue to end.
	assertionLife = 5 * time.Minute
	// nonceOfAssertion is the size of its own id, which keeps two of one second
	// apart (RFC 7523 section 3, item 7).
	nonceOfAssertion = 16
)

// signingKey makes assertions. It lives for one exchange: what the standard
// library makes of a key cannot be cleared.
type signingKey struct {
	alg jose.SignatureAlgorithm
	key crypto.Signer
	id  string // what the secret says about the key's id, "" where nothing
}

// parseSigningKey reads a private key that fits the algorithm ("RS256", "ES256",
// "EdDSA"), in PEM or in the JSON of a Google service account.
func parseSigningKey(text []byte, alg string) (signingKey, error) {
	k := signingKey{alg: jose.SignatureAlgorithm(alg)}
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '{' {
		m, err := readObject(text)
		if err != nil {
			return signingKey{}, errors.New("it begins as JSON and is none; take the whole file of the service account")
		}
		defer m.wipe()
		kind, _ := m.str("type")
		inner, ok := m.str("private_key")
		if string(kind) != "service_account" || !ok {
			return signingKey{}, errors.New(`it is a JSON object, but not the key of a service account: "type" is not "service_account" or "private_key" is missing`)
		}
		id, _ := m.str("private_key_id")
		k.id, text = string(id), bytes.TrimSpace(inner)
	}
	var err error
	if k.key, err = parseKey(text); err != nil {
		return signingKey{}, err
	}
	return k, k.fits()
}

// curves are those that RFC 7518 section 3.4 ties to an algorithm.
var curves = map[jose.SignatureAlgorithm]elliptic.Curve{jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521()}

var rsaAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}

// fits says whether the key can sign with the algorithm.
func (k signingKey) fits() error {
	ok := false
	switch key := k.key.(type) {
	case *rsa.PrivateKey:
		ok = slices.Contains(rsaAlgorithms, k.alg)
	case *ecdsa.PrivateKey:
		ok = curves[k.alg] == key.Curve
	case ed25519.PrivateKey:
		ok = k.alg == jose.EdDSA
	}
	if !ok {
		return fmt.Errorf("its key is of another kind than %s wants: RSA for RS and PS, a curve of its size for ES, Ed25519 for EdDSA", k.alg)
	}
	return nil
}

// claims are what an assertion says (RFC 7519 section 4.1; RFC 7523 section 3).
type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub,omitempty"`
	Audience string `json:"aud,omitempty"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti,omitempty"`
	// Scope is not of the RFC: Google reads it here and not in the request.
	Scope string `json:"scope,omitempty"`
}

// newClaims are good for one send from now.
func newClaims(issuer string) claims {
	now := time.Now()
	return claims{Issuer: issuer, IssuedAt: now.Add(-assertionSkew).Unix(), Expires: now.Add(assertionLife).Unix()}
}

func newAssertionID() string {
	var b [nonceOfAssertion]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// sign makes a JWT in compact form (RFC 7515 section 7.1).
func (k signingKey) sign(c claims, id string) ([]byte, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	opts := (&jose.SignerOptions{}).WithType("JWT")
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: k.alg, Key: jose.JSONWebKey{Key: k.key, KeyID: id}}, opts)
	if err != nil {
		return nil, errors.New("the key cannot sign")
	}
	signed, err := s.Sign(payload)
	if err != nil {
		return nil, errors.New("the key cannot sign")
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		return nil, errors.New("the key cannot sign")
	}
	return []byte(text), nil
}

// signature is the part of a JWT that nobody else can make. It is what answers
// are searched for: header and claims of two tokens of one server begin alike.
// Anything that is not three parts is returned whole.
func signature(token []byte) []byte {
	last := bytes.LastIndexByte(token, '.')
	if bytes.Count(token, []byte{'.'}) != 2 || !bytes.HasPrefix(token, []byte("eyJ")) || len(token)-last-1 < minSecret {
		return token
	}
	return token[last+1:]
}

// parseTokenKey reads the private key of a kind that signs an assertion.
func (b Binding) parseTokenKey(text []byte) (crypto.Signer, error) {
	k, err := parseSigningKey(text, b.algorithm())
	return k.key, err
}

// algorithm is the one that the kind's assertions are signed with. GitHub takes no
// other than RS256.
func (b Binding) algorithm() string {
	if alg := b.Param("algorithm"); alg != "" {
		return alg
	}
	return string(jose.RS256)
}
