package executor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"chatelaine/internal/fault"
)

var (
	errNotAsked  = errors.New("the target did not ask for a client certificate, so that the call would go out without its credential; nothing was sent")
	errTooEarly  = errors.New("a certificate was asked for before the server was verified")
	errUnwelcome = errors.New("the remote refused the client certificate")
)

// showing is the identity's certificate in one handshake: whether the server asked
// for it, and whether it was given.
type showing struct {
	c        CertificateCredential // nil where the credential can have none
	facts    Connection
	verified bool // chain, name and pins
	asked    bool
	shown    bool
	err      error // why the credential refused
}

// config is the lane's, for this one handshake. The server is verified before the
// certificate is asked for, in TLS 1.2 and 1.3. A session in which a certificate was
// shown is never kept: a resumed one would speak for the identity without its key.
func (s *showing) config(lane *tls.Config) *tls.Config {
	if s.c == nil {
		return lane
	}
	cfg := lane.Clone()
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		if lane.VerifyConnection != nil {
			if err := lane.VerifyConnection(cs); err != nil {
				return err
			}
		}
		s.facts.PeerSPKI, s.facts.Resumed = chainKeys(cs.VerifiedChains), cs.DidResume
		s.verified = len(s.facts.PeerSPKI) > 0
		return nil
	}
	cfg.GetClientCertificate = s.give
	cfg.ClientSessionCache = unlessShown{lane.ClientSessionCache, s}
	return cfg
}

// give answers a server that asks for a certificate. One without a chain means
// none (RFC 8446, section 4.4.2).
func (s *showing) give(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	s.asked = true
	if !s.verified {
		s.err = fault.New(fault.Internal, errTooEarly)
		return nil, s.err
	}
	cert, err := s.c.ClientCertificate(facts(s.facts))
	if err != nil {
		s.err = err
		return nil, err
	}
	if cert == nil {
		return &tls.Certificate{}, nil
	}
	s.shown = true
	return cert, nil
}

// finish ends a connection that the certificate belongs to and was not asked for.
func (s *showing) finish(made Connection) *stop {
	if s.c == nil || s.asked {
		return nil
	}
	cert, err := s.c.ClientCertificate(facts(made))
	switch {
	case err != nil:
		return attachStop(err)
	case cert != nil:
		return stopped(PhaseAttach, fault.TargetNotAllowed, errNotAsked)
	}
	return nil
}

// failed says why a handshake failed if the certificate was the reason.
func (s *showing) failed(host string, err error) *stop {
	switch {
	case s.err != nil:
		return attachStop(s.err)
	case s.shown && refusesCertificate(err):
		return stopped(PhaseTLS, fault.RemoteUnauthenticated, fmt.Errorf("%s: %w", host, errUnwelcome))
	}
	return nil
}

// aboutCertificate are the alerts by which a server refuses a client's certificate
// (RFC 8446, section 6.2).
var aboutCertificate = []tls.AlertError{
	42,  // bad_certificate
	43,  // unsupported_certificate
	44,  // certificate_revoked
	45,  // certificate_expired
	46,  // certificate_unknown
	48,  // unknown_ca
	49,  // access_denied
	116, // certificate_required
}

// refusesCertificate says whether err is one of these alerts from the remote. The
// standard library keeps the alert's type to itself; its text is that of the
// exported one.
func refusesCertificate(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && slices.ContainsFunc(aboutCertificate, func(a tls.AlertError) bool { return op.Err.Error() == a.Error() })
}

// unwelcome says whether the remote refused the certificate after the client's half
// of the handshake was over, which in TLS 1.3 shows only when the answer is read. It
// has read nothing of the request then: that comes after the handshake. An alert in
// place of a later answer is a lost answer like any other.
func (a *attempt) unwelcome(err error) bool {
	return a.wire != nil && a.wire.certified && !a.ex.Reused && !a.ex.Answered && (errors.Is(err, errUnwelcome) || refusesCertificate(err))
}

// unlessShown keeps no session in which the certificate was shown.
type unlessShown struct {
	tls.ClientSessionCache
	s *showing
}

// Put is of tls.ClientSessionCache.
func (u unlessShown) Put(key string, cs *tls.ClientSessionState) {
	if u.s.shown {
		cs = nil // and one that was there before is dropped
	}
	u.ClientSessionCache.Put(key, cs)
}
