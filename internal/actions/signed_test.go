package actions

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/validate"
)

func raw64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// edKeys makes a JWK Set of one Ed25519 key.
func edKeys(kid string) (string, ed25519.PrivateKey) {
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	return fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":%q,"use":"sig","alg":"EdDSA","x":%q}]}`, kid, raw64(public)), private
}

// token signs claims as a JWS.
func token(key ed25519.PrivateKey, kid, claims string) string {
	input := raw64([]byte(`{"alg":"EdDSA","kid":"`+kid+`"}`)) + "." + raw64([]byte(claims))
	return input + "." + raw64(ed25519.Sign(key, []byte(input)))
}

const signedCheck = `checks:
  - signed: {jws: /evidence, keys: signer, issuer: "https://sign.example", audience: deploys, claims: {sub: input.version, id: result.id, app: target.app}}
`

// signedPair is a good pair whose answers must be signed.
func signedPair(t *testing.T) (site, contract string) {
	return goodSite + "keys:\n  signer: {jws: placeholder}\n", edit(t, goodContract,
		"required: [id], properties: {id: {type: string, maxLength: 20}}}\n      success", "required: [id, evidence], properties: {id: {type: string, maxLength: 20}, evidence: {type: string, maxLength: 4000}}}\n      success",
		"idempotency:", signedCheck+"idempotency:")
}

// layKeys writes key files beside the site file and returns the set.
func layKeys(t *testing.T, site, contract string, files map[string]string) (*Set, Problems) {
	t.Helper()
	sitePath, dir := write(t, site, contract)
	for name, text := range files {
		replaceFile(t, filepath.Join(filepath.Dir(sitePath), name), text)
	}
	set, ps := LoadSet(sitePath, dir)
	if len(ps) == 0 {
		agrees(t, site, contract)
	}
	return set, ps
}

