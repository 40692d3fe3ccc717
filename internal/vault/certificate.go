package vault

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"chatelaine/internal/fault"
)

// parseCertificate reads what the kind client_certificate takes: the chain, leaf
// first, and the leaf's private key.
func parseCertificate(b []byte) (bundle, error) {
	o, err := parseBundle(b)
	if err != nil {
		return bundle{}, err
	}
	if len(o.chain) == 0 {
		return bundle{}, errors.New("it has no certificate; put the chain and the private key into one file")
	}
	if err := o.checkLeaf(); err != nil {
		return bundle{}, err
	}
	for i, c := range o.chain[1:] {
		if !bytes.Equal(o.chain[i].RawIssuer, c.RawSubject) {
			return bundle{}, fmt.Errorf("certificate %d in it did not issue certificate %d; the order is the leaf, its issuer, the issuer's issuer", i+2, i+1)
		}
	}
	return o, nil
}

func (o bundle) checkLeaf() error {
	fits := func(c *x509.Certificate) bool {
		pub, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
		return ok && pub.Equal(o.key.Public())
	}
	leaf := o.chain[0]
	switch {
	case fits(leaf):
	case slices.ContainsFunc(o.chain, fits):
		return errors.New("its first certificate is not the one of the private key; put that one first")
	default:
		return errors.New("its private key is not the one of its first certificate")
	}
	anyUse := len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0
	for _, u := range leaf.ExtKeyUsage {
		anyUse = anyUse || u == x509.ExtKeyUsageClientAuth || u == x509.ExtKeyUsageAny
	}
	if !anyUse {
		return errors.New("its certificate is not for clients; ask its issuer for one with the extended key usage clientAuth")
	}
	return nil
}

// checkTime refuses a certificate that servers would refuse. One that is good
// only later must not take the place of one that is good now.
func (o bundle) checkTime(now time.Time) error {
	begin, end := o.chain[0].NotBefore, o.chain[0].NotAfter
	switch {
	case now.After(end):
		return fmt.Errorf("its certificate ended on %s; ask its issuer for a new one", end.UTC().Format(time.RFC3339))
	case now.Add(certificateSkew).Before(begin):
		return fmt.Errorf("its certificate is good only from %s on; put it then, or compare the clocks", begin.UTC().Format(time.RFC3339))
	}
	return nil
}

// ClientCertificate returns the certificate that the identity shows in the TLS
// handshake, nil where its kind has none. It is asked once the server is
// verified, compares the binding with that connection, and fails with
// TARGET_NOT_ALLOWED; with IDENTITY_UNAVAILABLE where the certificate has ended,
// and with INTERNAL where the lease is closed. The key in it signs as long as the
// lease is open.
func (l *Lease) ClientCertificate(c Made) (*tls.Certificate, error) {
	if l == nil {
		return nil, fault.New(fault.Internal, errLeaseClosed)
	}
	if l.none || l.binding.Kind != KindClientCertificate {
		return nil, nil
	}
	if err := l.binding.allows(c); err != nil {
		return nil, err
	}
	out := &tls.Certificate{}
	key, err := holdKey(l.cred, func(b []byte) (crypto.Signer, error) {
		o, err := parseCertificate(b)
		if err != nil {
			return nil, err
		}
		if out.Certificate == nil {
			err = o.checkTime(time.Now())
			out.Leaf = o.chain[0]
			for _, c := range o.chain {
				out.Certificate = append(out.Certificate, c.Raw)
			}
		}
		return o.key, err
	})
	if errors.Is(err, errLeaseClosed) {
		return nil, fault.New(fault.Internal, err)
	}
	if err != nil {
		return nil, fault.Newf(fault.IdentityUnavailable, "identity %s: %w; put it again", l.name, err)
	}
	out.PrivateKey = key
	return out, nil
}
