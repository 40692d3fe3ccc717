package loopback

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// A stop that comes before the server has begun is a stop all the same.
func TestShutdownBeforeServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Name: "tcp", Handler: http.NotFoundHandler()}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it serves after it was shut down")
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the port is still open")
	}
}
