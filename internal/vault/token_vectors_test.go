package vault

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"chatelaine/internal/fault"
)

// The request of RFC 6749 section 4.4.2: Basic of section 2.3.1, and the body.
func TestClientCredentialsOfTheRFC(t *testing.T) {
	e := says(jsonAnswer(200, `{"access_token":"2YotnFZFEjr1zCsicMWpAA","token_type":"Bearer","expires_in":3600,"example_parameter":"example_value"}`))
	b := tokenBinding(KindOAuth2Client, map[string]string{"client_id": "s6BhdRkqt3", "auth": "basic"})
	m, err := exchangingOf(b, "7Fjfp0ZBr1KtDRbnfVdmIw", e.exchange).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := e.last()
	if s.authorization != "Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3" || s.whole != "grant_type=client_credentials" ||
		s.Method != "POST" || s.Path != "/oauth2/token" || s.MediaType != "application/x-www-form-urlencoded" {
		t.Errorf("sent %+v", s)
	}
	if !m.token.Equal(sec("2YotnFZFEjr1zCsicMWpAA")) || m.life.Seconds() != 3600 {
		t.Errorf("got %v for %s", m.token, m.life)
	}
}

// The request of RFC 6749 section 6, and the one of section 2.3.1 with the client
// in the body.
func TestRefreshOfTheRFC(t *testing.T) {
	const secretText = `{"refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA","client_secret":"7Fjfp0ZBr1KtDRbnfVdmIw"}`
	const answer = `{"access_token":"2YotnFZFEjr1zCsicMWpAA","token_type":"Bearer","expires_in":3600}`
	for auth, want := range map[string]struct{ authorization, body string }{
		"basic": {"Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3", "grant_type=refresh_token&refresh_token=tGzv3JOkF0XG5Qx2TlKWIA"},
		"body":  {"", "grant_type=refresh_token&refresh_token=tGzv3JOkF0XG5Qx2TlKWIA&client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw"},
	} {
		e := says(jsonAnswer(200, answer))
		b := tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": "s6BhdRkqt3", "auth": auth})
		if _, err := exchangingOf(b, secretText, e.exchange).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := url.ParseQuery(e.last().whole)
		wanted, _ := url.ParseQuery(want.body)
		if err != nil || got.Encode() != wanted.Encode() || e.last().authorization != want.authorization {
			t.Errorf("%s: sent %q, %q, %v", auth, e.last().authorization, e.last().whole, err)
		}
	}
}

// The answers of RFC 6749 sections 5.1 and 5.2. The first has a token type that no
// target takes from us.
func TestAnswersOfTheRFC(t *testing.T) {
	for text, code := range map[string]fault.Code{
		`{
       "access_token":"2YotnFZFEjr1zCsicMWpAA",
       "token_type":"example",
       "expires_in":3600,
       "refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA",
       "example_parameter":"example_value"
     }`: fault.InvalidResponse,
		`{"error":"invalid_request"}`: fault.RemoteUnauthenticated,
	} {
		status := 200
		if strings.Contains(text, "error") {
			status = 400
		}
		_, err := oauthRules.read(jsonAnswer(status, text))
		wantCode(t, err, code)
	}
}

func b64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The key of RFC 7515 appendix A.2; its second prime is what the first leaves.
func rfcRSA(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	num := func(s string) *big.Int { return new(big.Int).SetBytes(b64(t, s)) }
	n := num("ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ")
	d := num("Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ")
	p := num("4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc")
	k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n, E: 65537}, D: d, Primes: []*big.Int{p, new(big.Int).Div(n, p)}}
	k.Precompute()
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	return k
}

const rfcPayload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

