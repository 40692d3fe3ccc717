// Package loopback is the doorway of the local listeners: Unix sockets and
// loopback TCP, who stands at the other end, and the guard that refuses whatever
// a browser, a proxy or a confused client would send. It must never route,
// decide or know an action. internal/agentapi, internal/operatorapi and
// cmd/chatelained import it; it imports only internal/fault.
package loopback

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Time-outs and limits of a local listener (docs/http-api.md). They are short:
// both ends are on this machine.
const (
	// ReadHeaderLimit stops a client that sends its headers drop by drop.
	ReadHeaderLimit = 2 * time.Second
	// IdleLimit closes a kept connection that nobody uses.
	IdleLimit = 30 * time.Second
	// BodyLimit is how long a body of at most 64 KiB may take.
	BodyLimit = 10 * time.Second
	// WriteLimit is how long writing one answer may take.
	WriteLimit = 10 * time.Second
	// HeaderBytes bounds a request's header. net/http adds 4 KiB of its own.
	HeaderBytes = 4 << 10
	// Connections is how many may be open on one listener at once.
	Connections = 64
	// ConnectionsPerUID is the same for one user, so that no one takes the
	// listener for themselves. Our own client keeps to eight an agent.
	ConnectionsPerUID = 16
)

// Peer is who stands at the other end of a connection, as the kernel says.
type Peer struct {
	UID      uint32
	Listener string // "socket" or "tcp"
	PID      int    // 0 where unknown
	Exe      string // "" where unknown; attribution only, never authorisation
}

type peerKey struct{}

// PeerOf returns the peer of a request. A request without one is nobody's, and
// ok is false.
func PeerOf(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// Server is one local listener with its guard.
type Server struct {
	// Name is "socket" or "tcp"; it becomes Peer.Listener.
	Name string
	// Handler runs behind the guard.
	Handler http.Handler
	// Admit says whether a user may connect at all; others are closed before
	// a byte is read.
	Admit func(uid uint32) bool
	// ConnContext, if set, adds to a connection's context.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	Logger      *slog.Logger
	// Refuse, if set, writes the guard's refusals in the listener's own shape.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, why string)

	hosts map[string]bool

	mu   sync.Mutex
	http *http.Server // guarded by mu; set by Serve
	down bool         // guarded by mu; Shutdown was called
}

// Serve answers on ln until the server is shut down.
func (s *Server) Serve(ln net.Listener) error {
	s.hosts = hostsOf(ln)
	server := &http.Server{
		Handler:           s.guard(s.Handler),
		ReadHeaderTimeout: ReadHeaderLimit,
		IdleTimeout:       IdleLimit,
		MaxHeaderBytes:    HeaderBytes,
		// net/http would answer `OPTIONS *` itself, past the guard.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.logger().Handler(), slog.LevelDebug),
		ConnContext:                  s.connContext,
	}
	if !s.begin(server) {
		return ln.Close() // shut down before it began
	}
	err := server.Serve(&admitting{Listener: ln, s: s, perUID: map[uint32]int{}})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown lets running requests end, until ctx does.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.down = true
	server := s.http
	s.mu.Unlock()
	if server == nil {
		return nil // a Serve to come will not begin
	}
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}

// begin notes the server, unless Shutdown was quicker.
func (s *Server) begin(server *http.Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http = server
	return !s.down
}

func (s *Server) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

func (s *Server) connContext(ctx context.Context, c net.Conn) context.Context {
	if k, ok := c.(*known); ok {
		ctx = context.WithValue(ctx, peerKey{}, k.peer)
	}
	if s.ConnContext != nil {
		ctx = s.ConnContext(ctx, c)
	}
	return ctx
}

// admitting asks the kernel who connects before a byte is read, and counts.
type admitting struct {
	net.Listener
	s      *Server
	mu     sync.Mutex
	all    int            // guarded by mu
	perUID map[uint32]int // guarded by mu
}

// known is a connection whose peer the kernel has named.
type known struct {
	net.Conn
	peer Peer
	once sync.Once
	gone func()
}

func (k *known) Close() error {
	k.once.Do(k.gone)
	return k.Conn.Close()
}

// Accept returns the next admitted connection; others are closed unread.
func (a *admitting) Accept() (net.Conn, error) {
	for {
		c, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(c)
		if err != nil {
			a.s.logger().Warn("connection closed: its user is not known", "listener", a.s.Name, "cause", err.Error())
			_ = c.Close()
			continue
		}
		p.Listener = a.s.Name
		if a.s.Admit == nil || !a.s.Admit(p.UID) {
			a.s.logger().Warn("connection closed: this user is not admitted", "listener", a.s.Name, "uid", p.UID)
			_ = c.Close()
			continue
		}
		if !a.take(p.UID) {
			a.s.logger().Warn("connection closed: too many at once", "listener", a.s.Name, "uid", p.UID)
			_ = c.Close()
			continue
		}
		return &known{Conn: c, peer: p, gone: func() { a.give(p.UID) }}, nil
	}
}

func (a *admitting) take(uid uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all >= Connections || a.perUID[uid] >= ConnectionsPerUID {
		return false
	}
	a.all++
	a.perUID[uid]++
	return true
}

func (a *admitting) give(uid uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if a.perUID[uid]--; a.perUID[uid] == 0 {
		delete(a.perUID, uid)
	}
}
