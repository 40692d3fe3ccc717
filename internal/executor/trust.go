package executor

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"chatelaine/internal/fault"
)

// sessionCacheSize bounds the TLS sessions kept for one lane: one target on a
// few machines.
const sessionCacheSize = 8

// errPin is the one cause of a refusal by pin.
var errPin = errors.New("no key of the verified chain is pinned by the target")

// spki is the pin form of a certificate's public key: "sha256/BASE64" of its
// SubjectPublicKeyInfo (RFC 7469, section 2.4).
func spki(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256/" + base64.StdEncoding.EncodeToString(sum[:])
}

// chainKeys lists the keys of all verified chains, leaf first, each once.
func chainKeys(chains [][]*x509.Certificate) []string {
	var out []string
	for _, chain := range chains {
		for _, c := range chain {
			if k := spki(c); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// verifyPins accepts a connection only if a key of a chain that was verified
// is pinned. It runs in VerifyConnection, so a resumed session is checked too.
func verifyPins(pins []string) func(tls.ConnectionState) error {
	if len(pins) == 0 {
		return nil
	}
	return func(cs tls.ConnectionState) error {
		for _, k := range chainKeys(cs.VerifiedChains) {
			if slices.Contains(pins, k) {
				return nil
			}
		}
		return errPin
	}
}

// tlsConfig is what one lane believes: explicit roots, the target's pins, the
// target's host name, and no HTTP/2 unless the target says so.
func (x *Executor) tlsConfig(to place) (*tls.Config, error) {
	roots, pins := x.o.Roots, []string(nil)
	if roots == nil {
		var err error
		if roots, err = rootsOf(to); err != nil {
			return nil, err
		}
		pins = to.pins
	}
	protos := []string{"http/1.1"}
	if to.http2 {
		protos = []string{"h2", "http/1.1"}
	}
	return &tls.Config{
		ServerName:         to.host,
		RootCAs:            roots,
		MinVersion:         tls.VersionTLS12,
		NextProtos:         protos,
		VerifyConnection:   verifyPins(pins),
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionCacheSize),
		Renegotiation:      tls.RenegotiateNever,
		Time:               x.o.Now,
	}, nil
}

// rootsOf returns the target's own CA, and nothing else, where it has one;
// else the system's roots.
func rootsOf(to place) (*x509.CertPool, error) {
	if len(to.caPEM) == 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("the system's certificate authorities cannot be read: %w", err)
		}
		return pool, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(to.caPEM) {
		return nil, errors.New("the target's ca file holds no certificate")
	}
	return pool, nil
}

// handshake makes TLS over conn within the TLS time-out.
func (x *Executor) handshake(ctx context.Context, conn net.Conn, cfg *tls.Config, s *showing) (*tls.Conn, *stop) {
	ctx, cancel := context.WithTimeout(ctx, x.o.TLSTimeout)
	defer cancel()
	tc := tls.Client(conn, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		conn.Close()
		if st := s.failed(cfg.ServerName, err); st != nil {
			return nil, st
		}
		return nil, tlsStop(cfg.ServerName, err, x.o.TLSTimeout)
	}
	return tc, nil
}

// tlsStop words a failed handshake in our own terms: a certificate's text is
// the remote's, so none of it is repeated.
func tlsStop(host string, err error, limit time.Duration) *stop {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
	)
	say := func(s string) *stop {
		return stopped(PhaseTLS, fault.UpstreamUnavailable, fmt.Errorf("%s: %s", host, s))
	}
	switch {
	case errors.Is(err, errPin):
		return stopped(PhaseTLS, fault.TargetNotAllowed, fmt.Errorf("%s: %w", host, errPin))
	case errors.As(err, &name):
		return say("the certificate is for another name")
	case errors.As(err, &unknown):
		return say("the certificate is signed by an authority that this target does not trust")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return say("the certificate has expired or is not valid yet")
	case errors.As(err, &invalid):
		return say("the certificate is not valid for a server")
	case errors.As(err, &record):
		return say("the remote does not speak TLS")
	case errors.As(err, &alert):
		return say("the remote ended the handshake: " + alert.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return say(fmt.Sprintf("no TLS handshake within %s", limit))
	case errors.Is(err, context.Canceled):
		return say("cancelled during the TLS handshake")
	}
	return say("the TLS handshake failed")
}