// The signed examples of RFC 7515 (A.1, A.2, A.3) and RFC 8037 (A.4) verify through
// the library that signs our assertions; where signing is a function of its input
// it gives the same signature.
func TestSignaturesOfTheRFCs(t *testing.T) {
	rsaKey := rfcRSA(t)
	x, y := b64(t, "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"), b64(t, "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
	ec, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if err != nil {
		t.Fatal(err)
	}
	ed := ed25519.NewKeyFromSeed(b64(t, "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
	if !bytes.Equal(ed.Public().(ed25519.PublicKey), b64(t, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")) {
		t.Fatal("this is not the key of RFC 8037")
	}
	for _, c := range []struct {
		alg    jose.SignatureAlgorithm
		public any
		again  any // signs to the same bytes
		text   string
	}{
		{jose.HS256, b64(t, "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"), nil,
			"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + rfcPayload + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
		{jose.RS256, &rsaKey.PublicKey, rsaKey,
			"eyJhbGciOiJSUzI1NiJ9." + rfcPayload + ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
		{jose.ES256, ec, nil,
			"eyJhbGciOiJFUzI1NiJ9." + rfcPayload + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
		{jose.EdDSA, ed.Public(), ed,
			"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"},
	} {
		parsed, err := jose.ParseSignedCompact(c.text, []jose.SignatureAlgorithm{c.alg})
		if err != nil {
			t.Fatalf("%s: %v", c.alg, err)
		}
		payload, err := parsed.Verify(c.public)
		if err != nil {
			t.Errorf("%s: %v", c.alg, err)
		}
		if c.again == nil {
			continue
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: c.alg, Key: c.again}, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := signer.Sign(payload)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := again.CompactSerialize(); text != c.text {
			t.Errorf("%s: signed anew it is %s", c.alg, text)
		}
	}
}

// The claims of RFC 7523 section 4's example and of RFC 7519 section 3.1 have the
// names that ours have.
func TestClaimsOfTheRFCs(t *testing.T) {
	const example = `{"iss":"https://jwt-idp.example.com","sub":"mailto:mike@example.com","aud":"https://jwt-rp.example.net","nbf":1300815780,"exp":1300819380,"http://claims.example.com/member":true}`
	var c claims
	if err := json.Unmarshal([]byte(example), &c); err != nil {
		t.Fatal(err)
	}
	if c.Issuer != "https://jwt-idp.example.com" || c.Subject != "mailto:mike@example.com" || c.Audience != "https://jwt-rp.example.net" || c.Expires != 1300819380 {
		t.Errorf("got %+v", c)
	}
	if err := json.Unmarshal(b64(t, rfcPayload), &c); err != nil || c.Issuer != "joe" || c.Expires != 1300819380 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// Each form of PEM that issuers hand out is read: GitHub's is PKCS #1.
func TestKeyForms(t *testing.T) {
	keys := testKeys()
	block := func(kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	ecDER, ecErr := x509.MarshalECPrivateKey(keys["ES256"].(*ecdsa.PrivateKey))
	service, err := json.Marshal(map[string]string{"type": "service_account", "private_key": keyPEM(t, keys["RS256"]), "private_key_id": "k1", "client_email": "robot@example.iam"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ alg, text string }{
		"PKCS8 RSA":       {"RS256", keyPEM(t, keys["RS256"])},
		"PKCS1":           {"RS256", block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(keys["RS256"].(*rsa.PrivateKey)), nil)},
		"PKCS8 EC":        {"ES256", "\n" + keyPEM(t, keys["ES256"]) + "\n"},
		"SEC1":            {"ES256", block("EC PRIVATE KEY", ecDER, ecErr)},
		"Ed25519":         {"EdDSA", keyPEM(t, keys["EdDSA"])},
		"service account": {"RS256", string(service)},
	} {
		k, err := parseSigningKey([]byte(c.text), c.alg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		jwt, err := k.sign(newClaims("i"), "given")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parsed, err := jose.ParseSignedCompact(string(jwt), []jose.SignatureAlgorithm{jose.SignatureAlgorithm(c.alg)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsed.Verify(keys[c.alg].Public()); err != nil || parsed.Signatures[0].Header.KeyID != "given" {
			t.Errorf("%s: %v", name, err)
		}
		if (k.id == "k1") != (name == "service account") {
			t.Errorf("%s: the key's id is %q", name, k.id)
		}
	}
}

func TestKeyRefusals(t *testing.T) {
	keys := testKeys()
	for name, c := range map[string]struct{ alg, text string }{
		"nothing":               {"RS256", ""},
		"a password":            {"RS256", planted},
		"JSON of something":     {"RS256", `{"type":"authorized_user","refresh_token":"rt-000-tGzv3JOkF0XG5Qx2TlKWIA"}`},
		"JSON without a key":    {"RS256", `{"type":"service_account"}`},
		"JSON twice":            {"RS256", `{"type":"service_account","type":"x"}`},
		"JSON with no PEM":      {"RS256", `{"type":"service_account","private_key":"` + planted + `"}`},
		"EC for RSA":            {"RS256", keyPEM(t, keys["ES256"])},
		"RSA for EC":            {"ES256", keyPEM(t, keys["RS256"])},
		"P-256 for ES384":       {"ES384", keyPEM(t, keys["ES256"])},
		"Ed25519 for RSA":       {"PS256", keyPEM(t, keys["EdDSA"])},
		"an unknown algorithm":  {"none", keyPEM(t, keys["RS256"])},
		"HMAC":                  {"HS256", keyPEM(t, keys["RS256"])},
		"two keys":              {"RS256", keyPEM(t, keys["RS256"]) + keyPEM(t, keys["RS256"])},
		"a key cut in the half": {"RS256", keyPEM(t, keys["RS256"])[:900]},
	} {
		_, err := parseSigningKey([]byte(c.text), c.alg)
		if err == nil {
			t.Errorf("%s: taken", name)
		}
		refuseLeak(t, err)
		refuseTokens(t, err)
	}
}
