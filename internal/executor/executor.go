// Package executor performs one step against a fixed target over HTTPS and says
// exactly what left this machine and what came back.
//
// It never follows a redirect, never uses a proxy, never sends twice on its
// own, and never reads a meaning out of an answer: that is the duty of
// package validate. It never holds a credential: the caller's Credential writes
// it into the headers or the body once the connection is made, last before the
// bytes leave, or proves itself with a certificate inside the handshake.
// It is the only package that opens sockets outward. The gateway and the
// contract tests may import it.
package executor

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"sync"
	"time"

	"chatelaine/internal/actions"
)

// Defaults of Options, from the limits of the design page.
const (
	// DefaultConnectTimeout covers the name look-up and the TCP connect. A
	// server that needs longer is down for an agent that waits.
	DefaultConnectTimeout = 5 * time.Second
	// DefaultTLSTimeout covers the handshake: two round trips and some
	// arithmetic.
	DefaultTLSTimeout = 5 * time.Second
	// DefaultHeaderTimeout is how long the remote may think between the last
	// byte of the request and the end of its header block.
	DefaultHeaderTimeout = 10 * time.Second
	// DefaultStepTimeout bounds a step whose request names no time-out.
	DefaultStepTimeout = 30 * time.Second
	// DefaultMaxBody is the largest answer body that is kept.
	DefaultMaxBody = 1 << 20
	// DefaultMaxHeader bounds all header blocks of one answer together,
	// informational ones included.
	DefaultMaxHeader = 64 << 10
)

// Connection holds the facts of a connection that was really made, after the
// handshake and before a byte of the request.
type Connection struct {
	Scheme     string         // "https", or "http" to a loopback address
	Host       string         // the target's host, as TLS verified it
	Port       int            // the target's port
	BasePath   string         // the target's base path, which the request's path lies under
	RemoteAddr netip.AddrPort // the address at the other end
	CADigest   string         // digest of the target's own CA, empty for the system's roots
	Pins       []string       // the target's pins, at least one of which matched
	PeerSPKI   []string       // "sha256/BASE64" of every key in the verified chains, leaf first
	Resumed    bool           // the TLS session was resumed
}

// Resolver finds the addresses of a host name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are the limits of an Executor. Zero values mean the defaults.
type Options struct {
	ConnectTimeout time.Duration
	TLSTimeout     time.Duration
	HeaderTimeout  time.Duration
	MaxBody        int64
	MaxHeader      int64
	// Resolver replaces the system's look-up; what it answers is checked as
	// any other answer.
	Resolver Resolver
	// Dial replaces name look-up, address check and connect. For contract
	// tests only: with it, nothing limits where a request goes.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Roots replaces every target's trust (CA and pins). For contract tests
	// only.
	Roots *x509.CertPool
	// Now is the clock of Exchange and of certificate checks.
	Now func() time.Time
}

// withDefaults fills what is unset.
func (o Options) withDefaults() Options {
	pick := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	pick(&o.ConnectTimeout, DefaultConnectTimeout)
	pick(&o.TLSTimeout, DefaultTLSTimeout)
	pick(&o.HeaderTimeout, DefaultHeaderTimeout)
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Executor sends steps. It is safe for concurrent use.
type Executor struct {
	o Options

	mu     sync.Mutex // guards lanes and closed
	lanes  map[laneKey]*lane
	closed bool
}

// New makes an Executor. It opens nothing.
func New(o Options) *Executor {
	return &Executor{o: o.withDefaults(), lanes: map[laneKey]*lane{}}
}

// Send makes exactly one attempt: it connects (or takes an idle connection of
// the same identity to the same target), attaches the credential, writes the
// request once and reads the answer. c is nil only for an identity of kind
// none. It never panics on what the remote sends and always returns; ctx and
// the request's own time-out end it.
func (x *Executor) Send(ctx context.Context, identity string, r actions.Request, c Credential) Exchange {
	return x.send(ctx, owner{identity: identity, generation: generationOf(c)}, stepOf(r), c)
}
