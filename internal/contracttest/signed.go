package contracttest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// token is a signed text that a fixture's answer carries: ${jws.NAME} in its
// body. It is signed when the fixture is played, with a key that was made for
// the run and stands for one of the site file's.
type token struct {
	keys, kid string        // the set, and which of its keys; "" for the first
	claims    any           // the payload, or …
	payload   *string       // … the payload's text, as it is
	valid     time.Duration // adds iat, nbf and exp around the fixture's now
	forge     string        // what is wrong with it, "" for nothing
}

// forgeries are the words of forge.
var forgeries = []string{"unsigned", "public_key_as_secret", "stranger", "embedded_key", "other_payload"}

// maxValid bounds valid; longer evidence is none.
const maxValid = 366 * 24 * time.Hour

// tokens reads jws of an answer.
func (d decoder) tokens(n *strictyaml.Node) map[string]token {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "jws") {
		return nil
	}
	out := map[string]token{}
	for _, m := range n.Members {
		t := token{}
		if !d.f.Map(m.Value, "a signed text", "keys", "kid", "claims", "payload", "valid", "forge") {
			continue
		}
		t.keys, _ = d.f.Text(d.f.Require(m.Value, "a signed text", "keys"), "keys")
		if k := m.Value.Get("kid"); k != nil {
			t.kid, _ = d.f.Text(k, "kid")
		}
		claims, payload := m.Value.Get("claims"), m.Value.Get("payload")
		if (claims == nil) == (payload == nil) {
			d.f.Report(m.Value.Pos, "exclusive", "", "a signed text has claims or payload")
			continue
		}
		if payload != nil {
			text, _ := d.f.Text(payload, "payload")
			t.payload = &text
		} else if d.f.Is(claims, strictyaml.Mapping, "claims") {
			t.claims = claims.Value()
		}
		if v := m.Value.Get("valid"); v != nil {
			t.valid, _ = d.f.Duration(v, "valid", time.Second, maxValid)
		}
		if w := m.Value.Get("forge"); w != nil {
			t.forge, _ = d.f.Word(w, "forge", forgeries...)
		}
		out[m.Key] = t
	}
	return out
}

var tokenPlace = regexp.MustCompile(`\$\{jws\.([^}]*)\}`)

// tokensUsed wants every signed text in the body, and every place filled.
func (d decoder) tokensUsed(n *strictyaml.Node, a answer) {
	used := map[string]bool{}
	for _, m := range tokenPlace.FindAllSubmatch(a.body, -1) {
		name := string(m[1])
		if _, ok := a.tokens[name]; !ok && n.Get("jws").Get(name) == nil {
			d.f.Report(n.Pos, "jws", "write it under jws", "the body has a place for the signed text %q, which is not there", name)
		}
		used[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(a.tokens)) {
		if !used[name] {
			d.f.Report(n.Get("jws").Pos, "jws", "write ${jws."+name+"} into the body", "the signed text %q stands nowhere in the body", name)
		}
	}
}

// signers stand for the key sets of a site file: for each of their public keys
// one of the same kind, name and algorithm, of which the private half is here.
type signers struct {
	sets map[string]*validate.KeySet
	keys map[string][]signer
}

type signer struct {
	kid, alg string
	key      crypto.Signer
}

func newSigners(set *actions.Set) (*signers, error) {
	s := &signers{sets: map[string]*validate.KeySet{}, keys: map[string][]signer{}}
	for _, name := range set.KeySets() {
		real, _ := set.KeySet(name)
		var list []any
		for _, info := range real.Keys() {
			k, err := newSigner(info.ID, info.Algorithm)
			if err != nil {
				return nil, err
			}
			s.keys[name], list = append(s.keys[name], k), append(list, k.jwk())
		}
		var err error
		if s.sets[name], err = validate.ParseKeySet(validate.Canonical(map[string]any{"keys": list})); err != nil {
			return nil, fmt.Errorf("the keys of this run: %w", err)
		}
	}
	return s, nil
}

var curves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}

const rsaBits = 2048

func newSigner(kid, alg string) (signer, error) {
	s := signer{kid: kid, alg: alg}
	var err error
	switch curve := curves[alg]; {
	case curve != nil:
		s.key, err = ecdsa.GenerateKey(curve, rand.Reader)
	case alg == "EdDSA":
		_, s.key, err = ed25519.GenerateKey(rand.Reader)
	default:
		s.key, err = rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return s, err
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is the public half as RFC 7517 writes it.
func (s signer) jwk() map[string]any {
	out := map[string]any{"alg": s.alg, "use": "sig"}
	if s.kid != "" {
		out["kid"] = s.kid
	}
	switch public := s.key.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // 04, x, y
		if err != nil {
			panic("contracttest: a key that was just made: " + err.Error())
		}
		half := 1 + len(point)/2
		out["kty"], out["crv"], out["x"], out["y"] = "EC", public.Curve.Params().Name, b64(point[1:half]), b64(point[half:])
	case ed25519.PublicKey:
		out["kty"], out["crv"], out["x"] = "OKP", "Ed25519", b64(public)
	case *rsa.PublicKey:
		out["kty"], out["n"], out["e"] = "RSA", b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes())
	}
	return out
}

