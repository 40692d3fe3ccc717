package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// SignedSpec is the check signed: a member of the answer is a JWS (RFC 7515,
// compact serialisation) whose payload is a set of claims (RFC 7519) that one of
// the operator's keys signed.
type SignedSpec struct {
	JWS              string            // a pointer into the body
	KeysName         string            // the set's name in the site file
	Keys             *KeySet           // nil verifies nothing
	Issuer, Audience string            // exact
	Claims           map[string]string // claim → value path that it must equal
	Skew             time.Duration     // how far the signer's clock may differ
}

const (
	signedBytes       = 64 << 10 // of the whole serialisation
	signedHeaderBytes = 4 << 10
	signedClaims      = 32
)

// The rules of a signed answer. Their ids are stable.
const (
	ruleSignedAbsent    = "signed-absent"
	ruleSignedForm      = "signed-form"
	ruleSignedHeader    = "signed-header"
	ruleSignedAlgorithm = "signed-algorithm"
	ruleSignedKey       = "signed-key"
	ruleSignedSignature = "signed-signature"
	ruleSignedPayload   = "signed-payload"
	ruleSignedIssuer    = "signed-issuer"
	ruleSignedAudience  = "signed-audience"
	ruleSignedExpired   = "signed-expired"
	ruleSignedEarly     = "signed-early"
	ruleSignedClaim     = "signed-claim"
)

// ownClaims have a key of their own in the check, or are times that it always
// looks at.
var ownClaims = []string{"iss", "aud", "exp", "nbf", "iat"}

func compileSigned(s CheckSpec) (check, error) {
	spec := *s.Signed
	at, err := ParsePointer(spec.JWS)
	switch {
	case err != nil:
		return check{}, fmt.Errorf("signed: jws: %w", err)
	case spec.Issuer == "" || spec.Audience == "":
		return check{}, errors.New("signed: issuer and audience are written out")
	case spec.Skew < 0:
		return check{}, errors.New("signed: skew is not negative")
	case len(spec.Claims) > signedClaims:
		return check{}, fmt.Errorf("signed: more than %d claims", signedClaims)
	}
	for name, path := range spec.Claims {
		if name == "" || path == "" || slices.Contains(ownClaims, name) {
			return check{}, fmt.Errorf("signed: claims: a claim and a value path; not %s", strings.Join(ownClaims, ", "))
		}
	}
	spec.Claims = maps.Clone(spec.Claims)
	return check{spec: s, always: true, holds: func(f facts) *checkFault { return spec.verify(at, f) }}, nil
}

// DangerouslyWithKeys returns the same reader with other keys for its checks
// signed, by the name of their set. It is for contract tests, which sign the
// answers themselves, as they replace the certificates that are trusted.
func (r *Reader) DangerouslyWithKeys(sets map[string]*KeySet) *Reader {
	if r == nil {
		return nil
	}
	out := *r
	out.checks = slices.Clone(r.checks)
	for i, c := range out.checks {
		if c.spec.Signed == nil {
			continue
		}
		spec := *c.spec.Signed
		spec.Keys = sets[spec.KeysName]
		c.spec.Signed = &spec
		out.checks[i], _ = compileSigned(c.spec) // it compiled before
	}
	return &out
}

// verify reads and proves the signed member. Nothing of the payload is looked
// at before the signature holds.
func (s SignedSpec) verify(at Pointer, f facts) *checkFault {
	v, ok := f.body.at(at)
	token, isText := v.(string)
	if !ok || !isText {
		return failed(ruleSignedAbsent, "there is no text at "+s.JWS)
	}
	parts, fault := splitJWS(token)
	if fault != nil {
		return fault
	}
	head, fault := readJWSHeader(parts[0])
	if fault != nil {
		return fault
	}
	key, ok := s.Keys.find(head.kid)
	switch {
	case !ok && s.Keys.Len() == 0:
		return failed(ruleSignedKey, "there are no keys to check with")
	case !ok:
		return failed(ruleSignedKey, "names no key of the set "+s.KeysName)
	case head.alg != key.alg:
		return failed(ruleSignedAlgorithm, "is signed with another algorithm than the key's own, "+key.alg)
	}
	if !verifyJWS(token, key, parts[1]) {
		return failed(ruleSignedSignature, "the signature is not by the key that it names")
	}
	return s.claims(parts[1], f)
}

// splitJWS gives header, payload and signature, decoded.
func splitJWS(token string) (parts [3][]byte, fault *checkFault) {
	if len(token) > signedBytes {
		return parts, failed(ruleSignedForm, fmt.Sprintf("has more than %d bytes", signedBytes))
	}
	texts := strings.Split(token, ".")
	if len(texts) != len(parts) {
		return parts, failed(ruleSignedForm, "is no JWS in compact serialisation: three parts between dots")
	}
	for i, text := range texts {
		b, ok := base64URL(text)
		if !ok {
			return parts, failed(ruleSignedForm, "a part is not base64url in its one spelling")
		}
		if len(b) == 0 {
			return parts, failed(ruleSignedForm, "a part is empty; an unsigned token proves nothing")
		}
		parts[i] = b
	}
	return parts, nil
}

