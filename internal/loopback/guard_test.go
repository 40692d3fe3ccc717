package loopback

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/testkit"
)

// serveTCP runs a guarded listener on a free loopback port and returns it.
func serveTCP(t *testing.T, h http.Handler) net.Addr {
	t.Helper()
	lns, err := ListenTCP(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, ln := range lns {
		s := &Server{Name: "tcp", Handler: h, Admit: func(uint32) bool { return true }}
		go func() { _ = s.Serve(ln) }()
		t.Cleanup(func() { _ = ln.Close() })
	}
	return lns[0].Addr()
}

var echoPeer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		if _, err := ReadBody(w, r); err != nil {
			WriteJSON(w, http.StatusBadRequest, []byte(`{"read":false}`))
			return
		}
	}
	p, ok := PeerOf(r.Context())
	WriteJSON(w, http.StatusOK, []byte(fmt.Sprintf(`{"known":%v,"uid":%d,"listener":%q}`, ok, p.UID, p.Listener)))
})

// exchange writes raw bytes and returns the status line and the body.
func exchange(t *testing.T, addr net.Addr, raw string) (string, string) {
	t.Helper()
	c, err := net.DialTimeout(addr.Network(), addr.String(), testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(c, raw); err != nil {
		return "write: " + err.Error(), ""
	}
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		return "closed", ""
	}
	rest, _ := io.ReadAll(io.LimitReader(r, 4096))
	return strings.TrimSpace(line), string(rest)
}

