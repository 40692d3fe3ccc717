package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

// serve listens on a real socket and answers with h.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close(); os.RemoveAll(dir) })
	return path
}

func says(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if media != "" {
			w.Header().Set("Content-Type", media)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func agentAt(t *testing.T, path string) *Agent {
	t.Helper()
	a, err := NewAgent(AgentOptions{Socket: path, Owners: OwnAndRoot(), UserAgent: "test/1", Token: "tok"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func TestRequestAsTheDaemonWantsIt(t *testing.T) {
	var got *http.Request
	var gotBody string
	path := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, gotBody = r, string(b)
		says(200, "application/json", `{"ok":true,"action":"a_b","request_id":"act_1","data":{}}`)(w, r)
	})
	e, err := agentAt(t, path).Call(context.Background(), "a_b", CallRequest{Input: []byte(`{"n":1.10}`), RequestID: "my-call-1", Wait: 7})
	if err != nil || !e.OK {
		t.Fatalf("%+v, %v", e, err)
	}
	if gotBody != `{"input":{"n":1.10},"request_id":"my-call-1","wait":7}` {
		t.Errorf("body %s", gotBody)
	}
	if got.ContentLength != int64(len(gotBody)) || len(got.TransferEncoding) != 0 {
		t.Error("the body is chunked, which the daemon refuses")
	}
	for name, want := range map[string]string{"Authorization": "Bearer tok", "Content-Type": "application/json", "User-Agent": "test/1", "Accept-Encoding": "", "Origin": "", "Cookie": ""} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

func TestRepliesRefused(t *testing.T) {
	const ok = `{"ok":true,"action":"a","request_id":"r","data":{}}`
	const bad = `"error":{"code":"INTERNAL","message":"m","retryable":false,"request_id":"r"}`
	cases := []struct{ name, media, body, want string }{
		{"no media", "", ok, "not application/json"},
		{"html", "text/html", ok, "not application/json"},
		{"empty", "application/json", "", "not strict JSON"},
		{"duplicate member", "application/json", `{"ok":true,"ok":false,"action":"a","request_id":"r","data":{}}`, "not strict JSON"},
		{"duplicate in data", "application/json", `{"ok":true,"action":"a","request_id":"r","data":{"x":1,"x":2}}`, "not strict JSON"},
		{"trailing", "application/json", ok + `{}`, "not strict JSON"},
		{"bad UTF-8", "application/json", "{\"ok\":true,\"action\":\"a\",\"request_id\":\"r\",\"data\":{\"x\":\"\xff\"}}", "not strict JSON"},
		{"other case", "application/json", `{"OK":true,"action":"a","request_id":"r","data":{}}`, "is not what was expected"},
		{"unknown member", "application/json", `{"ok":true,"action":"a","request_id":"r","data":{},"more":1}`, `"/more"`},
		{"no data", "application/json", `{"ok":true,"action":"a","request_id":"r"}`, "must hold data"},
		{"data and error", "application/json", `{"ok":true,"action":"a","request_id":"r","data":{},` + bad + `}`, "must hold data and no error"},
		{"refusal with data", "application/json", `{"ok":false,"action":"a","request_id":"r","data":{},` + bad + `}`, "must hold an error and no data"},
		{"refusal without error", "application/json", `{"ok":false,"action":"a","request_id":"r"}`, "must hold an error"},
		{"no ok", "application/json", `{"action":"a","request_id":"r",` + bad + `}`, "no envelope"},
		{"ok is text", "application/json", `{"ok":"true","action":"a","request_id":"r","data":{}}`, `"/ok"`},
		{"no code", "application/json", `{"ok":false,"action":"a","request_id":"r","error":{"code":"","message":"m","retryable":false,"request_id":"r"}}`, "no code"},
		{"too large", "application/json", `{"ok":true,"action":"a","request_id":"r","data":{"x":"` + strings.Repeat("planted", maxReply/7) + `"}}`, "larger than"},
		{"array", "application/json", `["planted"]`, "not what was expected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := agentAt(t, serve(t, says(200, c.media, c.body))).Call(context.Background(), "a", CallRequest{Input: []byte(`{}`)})
			var re *ReplyError
			if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Fatalf("the error repeats the reply: %v", err)
			}
		})
	}
}

func TestEncodedAndRedirectedRepliesRefused(t *testing.T) {
	path := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/actions" {
			http.Redirect(w, r, "/v1/health", http.StatusFound)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		says(200, "application/json", "{}")(w, r)
	})
	a := agentAt(t, path)
	if _, err := a.Health(context.Background()); err == nil || !strings.Contains(err.Error(), "encoded") {
		t.Errorf("encoded: %v", err)
	}
	if _, err := a.Actions(context.Background()); err == nil || !strings.Contains(err.Error(), "status 302") {
		t.Errorf("redirect: %v", err)
	}
}

