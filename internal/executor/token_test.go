package executor

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

// tokenCredential is a client's secret in a header and a grant in the body.
type tokenCredential struct{ seen Connection }

func (c *tokenCredential) Attach(o Outgoing, made Connection) error {
	c.seen = made
	if err := o.SetHeader("Authorization", "Basic "+token); err != nil {
		return err
	}
	return o.FillBody(appends(token + "&client_secret=" + token))
}

func (c *tokenCredential) Generation() uint64 { return 7 }

func tokenRequest(s *upstream.Server, ca *upstream.CA) TokenRequest {
	body := []byte("grant_type=refresh_token&refresh_token=")
	return TokenRequest{
		To:     Destination{Scheme: schemeHTTPS, Host: "localhost", Port: s.Port(), BasePath: "/oauth2/token", CAPEM: ca.PEM(), CADigest: "sha256:x", AllowLoopback: true},
		Method: http.MethodPost, Path: "/oauth2/token", Header: http.Header{"Accept": {"application/json"}},
		Body: body, ContentType: "application/x-www-form-urlencoded", Hole: &Hole{Offset: len(body), Form: true}, Timeout: testkit.Patience,
	}
}

func TestSendToken(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{"access_token":"t"}`)))
	x, c := newExecutor(t, Options{}), &tokenCredential{}
	wantCode(t, sendTo(t, x, read(at(srv, ca)), &bearer{}), "") // leaves an idle connection
	for range 2 {
		ex := x.SendToken(t.Context(), "bot", tokenRequest(srv, ca), c)
		if wantCode(t, ex, ""); ex.Reused || ex.Writes != 1 || string(ex.Body) != `{"access_token":"t"}` {
			t.Errorf("reused %v, %d writes, %q", ex.Reused, ex.Writes, ex.Body)
		}
	}
	got := srv.Requests()
	if len(got) != 3 || srv.Conns() != 3 {
		t.Fatalf("%d requests over %d connections", len(got), srv.Conns())
	}
	want := "grant_type=refresh_token&refresh_token=" + token + "&client_secret=" + token
	if string(got[1].Body) != want || got[1].Header().Get("Authorization") != "Basic "+token || got[1].Header().Get("Connection") != "close" {
		t.Errorf("%s", got[1].Raw)
	}
	if c.seen.BasePath != "/oauth2/token" || c.seen.CADigest != "sha256:x" || len(c.seen.PeerSPKI) == 0 {
		t.Errorf("attached over %+v", c.seen)
	}
	if ex := sendTo(t, x, read(at(srv, ca)), &bearer{}); ex.Reused {
		t.Error("a connection of another generation was kept")
	}
}

// An exchange is one send: a redirect is an answer, a lost answer is no unknown
// outcome, and the trust is that of a call.
func TestSendTokenRefuses(t *testing.T) {
	ca := testkit.CA(t)
	t.Run("redirect", func(t *testing.T) {
		srv := testkit.HTTPS(t, ca, testkit.Always(upstream.Answer{Status: 307, Headers: []upstream.Header{{Name: "Location", Value: "https://localhost/other"}}}))
		ex := newExecutor(t, Options{}).SendToken(t.Context(), "bot", tokenRequest(srv, ca), &tokenCredential{})
		if wantCode(t, ex, ""); ex.Status != 307 || len(srv.Requests()) != 1 {
			t.Errorf("status %d, %d requests", ex.Status, len(srv.Requests()))
		}
	})
	t.Run("lost", func(t *testing.T) {
		srv := testkit.HTTPS(t, ca, testkit.Always(upstream.Answer{Close: upstream.BeforeAnswer}))
		ex := newExecutor(t, Options{}).SendToken(t.Context(), "bot", tokenRequest(srv, ca), &tokenCredential{})
		if wantCode(t, ex, fault.UpstreamUnavailable); !ex.Wrote || len(srv.Requests()) != 1 {
			t.Errorf("wrote %v, %d requests", ex.Wrote, len(srv.Requests()))
		}
	})
	t.Run("too large", func(t *testing.T) {
		srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, strings.Repeat(" ", 100))))
		ex := newExecutor(t, Options{MaxBody: 64}).SendToken(t.Context(), "bot", tokenRequest(srv, ca), &tokenCredential{})
		wantCode(t, ex, fault.InvalidResponse)
	})
	for name, spoil := range map[string]func(*TokenRequest){
		"loopback is not allowed": func(r *TokenRequest) { r.To.AllowLoopback = false },
		"another authority":       func(r *TokenRequest) { r.To.CAPEM = testkit.CA(t).PEM() },
		"another key":             func(r *TokenRequest) { r.To.Pins = []string{"sha256/AAAA", "sha256/BBBB"} },
		"a path beside the place": func(r *TokenRequest) { r.Path = "/oauth2/other" },
		"a way up":                func(r *TokenRequest) { r.Path += "/../other" },
		"a hole elsewhere":        func(r *TokenRequest) { r.Hole.Offset-- },
		"no place in the body":    func(r *TokenRequest) { r.Hole = nil },
		"a header of ours":        func(r *TokenRequest) { r.Header.Set("Host", "other") },
		"no time":                 func(r *TokenRequest) { r.Timeout = time.Nanosecond },
	} {
		t.Run(name, func(t *testing.T) {
			srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
			r := tokenRequest(srv, ca)
			spoil(&r)
			ex := newExecutor(t, Options{}).SendToken(t.Context(), "bot", r, &tokenCredential{})
			if ex.Err == nil || ex.Wrote || len(srv.Requests()) != 0 || bytes.Contains([]byte(ex.Err.Error()), []byte(token)) {
				t.Errorf("%v, wrote %v", ex.Err, ex.Wrote)
			}
		})
	}
}
