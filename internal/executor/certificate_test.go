package executor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

// mesh is a credential that proves itself in the handshake.
type mesh struct {
	cert       *tls.Certificate
	generation uint64
	asked      atomic.Int32
	seen       Connection
	err        error
	then       func(Outgoing)
}

func (m *mesh) ClientCertificate(c Connection) (*tls.Certificate, error) {
	m.asked.Add(1)
	m.seen = c
	return m.cert, m.err
}

func (m *mesh) Attach(o Outgoing, _ Connection) error {
	if m.then != nil {
		m.then(o)
	}
	return nil
}

func (m *mesh) Generation() uint64 { return m.generation }

// clientCert is a certificate of its own for a client, and the pool that trusts it.
func clientCert(t *testing.T, name string) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// guarded is a server that wants a client certificate, and what it saw.
type guarded struct {
	to    place
	shown atomic.Int32 // handshakes in which a certificate came
	mu    sync.Mutex
	reqs  []string // the certificate's name and Authorization of each request
}

func (g *guarded) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.reqs...)
}

func serveGuarded(t *testing.T, version uint16, h2 bool, auth tls.ClientAuthType, trust *x509.CertPool) *guarded {
	t.Helper()
	ca, g := testkit.CA(t), &guarded{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		g.mu.Lock()
		g.reqs = append(g.reqs, who+r.Header.Get("Authorization"))
		g.mu.Unlock()
	}))
	srv.EnableHTTP2 = h2
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes are meant to fail
	srv.TLS = &tls.Config{
		Certificates: []tls.Certificate{testkit.Leaf(t, ca, "localhost")}, MinVersion: version, MaxVersion: version, ClientAuth: auth, ClientCAs: trust,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) > 0 {
				g.shown.Add(1)
			}
			return nil
		},
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	g.to = place{scheme: schemeHTTPS, host: "localhost", port: srv.Listener.Addr().(*net.TCPAddr).Port, caPEM: ca.PEM(), allowLoopback: true, http2: h2}
	return g
}

// ways are the handshakes that a certificate can be shown in.
var ways = []struct {
	name    string
	version uint16
	h2      bool
}{{"TLS 1.2", tls.VersionTLS12, false}, {"TLS 1.3", tls.VersionTLS13, false}, {"HTTP/2", tls.VersionTLS13, true}}

func TestClientCertificate(t *testing.T) {
	cert, pool := clientCert(t, "bot")
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			g := serveGuarded(t, w.version, w.h2, tls.RequireAndVerifyClientCert, pool)
			x, m := newExecutor(t, Options{}), &mesh{cert: cert, generation: 1}
			to := g.to
			to.basePath = "/v1"
			s := change(to)
			for range 2 { // no session is resumed: the key is asked each time
				ex := sendTo(t, x, s, m)
				if wantCode(t, ex, ""); ex.Connection.Resumed {
					t.Error("a session was resumed")
				}
			}
			if got := g.all(); len(got) != 2 || got[0] != "bot" || got[1] != "bot" || m.asked.Load() != 2 {
				t.Errorf("the server saw %q; asked %d times", got, m.asked.Load())
			}
			if m.seen.Host != "localhost" || m.seen.BasePath != "/v1" || len(m.seen.PeerSPKI) != 2 {
				t.Errorf("asked with %+v", m.seen)
			}
		})
	}
}

// A server that is not the target, or none that is pinned, sees no certificate.
func TestCertificateIsNotShownToAnother(t *testing.T) {
	cert, pool := clientCert(t, "bot")
	for _, w := range ways {
		for name, spoil := range map[string]func(*place){
			"authority": func(p *place) { p.caPEM = testkit.CA(t).PEM() },
			"pin":       func(p *place) { p.pins = []string{"sha256/AAAA", "sha256/BBBB"} },
			"name":      func(p *place) { p.host = "127.0.0.1" },
		} {
			t.Run(w.name+", "+name, func(t *testing.T) {
				g := serveGuarded(t, w.version, w.h2, tls.RequestClientCert, pool)
				m, to := &mesh{cert: cert}, g.to
				spoil(&to)
				ex := sendTo(t, newExecutor(t, Options{}), change(to), m)
				if ex.Err == nil || ex.Wrote || ex.Phase != PhaseTLS {
					t.Errorf("%v, phase %s", ex.Err, ex.Phase)
				}
				if m.asked.Load() != 0 || g.shown.Load() != 0 || len(g.all()) != 0 {
					t.Errorf("asked %d times, shown %d times, requests %q", m.asked.Load(), g.shown.Load(), g.all())
				}
			})
		}
	}
}

// A call whose server does not ask would go out without its credential: it is not
// sent, also not over a session that was kept.
func TestCertificateNotAskedFor(t *testing.T) {
	cert, _ := clientCert(t, "bot")
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			g := serveGuarded(t, w.version, w.h2, tls.NoClientCert, nil)
			x := newExecutor(t, Options{})
			for range 2 {
				ex := sendTo(t, x, change(g.to), &mesh{cert: cert})
				wantCode(t, ex, fault.TargetNotAllowed)
				if ex.Wrote || ex.Writes != 0 || len(g.all()) != 0 || !errors.Is(ex.Err, errNotAsked) {
					t.Errorf("wrote %v: %v; requests %q", ex.Wrote, ex.Err, g.all())
				}
			}
		})
	}
	m := &mesh{cert: cert}
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	t.Cleanup(plain.Close)
	to := place{scheme: schemeHTTP, host: "127.0.0.1", port: plain.Listener.Addr().(*net.TCPAddr).Port, allowLoopback: true}
	wantCode(t, sendTo(t, newExecutor(t, Options{}), change(to), m), fault.TargetNotAllowed)
}

