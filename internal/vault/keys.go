package vault

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"

	"chatelaine/internal/secret"
)

const (
	// minRSA is the least that TLS servers and token endpoints still take; NIST SP
	// 800-57 part 1 holds it good until 2030.
	minRSA = 2048
	// maxRSA bounds what one signature may cost.
	maxRSA = 8192
	// maxBlocks is above every chain that a server takes.
	maxBlocks = 12
)

// The names of PEM blocks (RFC 7468, and RFC 5915 for EC).
const (
	pemCertificate  = "CERTIFICATE"
	pemPKCS8        = "PRIVATE KEY"
	pemPKCS1        = "RSA PRIVATE KEY"
	pemSEC1         = "EC PRIVATE KEY"
	pemECParameters = "EC PARAMETERS" // openssl writes the curve's name before an EC key
	pemEncrypted    = "ENCRYPTED PRIVATE KEY"
	pemOpenSSH      = "OPENSSH PRIVATE KEY"
)

// bundle is a private key and the certificates beside it, in the file's order.
type bundle struct {
	key   crypto.Signer
	chain []*x509.Certificate
}

// parseBundle reads PEM: exactly one private key without a passphrase, and any
// certificates. Text around the blocks is passed over, a block that is cut or
// damaged is not. Its errors name the rule and never the content.
func parseBundle(b []byte) (bundle, error) {
	var out bundle
	blocks := 0
	for rest := b; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		err := out.add(block)
		clear(block.Bytes)
		if err != nil {
			return bundle{}, err
		}
	}
	switch {
	case blocks == 0:
		return bundle{}, errors.New("it is not PEM; the file begins with a line such as -----BEGIN PRIVATE KEY-----")
	case blocks > maxBlocks:
		return bundle{}, fmt.Errorf("it has more than %d PEM blocks", maxBlocks)
	case blocks != bytes.Count(b, []byte("-----BEGIN ")):
		return bundle{}, errors.New("one of its PEM blocks is cut or damaged; take the whole file")
	case out.key == nil:
		return bundle{}, errors.New("it has no private key; append the key's PEM to it")
	}
	return out, nil
}

func (o *bundle) add(block *pem.Block) error {
	if block.Type == pemCertificate {
		c, err := x509.ParseCertificate(bytes.Clone(block.Bytes))
		if err != nil {
			return fmt.Errorf("certificate %d in it cannot be read", len(o.chain)+1)
		}
		o.chain = append(o.chain, c)
		return nil
	}
	if block.Type == pemECParameters {
		return nil
	}
	key, err := parseKeyBlock(block)
	if err != nil {
		return err
	}
	if o.key != nil {
		return errors.New("it has more than one private key; leave the one that is meant")
	}
	o.key = key
	return nil
}

// parseKeyBlock reads PKCS#8, PKCS#1 (RFC 8017) and SEC1 (RFC 5915).
func parseKeyBlock(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	_, procType := block.Headers["Proc-Type"]
	switch {
	case block.Type == pemEncrypted || procType:
		return nil, errors.New("its private key is protected by a passphrase; take it off with `openssl pkey -in KEY.pem`, the vault seals what it is given")
	case block.Type == pemPKCS8:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case block.Type == pemPKCS1:
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case block.Type == pemSEC1:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case block.Type == pemOpenSSH:
		return nil, errors.New("its private key is in OpenSSH's own form; write it as PKCS#8 with `ssh-keygen -p -N '' -m PKCS8 -f COPY`")
	default:
		return nil, errors.New("it has a PEM block that is neither a certificate nor a private key; take it out")
	}
	if err != nil {
		return nil, errors.New("its private key cannot be read: it is damaged, or of a kind that is not RSA, ECDSA or Ed25519")
	}
	signer, _ := key.(crypto.Signer)
	return signer, checkKey(signer, minRSA)
}

// checkKey takes RSA of at least so many bits, ECDSA on the curves of TLS and
// SSH, and Ed25519.
func checkKey(key crypto.Signer, bits int) error {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if n := k.N.BitLen(); n < bits || n > maxRSA {
			return fmt.Errorf("its RSA key has %d bits; it must have %d to %d", n, bits, maxRSA)
		}
		return nil
	case *ecdsa.PrivateKey:
		if c := k.Curve; c == elliptic.P256() || c == elliptic.P384() || c == elliptic.P521() {
			return nil
		}
		return errors.New("its ECDSA key must be on the curve P-256, P-384 or P-521")
	case ed25519.PrivateKey:
		return nil
	}
	return fmt.Errorf("its private key must be RSA of at least %d bits, ECDSA or Ed25519", bits)
}

// parseKey reads PEM with one private key and nothing else.
func parseKey(b []byte) (crypto.Signer, error) {
	o, err := parseBundle(b)
	if err == nil && len(o.chain) > 0 {
		err = errors.New("it has a certificate; this kind takes the private key alone")
	}
	return o.key, err
}

// heldKey is a private key that signs and does nothing else. Its secret is read
// anew for each signature, so that it ends with the lease that it belongs to.
type heldKey struct {
	public crypto.PublicKey
	// sign is a function, so that nothing of the key can be printed.
	sign func(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

// holdKey makes a heldKey over a secret that parse understands.
func holdKey(s secret.Secret, parse func([]byte) (crypto.Signer, error)) (*heldKey, error) {
	h := &heldKey{sign: func(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
		var out []byte
		err := useKey(s, parse, func(key crypto.Signer) (err error) {
			out, err = key.Sign(rand, digest, opts)
			return err
		})
		return out, err
	}}
	err := useKey(s, parse, func(key crypto.Signer) error {
		h.public = key.Public()
		return nil
	})
	return h, err
}

// useKey gives f the key for as long as it runs.
func useKey(s secret.Secret, parse func([]byte) (crypto.Signer, error), f func(crypto.Signer) error) error {
	err := errLeaseClosed
	s.Use(func(b []byte) {
		if len(b) == 0 {
			return
		}
		var key crypto.Signer
		if key, err = parse(b); err == nil {
			err = f(key)
		}
	})
	return err
}

// Public returns the public key.
func (h *heldKey) Public() crypto.PublicKey { return h.public }

// Sign signs; it fails once the lease is closed.
func (h *heldKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return h.sign(rand, digest, opts)
}

// privateParts are the numbers of a key that nobody else may have, as they
// stand in every form of it: DER, PEM of whatever line length, OpenSSH. A search
// for them finds the key in each, and never the public key, which answers may
// well hold.
func privateParts(key crypto.Signer) []secret.Secret {
	var parts [][]byte
	switch k := key.(type) {
	case *rsa.PrivateKey:
		parts = append(parts, k.D.Bytes())
		for _, p := range k.Primes {
			parts = append(parts, p.Bytes())
		}
		k.Precompute()
		parts = append(parts, k.Precomputed.Dp.Bytes(), k.Precomputed.Dq.Bytes(), k.Precomputed.Qinv.Bytes())
	case *ecdsa.PrivateKey:
		if d, err := k.Bytes(); err == nil {
			parts = append(parts, d)
		}
	case ed25519.PrivateKey:
		parts = append(parts, k.Seed())
	}
	out := make([]secret.Secret, 0, len(parts))
	for _, p := range parts {
		out = append(out, secret.New(p))
		clear(p)
	}
	return out
}