func TestGuard(t *testing.T) {
	addr := serveTCP(t, echoPeer)
	port := addr.(*net.TCPAddr).Port
	host := fmt.Sprintf("127.0.0.1:%d", port)
	get := func(host, extra string) string {
		return "GET /v1/health HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + extra + "\r\n"
	}
	post := func(extra, body string) string {
		return fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n%s", host, extra, body)
	}
	for _, c := range []struct{ name, raw, want string }{
		{"plain", get(host, ""), "200"},
		{"localhost", get(fmt.Sprintf("localhost:%d", port), ""), "200"},
		{"Sec-Fetch-Mode alone", get(host, "Sec-Fetch-Mode: cors\r\n"), "200"},
		{"typed into the address bar", get(host, "Sec-Fetch-Site: none\r\n"), "200"},
		{"post", post("Content-Type: application/json\r\nContent-Length: 2\r\n", "{}"), "200"},
		{"post with charset", post("Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n", "{}"), "200"},

		{"rebinding", get(fmt.Sprintf("evil.example:%d", port), ""), "421"},
		{"rebinding with Origin equal to Host", get(fmt.Sprintf("evil.example:%d", port), fmt.Sprintf("Origin: http://evil.example:%d\r\n", port)), "421"},
		{"no port", get("127.0.0.1", ""), "421"},
		{"0.0.0.0", get(fmt.Sprintf("0.0.0.0:%d", port), ""), "421"},
		{"127.1", get(fmt.Sprintf("127.1:%d", port), ""), "421"},
		{"LOCALHOST", get(fmt.Sprintf("LOCALHOST:%d", port), ""), "421"},
		{"localhost.", get(fmt.Sprintf("localhost.:%d", port), ""), "421"},
		{"no Host", "GET /v1/health HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
		{"HTTP/1.0", "GET /v1/health HTTP/1.0\r\n\r\n", "505"},
		{"HTTP/1.0 with Host", "GET /v1/health HTTP/1.0\r\nHost: " + host + "\r\n\r\n", "505"},
		{"absolute form", "GET http://" + host + "/v1/health HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", "400"},
		{"CONNECT", "CONNECT example.org:443 HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", "4"},
		{"OPTIONS", "OPTIONS /v1/health HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", "405"},
		{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", "400"},
		{"Origin", get(host, "Origin: http://"+host+"\r\n"), "403"},
		{"Origin null", get(host, "Origin: null\r\n"), "403"},
		{"Referer", get(host, "Referer: http://"+host+"/\r\n"), "403"},
		{"Cookie", get(host, "Cookie: a=b\r\n"), "403"},
		{"Forwarded", get(host, "Forwarded: for=1.2.3.4\r\n"), "403"},
		{"X-Forwarded-For", get(host, "X-Forwarded-For: 1.2.3.4\r\n"), "403"},
		{"cross-site", get(host, "Sec-Fetch-Site: cross-site\r\n"), "403"},
		{"same-origin", get(host, "Sec-Fetch-Site: same-origin\r\n"), "403"},
		{"h2c upgrade", get(host, "Upgrade: h2c\r\nConnection: Upgrade\r\n"), "403"},
		{"h2c by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
		{"text/plain", post("Content-Type: text/plain\r\nContent-Length: 2\r\n", "{}"), "415"},
		{"no type", post("Content-Length: 2\r\n", "{}"), "415"},
		{"two types", post("Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n", "{}"), "415"},
		{"other charset", post("Content-Type: application/json; charset=utf-16\r\nContent-Length: 2\r\n", "{}"), "415"},
		{"chunked", post("Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), "411"},
		{"length and chunked", post("Content-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), "4"},
		{"two lengths", post("Content-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n", "{}"), "400"},
		{"encoded body", post("Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"), "415"},
		{"long body", post("Content-Type: application/json\r\nContent-Length: 65537\r\n", "{}"), "413"},
		{"body in a GET", get(host, "Content-Length: 2\r\n") + "{}", "400"},
		{"long header", get(host, "X-Long: "+strings.Repeat("a", 20000)+"\r\n"), "431"},
		{"TRACE", "TRACE / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", "405"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, body := exchange(t, addr, c.raw)
			if !strings.HasPrefix(line, "HTTP/1.1 "+c.want) && !strings.HasPrefix(line, "HTTP/1.0 "+c.want) {
				t.Fatalf("answered %q, want %s\n%s", line, c.want, body)
			}
		})
	}
}

// A page on the same machine must not learn the answer even where a refusal is
// sent: there are no CORS headers on anything.
func TestNoCORS(t *testing.T) {
	addr := serveTCP(t, echoPeer)
	_, body := exchange(t, addr, fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nOrigin: http://a.example\r\nConnection: close\r\n\r\n", addr))
	if strings.Contains(strings.ToLower(body), "access-control") {
		t.Fatalf("a CORS header: %s", body)
	}
}

func TestSlowHeaderIsCut(t *testing.T) {
	addr := serveTCP(t, echoPeer)
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: ")
	_ = c.SetReadDeadline(time.Now().Add(ReadHeaderLimit + testkit.Patience))
	if _, err := io.ReadAll(c); err != nil {
		t.Fatalf("the connection was not closed: %v", err)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	addr := serveTCP(t, echoPeer)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range ConnectionsPerUID {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		keepOpen(t, c, addr) // accepted, and not cut for a header that does not come
	}
	if line, _ := exchange(t, addr, fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr)); line != "closed" && !strings.HasPrefix(line, "write") {
		t.Fatalf("one more than %d was answered: %s", ConnectionsPerUID, line)
	}
	for _, c := range open {
		_ = c.Close()
	}
	open = nil
	testkit.Until(t, "the places to be given back", func() bool {
		line, _ := exchange(t, addr, fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr))
		return strings.HasPrefix(line, "HTTP/1.1 200")
	})
}

// keepOpen makes one request on a connection, reads the whole answer and leaves
// the connection open.
func keepOpen(t *testing.T, c net.Conn, addr net.Addr) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+addr.String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := req.Write(c); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
}

func TestPeerOfTCPIsItsUser(t *testing.T) {
	addr := serveTCP(t, echoPeer)
	_, body := exchange(t, addr, fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr))
	want := fmt.Sprintf(`{"known":true,"uid":%d,"listener":"tcp"}`, os.Getuid())
	if !strings.Contains(body, want) {
		t.Fatalf("got %s, want %s", body, want)
	}
}

func TestPortHeldOnOneLoopback(t *testing.T) {
	port := testkit.FreePort(t)
	six, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", port))
	if err != nil { // no ::1 here: then 127.0.0.1 alone is held, and enough
		lns, err := ListenTCP(t.Context(), 0)
		if err != nil || len(lns) != 1 {
			t.Fatalf("without ::1: %d listeners, %v; want 1", len(lns), err)
		}
		_ = lns[0].Close()
		return
	}
	defer six.Close()
	lns, err := ListenTCP(t.Context(), port)
	if err == nil {
		for _, ln := range lns {
			_ = ln.Close()
		}
		t.Fatal("served although [::1] was held by another")
	}
	if !strings.Contains(err.Error(), "[::1]") {
		t.Errorf("the error does not say which one: %v", err)
	}
	// The other loopback was given back.
	four, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("127.0.0.1 stayed held: %v", err)
	}
	_ = four.Close()
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "chl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "a.sock")
	ln, err := ListenUnix(path, 0o600, -1)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Name: "socket", Handler: echoPeer, Admit: func(uid uint32) bool { return uid == uint32(os.Getuid()) }}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", st.Mode().Perm(), err)
	}
	line, body := exchange(t, ln.Addr(), "GET / HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(line, "HTTP/1.1 200") || !strings.Contains(body, `"listener":"socket"`) {
		t.Errorf("answered %s %s", line, body)
	}
	if _, err := ListenUnix(path, 0o600, -1); err == nil || !strings.Contains(err.Error(), "another daemon") {
		t.Errorf("a served socket was replaced: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func TestUnixSocketLeftOverIsReplacedAndFilesAreNot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(file, 0o600, -1); err == nil {
		t.Error("a plain file was replaced")
	}
	if b, _ := os.ReadFile(file); string(b) != "mine" {
		t.Error("a plain file was removed")
	}
	dir, err := os.MkdirTemp("/tmp", "chl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "left.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = ln.Close()
	again, err := ListenUnix(path, 0o600, -1)
	if err != nil {
		t.Fatalf("a left-over stops the daemon: %v", err)
	}
	_ = again.Close()
}

func TestStrangerIsClosedBeforeAByteIsRead(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "chl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ln, err := ListenUnix(filepath.Join(dir, "a.sock"), 0o600, -1)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Name: "socket", Handler: echoPeer, Admit: func(uint32) bool { return false }}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = ln.Close() })
	if line, _ := exchange(t, ln.Addr(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); line != "closed" && !strings.HasPrefix(line, "write") {
		t.Fatalf("a stranger got an answer: %s", line)
	}
}
