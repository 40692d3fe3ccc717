// Package upstream is a remote system on loopback that does what it is told:
// an HTTPS (or plain) server on raw sockets with a certificate authority of its
// own, which records every byte that arrives and can lie, stall, cut and flood
// at each phase. It serves contract tests, which are part of the program, and
// the tests of this module. It must listen on loopback alone and knows nothing
// of contracts. Package contracttest, testkit and tests may import it.
package upstream

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Script decides what is answered. It is called once for each request that was
// read whole, possibly at the same time for several connections.
type Script func(Request) Answer

// Options say how a server behaves. The zero value speaks plain HTTP.
type Options struct {
	Address     string          // where to listen; "127.0.0.1:0" where empty, and only loopback
	Certificate tls.Certificate // makes it an HTTPS server
	NextProtos  []string        // ALPN; none where empty
	MaxTLS      uint16          // highest TLS version; 0: the library's
	AsksClient  bool            // asks for a certificate of the client and takes any, or none
	Script      Script          // nil: 404 for everything
	// OnConn decides about connection n (from 1) before anything is read:
	// only Hang and Close at AtAccept or BeforeRead count.
	OnConn func(n int) Answer
	// Raw takes over each connection after TLS, instead of Script.
	Raw func(net.Conn)
}

// Server is a running upstream.
type Server struct {
	o    Options
	ln   net.Listener
	quit chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex // guards the rest
	cert     tls.Certificate
	live     map[net.Conn]bool
	arrived  [][]byte // application bytes of each connection
	requests []Request
	conns    int
}

// Start listens and serves until Close.
func Start(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	ln, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, err
	}
	if !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
		ln.Close()
		return nil, errors.New("an upstream listens on loopback only")
	}
	s := &Server{o: o, ln: ln, quit: make(chan struct{}), cert: o.Certificate, live: map[net.Conn]bool{}}
	s.wg.Add(1)
	go s.accept()
	return s, nil
}

// Addr returns "127.0.0.1:PORT".
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Port returns the port.
func (s *Server) Port() int { return s.ln.Addr().(*net.TCPAddr).Port }

// SetCertificate changes the certificate for later connections.
func (s *Server) SetCertificate(c tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cert = c
}

// Requests returns what was read whole so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Arrived returns the application bytes of each connection, in order of
// acceptance, whether or not they made a request.
func (s *Server) Arrived() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([][]byte, len(s.arrived))
	for i, b := range s.arrived {
		out[i] = append([]byte(nil), b...)
	}
	return out
}

// Conns returns how many connections were accepted.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// CloseConns closes every connection that is open, as a server does that has
// waited long enough.
func (s *Server) CloseConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.live {
		c.Close()
	}
}

// Close ends everything and waits until it has ended.
func (s *Server) Close() {
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
	s.ln.Close()
	s.CloseConns()
	s.wg.Wait()
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns++
		n := s.conns
		s.arrived = append(s.arrived, nil)
		s.live[c] = true
		cert := s.cert
		s.mu.Unlock()
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.serve(n, c, cert)
			s.mu.Lock()
			delete(s.live, c)
			s.mu.Unlock()
		}()
	}
}

// serve does one connection.
func (s *Server) serve(n int, tcp net.Conn, cert tls.Certificate) {
	defer tcp.Close()
	var plan Answer
	if s.o.OnConn != nil {
		plan = s.o.OnConn(n)
	}
	if s.misbehave(plan, AtAccept, tcp) {
		return
	}
	conn, state, err := s.secure(tcp, cert)
	if err != nil {
		return
	}
	if s.misbehave(plan, BeforeRead, tcp) {
		return
	}
	if s.o.Raw != nil {
		s.o.Raw(&recorder{conn, s, n})
		return
	}
	br := bufio.NewReader(&recorder{conn, s, n})
	for {
		r, err := readRequest(br)
		if err != nil {
			return
		}
		r.Conn, r.TLS = n, state
		if !s.reply(s.note(r), conn, tcp) {
			conn.Close()
			return
		}
	}
}

// secure makes TLS where the server has a certificate.
func (s *Server) secure(tcp net.Conn, cert tls.Certificate) (net.Conn, *tls.ConnectionState, error) {
	if len(cert.Certificate) == 0 {
		return tcp, nil, nil
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: s.o.NextProtos, MaxVersion: s.o.MaxTLS}
	if s.o.AsksClient {
		cfg.ClientAuth = tls.RequestClientCert
	}
	cfg.SetSessionTicketKeys([][32]byte{sessionKey})
	tc := tls.Server(tcp, cfg)
	if err := tc.Handshake(); err != nil {
		return nil, nil, err
	}
	state := tc.ConnectionState()
	return tc, &state, nil
}

// sessionKey lets a session of one server be resumed at another of the same
// process, so that a test can change the certificate in between.
var sessionKey = [32]byte{1}

// note keeps a request and numbers it.
func (s *Server) note(r Request) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.N = len(s.requests) + 1
	s.requests = append(s.requests, r)
	return r
}

// reply answers one request and says whether the connection goes on.
func (s *Server) reply(r Request, conn, tcp net.Conn) bool {
	a := Answer{Status: 404}
	if s.o.Script != nil {
		a = s.o.Script(r)
	}
	if !s.pause(a.Delay) || s.misbehave(a, BeforeAnswer, tcp) {
		return false
	}
	p := a.render(r.Method)
	if a.Close == Nowhere && a.Hang == Nowhere {
		whole := append(append(append([]byte(nil), p.head...), p.body...), p.tail...)
		if !s.write(conn, whole, a.Drip) {
			return false
		}
		return !a.Last && !a.Unframed && !wantsClose(r)
	}
	half := len(p.head) / 2
	if !s.write(conn, p.head[:half], a.Drip) || s.misbehave(a, MidHeaders, tcp) ||
		!s.write(conn, p.head[half:], a.Drip) || s.misbehave(a, AfterHeaders, tcp) {
		return false
	}
	s.write(conn, p.body[:len(p.body)/2], a.Drip)
	s.misbehave(a, MidBody, tcp)
	return false
}

func wantsClose(r Request) bool { return r.Header().Get("Connection") == "close" }

// misbehave does what a says for a phase; true means the connection is over.
func (s *Server) misbehave(a Answer, at Phase, tcp net.Conn) bool {
	switch at {
	case a.Hang:
		s.waitForEnd(tcp)
		return true
	case a.Close:
		if t, ok := tcp.(*net.TCPConn); ok && a.Reset {
			t.SetLinger(0)
		}
		tcp.Close()
		return true
	}
	return false
}

// waitForEnd is silent until the other side or the server gives up.
func (s *Server) waitForEnd(tcp net.Conn) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(io.Discard, tcp)
	}()
	select {
	case <-gone:
	case <-s.quit:
		tcp.Close()
		<-gone
	}
}

// pause waits; false means that the server ended.
func (s *Server) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-s.quit:
		return false
	}
}

func (s *Server) write(c net.Conn, b []byte, drip time.Duration) bool {
	if drip <= 0 {
		_, err := c.Write(b)
		return err == nil
	}
	for i := range b {
		if _, err := c.Write(b[i : i+1]); err != nil || !s.pause(drip) {
			return false
		}
	}
	return true
}

// recorder keeps what is read of a connection.
type recorder struct {
	net.Conn
	s *Server
	n int
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.s.mu.Lock()
	r.s.arrived[r.n-1] = append(r.s.arrived[r.n-1], p[:n]...)
	r.s.mu.Unlock()
	return n, err
}
