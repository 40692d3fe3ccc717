package actions

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/actions/strictyaml"
)

// authority makes a certificate authority's file.
func authority(t *testing.T, serial int64) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestSiteAccepts(t *testing.T) {
	pin := "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%s="
	extra := `    allow: [loopback, private]
    ca: ca.pem
    pin: [` + fmt.Sprintf(pin, "A") + ", " + fmt.Sprintf(pin, "E") + `]
    http2: true
    headers: {x-team: docs}
    version_headers: [X-Api-Version]
    with: {nested: {deep: "1"}}
`
	site := edit(t, goodSite, "    ask: session\n", "    ask: session\n"+extra, "https://deploy.test.example/api", "https://[fd00::7]:8443/api/",
		"test-bot: {kind: bearer}", "test-bot: {kind: basic, username: bot, ask: session}", "name: X-Api-Key", "name: x-api-key, prefix: 'Key '")
	contract := edit(t, goodContract, "headers: {Accept: application/json}", "headers: {x-api-version: '2'}", "production, target: deploy-prod", "production, target: deploy-test")
	sitePath, dir := write(t, site, contract)
	pemFile := filepath.Join(filepath.Dir(sitePath), "ca.pem")
	replaceFile(t, pemFile, authority(t, 1))
	set, ps := LoadSet(sitePath, dir)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	a, _ := set.Target("deploy-test")
	got := []string{
		a.Scheme(), a.Host(), itoa(a.Port()), a.BasePath(), a.authority(), a.Identity(), a.Ask().String(), fmt.Sprint(a.Effects()), fmt.Sprint(a.Actions()),
		fmt.Sprint(a.AllowLoopback(), a.AllowPrivate(), a.HTTP2(), len(a.Pins())), fmt.Sprint(a.Headers()), a.CADigest()[:7], filepath.Base(a.CAFile()), string(a.CAPEM()[:10]),
	}
	same(t, "target", got, []string{
		"https", "fd00::7", "8443", "/api", "[fd00::7]:8443", "test-bot", "session", "[read change]", "[start_release]",
		"true true true 2", "map[X-Team:docs]", "sha256:", "ca.pem", "-----BEGIN",
	})
	if v, ok := a.Const("nested.deep"); !ok || v != "1" {
		t.Error("constant")
	}
	b, _ := set.Target("deploy-prod")
	if b.Port() != 8443 || b.BasePath() != "" || b.AllowLoopback() || b.AllowPrivate() || b.HTTP2() || b.CAPEM() != nil || b.AllowsEffect(Read) {
		t.Error("a target has what nobody wrote")
	}
	bot, _ := set.Identity("test-bot")
	key, _ := set.Identity("prod-bot")
	same(t, "identities", []string{bot.Name(), bot.Kind(), bot.HeaderName(), bot.Username(), bot.Ask().String(), key.HeaderName(), key.Prefix()},
		[]string{"test-bot", "basic", "Authorization", "bot", "session", "X-Api-Key", "Key "})
	before := set.Digest()
	target := a.Digest()
	replaceFile(t, pemFile, authority(t, 2))
	again, ps := LoadSet(sitePath, dir)
	if len(ps) > 0 || again.Digest() == before {
		t.Error("another certificate authority, the same set")
	}
	if a2, _ := again.Target("deploy-test"); a2.Digest() == target {
		t.Error("another certificate authority, the same target")
	}
}

func TestLoopbackHTTP(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:8080", "http://[::1]:8080/x", "http://localhost"} {
		mustLoad(t, edit(t, goodSite, "url: https://deploy.test.example/api", "allow: [loopback]\n    url: "+url), goodContract)
	}
	_, ps := load(t, edit(t, goodSite, "url: https://deploy.test.example/api", "allow: [private]\n    url: http://10.0.0.7"), goodContract)
	same(t, "http in a private network", told(ps), []string{"4:10 url plain http is taken for loopback targets only"})
}

