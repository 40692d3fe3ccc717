package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// validity is how long certificates hold: a run takes minutes, and clocks of
// build machines are off by hours.
const validity = 48 * time.Hour

// CA is a certificate authority that lives as long as the process.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes an authority with a key of its own.
func NewCA(name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := template(name)
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &CA{cert: cert, key: key}, nil
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 96))
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-validity), NotAfter: now.Add(validity),
	}
}

// PEM returns the authority's certificate as a ca file has it.
func (c *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

// Pool returns a pool with this authority alone.
func (c *CA) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c.cert)
	return p
}

// Pin returns "sha256/BASE64" of the authority's public key.
func (c *CA) Pin() string { return pin(c.cert) }

// Leaf makes a server certificate for host names and addresses.
func (c *CA) Leaf(hosts ...string) (tls.Certificate, error) {
	return c.LeafUntil(time.Now().Add(validity), hosts...)
}

// LeafUntil is Leaf with an end of validity, which may have passed.
func (c *CA) LeafUntil(end time.Time, hosts ...string) (tls.Certificate, error) {
	t := template("upstream")
	t.NotAfter = end
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if a, err := netip.ParseAddr(h); err == nil {
			t.IPAddresses = append(t.IPAddresses, a.AsSlice())
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return c.sign(t)
}

// Client makes a certificate that a client of that name shows.
func (c *CA) Client(name string) (tls.Certificate, error) {
	t := template(name)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return c.sign(t)
}

// sign makes a key and its certificate.
func (c *CA) sign(t *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, c.cert, key.Public(), c.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der, c.cert.Raw}, PrivateKey: key, Leaf: leaf}, err
}

// PinOf returns "sha256/BASE64" of a server certificate's public key.
func PinOf(c tls.Certificate) string { return pin(c.Leaf) }

func pin(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256/" + base64.StdEncoding.EncodeToString(sum[:])
}
