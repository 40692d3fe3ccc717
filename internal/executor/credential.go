package executor

import "crypto/tls"

// Credential applies an identity's secret to one request. Attach is called at most
// once an attempt, when the connection is made and verified; it must compare c with
// what the secret is bound to, and puts the secret in exactly one place: a header
// line, or the hole that the body has for it. One that was shown as a certificate
// puts it nowhere else. An error means that not one byte of the request is sent. A
// *fault.Error keeps its code; any other error becomes TARGET_NOT_ALLOWED.
//
// A credential may have a method Generation() uint64: connections of different
// generations are kept apart.
type Credential interface {
	Attach(out Outgoing, c Connection) error
}

// Outgoing is where a credential may go in one request.
type Outgoing interface {
	// SetHeader adds one header line, once. It fails where the request has a line
	// of that name, and for a name or value that no header may have.
	SetHeader(name, value string) error
	// FillBody lets write append the credential to dst, escaped as Hole says, and
	// puts it into the body's hole, once. It fails where the body has no hole.
	FillBody(write func(dst []byte) []byte) error
	// Hole says whether the body has a place for the credential, and whether that
	// is the value of a form (application/x-www-form-urlencoded) rather than the
	// text of a JSON string. The quotes of the string stand in the body.
	Hole() (form, ok bool)
}

// CertificateCredential is a Credential that may prove itself with a certificate.
// ClientCertificate is called inside the handshake, after the server's chain, name
// and pins were verified; it must compare c with what the secret is bound to. It
// returns nil where the identity has no certificate. Where it has one and the
// server does not ask for it, nothing is sent: the call would go out without its
// credential.
type CertificateCredential interface {
	Credential
	ClientCertificate(c Connection) (*tls.Certificate, error)
	Generation() uint64
}

// generationOf is the generation of a credential, 0 for one that has none.
func generationOf(c Credential) uint64 {
	if g, ok := c.(interface{ Generation() uint64 }); ok {
		return g.Generation()
	}
	return 0
}
