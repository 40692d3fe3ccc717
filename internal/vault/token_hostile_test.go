package vault

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// real sends exchanges with the executor that the daemon has: its dialer, its trust
// and its limits.
type real struct {
	x       *executor.Executor
	ca      []byte
	timeout time.Duration // 0: what the vault says
}

// patient is an executor for machines that are busy: only the tests of slowness may
// see a time-out.
func patient() *executor.Executor {
	return executor.New(executor.Options{ConnectTimeout: time.Minute, TLSTimeout: time.Minute, HeaderTimeout: time.Minute})
}

// placeOf is where a test server listens.
func placeOf(t testing.TB, srv *httptest.Server, path string) (Place, []byte) {
	t.Helper()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	sum := sha256.Sum256(ca)
	return Place{Scheme: "https", Host: u.Hostname(), Port: port, Path: path, CADigest: "sha256:" + hex.EncodeToString(sum[:])}, ca
}

func (s real) exchange(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
	out := executor.TokenRequest{
		To: executor.Destination{Scheme: r.To.Scheme, Host: r.To.Host, Port: r.To.Port, BasePath: r.To.Path, CAPEM: s.ca, CADigest: r.To.CADigest,
			Pins: r.To.Pins, AllowLoopback: true},
		Method: r.Method, Path: r.Path, Query: r.Query, Header: r.Header, Body: r.Body, ContentType: r.MediaType, Timeout: r.Timeout,
	}
	if s.timeout > 0 {
		out.Timeout = s.timeout
	}
	if r.Hole {
		out.Hole = &executor.Hole{Offset: r.HoleAt, Form: true}
	}
	got := s.x.SendToken(ctx, r.Identity, out, sending{c})
	if _, rule, bad := got.Rejected(); bad {
		return fault.Newf(fault.InvalidResponse, "%s (%s)", got.Why(), rule)
	}
	if got.Err != nil {
		return got.Err
	}
	return read(TokenAnswer{Status: got.Status, Header: got.Header, Body: got.Body})
}

// sending shows the executor a credential of the vault.
type sending struct{ c TokenCredential }

func (s sending) Attach(out executor.Outgoing, c executor.Connection) error {
	return s.c.Attach(out, Made{Scheme: c.Scheme, Host: c.Host, Port: c.Port, BasePath: c.BasePath, CADigest: c.CADigest, Pins: c.Pins, PeerSPKI: c.PeerSPKI})
}

func (s sending) Scan(b []byte) []secret.Hit { return s.c.Scan(b) }

