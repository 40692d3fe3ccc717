package executor

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

func TestRedirectsAreAnswers(t *testing.T) {
	ca := testkit.CA(t)
	second := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{"stolen":true}`)))
	plain := testkit.Start(t, upstream.Options{Script: testkit.Always(upstream.JSON(200, `{"stolen":true}`))})
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for _, location := range []string{
			fmt.Sprintf("https://localhost:%d/other", second.Port()),
			"http://" + plain.Addr() + "/v1/things",
			"https://evil.example/", "//evil.example/", "/elsewhere", "file:///etc/passwd", "",
		} {
			srv := testkit.HTTPS(t, ca, testkit.Always(upstream.Answer{Status: status, Headers: []upstream.Header{{Name: "Location", Value: location}}}))
			x := newExecutor(t, Options{})
			for _, s := range []step{read(at(srv, ca)), change(at(srv, ca))} {
				ex := sendTo(t, x, s, &bearer{})
				wantCode(t, ex, "")
				if ex.Status != status {
					t.Errorf("status %d, want %d", ex.Status, status)
				}
			}
			if n := len(srv.Requests()); n != 2 {
				t.Errorf("%d to %q: %d requests for two attempts", status, location, n)
			}
		}
	}
	if second.Conns() != 0 || plain.Conns() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestProxyEnvironmentIsIgnored(t *testing.T) {
	proxy := testkit.Start(t, upstream.Options{})
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.Addr())
	}
	t.Setenv("NO_PROXY", "")
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)), "api.example")
	to := at(srv, ca)
	to.host = "api.example"
	x := newExecutor(t, Options{Resolver: &fixedResolver{answers: [][]string{{"127.0.0.1"}}}})
	wantCode(t, sendTo(t, x, read(to), &bearer{}), "")
	if proxy.Conns() != 0 || len(srv.Requests()) != 1 {
		t.Errorf("%d connections to the proxy", proxy.Conns())
	}
}

func TestPlainHTTPIsForLoopback(t *testing.T) {
	srv := testkit.Start(t, upstream.Options{Script: testkit.Always(upstream.JSON(200, `{}`))})
	to := place{scheme: schemeHTTP, host: "127.0.0.1", port: srv.Port(), allowLoopback: true}
	c := &bearer{}
	ex := sendTo(t, newExecutor(t, Options{}), read(to), c)
	wantCode(t, ex, "")
	if c.seen.Scheme != "http" || len(c.seen.PeerSPKI) != 0 {
		t.Errorf("the credential saw %+v", c.seen)
	}
	to.allowLoopback = false
	wantCode(t, sendTo(t, newExecutor(t, Options{}), read(to), c), fault.TargetNotAllowed)
	to.host, to.allowLoopback, to.allowPrivate = "8.8.8.8", true, true
	wantCode(t, sendTo(t, newExecutor(t, Options{}), read(to), c), fault.TargetNotAllowed)
}

// What should never reach this package is refused before anything is opened.
func TestBrokenRequestsAreNotSent(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	set := func(name, value string) func(*step) {
		return func(s *step) { s.header = http.Header{name: {value}} }
	}
	path := func(p string) func(*step) { return func(s *step) { s.path = p } }
	for name, edit := range map[string]func(*step){
		"no path":                path(""),
		"relative path":          path("v1"),
		"space":                  path("/a b"),
		"line break":             path("/a\r\nX: y"),
		"NUL":                    path("/a\x00"),
		"not ASCII":              path("/\u0430pi"),
		"query in path":          path("/a?b"),
		"fragment":               path("/a#b"),
		"backslash":              path(`/a\..\b`),
		"dot":                    path("/a/./b"),
		"dots":                   path("/a/../b"),
		"escaped dots":           path("/a/%2e%2E/b"),
		"dots by escaped slash":  path("/a/..%2Fb"),
		"dots by escaped slash2": path("/a/b%5C..%2fc"),
		"bad escape":             path("/a/%zz"),
		"outside the base":       func(s *step) { s.to.basePath, s.path = "/api", "/apiother" },
		"query with space":       func(s *step) { s.query = "a=b c" },
		"query with fragment":    func(s *step) { s.query = "a#b" },
		"method with space":      func(s *step) { s.method = "GET /" },
		"CONNECT":                func(s *step) { s.method = http.MethodConnect },
		"TRACE":                  func(s *step) { s.method = http.MethodTrace },
		"no method":              func(s *step) { s.method = "" },
		"a body on GET":          func(s *step) { s.method = http.MethodGet },
		"a body of no type":      func(s *step) { s.contentType = "" },
		"type with line break":   func(s *step) { s.contentType = "a\r\nb: c" },
		"host header":            set("Host", "evil.example"),
		"host in lower case":     set("host", "evil.example"),
		"length":                 set("Content-Length", "0"),
		"coding":                 set("Transfer-Encoding", "chunked"),
		"connection":             set("Connection", "keep-alive"),
		"upgrade":                set("Upgrade", "h2c"),
		"expect":                 set("Expect", "100-continue"),
		"cookie":                 set("Cookie", "a=b"),
		"encoding":               set("Accept-Encoding", "gzip"),
		"header name":            set("A b", "c"),
		"header line break":      set("A", "b\r\nC: d"),
		"header NUL":             set("A", "b\x00"),
		"no host":                func(s *step) { s.to.host = "" },
		"host with path":         func(s *step) { s.to.host = "localhost/x" },
		"host with user":         func(s *step) { s.to.host = "a@localhost" },
		"no port":                func(s *step) { s.to.port = 0 },
		"high port":              func(s *step) { s.to.port = 65536 },
		"scheme":                 func(s *step) { s.to.scheme = "ftp" },
		"zero":                   func(s *step) { *s = step{} },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := change(at(srv, ca)), &bearer{}
			edit(&s)
			ex := sendTo(t, newExecutor(t, Options{}), s, c)
			wantCode(t, ex, fault.Internal)
			if ex.Phase != PhasePrepare || ex.Wrote || c.asked.Load() != 0 {
				t.Errorf("phase %q", ex.Phase)
			}
			if strings.Contains(ex.Err.Error(), "evil") {
				t.Errorf("the error repeats the value: %v", ex.Err)
			}
		})
	}
	if srv.Conns() != 0 {
		t.Errorf("%d connections were opened", srv.Conns())
	}
}

func TestHostHeader(t *testing.T) {
	for _, c := range []struct {
		to   place
		want string
	}{
		{place{scheme: "https", host: "a.example", port: 443}, "a.example"},
		{place{scheme: "https", host: "a.example", port: 80}, "a.example:80"},
		{place{scheme: "http", host: "127.0.0.1", port: 80}, "127.0.0.1"},
		{place{scheme: "https", host: "::1", port: 443}, "[::1]"},
		{place{scheme: "https", host: "::1", port: 8443}, "[::1]:8443"},
	} {
		if got := (step{to: c.to}).hostHeader(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.to, got, c.want)
		}
	}
}
