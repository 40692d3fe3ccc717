package vault

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// issuer is a certificate authority of the test.
type issuer struct {
	key  crypto.Signer
	cert *x509.Certificate
}

func newIssuer(t testing.TB) issuer {
	t.Helper()
	key := ecKey(t, elliptic.P256())
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{key, c}
}

// leaf issues a certificate; change alters what is usual.
func (i issuer) leaf(t testing.TB, key crypto.Signer, change func(c *x509.Certificate)) []byte {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "client"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour).Truncate(time.Second),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, i.cert, key.Public(), i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der})
}

func (i issuer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: i.cert.Raw})
}

func ecKey(t testing.TB, c elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rsaKeys makes one key of each size for all tests: they are slow to make.
var rsaKeys = map[int]func() *rsa.PrivateKey{2048: rsaOf(2048), 3072: rsaOf(3072)}

func rsaOf(bits int) func() *rsa.PrivateKey {
	return sync.OnceValue(func() *rsa.PrivateKey {
		k, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		return k
	})
}

func edKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func pkcs8(t testing.TB, k crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPKCS8, Bytes: der})
}

func sec1(t testing.TB, k *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	// openssl writes the curve's name in a block of its own.
	curve := pem.EncodeToMemory(&pem.Block{Type: pemECParameters, Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	return append(curve, pem.EncodeToMemory(&pem.Block{Type: pemSEC1, Bytes: der})...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func certBinding() Binding {
	return Binding{Kind: KindClientCertificate, Scheme: "https", Host: "mesh.example", Port: 443}
}

// TestClientCertificatesInARealHandshake shows each kind of key to a server that
// wants a certificate, under both versions of TLS.
func TestClientCertificatesInARealHandshake(t *testing.T) {
	t.Parallel()
	ca := newIssuer(t)
	ec, ed, small := ecKey(t, elliptic.P256()), edKey(t), rsaKeys[2048]()
	for name, text := range map[string][]byte{
		"PKCS#8 ECDSA":   join(ca.leaf(t, ec, nil), pkcs8(t, ec)),
		"SEC1 ECDSA":     join(sec1(t, ec), ca.leaf(t, ec, nil)),
		"Ed25519":        join(ca.leaf(t, ed, nil), pkcs8(t, ed)),
		"PKCS#8 RSA":     join(ca.leaf(t, small, nil), pkcs8(t, small)),
		"PKCS#1 RSA":     join(ca.leaf(t, small, nil), pem.EncodeToMemory(&pem.Block{Type: pemPKCS1, Bytes: x509.MarshalPKCS1PrivateKey(small)})),
		"with its chain": join([]byte("Bag Attributes\n  friendlyName: x\n"), ca.leaf(t, ec, nil), ca.pem(), pkcs8(t, ec)),
	} {
		l := leaseOf(t, "mesh", certBinding(), text)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			who, err := handshake(t, ca, l, version, madeFor(certBinding()))
			if err != nil || who != "client" {
				t.Errorf("%s, %s: the server saw %q, %v", name, tls.VersionName(version), who, err)
			}
		}
		made := madeFor(certBinding())
		made.Host = "evil.example"
		who, err := handshake(t, ca, l, tls.VersionTLS13, made)
		if who != "" {
			t.Errorf("%s: another server saw %q", name, who)
		}
		wantCode(t, err, fault.TargetNotAllowed)
		if err := l.Attach(headers{}, madeFor(certBinding())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantCode(t, l.Attach(headers{}, made), fault.TargetNotAllowed)
	}
}

// handshake returns what the server learns of the client's name.
func handshake(t *testing.T, ca issuer, l *Lease, version uint16, made Made) (string, error) {
	t.Helper()
	key := ecKey(t, elliptic.P256())
	server := ca.leaf(t, key, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	block, _ := pem.Decode(server)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	a, b := net.Pipe()
	seen := make(chan string, 1)
	go func() {
		s := tls.Server(a, &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12, MaxVersion: version,
		})
		who := ""
		if s.Handshake() == nil {
			who = s.ConnectionState().PeerCertificates[0].Subject.CommonName
		}
		seen <- who
		_ = s.Close()
	}()
	c := tls.Client(b, &tls.Config{
		RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return l.ClientCertificate(made) },
	})
	err := c.Handshake()
	if err != nil {
		_ = b.Close()
	}
	return <-seen, err
}

func TestPutRefusesCertificates(t *testing.T) {
	t.Parallel()
	v, _ := create(t, cheap)
	ca, other := newIssuer(t), newIssuer(t)
	key, another, weak := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P256()), ecKey(t, elliptic.P224())
	leaf, good := ca.leaf(t, key, nil), pkcs8(t, key)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	older := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	later := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	serverOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for name, c := range map[string]struct {
		text []byte
		rule string // what the error must say
	}{
		"no PEM":                {[]byte(planted), "it is not PEM"},
		"only a certificate":    {leaf, "no private key"},
		"only a key":            {good, "no certificate"},
		"two keys":              {join(leaf, good, good), "more than one private key"},
		"another key":           {join(leaf, pkcs8(t, another)), "not the one of its first certificate"},
		"issuer first":          {join(ca.pem(), leaf, good), "put that one first"},
		"issuer twice":          {join(leaf, ca.pem(), other.leaf(t, another, nil), good), "the order is"},
		"ended":                 {join(ca.leaf(t, key, older), good), "ended on"},
		"not yet":               {join(ca.leaf(t, key, later), good), "only from"},
		"for servers":           {join(ca.leaf(t, key, serverOnly), good), "clientAuth"},
		"RSA of 1024":           {join(ca.leaf(t, small, nil), pkcs8(t, small)), "2048"},
		"P-224":                 {join(ca.leaf(t, weak, nil), pkcs8(t, weak)), "P-256"},
		"encrypted":             {join(leaf, pem.EncodeToMemory(&pem.Block{Type: pemEncrypted, Bytes: []byte(planted)})), "openssl pkey"},
		"encrypted as of old":   {join(leaf, pem.EncodeToMemory(&pem.Block{Type: pemPKCS1, Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte(planted)})), "openssl pkey"},
		"OpenSSH":               {join(leaf, pem.EncodeToMemory(&pem.Block{Type: pemOpenSSH, Bytes: []byte(planted)})), "ssh-keygen"},
		"a damaged key":         {join(leaf, pem.EncodeToMemory(&pem.Block{Type: pemPKCS8, Bytes: []byte(planted)})), "cannot be read"},
		"a damaged certificate": {join(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: []byte(planted)}), good), "certificate 1"},
		"a cut block":           {join(leaf, good[:len(good)-30]), "cut or damaged"},
		"a public key":          {join(leaf, good, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte(planted)})), "neither"},
		"many blocks":           {join(leaf, bytes.Repeat(ca.pem(), 12), good), "more than"},
		"too long":              {join(leaf, good, bytes.Repeat([]byte("#"), maxPEM)), "longer than"},
	} {
		_, err := v.Put(t.Context(), "mesh", certBinding(), secret.New(c.text), false)
		wantErr(t, err, ErrBadIdentity)
		if err == nil || !strings.Contains(err.Error(), c.rule) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.rule)
		}
		if err != nil && strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte(planted))[:12]) {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
	if len(v.List()) != 0 {
		t.Error("a refused secret was kept")
	}
}