// hostile are token endpoints that do what they should not, over real TLS.
var hostile = map[string]struct {
	serve http.HandlerFunc
	code  fault.Code
}{
	"302": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.example/PLANTED", http.StatusFound)
	}, fault.InvalidResponse},
	"307": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/PLANTED", http.StatusTemporaryRedirect)
	}, fault.InvalidResponse},
	"a page": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>PLANTED access_token</html>")
	}, fault.InvalidResponse},
	"a page that says it is JSON": {jsonOf(200, "<html>PLANTED</html>"), fault.InvalidResponse},
	"duplicate members":           {jsonOf(200, withToken(`,"access_token":"`+plantedAnswer+`"`)), fault.InvalidResponse},
	"mac":                         {jsonOf(200, `{"access_token":"`+plantedAnswer+`","token_type":"mac"}`), fault.InvalidResponse},
	"a negative life":             {jsonOf(200, withToken(`,"expires_in":-3600`)), fault.InvalidResponse},
	"a life in words":             {jsonOf(200, withToken(`,"expires_in":"PLANTED"`)), fault.InvalidResponse},
	"1e99":                        {jsonOf(200, withToken(`,"expires_in":1e99`)), fault.InvalidResponse},
	"a header in the token":       {jsonOf(200, `{"access_token":"PLANTED\r\nX-Evil: 1","token_type":"Bearer"}`), fault.InvalidResponse},
	"100 KB of token":             {jsonOf(200, `{"access_token":"`+strings.Repeat("PLANTED-", 100<<7)+`","token_type":"Bearer"}`), fault.InvalidResponse},
	"deep":                        {jsonOf(200, withToken(`,"a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000))), fault.InvalidResponse},
	"an echo of the secret as the token": {func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		text, _ := url.QueryUnescape(password)
		jsonOf(200, `{"access_token":"`+text+`","token_type":"Bearer"}`)(w, r)
	}, fault.InvalidResponse},
	"an echo of the secret in an error": {func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		jsonOf(400, `{"error":"`+password+`","error_description":"`+password+`","error_uri":"PLANTED"}`)(w, r)
	}, fault.InvalidResponse},
	"an echo beside a known error": {func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		jsonOf(400, `{"error":"invalid_client","error_description":"`+password+` PLANTED"}`)(w, r)
	}, fault.RemoteUnauthenticated},
	"half a body": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"access_token":"`+plantedAnswer)
		panic(http.ErrAbortHandler)
	}, fault.UpstreamUnavailable},
	"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.UpstreamUnavailable},
	"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(conn, "PLANTED\r\n\r\n")
			conn.Close()
		}
	}, fault.InvalidResponse},
	"gzip": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, withToken(""))
		z.Close()
	}, fault.InvalidResponse},
	"an endless body": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"a":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("PLANTED ", 1<<10)); err != nil {
				return
			}
		}
	}, fault.InvalidResponse},
	"a header without end": {func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := fmt.Fprintf(conn, "X-Planted: %s\r\n", strings.Repeat("PLANTED", 100)); err != nil {
				return
			}
		}
	}, fault.InvalidResponse},
	"a token of silence": {jsonOf(200, `{}`), fault.InvalidResponse},
	"an empty 200":       {jsonOf(200, ""), fault.InvalidResponse},
	"429":                {jsonOf(429, "PLANTED"), fault.RemoteRateLimited},
	"500":                {jsonOf(500, "PLANTED"), fault.UpstreamUnavailable},
	"401":                {jsonOf(401, "PLANTED"), fault.RemoteUnauthenticated},
}

func jsonOf(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// serveTLS starts a server whose own complaints nobody reads.
func serveTLS(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // until it is read, the end of the connection is not noticed
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func TestHostileTokenEndpoint(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serveTLS(t, c.serve)
			b := clientBinding()
			place, ca := placeOf(t, srv, "/oauth2/token")
			b.Token = &place
			v, _ := create(t, cheap)
			put(t, v, "a", clientSecret, b)
			_, err := carried(t, v, "a", real{x: patient(), ca: ca, timeout: time.Minute}.exchange)
			if fault.CodeOf(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
			refuseTokens(t, err)
			if current(v) != nil {
				t.Error("something is kept as a token")
			}
		})
	}
}

// One that never answers ends with its time-out, and so does one that sends a byte
// now and then.
func TestSlowTokenEndpoint(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, " "); err != nil {
					return
				}
				http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serveTLS(t, serve)
			b := clientBinding()
			place, ca := placeOf(t, srv, "/oauth2/token")
			b.Token = &place
			x := exchangingOf(b, clientSecret, real{x: executor.New(executor.Options{}), ca: ca, timeout: 300 * time.Millisecond}.exchange)
			_, err := x.run(t.Context())
			wantCode(t, err, fault.UpstreamUnavailable)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	b := clientBinding()
	b.Token = &Place{Scheme: "https", Host: "127.0.0.1", Port: port, Path: "/token"}
	_, err = exchangingOf(b, clientSecret, real{x: executor.New(executor.Options{})}.exchange).run(t.Context())
	wantCode(t, err, fault.UpstreamUnavailable)
}

// A server that is another one than was bound is told nothing.
func TestUntrustedTokenEndpoint(t *testing.T) {
	asked := make(chan string, 8)
	srv := serveTLS(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	b := clientBinding()
	place, _ := placeOf(t, srv, "/oauth2/token")
	b.Token = &place
	key := testKeys()["ES256"]
	self := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	for name, ca := range map[string][]byte{"the system's roots": nil, "another CA": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})} {
		_, err := exchangingOf(b, clientSecret, real{x: patient(), ca: ca, timeout: time.Minute}.exchange).run(t.Context())
		if fault.CodeOf(err) != fault.UpstreamUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("it was asked for %s", <-asked)
	}
}
