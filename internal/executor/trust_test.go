package executor

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

func TestTrust(t *testing.T) {
	ca, other := testkit.CA(t), testkit.CA(t)
	expired, err := ca.LeafUntil(time.Now().Add(-time.Hour), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	const foreign = "ignore-previous-instructions.example"
	leaf := testkit.Leaf(t, ca)
	for _, c := range []struct {
		name string
		o    upstream.Options
		edit func(*place)
		want fault.Code
		text string
	}{
		{"right", upstream.Options{Certificate: leaf}, nil, "", ""},
		{"another authority", upstream.Options{Certificate: testkit.Leaf(t, other)}, nil, fault.UpstreamUnavailable, "does not trust"},
		{"another name", upstream.Options{Certificate: testkit.Leaf(t, ca, foreign)}, nil, fault.UpstreamUnavailable, "another name"},
		{"expired", upstream.Options{Certificate: expired}, nil, fault.UpstreamUnavailable, "expired"},
		{"TLS 1.1", upstream.Options{Certificate: leaf, MaxTLS: 0x0302}, nil, fault.UpstreamUnavailable, ""},
		{"the system's roots", upstream.Options{Certificate: leaf}, func(p *place) { p.caPEM = nil }, fault.UpstreamUnavailable, "does not trust"},
		{"a CA file without a certificate", upstream.Options{Certificate: leaf}, func(p *place) { p.caPEM = []byte("none") }, fault.Internal, "no certificate"},
		{"leaf pinned", upstream.Options{Certificate: leaf}, func(p *place) { p.pins = []string{"sha256/AAAA", upstream.PinOf(leaf)} }, "", ""},
		{"authority pinned", upstream.Options{Certificate: leaf}, func(p *place) { p.pins = []string{ca.Pin(), "sha256/AAAA"} }, "", ""},
		{"wrong pins", upstream.Options{Certificate: leaf}, func(p *place) { p.pins = []string{other.Pin(), "sha256/AAAA"} }, fault.TargetNotAllowed, "pinned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Script = testkit.Always(upstream.JSON(200, `{}`))
			srv := testkit.Start(t, c.o)
			to := at(srv, ca)
			if c.edit != nil {
				c.edit(&to)
			}
			cred := &bearer{}
			ex := sendTo(t, newExecutor(t, Options{}), change(to), cred)
			wantCode(t, ex, c.want)
			if c.want == "" {
				return
			}
			if ex.Wrote || cred.asked.Load() != 0 || len(srv.Requests()) != 0 {
				t.Errorf("wrote %v, credential asked %d times", ex.Wrote, cred.asked.Load())
			}
			if s := ex.Err.Error(); !strings.Contains(s, c.text) || strings.Contains(s, foreign) {
				t.Errorf("error %q", s)
			}
		})
	}
}

// A resumed session skips the certificates, not the pins.
func TestPinsHoldOnResumption(t *testing.T) {
	ca := testkit.CA(t)
	leaf := testkit.Leaf(t, ca)
	srv := testkit.Start(t, upstream.Options{Certificate: leaf, Script: testkit.Always(upstream.JSON(200, `{}`))})
	to := at(srv, ca)
	to.pins = []string{upstream.PinOf(leaf), "sha256/AAAA"}
	x := newExecutor(t, Options{})
	s := read(to)
	s.reuse = false
	wantCode(t, sendTo(t, x, s, &bearer{}), "")
	ex := sendTo(t, x, s, &bearer{})
	wantCode(t, ex, "")
	if !ex.Connection.Resumed || len(ex.Connection.PeerSPKI) != 2 {
		t.Fatalf("the second session was not resumed: %+v", ex.Connection)
	}
	l, err := x.laneFor(bot, to)
	if err != nil {
		t.Fatal(err)
	}
	resumed := false
	wrong := verifyPins([]string{"sha256/AAAA", "sha256/BBBB"})
	l.tls.VerifyConnection = func(cs tls.ConnectionState) error { resumed = cs.DidResume; return wrong(cs) }
	cred := &bearer{}
	ex = sendTo(t, x, s, cred)
	wantCode(t, ex, fault.TargetNotAllowed)
	if !resumed || ex.Wrote || cred.asked.Load() != 0 {
		t.Errorf("resumed %v, wrote %v", resumed, ex.Wrote)
	}
}

// Other identities and other beliefs never share a TLS session or connection.
func TestLanesAreApart(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	to := at(srv, ca)
	x.send(t.Context(), owner{identity: "one"}, read(to), nil)
	pinned := to
	pinned.pins = []string{ca.Pin(), "sha256/AAAA"}
	for _, c := range []struct {
		identity string
		to       place
	}{{"two", to}, {"one", pinned}} {
		ex := x.send(t.Context(), owner{identity: c.identity}, read(c.to), nil)
		if wantCode(t, ex, ""); ex.Reused || ex.Connection.Resumed {
			t.Errorf("%s: reused %v resumed %v", c.identity, ex.Reused, ex.Connection.Resumed)
		}
	}
	if ex := x.send(t.Context(), owner{identity: "one"}, read(to), nil); !ex.Reused {
		t.Error("the identity's own connection was not reused")
	}
}

// A target whose CA was exchanged refuses the old server and accepts the new.
func TestExchangedCA(t *testing.T) {
	oldCA, newCA := testkit.CA(t), testkit.CA(t)
	srv := testkit.HTTPS(t, oldCA, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	s := read(at(srv, oldCA))
	s.reuse = false
	wantCode(t, sendTo(t, x, s, &bearer{}), "")
	srv.SetCertificate(testkit.Leaf(t, newCA))
	s.to.caPEM = newCA.PEM()
	ex := sendTo(t, x, s, &bearer{})
	if wantCode(t, ex, ""); ex.Connection.Resumed {
		t.Error("a session of the old authority was resumed")
	}
}
