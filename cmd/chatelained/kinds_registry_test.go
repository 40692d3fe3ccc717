package main_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

const imagesPassword = "registry-password-planted-44d9e0"

// imagesContract asks a registry whether it answers at all.
const imagesContract = `contract: v1
action: use_images
version: 1.0.0
summary: Ask whether the registry answers.
owner: tests
effect: read
input: {type: object, additionalProperties: false, properties: {}}
route: {target: images}
request:
  method: GET
  path: /
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false}
      success: {answered_at: {header: Date, time: http_date}}
result: {type: object, additionalProperties: false, required: [answered_at], properties: {answered_at: {type: string, format: date-time, maxLength: 35}}}
`

// issuer signs what a registry takes as a token.
type issuer struct {
	leaf  tls.Certificate
	given func(token string)
}

// token answers a registry's client: the password is asked for, and each token names
// what it is for.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != "bot" || password != imagesPassword || r.Method != http.MethodGet || r.URL.Query().Get("service") != "registry.test" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // constants of ours
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	now := time.Now()
	signed := text(map[string]any{"typ": "JWT", "alg": "ES256", "x5c": []string{base64.StdEncoding.EncodeToString(i.leaf.Certificate[0])}}) + "." +
		text(map[string]any{"iss": "issuer.test", "sub": user, "aud": "registry.test", "exp": now.Add(time.Hour).Unix(), "nbf": now.Add(-time.Minute).Unix(), "iat": now.Unix(),
			"jti": "one", "access": []any{}})
	sum := sha256.Sum256([]byte(signed))
	a, b, err := ecdsa.Sign(rand.Reader, i.leaf.PrivateKey.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		panic(err) // a key that was just made
	}
	sig := append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...)
	token := signed + "." + base64.RawURLEncoding.EncodeToString(sig)
	i.given(token)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_in": 3600})
}

// startImages starts a real container registry that takes the tokens of realm.
func startImages(t *testing.T, ca *upstream.CA, realm string, trusted tls.Certificate) (address string) {
	t.Helper()
	dir := t.TempDir()
	testkit.LeafFiles(t, ca, dir)
	issuer := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Certificate[0]})
	if err := os.WriteFile(filepath.Join(dir, "issuer.pem"), issuer, 0o600); err != nil {
		t.Fatal(err)
	}
	address = "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	config := filepath.Join(dir, "registry.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: %[1]s/data}}
http: {addr: "%[2]s", tls: {certificate: %[1]s/leaf.pem, key: %[1]s/leaf.key}}
auth: {token: {realm: "%[3]s", service: registry.test, issuer: issuer.test, rootcertbundle: %[1]s/issuer.pem}}
`, dir, address, realm), 0o600); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, DisableKeepAlives: true}}
	testkit.Product(t, "docker-registry", func() bool {
		resp, err := client.Get("https://" + address + "/v2/")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusUnauthorized
	}, "serve", config)
	return address
}
