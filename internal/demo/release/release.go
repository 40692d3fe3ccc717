// Package release is the release service of the demo: a real HTTPS server on a
// loopback socket, with a certificate authority and tokens of its own, that
// remembers deployments and can be told to lie. It stands for a remote system,
// so it must know nothing of chatelaine: no package of this module is imported.
// Only the demo may import it.
package release

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// headerLimit is how long a client may take for its header: everything is
	// on one machine.
	headerLimit = 5 * time.Second
	// bodyLimit is the longest body that is read; a deployment has some
	// hundred bytes.
	bodyLimit = 64 << 10
	// keyLimit is the longest idempotency key that is remembered.
	keyLimit = 128
)

// Request is one request that arrived whole, and what was answered.
type Request struct {
	Method, Path string
	Environment  string // the first part of the path
	Version      string // of a deployment, "" for a look
	Key          string // Idempotency-Key
	Authorised   bool   // it carried the environment's token
	Raw          []byte // header and body as they arrived
	Status       int    // 0 where nothing was answered
	Answer       []byte // the body that was answered
}

// Service is a running release service.
type Service struct {
	tokens map[string]string
	server *http.Server
	ln     net.Listener
	ca     []byte
	quit   chan struct{}
	ended  chan struct{}
	once   sync.Once

	mu       sync.Mutex // guards the rest
	lie      Lie
	requests []*Request
	byKey    map[string]*deployment
	byID     map[string]*deployment
}

// Start listens on a free loopback port and serves until Close. tokens has the
// bearer token of each environment.
func Start(tokens map[string]string) (*Service, error) {
	for environment, token := range tokens {
		if environment == "" || token == "" {
			return nil, errors.New("release: an environment without a token would be open to everyone")
		}
	}
	ca, leaf, err := certificates()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Service{tokens: tokens, ln: ln, ca: ca, quit: make(chan struct{}), ended: make(chan struct{}),
		byKey: map[string]*deployment{}, byID: map[string]*deployment{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{environment}/v1/apps/{app}/releases", s.create)
	mux.HandleFunc("GET /{environment}/v1/apps/{app}/releases/{id}", s.look)
	s.server = &http.Server{
		Handler:           mux,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: headerLimit,
		// A client that is killed leaves broken connections; they are expected.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.ended)
		_ = s.server.ServeTLS(ln, "", "") // ends with ErrServerClosed
	}()
	return s, nil
}

// Address returns "127.0.0.1:PORT".
func (s *Service) Address() string { return s.ln.Addr().String() }

// CA returns the certificate authority, as a PEM file has it.
func (s *Service) CA() []byte { return slices.Clone(s.ca) }

// Pool returns the authority for a client of Go.
func (s *Service) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(s.ca)
	return p
}

// Switch says how later requests are answered.
func (s *Service) Switch(l Lie) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = l
}

// Received returns what has arrived so far, in order.
func (s *Service) Received() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
	}
	return out
}

// Close ends every connection and waits until nothing is served any more.
func (s *Service) Close() error {
	s.once.Do(func() { close(s.quit) })
	err := s.server.Close()
	<-s.ended
	return err
}