func TestACertificateSaysWhenItEnds(t *testing.T) {
	v, path := create(t, cheap)
	ca, key := newIssuer(t), ecKey(t, elliptic.P256())
	end := time.Now().Add(12 * time.Hour).Truncate(time.Second)
	text := join(ca.leaf(t, key, func(c *x509.Certificate) { c.NotAfter = end }), pkcs8(t, key))
	for said, want := range map[time.Time]time.Time{
		{}:                  end,
		end.Add(time.Hour):  end,
		end.Add(-time.Hour): end.Add(-time.Hour),
	} {
		if _, err := v.PutIdentity(t.Context(), "mesh", certBinding(), secret.New(text), PutOptions{Expires: said, Label: "the mesh's"}); err != nil {
			t.Fatal(err)
		}
		i := reopen(t, path, cheap).List()[0]
		if !i.Expires.Equal(want) || i.Label != "the mesh's" {
			t.Errorf("said %v: got %+v", said, i)
		}
	}
}

// TestACertificateThatEndsIsNotShown puts one that ends, and asks for it later.
func TestACertificateThatEndsIsNotShown(t *testing.T) {
	ca, key := newIssuer(t), ecKey(t, elliptic.P256())
	old := join(ca.leaf(t, key, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), pkcs8(t, key))
	l := &Lease{name: "mesh", binding: certBinding(), cred: secret.New(old), release: func() {}}
	c, err := l.ClientCertificate(madeFor(certBinding()))
	if c != nil || err == nil || !strings.Contains(err.Error(), "ended on") {
		t.Errorf("got %v, %v", c, err)
	}
	wantCode(t, err, fault.IdentityUnavailable)
}

