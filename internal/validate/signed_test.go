package validate

import (
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
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// testKeys are made once: RSA is slow.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	out := map[string]crypto.Signer{}
	for name, c := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521(), "other": elliptic.P256()} {
		out[name], _ = ecdsa.GenerateKey(c, rand.Reader)
	}
	_, out["EdDSA"], _ = ed25519.GenerateKey(rand.Reader)
	out["RS256"], _ = rsa.GenerateKey(rand.Reader, 2048)
	return out
})

func jwkOf(t testing.TB, alg, kid string, public crypto.PublicKey) map[string]any {
	t.Helper()
	b, err := json.Marshal(jose.JSONWebKey{Key: public, KeyID: kid, Algorithm: alg, Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, string(b)).(map[string]any)
}

func jwks(keys ...map[string]any) []byte {
	list := make([]any, len(keys))
	for i, k := range keys {
		list[i] = k
	}
	return Canonical(map[string]any{"keys": list})
}

func mustKeySet(t testing.TB, keys ...map[string]any) *KeySet {
	t.Helper()
	s, err := ParseKeySet(jwks(keys...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sign makes a JWS through go-jose.
func sign(t testing.TB, alg, kid string, key any, payload string) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		o = o.WithHeader("kid", kid)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	out, err := j.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// forge signs header and payload as they stand, with an ES256 key.
func forge(t testing.TB, key crypto.Signer, header, payload string) string {
	t.Helper()
	input := b64(header) + "." + b64(payload)
	sum := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return input + "." + base64.RawURLEncoding.EncodeToString(sig[:])
}

func hmacToken(secret []byte, header, payload string) string {
	input := b64(header) + "." + b64(payload)
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func seconds5(d time.Duration) int64 { return testNow.Add(d).Unix() }

var goodClaims = fmt.Sprintf(`{"iss":"https://review.example","aud":["deploys","other"],"sub":"prj_1","exp":%d,"nbf":%d,"iat":%d,"state":"approved","n":1.0}`, seconds5(time.Minute), seconds5(-time.Minute), seconds5(-time.Minute))

func signedReader(t testing.TB, keys *KeySet) *Reader {
	return mustReader(t, ReaderSpec{
		Result: mustParse(t, `{"type":"object","additionalProperties":false,"required":["state"],"properties":{"state":{"enum":["approved","refused"]}}}`),
		Rows:   []RowSpec{{Status: []int{200}, HasSuccess: true, Success: map[string]PickSpec{"state": at("/state")}}},
		Checks: []CheckSpec{{Kind: "signed", Signed: &SignedSpec{
			JWS: "/evidence", KeysName: "signer", Keys: keys, Issuer: "https://review.example", Audience: "deploys", Skew: 30 * time.Second,
			Claims: map[string]string{"sub": "target.project_id", "state": "result.state", "n": "head.version"},
		}}},
	})
}

func evidence(token string) Raw {
	return answer(200, `{"state":"approved","evidence":`+string(Canonical(token))+`}`)
}

func TestSignedAccepts(t *testing.T) {
	keys := testKeys()
	for _, alg := range []string{"ES256", "ES384", "ES512", "EdDSA", "RS256", "RS512", "PS256", "PS384"} {
		signer := keys[alg]
		if signer == nil {
			signer = keys["RS256"]
		}
		set := mustKeySet(t, jwkOf(t, alg, "k1", signer.Public()), jwkOf(t, "ES256", "k0", keys["other"].Public()))
		r := signedReader(t, set)
		if p, no := r.Prove(evidence(sign(t, alg, "k1", signer, goodClaims)), testScope, testNow); no != nil || !p.OK() || p.Data()["state"] != "approved" {
			t.Errorf("%s: %v", alg, no)
		}
	}
	one := jwkOf(t, "ES256", "", keys["ES256"].Public())
	delete(one, "alg")
	delete(one, "use")
	r := signedReader(t, mustKeySet(t, one))
	for _, kid := range []string{"", "k1"} {
		if _, no := r.Prove(evidence(sign(t, "ES256", kid, keys["ES256"], goodClaims)), testScope, testNow); no != nil {
			t.Errorf("the one key, kid %q: %v", kid, no)
		}
	}
	thumb := forge(t, keys["ES256"], `{"alg":"ES256","typ":"JWT","x5t":"abc","x5t#S256":"def"}`, goodClaims)
	if _, no := r.Prove(evidence(thumb), testScope, testNow); no != nil {
		t.Errorf("thumbprints: %v", no)
	}
}

// Without any key the operator reads that, and not that one key is missing.
func TestSignedWithoutKeys(t *testing.T) {
	r := signedReader(t, &KeySet{})
	_, no := r.Prove(evidence(sign(t, "ES256", "k1", testKeys()["ES256"], goodClaims)), testScope, testNow)
	if no == nil || no.Rule != ruleSignedKey || !strings.Contains(no.Message, "there are no keys") {
		t.Errorf("%+v", no)
	}
}

// Every way to be no evidence, with the rule that the operator sees.
func TestSignedRefuses(t *testing.T) {
	keys := testKeys()
	es, other := keys["ES256"], keys["other"]
	r := signedReader(t, mustKeySet(t, jwkOf(t, "ES256", "k1", es.Public()), jwkOf(t, "RS256", "k2", keys["RS256"].Public())))
	good := sign(t, "ES256", "k1", es, goodClaims)
	parts := strings.Split(good, ".")
	spki, err := x509.MarshalPKIXPublicKey(keys["RS256"].Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
	embedded := string(Canonical(jwkOf(t, "ES256", "k1", other.Public())))
	head := func(more string) string { return `{"alg":"ES256","kid":"k1"` + more + `}` }
	claims := func(old, new string) string {
		if !strings.Contains(goodClaims, old) {
			t.Fatalf("%s stands nowhere", old)
		}
		return forge(t, es, head(""), strings.Replace(goodClaims, old, new, 1))
	}
	num := func(d time.Duration) string { return fmt.Sprint(seconds5(d)) }
	exp, nbf := `"exp":`+num(time.Minute), `"nbf":`+num(-time.Minute)
	for _, c := range []struct{ name, token, rule string }{
		{"not there", "", ruleSignedForm},
		{"prose", "approved, see the log", ruleSignedForm}, {"two parts", parts[0] + "." + parts[1], ruleSignedForm}, {"five parts", good + ".a.b", ruleSignedForm},
		{"no signature", parts[0] + "." + parts[1] + ".", ruleSignedForm}, {"no payload", parts[0] + ".." + parts[2], ruleSignedForm}, {"no header", "." + parts[1] + "." + parts[2], ruleSignedForm},
		{"padding", good + "=", ruleSignedForm}, {"a line break", parts[0] + "." + parts[1] + ".\n" + parts[2], ruleSignedForm}, {"a space", " " + good, ruleSignedForm}, {"the other alphabet", parts[0] + "." + parts[1] + ".+/" + parts[2][2:], ruleSignedForm},
		{"a second spelling", parts[0] + "." + parts[1] + "." + secondSpelling(parts[2]), ruleSignedForm},
		{"too long", sign(t, "ES256", "k1", es, `{"x":"`+strings.Repeat("a", signedBytes)+`"}`), ruleSignedForm},
		{"JSON serialisation", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, ruleSignedForm},

		{"alg none", b64(`{"alg":"none","kid":"k1"}`) + "." + parts[1] + ".", ruleSignedForm},
		{"alg none with bytes behind", b64(`{"alg":"none","kid":"k1"}`) + "." + parts[1] + "." + parts[2], ruleSignedAlgorithm},
		{"alg None", b64(`{"alg":"nOnE","kid":"k1"}`) + "." + parts[1] + "." + parts[2], ruleSignedAlgorithm},
		{"HMAC with the public key as text", hmacToken(publicPEM, `{"alg":"HS256","kid":"k2"}`, goodClaims), ruleSignedAlgorithm},
		{"HMAC with the public key's bytes", hmacToken(spki, `{"alg":"HS256","kid":"k2"}`, goodClaims), ruleSignedAlgorithm},
		{"HMAC with the modulus", hmacToken(keys["RS256"].Public().(*rsa.PublicKey).N.Bytes(), `{"alg":"HS256","kid":"k2"}`, goodClaims), ruleSignedAlgorithm},
		{"another algorithm of the same key", sign(t, "PS256", "k2", keys["RS256"], goodClaims), ruleSignedAlgorithm},
		{"the other key's algorithm", sign(t, "RS256", "k1", keys["RS256"], goodClaims), ruleSignedAlgorithm},
		{"another case of the algorithm", forge(t, es, `{"alg":"es256","kid":"k1"}`, goodClaims), ruleSignedAlgorithm},

		{"an unknown kid", sign(t, "ES256", "k9", es, goodClaims), ruleSignedKey}, {"no kid among several keys", sign(t, "ES256", "", es, goodClaims), ruleSignedKey},
		{"a stranger's key", sign(t, "ES256", "k1", other, goodClaims), ruleSignedSignature}, {"a payload of another signature", parts[0] + "." + b64(strings.Replace(goodClaims, "prj_1", "prj_2", 1)) + "." + parts[2], ruleSignedSignature},
		{"a header of another signature", b64(`{"alg":"ES256","kid":"k1"} `) + "." + parts[1] + "." + parts[2], ruleSignedSignature}, {"a zero signature", parts[0] + "." + parts[1] + "." + b64(string(make([]byte, 64))), ruleSignedSignature},
		{"a short signature", parts[0] + "." + parts[1] + "." + parts[2][:40], ruleSignedSignature}, {"a signature as ASN.1", parts[0] + "." + parts[1] + "." + asn1Signature(t, es, parts[0]+"."+parts[1]), ruleSignedSignature},

		{"a key in the header", forge(t, other, head(`,"jwk":`+embedded), goodClaims), ruleSignedHeader}, {"a key in the header and no kid", forge(t, other, `{"alg":"ES256","jwk":`+embedded+`}`, goodClaims), ruleSignedHeader},
		{"a URL of a key set", forge(t, other, head(`,"jku":"https://evil.example/jwks"`), goodClaims), ruleSignedHeader}, {"a URL of a certificate", forge(t, es, head(`,"x5u":"https://evil.example/c"`), goodClaims), ruleSignedHeader},
		{"a certificate", forge(t, es, head(`,"x5c":["AAAA"]`), goodClaims), ruleSignedHeader}, {"crit", forge(t, es, head(`,"crit":["exp"],"exp":1`), goodClaims), ruleSignedHeader}, {"an empty crit", forge(t, es, head(`,"crit":[]`), goodClaims), ruleSignedHeader},
		{"b64 false", forge(t, es, head(`,"b64":false,"crit":["b64"]`), goodClaims), ruleSignedHeader}, {"zip", forge(t, es, head(`,"zip":"DEF"`), goodClaims), ruleSignedHeader}, {"cty", forge(t, es, head(`,"cty":"JWT"`), goodClaims), ruleSignedHeader},
		{"two algs", forge(t, es, `{"alg":"ES256","alg":"none","kid":"k1"}`, goodClaims), ruleSignedHeader}, {"two algs, one escaped", forge(t, es, `{"alg":"ES256","\u0061lg":"none","kid":"k1"}`, goodClaims), ruleSignedHeader},
		{"no alg", forge(t, es, `{"kid":"k1"}`, goodClaims), ruleSignedHeader}, {"ALG", forge(t, es, `{"ALG":"ES256","kid":"k1"}`, goodClaims), ruleSignedHeader}, {"a list for alg", forge(t, es, `{"alg":["ES256"],"kid":"k1"}`, goodClaims), ruleSignedHeader},
		{"a number for kid", forge(t, es, `{"alg":"ES256","kid":1}`, goodClaims), ruleSignedHeader}, {"an empty kid", forge(t, es, `{"alg":"ES256","kid":""}`, goodClaims), ruleSignedHeader}, {"a list for the header", forge(t, es, `["ES256"]`, goodClaims), ruleSignedHeader},
		{"a header that is no JSON", forge(t, es, `alg=ES256`, goodClaims), ruleSignedHeader}, {"a header with more behind", forge(t, es, head("")+"{}", goodClaims), ruleSignedHeader}, {"a large header", forge(t, es, head(`,"typ":"`+strings.Repeat("a", signedHeaderBytes)+`"`), goodClaims), ruleSignedHeader},

		{"a list for the payload", forge(t, es, head(""), `[]`), ruleSignedPayload}, {"a payload that is no JSON", forge(t, es, head(""), `iss=x`), ruleSignedPayload}, {"a claim twice", claims(`"sub":"prj_1"`, `"sub":"prj_1","sub":"prj_2"`), ruleSignedPayload},
		{"a claim twice, one escaped", claims(`"sub":"prj_1"`, `"sub":"prj_1","s\u0075b":"prj_2"`), ruleSignedPayload}, {"more behind the payload", forge(t, es, head(""), goodClaims+" {}"), ruleSignedPayload}, {"a mark before the payload", forge(t, es, head(""), byteOrderMark+goodClaims), ruleSignedPayload}, {"invalid UTF-8", claims("prj_1", "prj_\xff"), ruleSignedPayload},
		{"no exp", claims(exp+",", ``), ruleSignedPayload}, {"exp as text", claims(exp, `"exp":"`+num(time.Minute)+`"`), ruleSignedPayload}, {"exp is null", claims(exp, `"exp":null`), ruleSignedPayload}, {"nbf as text", claims(nbf, `"nbf":"0"`), ruleSignedPayload}, {"a number beyond the limits", claims(exp, `"exp":1e99`), ruleSignedPayload},

		{"another issuer", claims("https://review.example", "https://review.example/"), ruleSignedIssuer}, {"no issuer", claims(`"iss":"https://review.example",`, ``), ruleSignedIssuer}, {"a list of issuers", claims(`"https://review.example"`, `["https://review.example"]`), ruleSignedIssuer}, {"a look-alike issuer", claims("https://review.example", "https://reviеw.example"), ruleSignedIssuer},
		{"another audience", claims(`["deploys","other"]`, `"other"`), ruleSignedAudience}, {"no audience", claims(`"aud":["deploys","other"],`, ``), ruleSignedAudience}, {"part of the audience", claims(`["deploys","other"]`, `"deploys2"`), ruleSignedAudience}, {"an empty list", claims(`["deploys","other"]`, `[]`), ruleSignedAudience}, {"a number in the list", claims(`["deploys","other"]`, `["deploys",1]`), ruleSignedAudience}, {"an object", claims(`["deploys","other"]`, `{"deploys":true}`), ruleSignedAudience},

		{"expired", claims(exp, `"exp":`+num(-30*time.Second)), ruleSignedExpired}, {"expired long ago", claims(exp, `"exp":0`), ruleSignedExpired}, {"expired before there was time", claims(exp, `"exp":-1`), ruleSignedExpired},
		{"not yet", claims(nbf, `"nbf":`+num(31*time.Second)), ruleSignedEarly}, {"signed in the future", claims(`"iat":`+num(-time.Minute), `"iat":`+num(31*time.Second)), ruleSignedEarly}, {"a little in the future", claims(nbf, `"nbf":`+num(30*time.Second)+`.000000001`), ruleSignedEarly},

		{"another subject", claims("prj_1", "prj_2"), ruleSignedClaim}, {"no subject", claims(`"sub":"prj_1",`, ``), ruleSignedClaim}, {"a subject of another type", claims(`"prj_1"`, `["prj_1"]`), ruleSignedClaim}, {"another state than the answer's", claims("approved", "refused"), ruleSignedClaim}, {"a number as text", claims(`"n":1.0`, `"n":"1"`), ruleSignedClaim}, {"nearly the number", claims(`"n":1.0`, `"n":1.0000000000000000001`), ruleSignedClaim},
	} {
		p, no := r.Prove(evidence(c.token), testScope, testNow)
		if no == nil || p != nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if no.Layer != LayerCheck || no.Rule != c.rule || !strings.HasPrefix(no.Message, "signed /evidence: ") {
			t.Errorf("%s: %+v, want %s", c.name, *no, c.rule)
		}
		for _, shown := range []string{"prj_2", "evil", "k9", "refused"} {
			if strings.Contains(no.Error(), shown) {
				t.Errorf("%s: the reason shows the token: %v", c.name, no)
			}
		}
	}
	for name, raw := range map[string]Raw{
		"absent":                answer(200, `{"state":"approved"}`),
		"null":                  answer(200, `{"state":"approved","evidence":null}`),
		"a number":              answer(200, `{"state":"approved","evidence":1}`),
		"an object of the same": answer(200, `{"state":"approved","evidence":{"jws":"`+good+`"}}`),
	} {
		if _, no := r.Prove(raw, testScope, testNow); no == nil || no.Rule != ruleSignedAbsent {
			t.Errorf("%s: %v", name, no)
		}
	}
	if _, no := r.Prove(answer(200, `{"state":"refused","evidence":"`+good+`"}`), testScope, testNow); no == nil || no.Rule != ruleSignedClaim {
		t.Errorf("an answer that says something else than its evidence: %v", no)
	}
	at := func(d time.Duration) *Rejection {
		_, no := r.Prove(evidence(good), testScope, testNow.Add(d))
		return no
	}
	if at(90*time.Second-1) != nil || at(90*time.Second) == nil || at(-90*time.Second) != nil || at(-90*time.Second-1) == nil {
		t.Error("the skew is not exact")
	}
}

// secondSpelling sets a bit that base64url leaves over: 64 bytes end in a
// character of which four bits count.
func secondSpelling(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return s[:len(s)-1] + string(alphabet[strings.IndexByte(alphabet, s[len(s)-1])+1])
}

func asn1Signature(t *testing.T, key crypto.Signer, input string) string {
	sum := sha256.Sum256([]byte(input))
	b, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Without keys, with a nil set and on every success row the check refuses; a
// failure row needs no signature.
func TestSignedFailsClosed(t *testing.T) {
	token := sign(t, "ES256", "k1", testKeys()["ES256"], goodClaims)
	for name, set := range map[string]*KeySet{"nil": nil, "zero": {}} {
		if _, no := signedReader(t, set).Prove(evidence(token), testScope, testNow); no == nil || no.Rule != ruleSignedKey {
			t.Errorf("%s: %v", name, no)
		}
	}
	r := mustReader(t, ReaderSpec{
		Rows: []RowSpec{
			{Status: []int{202}, Media: MediaNone, HasSuccess: true},
			{Status: []int{409}, Failure: &FailureSpec{Code: "BUSY"}},
		},
		Checks: []CheckSpec{{Kind: "signed", Signed: &SignedSpec{JWS: "/evidence", Keys: mustKeySet(t, jwkOf(t, "ES256", "k1", testKeys()["ES256"].Public())), Issuer: "a", Audience: "b"}}},
	})
	if _, no := r.Prove(Raw{Status: 202}, testScope, testNow); no == nil || no.Rule != ruleSignedAbsent {
		t.Errorf("a success without a body: %v", no)
	}
	if p, no := r.Prove(answer(409, `{}`), testScope, testNow); no != nil || p.OK() {
		t.Errorf("a failure: %v", no)
	}
}

func TestSignedDoesNotCompile(t *testing.T) {
	good := SignedSpec{JWS: "/evidence", Issuer: "a", Audience: "b", Claims: map[string]string{"sub": "input.id"}}
	for name, f := range map[string]func(*CheckSpec){
		"a broken pointer": func(c *CheckSpec) { c.Signed.JWS = "evidence" }, "no issuer": func(c *CheckSpec) { c.Signed.Issuer = "" }, "no audience": func(c *CheckSpec) { c.Signed.Audience = "" }, "a negative skew": func(c *CheckSpec) { c.Signed.Skew = -1 },
		"a claim without a path": func(c *CheckSpec) { c.Signed.Claims = map[string]string{"sub": ""} }, "a claim without a name": func(c *CheckSpec) { c.Signed.Claims = map[string]string{"": "input.id"} }, "iss as a claim": func(c *CheckSpec) { c.Signed.Claims = map[string]string{"iss": "input.id"} },
		"another kind with a signature": func(c *CheckSpec) { c.Kind, c.At = "after_call", "result.at" }, "signed without one": func(c *CheckSpec) { c.Signed = nil }, "sides too": func(c *CheckSpec) { c.Left = "result.a" },
		"many claims": func(c *CheckSpec) {
			for i := range 40 {
				c.Signed.Claims[fmt.Sprint("c", i)] = "input.id"
			}
		},
	} {
		spec := good
		spec.Claims = map[string]string{"sub": "input.id"}
		c := CheckSpec{Kind: "signed", Signed: &spec}
		f(&c)
		if _, err := compileCheck(c); err == nil {
			t.Errorf("%s compiles", name)
		}
	}
}

func TestKeySetRefuses(t *testing.T) {
	keys := testKeys()
	es := func(f func(map[string]any)) []byte {
		k := jwkOf(t, "ES256", "k1", keys["ES256"].Public())
		f(k)
		return jwks(k)
	}
	ed := func(f func(map[string]any)) []byte {
		k := jwkOf(t, "EdDSA", "k1", keys["EdDSA"].Public())
		f(k)
		return jwks(k)
	}
	rs := func(f func(map[string]any)) []byte {
		k := jwkOf(t, "RS256", "k1", keys["RS256"].Public())
		f(k)
		return jwks(k)
	}
	set := func(name string, v any) func(map[string]any) { return func(k map[string]any) { k[name] = v } }
	drop := func(name string) func(map[string]any) { return func(k map[string]any) { delete(k, name) } }
	plain := jwkOf(t, "ES256", "k1", keys["ES256"].Public())
	secret := func(alg string) []byte {
		b, err := json.Marshal(map[string]any{"keys": []any{jose.JSONWebKey{Key: keys[alg], KeyID: "k1", Algorithm: alg}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		short = nil // the library makes no such key any more
	}
	cases := []struct {
		name string
		in   []byte
		rule string
	}{
		{"nothing", nil, ruleKeySet}, {"no JSON", []byte("-----BEGIN PUBLIC KEY-----"), ruleKeySet}, {"a key without a set", Canonical(plain), ruleKeySet}, {"a list", []byte(`[]`), ruleKeySet}, {"no keys", []byte(`{"keys":[]}`), ruleKeySet}, {"keys is an object", []byte(`{"keys":{}}`), ruleKeySet},
		{"a member beside keys", []byte(`{"keys":[` + string(Canonical(plain)) + `],"more":1}`), ruleKeySet}, {"a member twice", []byte(`{"keys":[],"keys":[` + string(Canonical(plain)) + `]}`), ruleKeySet}, {"too large", append([]byte(`{"keys":[]}`), make([]byte, keySetBytes)...), ruleKeySet},
		{"a text for a key", []byte(`{"keys":["x"]}`), ruleKeyForm}, {"an empty key", []byte(`{"keys":[{}]}`), ruleKeyForm}, {"a member twice in a key", []byte(`{"keys":[{"kty":"EC","kty":"oct"}]}`), ruleKeySet},
		{"a symmetric key", []byte(`{"keys":[{"kty":"oct","k":"AAAA","alg":"HS256"}]}`), ruleKeySymmetric}, {"a symmetric part", es(set("k", "AAAA")), ruleKeySymmetric},
		{"a private EC key", secret("ES256"), ruleKeyPrivate}, {"a private RSA key", secret("RS256"), ruleKeyPrivate}, {"a private Ed25519 key", secret("EdDSA"), ruleKeyPrivate}, {"d is null", es(set("d", nil)), ruleKeyPrivate}, {"one prime", rs(set("p", "AAAA")), ruleKeyPrivate},
		{"for encryption", es(set("use", "enc")), ruleKeyUse}, {"use is a list", es(set("use", []any{"sig"})), ruleKeyUse}, {"for signing", es(set("key_ops", []any{"sign"})), ruleKeyUse}, {"for both", es(set("key_ops", []any{"verify", "sign"})), ruleKeyUse},
		{"alg none", es(set("alg", "none")), ruleKeyAlgorithm}, {"HMAC", es(set("alg", "HS256")), ruleKeyAlgorithm}, {"another curve's algorithm", es(set("alg", "ES384")), ruleKeyAlgorithm}, {"RSA without alg", rs(drop("alg")), ruleKeyAlgorithm}, {"RSA with an encryption algorithm", rs(set("alg", "RSA-OAEP")), ruleKeyAlgorithm}, {"RSA with HMAC", rs(set("alg", "HS256")), ruleKeyAlgorithm}, {"a list of algorithms", rs(set("alg", []any{"RS256"})), ruleKeyAlgorithm}, {"Ed25519 with ES256", ed(set("alg", "ES256")), ruleKeyAlgorithm},
		{"kid is a number", es(set("kid", numberOne)), ruleKeyID}, {"kid is empty", es(set("kid", "")), ruleKeyID}, {"kid is long", es(set("kid", strings.Repeat("k", keyIDBytes+1))), ruleKeyID}, {"a kid twice", jwks(plain, plain), ruleKeyID}, {"two keys, one without kid", jwks(plain, jwkOf(t, "EdDSA", "", keys["EdDSA"].Public())), ruleKeyID},
		{"an unknown member", es(set("ext", true)), ruleKeyForm}, {"a URL of a certificate", es(set("x5u", "https://evil.example")), ruleKeyForm}, {"an unknown kind", es(set("kty", "AKP")), ruleKeyForm}, {"an unknown curve", es(set("crv", "secp256k1")), ruleKeyForm}, {"a key for agreement", ed(set("crv", "X25519")), ruleKeyForm}, {"another curve", es(set("crv", "P-384")), ruleKeyAlgorithm},
		{"a point off the curve", es(func(k map[string]any) { k["y"] = k["x"] }), ruleKeyForm}, {"no y", es(drop("y")), ruleKeyForm}, {"a short x", es(set("x", "AAAA")), ruleKeyForm}, {"x is a number", es(set("x", numberOne)), ruleKeyForm}, {"padding", es(func(k map[string]any) { k["x"] = k["x"].(string) + "=" }), ruleKeyForm}, {"a line break", es(func(k map[string]any) { k["x"] = k["x"].(string) + "\n" }), ruleKeyForm},
		{"a short Ed25519 key", ed(set("x", "AAAA")), ruleKeyForm}, {"an empty modulus", rs(set("n", "")), ruleKeyForm}, {"a leading zero", rs(func(k map[string]any) { k["e"] = "AAEAAQ" }), ruleKeyForm}, {"an even exponent", rs(set("e", "AQAA")), ruleKeyForm}, {"the exponent one", rs(set("e", "AQ")), ruleKeyForm}, {"a tiny modulus", rs(set("n", "AQAB")), ruleKeyForm}, {"an even modulus", rs(func(k map[string]any) { n := k["n"].(string); k["n"] = n[:len(n)-1] + "A" }), ruleKeyForm},
	}
	if short != nil {
		cases = append(cases, struct {
			name string
			in   []byte
			rule string
		}{"1024 bits", jwks(jwkOf(t, "RS256", "k", short.Public())), ruleKeyForm})
	}
	for _, c := range cases {
		s, err := ParseKeySet(c.in)
		var ke *KeyError
		if !errors.As(err, &ke) || s != nil {
			t.Errorf("%s: taken: %v", c.name, err)
			continue
		}
		if ke.Rule != c.rule || strings.Contains(err.Error(), "evil") {
			t.Errorf("%s: %s %v, want %s", c.name, ke.Rule, err, c.rule)
		}
	}
}

func TestKeySetTells(t *testing.T) {
	k := jwkOf(t, "ES256", "k1", testKeys()["ES256"].Public())
	k["x5c"], k["x5t"], k["key_ops"] = []any{"AAAA"}, "abc", []any{"verify"}
	s := mustKeySet(t, k, jwkOf(t, "RS256", "k2", testKeys()["RS256"].Public()))
	if got := fmt.Sprint(s.Len(), s.Keys()); got != "2 [{k1 ES256} {k2 RS256}]" {
		t.Error(got)
	}
	var zero *KeySet
	if zero.Len() != 0 || zero.Keys() != nil {
		t.Error("nothing has keys")
	}
}

// FuzzSigned feeds tokens of any bytes: no panic, and nothing but the token that
// was signed is accepted. A changed token with the same meaning does not exist.
func FuzzSigned(f *testing.F) {
	key := testKeys()["EdDSA"]
	good := sign(f, "EdDSA", "k1", key, goodClaims)
	parts := strings.Split(good, ".")
	for _, s := range []string{good, good + "=", parts[0] + "." + parts[1] + ".", "..", good[:40], b64(`{"alg":"none"}`) + "." + parts[1] + ".AA", parts[0] + "." + b64(`{}`) + "." + parts[2]} {
		f.Add(s)
	}
	r := signedReader(f, mustKeySet(f, jwkOf(f, "EdDSA", "k1", key.Public())))
	f.Fuzz(func(t *testing.T, token string) {
		if !json.Valid([]byte(`"` + token + `"`)) {
			return
		}
		p, no := r.Prove(answer(200, `{"state":"approved","evidence":"`+token+`"}`), testScope, testNow)
		if (p == nil) == (no == nil) {
			t.Fatal("neither or both")
		}
		var said string
		if err := json.Unmarshal([]byte(`"`+token+`"`), &said); err != nil {
			t.Fatal(err)
		}
		if no == nil && said != good {
			t.Fatalf("accepted %q", token)
		}
	})
}

// FuzzKeySet: no panic, and whatever is taken is public and of a known algorithm.
func FuzzKeySet(f *testing.F) {
	for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
		f.Add(jwks(jwkOf(f, alg, "k1", testKeys()[alg].Public())))
	}
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseKeySet(b)
		if (err == nil) != (s.Len() > 0) {
			t.Fatal("neither or both")
		}
		for _, k := range s.Keys() {
			if k.Algorithm != "ES256" && k.Algorithm != "ES384" && k.Algorithm != "ES512" && k.Algorithm != "EdDSA" && k.Algorithm[0] != 'R' && k.Algorithm[0] != 'P' {
				t.Fatal(k)
			}
		}
	})
}

// Two absences are not equal, and null is not absence: a claim must be there and
// its other side too.
func TestSignedClaimsMustBeThere(t *testing.T) {
	key := testKeys()["ES256"]
	reader := func(path string) *Reader {
		return mustReader(t, ReaderSpec{
			Rows: []RowSpec{{Status: []int{200}, HasSuccess: true}},
			Checks: []CheckSpec{{Kind: "signed", Signed: &SignedSpec{
				JWS: "/evidence", Keys: mustKeySet(t, jwkOf(t, "ES256", "k1", key.Public())), Issuer: "https://review.example", Audience: "deploys", Claims: map[string]string{"x": path},
			}}},
		})
	}
	claims := func(x string) Raw {
		return evidence(forge(t, key, `{"alg":"ES256"}`, fmt.Sprintf(`{"iss":"https://review.example","aud":"deploys","exp":%d%s}`, seconds5(time.Minute), x)))
	}
	for name, c := range map[string]struct{ path, claim string }{
		"neither": {"input.absent", ""}, "no claim": {"target.project_id", ""}, "null and no value": {"input.absent", `,"x":null`}, "null": {"target.project_id", `,"x":null`}, "a claim and no value": {"input.absent", `,"x":"prj_1"`}, "a result that is not there": {"result.x", ""},
	} {
		if _, no := reader(c.path).Prove(claims(c.claim), testScope, testNow); no == nil || no.Rule != ruleSignedClaim {
			t.Errorf("%s: %v", name, no)
		}
	}
	// One text for the audience, and a claim that is there.
	if _, no := reader("target.project_id").Prove(claims(`,"x":"prj_1"`), testScope, testNow); no != nil {
		t.Error(no)
	}
}

func TestUnixSeconds(t *testing.T) {
	for want, at := range map[string]time.Time{
		"0.000000000": time.Unix(0, 0), "1.500000000": time.Unix(1, 5e8), "-1.000000000": time.Unix(-1, 0), "-0.250000000": time.Unix(-1, 75e7), "-1.999999999": time.Unix(-2, 1),
	} {
		if got := unixSeconds(at); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Other keys replace those of a check, by name, in a copy only.
func TestDangerouslyWithKeys(t *testing.T) {
	keys := testKeys()
	r := signedReader(t, mustKeySet(t, jwkOf(t, "ES256", "k1", keys["ES256"].Public())))
	other := r.DangerouslyWithKeys(map[string]*KeySet{"signer": mustKeySet(t, jwkOf(t, "ES256", "k1", keys["other"].Public()))})
	none := r.DangerouslyWithKeys(nil)
	ours, theirs := evidence(sign(t, "ES256", "k1", keys["ES256"], goodClaims)), evidence(sign(t, "ES256", "k1", keys["other"], goodClaims))
	for i, c := range []struct {
		r    *Reader
		raw  Raw
		fits bool
	}{{r, ours, true}, {r, theirs, false}, {other, ours, false}, {other, theirs, true}, {none, ours, false}, {none, theirs, false}} {
		if _, no := c.r.Prove(c.raw, testScope, testNow); (no == nil) != c.fits {
			t.Errorf("%d: %v", i, no)
		}
	}
	var zero *Reader
	if zero.DangerouslyWithKeys(nil) != nil {
		t.Error("nothing became a reader")
	}
}
