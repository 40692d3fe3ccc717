package executor

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// Endpoint is a fixed destination of the site file: a target, or a place beside
// one where a secret is exchanged.
type Endpoint interface {
	Scheme() string
	Host() string
	Port() int
	CAPEM() []byte
	CADigest() string
	Pins() []string
	AllowLoopback() bool
	AllowPrivate() bool
}

// Reach makes a connection as a call would (look-up, address check, TLS with the
// destination's own authority and pins) and ends it: no byte of a request is
// sent, and no credential is near. Its error names host, phase and what was
// wrong, and repeats nothing of the remote's.
func (x *Executor) Reach(ctx context.Context, to Endpoint) error {
	p := destination(to, "").place()
	conn, st := x.dialTCP(ctx, p)
	if st != nil {
		return reachError(p, st)
	}
	defer conn.Close()
	if p.scheme != schemeHTTPS {
		return nil
	}
	cfg, err := x.tlsConfig(p)
	if err != nil {
		return fmt.Errorf("%s: %w", p.host, err)
	}
	tc, st := x.handshake(ctx, conn, cfg, &showing{})
	if st != nil {
		return reachError(p, st)
	}
	_ = tc.Close() // how the remote takes that says nothing of the way to it
	return nil
}

// reachError keeps the phase and the cause; the code is for calls.
func reachError(p place, st *stop) error {
	cause := st.err.Unwrap()
	if cause == nil {
		cause = st.err
	}
	return fmt.Errorf("%s, %s: %w", net.JoinHostPort(p.host, strconv.Itoa(p.port)), st.phase, cause)
}