type jwsHeader struct{ alg, kid string }

// jwsMembers are those of a header that may stand there. Thumbprints are let
// stand unread. Whatever brings a key along (jwk, jku, x5c, x5u), changes what
// is signed (b64, zip) or must be understood (crit) is refused by not being here.
var jwsMembers = []string{"alg", "kid", "typ", "x5t", "x5t#S256"}

func readJWSHeader(b []byte) (jwsHeader, *checkFault) {
	l := CallerLimits()
	l.Bytes = signedHeaderBytes
	doc, err := Parse(b, l)
	if err != nil {
		return jwsHeader{}, failed(ruleSignedHeader, "the header is not strict JSON: "+parseRule(err))
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return jwsHeader{}, failed(ruleSignedHeader, "the header is no object")
	}
	for name, v := range m {
		if _, text := v.(string); !text || !slices.Contains(jwsMembers, name) {
			return jwsHeader{}, failed(ruleSignedHeader, "the header holds more than texts under "+strings.Join(jwsMembers, ", ")+"; keys that a token brings along are not looked at")
		}
	}
	h := jwsHeader{}
	h.alg, ok = m["alg"].(string)
	if !ok {
		return jwsHeader{}, failed(ruleSignedHeader, "the header has no alg")
	}
	if h.kid, ok = m["kid"].(string); ok && (h.kid == "" || len(h.kid) > keyIDBytes) {
		return jwsHeader{}, failed(ruleSignedHeader, fmt.Sprintf("kid is a text of 1 to %d bytes", keyIDBytes))
	}
	return h, nil
}

// verifyJWS asks go-jose, which is told the one algorithm and the one key. The
// bytes it says were signed must be those that are read afterwards.
func verifyJWS(token string, key verifyKey, payload []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a panic is a refusal
		}
	}()
	sig, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(key.alg)})
	if err != nil {
		return false
	}
	signed, err := sig.Verify(key.public)
	return err == nil && bytes.Equal(signed, payload)
}

func (s SignedSpec) claims(payload []byte, f facts) *checkFault {
	l := AnswerLimits()
	l.Bytes = signedBytes
	doc, err := Parse(payload, l)
	if err != nil {
		return failed(ruleSignedPayload, "the payload is not strict JSON: "+parseRule(err))
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return failed(ruleSignedPayload, "the payload is no object of claims")
	}
	if m["iss"] != s.Issuer {
		return failed(ruleSignedIssuer, "iss is not the issuer that the contract names")
	}
	if !hasAudience(m["aud"], s.Audience) {
		return failed(ruleSignedAudience, "aud does not name the audience that the contract names")
	}
	if fault := s.times(m, f.now); fault != nil {
		return fault
	}
	for _, name := range sortedNames(s.Claims) {
		path := s.Claims[name]
		claim, has := m[name]
		want, known := f.look(path)
		if !has || !known {
			return failed(ruleSignedClaim, fmt.Sprintf("the claim %s or %s is absent", showName(name), path))
		}
		if !Equal(claim, want) {
			return failed(ruleSignedClaim, fmt.Sprintf("the claim %s is not %s", showName(name), path))
		}
	}
	return nil
}

// hasAudience reads aud: one text, or a list of texts that holds it (RFC 7519,
// section 4.1.3).
func hasAudience(v any, want string) bool {
	list, many := v.([]any)
	if !many {
		return v == want
	}
	for _, e := range list {
		if _, text := e.(string); !text {
			return false
		}
	}
	return slices.Contains(list, any(want))
}

// times looks at exp, which must be there, and at nbf and iat where they are.
func (s SignedSpec) times(m map[string]any, now time.Time) *checkFault {
	for _, name := range []string{"exp", "nbf", "iat"} {
		v, has := m[name]
		if _, number := v.(json.Number); has && !number {
			return failed(ruleSignedPayload, name+" is no number of seconds")
		}
	}
	exp, has := m["exp"].(json.Number)
	if !has {
		return failed(ruleSignedPayload, "there is no exp; evidence without an end is no evidence of now")
	}
	if Compare(exp, unixSeconds(now.Add(-s.Skew))) <= 0 {
		return failed(ruleSignedExpired, "exp lies in the past")
	}
	for _, name := range []string{"nbf", "iat"} {
		if t, has := m[name].(json.Number); has && Compare(t, unixSeconds(now.Add(s.Skew))) > 0 {
			return failed(ruleSignedEarly, name+" lies in the future")
		}
	}
	return nil
}

// unixSeconds writes a time as an exact number of seconds.
func unixSeconds(t time.Time) json.Number {
	sec, nanos := t.Unix(), t.Nanosecond()
	sign := ""
	if sec < 0 {
		sign = "-"
		if sec = -sec; nanos > 0 {
			sec, nanos = sec-1, int(time.Second)-nanos
		}
	}
	return json.Number(sign + strconv.FormatInt(sec, 10) + fmt.Sprintf(".%09d", nanos))
}

// parseRule is the rule of a parse error and nothing of its place: names in a
// token are the signer's words.
func parseRule(err error) string {
	var pe *ParseError
	if errors.As(err, &pe) {
		return pe.Rule
	}
	return ruleSyntax
}