func TestSignedEndToEnd(t *testing.T) {
	site, contract := signedPair(t)
	site = strings.Replace(site, "{jws: placeholder}", "{jwks: signer.json}", 1)
	keys, private := edKeys("k1")
	set, ps := layKeys(t, site, contract, map[string]string{"signer.json": keys})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	if k, ok := set.KeySet("signer"); !ok || k.Len() != 1 || !slices.Equal(set.KeySets(), []string{"signer"}) {
		t.Error("the set does not know its keys")
	}
	if _, ok := set.KeySet("nobody"); ok {
		t.Error("keys of nobody")
	}
	c := set.Contracts()[0]
	for _, f := range Lint(c, set) {
		if f.Rule == "signed-not-bound" {
			t.Error(f)
		}
	}
	plan := mustFreeze(t, set, c, goodInput)
	claims := func(sub string) string {
		return fmt.Sprintf(`{"iss":"https://sign.example","aud":"deploys","sub":%q,"id":"r1","app":"shop api","exp":%d}`, sub, testNow.Add(time.Minute).Unix())
	}
	prove := func(token string) *validate.Rejection {
		body, err := json.Marshal(map[string]any{"id": "r1", "evidence": token})
		if err != nil {
			t.Fatal(err)
		}
		_, no := plan.Reader().Prove(validate.Raw{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, plan.Scope(testNow), testNow)
		return no
	}
	if no := prove(token(private, "k1", claims("2.14"))); no != nil {
		t.Errorf("the evidence is refused: %v", no)
	}
	_, stranger := edKeys("k1")
	for name, bad := range map[string]string{
		"about something else": token(private, "k1", claims("2.15")), "a stranger's": token(stranger, "k1", claims("2.14")), "an unknown key": token(private, "k2", claims("2.14")), "none": "",
	} {
		if no := prove(bad); no == nil || no.Layer != validate.LayerCheck {
			t.Errorf("%s: %v", name, no)
		}
	}
	// Read without a site file there are no keys, and so no success.
	alone, ps := LoadContract(c.Dir())
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	if alone.Digest() == c.Digest() {
		t.Error("the keys are not in the contract's digest")
	}
}

// Another key is another contract, another set and another plan; another name
// of the file with the same bytes is not.
func TestKeysAreUnderTheDigests(t *testing.T) {
	site, contract := signedPair(t)
	named := func(file string) string { return strings.Replace(site, "{jws: placeholder}", "{jwks: "+file+"}", 1) }
	one, _ := edKeys("k1")
	two, _ := edKeys("k1")
	load := func(site string, files map[string]string) *Set {
		s, ps := layKeys(t, site, contract, files)
		if len(ps) > 0 {
			t.Fatal(ps)
		}
		return s
	}
	a := load(named("a.json"), map[string]string{"a.json": one})
	same := load(named("a.json"), map[string]string{"a.json": one})
	moved := load(named("b.json"), map[string]string{"b.json": one})
	other := load(named("a.json"), map[string]string{"a.json": two})
	digest := func(s *Set) [32]byte { return s.Contracts()[0].Digest() }
	if a.Digest() != same.Digest() || digest(a) != digest(same) || digest(a) != digest(moved) {
		t.Error("the same keys, another digest")
	}
	if a.Digest() == other.Digest() || digest(a) == digest(other) {
		t.Error("other keys, the same digest")
	}
	if mustFreeze(t, a, a.Contracts()[0], goodInput).Digest() == mustFreeze(t, other, other.Contracts()[0], goodInput).Digest() {
		t.Error("other keys, the same plan")
	}
}

func TestKeyFilesRefused(t *testing.T) {
	site, contract := signedPair(t)
	good, _ := edKeys("k1")
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := ec.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	private := strings.Replace(good, `"kid"`, `"d":"`+raw64(secret)+`","kid"`, 1)
	for name, c := range map[string]struct{ keys, file, want string }{
		"a private key":     {"{jwks: k.json}", private, `22:18 keys the file "k.json" is no key set: keys[0]: holds a private key; take the file off this machine, change the key, and list the public half`},
		"a symmetric key":   {"{jwks: k.json}", `{"keys":[{"kty":"oct","k":"c2VjcmV0","alg":"HS256"}]}`, `22:18 keys the file "k.json" is no key set: keys[0]: is a symmetric key, which whoever verifies could also sign with; list the signer's public key`},
		"no set":            {"{jwks: k.json}", `[]`, `22:18 keys the file "k.json" is no key set: is no JWK Set: one object whose only member keys lists 1 to 64 keys`},
		"a member twice":    {"{jwks: k.json}", strings.Replace(good, `"kid"`, `"kid":"k0","kid"`, 1), `22:18 keys the file "k.json" is no key set: is not strict JSON: line 1, column 50: duplicate-member: the same member twice in one object (at /keys/0/kid)`},
		"PEM":               {"{jwks: k.json}", "-----BEGIN PUBLIC KEY-----\n", `22:18 keys the file "k.json" is no key set: is not strict JSON: line 1, column 1: number: not a JSON number`},
		"too large":         {"{jwks: k.json}", strings.Repeat(" ", maxKeyFile+1), `22:18 keys the file "k.json" has more than 262144 bytes`},
		"not there":         {"{jwks: gone.json}", good, `22:18 keys the file "gone.json" cannot be read: no such file or directory`},
		"a folder":          {"{jwks: .}", good, `22:18 keys the file "." cannot be read: not a plain file`},
		"no file":           {"{}", good, `22:11 missing-key a key set needs the key "jwks"`},
		"a key in the file": {`{jwks: k.json, url: "https://sign.example/jwks"}`, good, `22:26 unknown-key a key set has no key "url"`},
	} {
		_, ps := layKeys(t, strings.Replace(site, "{jws: placeholder}", c.keys, 1), contract, map[string]string{"k.json": c.file})
		same(t, name, told(ps), []string{c.want})
		if strings.Contains(fmt.Sprint(ps), raw64(secret)) {
			t.Errorf("%s: the key is told", name)
		}
	}
	bare := strings.Split(site, "keys:\n")[0]
	_, ps := layKeys(t, bare, contract, nil)
	same(t, "no keys in the site file", told(ps), []string{`42:36 keys-unknown the site file has no keys "signer"`})
	_, ps = layKeys(t, bare+"keys:\n  signers: {jwks: k.json}\n", contract, map[string]string{"k.json": good})
	same(t, "another name", told(ps), []string{`42:36 keys-unknown the site file has no keys "signer"`})
}

func TestSignedSlips(t *testing.T) {
	site, contract := signedPair(t)
	site = strings.Replace(site, "{jws: placeholder}", "{jwks: k.json}", 1)
	good, _ := edKeys("k1")
	for name, c := range map[string]struct{ old, new, want string }{
		"no pointer":          {"jws: /evidence", "jws: evidence", `42:19 pointer "evidence" is no JSON pointer`},
		"an empty issuer":     {`issuer: "https://sign.example"`, `issuer: ""`, "42:52 text issuer is empty"},
		"iss as a claim":      {"sub: input.version", "iss: input.version", "42:104 check the claim iss does not stand under claims"},
		"exp as a claim":      {"sub: input.version", "exp: call.now", "42:104 check the claim exp does not stand under claims"},
		"an unknown input":    {"sub: input.version", "sub: input.versoin", `42:109 value-path there is no value "input.versoin"`},
		"an unknown result":   {"id: result.id", "id: result.di", `42:128 value-path there is no value "result.di"`},
		"an unknown constant": {"app: target.app", "app: target.ap", "42:144 value-path there is no target.ap for the target"},
		"a long skew":         {"jws: /evidence,", "jws: /evidence, skew: 1h,", "42:36 range"},
		"a negative skew":     {"jws: /evidence,", "jws: /evidence, skew: -1s,", "42:36 "},
		"no claims in claims": {"{sub: input.version, id: result.id, app: target.app}", "{}", "42:103 check claims has 1 to 16 members"},
		"an unknown key":      {"jws: /evidence,", "jws: /evidence, algorithms: [none],", `42:30 unknown-key signed has no key "algorithms"`},
		"a row without body":  {"    - status: 409\n", "    - status: 204\n      media: none\n      success: {id: {const: r1}}\n    - status: 409\n", "45:5 check the success in line 38 has no JSON body that could carry a signature"},
		"a broken name":       {"keys: signer", "keys: Signer", `42:36 name "Signer" is no name of a key set`},
	} {
		_, ps := layKeys(t, site, edit(t, contract, c.old, c.new), map[string]string{"k.json": good})
		if got := strings.Join(told(ps), "\n"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	set, ps := layKeys(t, site, edit(t, contract, "{sub: input.version, id: result.id, app: target.app}", "{app: target.app}"), map[string]string{"k.json": good})
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	if !slices.ContainsFunc(Lint(set.Contracts()[0], set), func(f Finding) bool { return f.Rule == "signed-not-bound" && f.Line == 42 }) {
		t.Error("evidence about something else is not remarked on")
	}
}

// A key file is read as it was at the load; what is written there later counts
// at the next load only.
func TestKeysAreReadOnce(t *testing.T) {
	site, contract := signedPair(t)
	sitePath, dir := write(t, strings.Replace(site, "{jws: placeholder}", "{jwks: k.json}", 1), contract)
	path := filepath.Join(filepath.Dir(sitePath), "k.json")
	one, _ := edKeys("k1")
	replaceFile(t, path, one)
	set, ps := LoadSet(sitePath, dir)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	before, _ := set.KeySet("signer")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if after, _ := set.KeySet("signer"); after != before || after.Len() != 1 {
		t.Error("the keys went with the file")
	}
}