// TestAKeyEndsWithItsLease keeps a certificate longer than the lease.
func TestAKeyEndsWithItsLease(t *testing.T) {
	ca, key := newIssuer(t), ecKey(t, elliptic.P256())
	l := leaseOf(t, "mesh", certBinding(), join(ca.leaf(t, key, nil), pkcs8(t, key)))
	c, err := l.ClientCertificate(madeFor(certBinding()))
	if err != nil {
		t.Fatal(err)
	}
	digest := make([]byte, 32)
	if _, err := c.PrivateKey.(crypto.Signer).Sign(rand.Reader, digest, crypto.SHA256); err != nil {
		t.Error(err)
	}
	l.Close()
	if _, err := c.PrivateKey.(crypto.Signer).Sign(rand.Reader, digest, crypto.SHA256); err == nil {
		t.Error("it signs after the lease was closed")
	}
	_, err = l.ClientCertificate(madeFor(certBinding()))
	wantCode(t, err, fault.Internal)
	for _, l := range []*Lease{NoLease(), leaseOf(t, "a", bearer(), []byte(planted))} {
		if c, err := l.ClientCertificate(Made{}); c != nil || err != nil {
			t.Errorf("another kind has a certificate: %v", err)
		}
	}
	_, err = (*Lease)(nil).ClientCertificate(Made{})
	wantCode(t, err, fault.Internal)
}

// TestTheSearchKnowsAKeyInEveryForm looks for keys as an upstream could echo them,
// and does not take what is public for them.
func TestTheSearchKnowsAKeyInEveryForm(t *testing.T) {
	t.Parallel()
	ca := newIssuer(t)
	for name, key := range map[string]crypto.Signer{"ECDSA": ecKey(t, elliptic.P384()), "Ed25519": edKey(t), "RSA": rsaKeys[2048]()} {
		leaf := ca.leaf(t, key, nil)
		l := leaseOf(t, "mesh", certBinding(), join(leaf, pkcs8(t, key)))
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		text := base64.StdEncoding.EncodeToString(der)
		for form, b := range map[string][]byte{
			"DER":             der,
			"PEM":             pkcs8(t, key),
			"base64":          []byte(text),
			"base64, shifted": []byte(base64.RawURLEncoding.EncodeToString(append([]byte("x"), der...))),
			"JSON":            []byte(`{"key":"` + strings.ReplaceAll(string(pkcs8(t, key)), "\n", `\n`) + `"}`),
			"CRLF":            []byte(strings.ReplaceAll(string(pkcs8(t, key)), "\n", "\r\n")),
			"lines of 76":     lines(text, 76),
		} {
			if len(l.Scan(b)) == 0 {
				t.Errorf("%s as %s is not found", name, form)
			}
		}
		public, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		for form, b := range map[string][]byte{
			"certificate": leaf, "issuer": ca.pem(), "public key": public, "PEM of it": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
			"a line of PEM": []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"),
		} {
			if hits := l.Scan(b); len(hits) != 0 {
				t.Errorf("%s: the %s is taken for the key: %v", name, form, hits)
			}
		}
	}
}

func lines(s string, n int) []byte {
	var out []byte
	for len(s) > n {
		out = append(append(out, s[:n]...), '\n')
		s = s[n:]
	}
	return append(out, s...)
}

// FuzzKeys reads secrets that are to be keys. Nothing breaks, and what is taken
// can be searched for and has a kind that signs.
func FuzzKeys(f *testing.F) {
	ca, key := newIssuer(f), ecKey(f, elliptic.P256())
	f.Add([]byte(join(ca.leaf(f, key, nil), pkcs8(f, key))))
	f.Add([]byte(join(sec1(f, key), ca.leaf(f, key, nil), ca.pem())))
	f.Add(pkcs8(f, edKey(f)))
	f.Add(read(f, keyFile(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) (crypto.Signer, error){
			parseKey, parseSSHKey,
			func(b []byte) (crypto.Signer, error) {
				o, err := parseCertificate(b)
				return o.key, err
			},
		} {
			key, err := parse(b)
			if err != nil {
				continue
			}
			if key == nil || checkKey(key, minRSA) != nil || len(privateParts(key)) == 0 {
				t.Errorf("%T is taken", key)
			}
		}
	})
}

// keyFile is a key in OpenSSH's own form.
func keyFile(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "key")
	keygen(t, path)
	return path
}