// An identity without a certificate is not held up by a server that asks for one.
func TestNoCertificateToShow(t *testing.T) {
	for _, w := range ways {
		g := serveGuarded(t, w.version, w.h2, tls.RequestClientCert, nil)
		wantCode(t, sendTo(t, newExecutor(t, Options{}), change(g.to), &mesh{}), "")
		if g.shown.Load() != 0 || len(g.all()) != 1 {
			t.Errorf("%s: shown %d times, requests %q", w.name, g.shown.Load(), g.all())
		}
	}
}

// The credential's own word inside the handshake stands, and nothing is shown.
func TestCertificateRefusedByItsBinding(t *testing.T) {
	cert, pool := clientCert(t, "bot")
	for _, w := range ways {
		g := serveGuarded(t, w.version, w.h2, tls.RequireAndVerifyClientCert, pool)
		for want, err := range map[fault.Code]error{
			fault.TargetNotAllowed: errors.New("bound elsewhere"),
			fault.VaultLocked:      fault.Newf(fault.VaultLocked, "locked meanwhile"),
		} {
			ex := sendTo(t, newExecutor(t, Options{}), change(g.to), &mesh{cert: cert, err: err})
			if wantCode(t, ex, want); ex.Wrote || ex.Phase != PhaseAttach {
				t.Errorf("%s: wrote %v in phase %s", w.name, ex.Wrote, ex.Phase)
			}
		}
		if g.shown.Load() != 0 || len(g.all()) != 0 {
			t.Errorf("%s: shown %d times", w.name, g.shown.Load())
		}
	}
}

// A certificate and something else is two credentials.
func TestCertificateAndMore(t *testing.T) {
	cert, pool := clientCert(t, "bot")
	g := serveGuarded(t, tls.VersionTLS13, false, tls.RequireAndVerifyClientCert, pool)
	x := newExecutor(t, Options{})
	more := &mesh{cert: cert, then: func(o Outgoing) { _ = o.SetHeader("Authorization", "Bearer "+token) }}
	wantCode(t, sendTo(t, x, change(g.to), more), fault.Internal)
	more.then = func(o Outgoing) { _ = o.FillBody(appends(token)) }
	wantCode(t, sendTo(t, x, holed(g.to, jsonBody, `"key":"`, false), more), fault.Internal)
	if len(g.all()) != 0 {
		t.Errorf("requests %q", g.all())
	}
}

// A connection that was made with one generation's certificate carries no other.
func TestGenerationsAreApart(t *testing.T) {
	one, pool := clientCert(t, "one")
	two, _ := clientCert(t, "two")
	pool.AddCert(two.Leaf)
	g := serveGuarded(t, tls.VersionTLS13, false, tls.RequireAndVerifyClientCert, pool)
	x := newExecutor(t, Options{})
	send := func(m *mesh) Exchange {
		ex := x.send(t.Context(), owner{identity: "bot", generation: generationOf(m)}, read(g.to), m)
		wantCode(t, ex, "")
		return ex
	}
	first := &mesh{cert: one, generation: 1}
	send(first)
	if ex := send(first); !ex.Reused {
		t.Error("the generation's own connection was not reused")
	}
	if ex := send(&mesh{cert: two, generation: 2}); ex.Reused {
		t.Error("a connection of the generation before was used")
	}
	x.mu.Lock()
	lanes := len(x.lanes)
	x.mu.Unlock()
	if got := g.all(); len(got) != 3 || got[2] != "two" || lanes != 1 {
		t.Errorf("the server saw %q; %d lanes", got, lanes)
	}
}

// A server that does not take the certificate says so by an alert, in TLS 1.3 only
// after the client's half of the handshake: the request may be written by then, or
// not begun. Nothing of it was read.
func TestCertificateIsUnwelcome(t *testing.T) {
	cert, _ := clientCert(t, "bot")
	_, other := clientCert(t, "other")
	for _, w := range ways {
		version := w.version
		protos := []string{"http/1.1"}
		if w.h2 {
			protos = []string{"h2"}
		}
		ca := testkit.CA(t)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		leaf, said := testkit.Leaf(t, ca), make(chan struct{}, 2) // as many as there are connections
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_ = tls.Server(c, &tls.Config{
					Certificates: []tls.Certificate{leaf}, MinVersion: version, MaxVersion: version,
					ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: other, NextProtos: protos,
				}).Handshake()
				said <- struct{}{}
				_, _ = io.Copy(io.Discard, c) // a close with bytes unread would reset the alert away
				c.Close()
			}
		}()
		to := place{scheme: schemeHTTPS, host: "localhost", port: ln.Addr().(*net.TCPAddr).Port, caPEM: ca.PEM(), allowLoopback: true, http2: w.h2}
		for _, when := range []string{"after the alert", "at once"} {
			m := &mesh{cert: cert}
			if when == "after the alert" && version == tls.VersionTLS13 {
				m.then = func(Outgoing) { <-said }
			}
			ex := sendTo(t, newExecutor(t, Options{}), change(to), m)
			wantCode(t, ex, fault.RemoteUnauthenticated)
			if ex.Answered || version == tls.VersionTLS12 && ex.Wrote {
				t.Errorf("%s, %s: wrote %v, answered %v", w.name, when, ex.Wrote, ex.Answered)
			}
		}
	}
}
