package executor

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"chatelaine/internal/fault"
)

const (
	// maxIdle is how many connections of one lane wait for the next call:
	// the default number of calls at once to one target.
	maxIdle = 8
	// idleTimeout is shorter than the idle limits of common servers and load
	// balancers (60 s and more), so that we close first.
	idleTimeout = 20 * time.Second
	// maxLanes bounds what reloads with changed targets leave behind.
	maxLanes = 1024
)

// owner is whose connections a lane holds: an identity, in one generation of its
// secret, so that a connection made with one certificate never carries what was
// allowed for another. An exchange of the secret for a token has lanes of its own.
type owner struct {
	identity   string
	generation uint64
	token      bool
}

// laneKey keeps everything apart that must not share a connection or a TLS
// session: the identity, the destination and what is believed about it.
type laneKey struct {
	owner
	scheme, host          string
	port                  int
	ca                    [sha256.Size]byte
	pins                  string
	loopback, private, h2 bool
}

// lane is the transport of one identity to one target: its trust, its TLS
// sessions and its idle connections.
type lane struct {
	to  place
	tls *tls.Config // nil for plain http

	mu     sync.Mutex // guards the rest
	idle   []*wire
	closed bool
}

func keyOf(who owner, to place) laneKey {
	return laneKey{
		owner: who, scheme: to.scheme, host: to.host, port: to.port,
		ca: sha256.Sum256(to.caPEM), pins: strings.Join(to.pins, " "),
		loopback: to.allowLoopback, private: to.allowPrivate, h2: to.http2,
	}
}

// laneFor returns the identity's lane to the target, making it where needed. The
// first lane of a generation ends those of every other.
func (x *Executor) laneFor(who owner, to place) (*lane, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errors.New("the executor is closed")
	}
	key := keyOf(who, to)
	if l, ok := x.lanes[key]; ok {
		return l, nil
	}
	l := &lane{to: to}
	if to.scheme == schemeHTTPS {
		var err error
		if l.tls, err = x.tlsConfig(to); err != nil {
			return nil, err
		}
	}
	x.dropLocked(func(k laneKey) bool { return k.identity == who.identity && k.generation != who.generation })
	if len(x.lanes) >= maxLanes {
		x.dropLocked(func(laneKey) bool { return true })
	}
	x.lanes[key] = l
	return l, nil
}

// CloseIdentity closes the idle connections of an identity and forgets its TLS
// sessions. A connection in use ends with its attempt.
func (x *Executor) CloseIdentity(identity string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(func(k laneKey) bool { return k.identity == identity })
}

// CloseIdle does for every identity what CloseIdentity does for one: what a
// vault lock wants.
func (x *Executor) CloseIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dropLocked(func(laneKey) bool { return true })
}

// Close is CloseIdle for good: later attempts are refused before anything is
// opened. Attempts under way end on their own.
func (x *Executor) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.dropLocked(func(laneKey) bool { return true })
}

func (x *Executor) dropLocked(which func(laneKey) bool) {
	for k, l := range x.lanes {
		if which(k) {
			delete(x.lanes, k)
			l.close()
		}
	}
}

func (l *lane) close() {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.closed = nil, true
	l.mu.Unlock()
	for _, w := range idle {
		w.close()
	}
}

// take returns the youngest idle connection that is still quiet: one on which
// the remote has sent anything, or that it has closed, is thrown away.
func (l *lane) take() *wire {
	for {
		l.mu.Lock()
		if len(l.idle) == 0 {
			l.mu.Unlock()
			return nil
		}
		w := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		l.mu.Unlock()
		if w.idleStop.Stop() && quiet(w.raw.Conn) {
			return w
		}
		w.close()
	}
}

// put keeps a connection for the next attempt, or closes it.
func (l *lane) put(w *wire) {
	l.mu.Lock()
	if l.closed || len(l.idle) >= maxIdle || w.br.Buffered() > 0 {
		l.mu.Unlock()
		w.close()
		return
	}
	l.idle = append(l.idle, w)
	w.idleStop = time.AfterFunc(idleTimeout, func() { l.expire(w) })
	l.mu.Unlock()
}

// expire closes a connection that nobody took in time.
func (l *lane) expire(w *wire) {
	l.mu.Lock()
	i := slices.Index(l.idle, w)
	if i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
	}
	l.mu.Unlock()
	if i >= 0 {
		w.close()
	}
}

// forget drops a lane with its TLS sessions.
func (x *Executor) forget(l *lane) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, have := range x.lanes {
		if have == l {
			delete(x.lanes, k)
		}
	}
	l.close()
}

// open makes a new connection of the lane and gathers its facts. The credential is
// asked for a certificate where the server asks for one.
func (x *Executor) open(ctx context.Context, l *lane, basePath string, c Credential) (*wire, *stop) {
	conn, st := x.dialTCP(ctx, l.to)
	if st != nil {
		return nil, st
	}
	raw := &counter{Conn: conn}
	facts := Connection{
		Scheme: l.to.scheme, Host: l.to.host, Port: l.to.port, BasePath: basePath,
		RemoteAddr: remoteAddr(conn), CADigest: l.to.caDigest, Pins: slices.Clone(l.to.pins),
	}
	certificate, _ := c.(CertificateCredential)
	s := &showing{c: certificate, facts: facts}
	if l.tls == nil {
		w := newWire(raw, raw, facts, false)
		if st := s.finish(facts); st != nil {
			w.close()
			return nil, st
		}
		return w, nil
	}
	tc, st := x.handshake(ctx, raw, s.config(l.tls), s)
	if st != nil {
		return nil, st
	}
	cs := tc.ConnectionState()
	facts.PeerSPKI, facts.Resumed = chainKeys(cs.VerifiedChains), cs.DidResume
	w := newWire(raw, tc, facts, cs.NegotiatedProtocol == "h2")
	w.certified = s.shown
	if len(facts.PeerSPKI) == 0 {
		w.close()
		return nil, stopped(PhaseTLS, fault.Internal, errors.New("the handshake verified no chain"))
	}
	if st := s.finish(facts); st != nil {
		w.close()
		x.forget(l) // with sessions that would be resumed without a certificate
		return nil, st
	}
	return w, nil
}