func TestAgentRefusals(t *testing.T) {
	path := serve(t, says(400, "application/json", `{"ok":false,"action":"","request_id":"act_1","error":{"code":"INVALID_ARGUMENT","message":"Wrong.","retryable":false,
"request_id":"act_1","retry_after_seconds":2.5,"fields":[{"pointer":"/name","reason":"is too long"}]}}`))
	_, err := agentAt(t, path).OpenSession(context.Background(), "x", "self")
	var e *Error
	if !errors.As(err, &e) || e.Code != fault.InvalidArgument || e.Status != 400 || e.RetryAfter != 2500*time.Millisecond || len(e.Fields) != 1 || e.RequestID != "act_1" {
		t.Fatalf("%#v", err)
	}
	if CodeOf(err) != fault.InvalidArgument || CodeOf(io.EOF) != "" || CodeOf(nil) != "" {
		t.Error("CodeOf")
	}
}

func TestOperatorErrors(t *testing.T) {
	cases := []struct {
		status     int
		body, want string
		after      time.Duration
	}{
		{429, `{"error":{"code":"PROOF_TOO_SOON","message":"Wait.","retry_after_seconds":3}}`, "Wait (PROOF_TOO_SOON)", 3 * time.Second},
		{423, `{"error":{"code":"VAULT_LOCKED","message":"The vault is locked.","detail":"VAULT_LOCKED: since noon"}}`, "The vault is locked: since noon (VAULT_LOCKED)", 0},
		{423, `{"error":{"code":"VAULT_LOCKED","message":"The vault is locked.","detail":"VAULT_LOCKED"}}`, "The vault is locked (VAULT_LOCKED)", 0},
		{400, `{"error":{"code":"INVALID_ARGUMENT","message":"The input does not fit.","detail":"INVALID_ARGUMENT: 2 mistakes\na.yaml:1:1: one\na.yaml:2:1: two"}}`, "2 mistakes (INVALID_ARGUMENT)\na.yaml:1:1: one\na.yaml:2:1: two", 0},
		{500, `{"error":{"code":"INTERNAL","message":"m","retry_after_seconds":1e300}}`, "m (INTERNAL)", maxRetryAfter},
	}
	for _, c := range cases {
		o := NewOperator(serve(t, says(c.status, "application/json", c.body)), OwnAndRoot(), "test/1")
		_, err := o.Status(context.Background())
		var e *Error
		if !errors.As(err, &e) || e.Error() != c.want || e.RetryAfter != c.after {
			t.Errorf("%s: %v after %v", c.body, err, e.RetryAfter)
		}
		o.Close()
	}
	o := NewOperator(serve(t, says(500, "application/json", `{"error":"planted"}`)), OwnAndRoot(), "test/1")
	defer o.Close()
	if _, err := o.Status(context.Background()); err == nil || strings.Contains(err.Error(), "planted") {
		t.Errorf("error %v", err)
	}
}

// A read session belongs to a connection, so all requests use one.
func TestOneConnection(t *testing.T) {
	conns := map[string]int{}
	dir, err := os.MkdirTemp("/tmp", "cl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	type key struct{}
	s := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, key{}, fmt.Sprintf("%p", c))
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conns[r.Context().Value(key{}).(string)]++
			says(200, "application/json", `{}`)(w, r)
		}),
	}
	go s.Serve(l)
	defer s.Close()
	o := NewOperator(path, OwnAndRoot(), "test/1")
	defer o.Close()
	for range 3 {
		if err := o.OpenRead(context.Background(), Proof{}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Call(context.Background(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("%d connections", len(conns))
	}
}

func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	check := func(name string, err error, sent bool, want error) {
		t.Helper()
		var u *UnreachableError
		if !errors.As(err, &u) || u.Sent != sent || (want != nil && !errors.Is(err, want)) {
			t.Errorf("%s: %#v", name, err)
		}
	}
	_, err := agentAt(t, filepath.Join(dir, "none")).Health(ctx)
	check("no socket", err, false, ErrNoSocket)

	path := filepath.Join(dir, "dead")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	_, err = agentAt(t, path).Health(ctx)
	check("nobody listens", err, false, ErrNobody)

	path = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		c.Close()
	})
	_, err = agentAt(t, path).Call(ctx, "a", CallRequest{Input: []byte(`{}`)})
	check("closed without an answer", err, true, nil)

	given, giveUp := context.WithCancel(ctx)
	path = serve(t, func(_ http.ResponseWriter, r *http.Request) { giveUp(); <-r.Context().Done() })
	_, err = agentAt(t, path).Call(given, "a", CallRequest{Input: []byte(`{}`)})
	check("silence", err, true, nil)
}

func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"ok":true,"action":"a","request_id":"r","data":{"x":[1,null]},"display":{"log":{"text":"t","truncated":false}}}`,
		`{"ok":false,"action":"","request_id":"r","error":{"code":"INTERNAL","message":"m","retryable":true,"request_id":"r","retry_after_seconds":-1}}`,
		`{"ok":true}`, `[]`, `{"ok":null}`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEnvelope(b, 200)
		if err != nil {
			return
		}
		if e.OK != (e.Err == nil) || e.OK != (e.Data != nil) {
			t.Fatalf("both shapes or none: %q", b)
		}
		if e.Err != nil && (e.Err.RetryAfter < 0 || e.Err.RetryAfter > maxRetryAfter) {
			t.Fatalf("retry after %v", e.Err.RetryAfter)
		}
	})
}