// The set's digest is the same for the same meaning and another for any other.
func TestSetDigest(t *testing.T) {
	base, _ := mustLoad(t, goodSite, goodContract)
	spelled, _ := mustLoad(t, "# a comment\n"+goodSite, edit(t, goodContract, "owner: release team", "owner: 'release team' # who"))
	if base.Digest() != spelled.Digest() {
		t.Error("a comment changes the digest")
	}
	for _, pair := range [][2]string{{"ask: session", "ask: every_call"}, {"effects: [read, change]", "effects: [change]"}, {"test-bot: {kind: bearer}", "test-bot: {kind: bearer, ask: every_call}"}} {
		if other, _ := mustLoad(t, edit(t, goodSite, pair[0], pair[1]), goodContract); other.Digest() == base.Digest() {
			t.Errorf("%s leaves the digest as it was", pair[1])
		}
	}
	for _, pair := range [][2]string{{"1.2.0", "1.2.1"}, {"maxLength: 300}\n    note", "maxLength: 299}\n    note"}, {"retryable: true", "retryable: false"}} {
		if other, _ := mustLoad(t, goodSite, edit(t, goodContract, pair[0], pair[1])); other.Digest() == base.Digest() {
			t.Errorf("%s leaves the digest as it was", pair[1])
		}
	}
}

// A large list is read in reasonable time.
func TestLargeList(t *testing.T) {
	var b strings.Builder
	b.WriteString(goodSite)
	for i := range 5000 {
		fmt.Fprintf(&b, "    p%d: {target: deploy-test, with: {app: p%d}}\n", i, i)
	}
	start := time.Now()
	s := parseSite(strictyaml.Parse("x", []byte(b.String()), strictyaml.Limits{Bytes: maxSiteFile, Nodes: siteNodes}), "")
	if len(s.f.Problems()) > 0 || len(s.lists["projects"].entries) != 5002 {
		t.Fatal(s.f.Problems())
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %s", d)
	}
}

func FuzzSite(f *testing.F) {
	f.Add([]byte(goodSite))
	f.Add([]byte(pathSite))
	for _, text := range driftDocs(f, "targets") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseSite(strictyaml.Parse("x", b, strictyaml.Limits{}), filepath.Join("testdata", "schema")) // whose key file a seed names
		if len(s.f.Problems()) > 0 {
			return
		}
		for name, id := range s.identities {
			wholeIdentity(t, name, id)
		}
		for name, tg := range s.targets {
			if p, ok := tg.SSH(); ok {
				kind := s.identities[tg.identity].kind
				if tg.host == "" || tg.port < 1 || p.user == "" || len(p.hostKeys) == 0 || p.shell == "" || kind != KindSSHKey && kind != KindSSHCertificate {
					t.Fatalf("the target %q over SSH is not whole", name)
				}
				continue
			}
			switch {
			case tg.scheme != "https" && tg.scheme != "http", tg.host == "", tg.port < 1, len(tg.effects) == 0, s.identities[tg.identity] == nil:
				t.Fatalf("the target %q is not whole", name)
			case tg.scheme == "http" && !tg.loopback:
				t.Fatalf("the target %q speaks http to elsewhere", name)
			case (tg.AllowsEffect(Change) || tg.AllowsEffect(Destroy)) && tg.ask == 0:
				t.Fatalf("the target %q takes changes and asks nobody", name)
			case len(tg.pins) == 1 || hasDotSegment(tg.basePath):
				t.Fatalf("the target %q has what it may not", name)
			}
			for h := range tg.headers {
				if refusedHeader(h) {
					t.Fatalf("the target %q sets %s", name, h)
				}
			}
		}
	})
}

// wholeIdentity holds an identity that was taken to what the vault takes.
func wholeIdentity(t *testing.T, name string, id *IdentitySpec) {
	t.Helper()
	for key, value := range id.params {
		if value == "" || len(value) > maxParam || !oneLine(value) {
			t.Fatalf("the identity %q has the %s %q", name, key, value)
		}
	}
	if id.Exchanges() != (id.place != nil) && id.kind != KindSSHCertificate {
		t.Fatalf("the identity %q of kind %s has the place %v", name, id.kind, id.place)
	}
	if (id.hole != nil) != (id.kind == KindBody) || id.hole != nil && (id.hole.json != nil) == (id.hole.form != "") {
		t.Fatalf("the identity %q has the place %+v in a body", name, id.hole)
	}
	p := id.place
	if p == nil {
		return
	}
	if p.scheme != "https" && (p.scheme != "http" || !p.loopback) || p.host == "" || p.port < 1 || len(p.pins) == 1 || hasDotSegment(p.basePath) || id.kind != KindGitHubApp && p.basePath == "" {
		t.Fatalf("the identity %q goes to %+v", name, p.endpoint)
	}
}
