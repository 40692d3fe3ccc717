package upstream

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func client(ca *CA) *http.Client {
	return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}}}
}

// The server is held to an independent client: what it says it sends is what
// arrives, and what it records is what was sent.
func TestAnswersAndRecords(t *testing.T) {
	ca, err := NewCA("test")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Leaf("localhost")
	if err != nil {
		t.Fatal(err)
	}
	answers := []Answer{
		JSON(201, `{"a":1}`),
		{Status: 404},
		{Body: []byte("hello"), Chunk: 2, Trailers: []Header{{"X-T", "1"}}},
		{Body: []byte("hello"), Drip: time.Microsecond},
		{Status: 204},
	}
	s, err := Start(Options{Certificate: leaf, Script: func(r Request) Answer { return answers[r.N-1] }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range []struct {
		status  int
		body    string
		trailer string
	}{{201, `{"a":1}`, ""}, {404, "", ""}, {200, "hello", "1"}, {200, "hello", ""}, {204, "", ""}} {
		resp, err := client(ca).Post("https://localhost:"+strings.TrimPrefix(s.Addr(), "127.0.0.1:")+"/p?q=1", "text/x", strings.NewReader("body"))
		if err != nil {
			t.Fatal(i, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || string(body) != want.body || resp.Trailer.Get("X-T") != want.trailer {
			t.Errorf("%d: %v %d %q %v", i, err, resp.StatusCode, body, resp.Trailer)
		}
	}
	got := s.Requests()
	if len(got) != len(answers) || s.Conns() != len(answers) {
		t.Fatalf("%d requests on %d connections", len(got), s.Conns())
	}
	for i, r := range got {
		if r.N != i+1 || r.Method != "POST" || r.Path != "/p" || r.Query != "q=1" || string(r.Body) != "body" ||
			r.Header().Get("Content-Type") != "text/x" || r.TLS == nil || string(s.Arrived()[r.Conn-1]) != string(r.Raw) ||
			string(r.Head())+"body" != string(r.Raw) {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func TestMisbehaviour(t *testing.T) {
	for name, o := range map[string]Options{
		"closed at once":    {OnConn: func(int) Answer { return Answer{Close: AtAccept} }},
		"reset at once":     {OnConn: func(int) Answer { return Answer{Close: AtAccept, Reset: true} }},
		"before the answer": {Script: func(Request) Answer { return Answer{Close: BeforeAnswer} }},
		"in the headers":    {Script: func(Request) Answer { return Answer{Close: MidHeaders} }},
		"in the body":       {Script: func(Request) Answer { return Answer{Body: make([]byte, 100), Close: MidBody} }},
		"not HTTP":          {Raw: func(c net.Conn) { io.WriteString(c, "220 mail\r\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			resp, err := http.Get("http://" + s.Addr() + "/")
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("a whole answer came")
			}
		})
	}
	if s, err := Start(Options{Address: "0.0.0.0:0"}); err == nil {
		s.Close()
		t.Error("listens beyond loopback")
	}
}

func TestCloseEndsAHang(t *testing.T) {
	s, err := Start(Options{Script: func(Request) Answer { return Answer{Hang: BeforeAnswer} }})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := http.Get("http://" + s.Addr() + "/")
		done <- err
	}()
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-done; err == nil {
		t.Error("an answer came")
	}
}
