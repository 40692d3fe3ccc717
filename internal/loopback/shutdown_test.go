package loopback

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"chatelaine/internal/testkit"
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
	case <-time.After(testkit.Patience):
		t.Error("it serves after it was shut down")
	}
	if c, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the port is still open: %v, %v", c, err)
	}
}
