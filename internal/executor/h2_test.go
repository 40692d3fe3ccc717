package executor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

// seen2 is what an HTTP/2 server was sent.
type seen2 struct {
	mu   sync.Mutex
	reqs []string
}

func (s *seen2) add(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reqs = append(s.reqs, fmt.Sprintf("%s %s %s %s auth=%q agent=%q type=%q body=%q", r.Proto, r.Method, r.Host, r.RequestURI,
		r.Header["Authorization"], r.Header["User-Agent"], r.Header["Content-Type"], body))
}

// all returns what was sent so far.
func (s *seen2) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reqs)
}

func serve2(t *testing.T, handler http.HandlerFunc) (place, *seen2) {
	t.Helper()
	ca := testkit.CA(t)
	seen := &seen2{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.add(r)
		handler(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{testkit.Leaf(t, ca)}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return place{scheme: schemeHTTPS, host: "localhost", port: srv.Listener.Addr().(*net.TCPAddr).Port, caPEM: ca.PEM(), allowLoopback: true, http2: true}, seen
}

func TestHTTP2OnlyWhereTheTargetSaysSo(t *testing.T) {
	testkit.NoLeaks(t)
	to, seen := serve2(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, `{"ok":true}`)
		w.Header().Set("X-Sum", "42")
	})
	x := newExecutor(t, Options{})
	ex := sendTo(t, x, change(to), &bearer{})
	wantCode(t, ex, "")
	if string(ex.Body) != `{"ok":true}` || ex.Trailer.Get("X-Sum") != "42" {
		t.Errorf("answer %q %v", ex.Body, ex.Trailer)
	}
	to.http2 = false
	wantCode(t, sendTo(t, x, change(to), &bearer{}), "")
	for i, proto := range []string{"HTTP/2.0", "HTTP/1.1"} {
		want := fmt.Sprintf(`%s POST localhost:%d /v1/things auth=["Bearer %s"] agent=["chatelaine"] type=["application/json"] body="{\"a\":1}"`, proto, to.port, token)
		if seen.all()[i] != want {
			t.Errorf("request %d\n%s\nwant\n%s", i, seen.all()[i], want)
		}
	}
}

func TestHTTP2Faults(t *testing.T) {
	testkit.NoLeaks(t)
	stall := make(chan struct{})
	t.Cleanup(func() { close(stall) })
	for _, c := range []struct {
		name         string
		handler      http.HandlerFunc
		read, change fault.Code
		rule         string
	}{
		{"too large", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 2<<20)) }, fault.InvalidResponse, fault.InvalidResponse, RuleBodyTooLarge},
		{"gzip", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") }, fault.InvalidResponse, fault.InvalidResponse, RuleContentEncoding},
		{"silent", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-stall:
			case <-r.Context().Done():
			}
		}, fault.UpstreamUnavailable, fault.OutcomeUnknown, ""},
		{"reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.UpstreamUnavailable, fault.OutcomeUnknown, ""},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		}, fault.UpstreamUnavailable, fault.OutcomeUnknown, ""},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) }, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, seen := serve2(t, c.handler)
			o := Options{}
			if c.name == "silent" {
				o.HeaderTimeout = time.Second
			}
			x := newExecutor(t, o)
			for _, s := range []step{read(to), change(to)} {
				want := c.read
				if s.change {
					want = c.change
				}
				ex := sendTo(t, x, s, &bearer{})
				wantCode(t, ex, want)
				if _, rule, _ := ex.Rejected(); rule != c.rule || !ex.Wrote {
					t.Errorf("rule %q, wrote %v", rule, ex.Wrote)
				}
			}
			testkit.Until(t, "both requests", func() bool { return len(seen.all()) >= 2 })
			if len(seen.all()) != 2 {
				t.Errorf("%d requests for two attempts", len(seen.all()))
			}
		})
	}
}

func TestHTTP2CredentialRefuses(t *testing.T) {
	to, seen := serve2(t, func(http.ResponseWriter, *http.Request) {})
	ex := sendTo(t, newExecutor(t, Options{}), change(to), &bearer{err: errors.New("bound elsewhere")})
	wantCode(t, ex, fault.TargetNotAllowed)
	if ex.Wrote || ex.Writes != 0 || len(seen.all()) != 0 {
		t.Errorf("wrote %v, %d requests", ex.Wrote, len(seen.all()))
	}
	k := &keeper{}
	wantCode(t, sendTo(t, newExecutor(t, Options{}), change(to), k), "")
	wiped(t, k.o)
}
