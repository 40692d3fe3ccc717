package executor

import (
	"net"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// endpoint is a place as the site file would have it.
type endpoint struct{ place }

func (e endpoint) Scheme() string      { return e.scheme }
func (e endpoint) Host() string        { return e.host }
func (e endpoint) Port() int           { return e.port }
func (e endpoint) CAPEM() []byte       { return e.caPEM }
func (e endpoint) CADigest() string    { return e.caDigest }
func (e endpoint) Pins() []string      { return e.pins }
func (e endpoint) AllowLoopback() bool { return e.allowLoopback }
func (e endpoint) AllowPrivate() bool  { return e.allowPrivate }

// Reach believes what a call believes, and sends no request.
func TestReach(t *testing.T) {
	testkit.NoLeaks(t)
	ca, other := testkit.CA(t), testkit.CA(t)
	leaf := testkit.Leaf(t, ca)
	srv := testkit.Start(t, upstream.Options{Certificate: leaf, Script: testkit.Always(upstream.JSON(200, `{}`))})
	plain := testkit.Start(t, upstream.Options{Raw: func(c net.Conn) { _, _ = c.Write([]byte("220 mail ready\r\n")) }})
	for _, c := range []struct {
		name string
		edit func(*place)
		want string
	}{
		{"right", func(*place) {}, ""},
		{"pinned", func(p *place) { p.pins = []string{upstream.PinOf(leaf), "sha256/AAAA"} }, ""},
		{"plain http", func(p *place) { p.scheme, p.port, p.caPEM = schemeHTTP, plain.Port(), nil }, ""},
		{"another authority", func(p *place) { p.caPEM = other.PEM() }, "tls: localhost: the certificate is signed by an authority that this target does not trust"},
		{"a CA file without a certificate", func(p *place) { p.caPEM = []byte("none") }, "no certificate"},
		{"wrong pins", func(p *place) { p.pins = []string{other.Pin(), "sha256/AAAA"} }, "tls: localhost: no key of the verified chain is pinned"},
		{"no TLS there", func(p *place) { p.port = plain.Port() }, "tls: localhost: the remote does not speak TLS"},
		{"nobody there", func(p *place) { p.host, p.port = "127.0.0.1", testkit.DeadPort(t) }, "connect: "},
		{"loopback not allowed", func(p *place) { p.allowLoopback = false }, "resolve: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := at(srv, ca)
			c.edit(&to)
			x := New(Options{ConnectTimeout: testkit.Patience, TLSTimeout: testkit.Patience, HeaderTimeout: time.Minute})
			defer x.Close()
			err := x.Reach(t.Context(), endpoint{to})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