// hashes are those of the algorithms, by their three digits.
var hashes = map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}

// sign makes the signature of RFC 7518 over the input.
func (s signer) sign(input string) ([]byte, error) {
	if s.alg == "EdDSA" {
		return s.key.Sign(rand.Reader, []byte(input), crypto.Hash(0))
	}
	hash := hashes[s.alg[2:]]
	h := hash.New()
	h.Write([]byte(input))
	sum := h.Sum(nil)
	switch key := s.key.(type) {
	case *ecdsa.PrivateKey:
		r, v, err := ecdsa.Sign(rand.Reader, key, sum)
		if err != nil {
			return nil, err
		}
		size := (key.Curve.Params().BitSize + 7) / 8
		out := make([]byte, 2*size)
		r.FillBytes(out[:size])
		v.FillBytes(out[size:])
		return out, nil
	case *rsa.PrivateKey:
		if s.alg[0] == 'P' {
			return rsa.SignPSS(rand.Reader, key, hash, sum, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		}
		return rsa.SignPKCS1v15(rand.Reader, key, hash, sum)
	}
	return nil, fmt.Errorf("no signer of %s", s.alg)
}

// fill writes the signed texts into the bodies of answers.
func (s *signers) fill(answers []answer, now time.Time) ([]answer, error) {
	out := slices.Clone(answers)
	for i, a := range out {
		for _, name := range slices.Sorted(maps.Keys(a.tokens)) {
			text, err := s.make(a.tokens[name], now)
			if err != nil {
				return nil, fmt.Errorf("jws %s: %w", name, err)
			}
			out[i].body = bytes.ReplaceAll(out[i].body, []byte("${jws."+name+"}"), []byte(text))
		}
	}
	return out, nil
}

func (s *signers) make(t token, now time.Time) (string, error) {
	by, err := s.find(t)
	if err != nil {
		return "", err
	}
	payload, err := t.text(now)
	if err != nil {
		return "", err
	}
	header := map[string]any{"alg": by.alg, "typ": "JWT"}
	if by.kid != "" {
		header["kid"] = by.kid
	}
	switch t.forge {
	case "unsigned":
		header["alg"] = "none"
		return join(header, payload) + ".", nil
	case "public_key_as_secret":
		header["alg"] = "HS256"
		return withSecret(join(header, payload), by.key.Public())
	case "stranger", "embedded_key":
		if by, err = newSigner(by.kid, by.alg); err != nil {
			return "", err
		}
		if t.forge == "embedded_key" {
			header["jwk"] = by.jwk()
		}
	}
	input := join(header, payload)
	sig, err := by.sign(input)
	if t.forge == "other_payload" {
		input = join(header, bytes.Replace(payload, []byte("{"), []byte("{ "), 1))
	}
	return input + "." + b64(sig), err
}

func (s *signers) find(t token) (signer, error) {
	for _, k := range s.keys[t.keys] {
		if t.kid == "" || t.kid == k.kid {
			return k, nil
		}
	}
	return signer{}, fmt.Errorf("the site file has no key %q under keys %q", t.kid, t.keys)
}

func join(header map[string]any, payload []byte) string {
	return b64(validate.Canonical(header)) + "." + b64(payload)
}

// text is the payload's text.
func (t token) text(now time.Time) ([]byte, error) {
	if t.payload != nil {
		return []byte(*t.payload), nil
	}
	claims, ok := t.claims.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("claims is no object")
	}
	out := maps.Clone(claims)
	if t.valid > 0 {
		seconds := func(at time.Time) json.Number { return json.Number(fmt.Sprint(at.Unix())) }
		for name, v := range map[string]json.Number{"iat": seconds(now), "nbf": seconds(now), "exp": seconds(now.Add(t.valid))} {
			if _, said := out[name]; !said {
				out[name] = v
			}
		}
	}
	return validate.Canonical(out), nil
}

// withSecret signs with the public key, as text, for a secret: what a verifier
// accepts that lets the token choose the algorithm.
func withSecret(input string, public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	m := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	m.Write([]byte(input))
	return input + "." + b64(m.Sum(nil)), nil
}
