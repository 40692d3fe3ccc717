package demo

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
)

// tap is a socket between the agent and the daemon that keeps every byte the
// agent receives, headers and all: the search at the end must not depend on
// what a client library shows.
type tap struct {
	ln     net.Listener
	daemon string
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the rest
	received bytes.Buffer
	live     map[net.Conn]bool
	closed   bool
}

func newTap(socket, daemon string) (*tap, error) {
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	t := &tap{ln: ln, daemon: daemon, live: map[net.Conn]bool{}}
	t.wg.Go(t.accept)
	return t, nil
}

func (t *tap) accept() {
	for {
		agent, err := t.ln.Accept()
		if err != nil {
			return
		}
		t.wg.Go(func() { t.join(agent) })
	}
}

// join connects one connection of the agent with the daemon, until either ends.
func (t *tap) join(agent net.Conn) {
	defer t.drop(agent)
	if !t.keep(agent) {
		return
	}
	daemon, err := net.Dial("unix", t.daemon)
	if err != nil {
		return // the agent sees a closed connection
	}
	defer t.drop(daemon)
	if !t.keep(daemon) {
		return
	}
	t.wg.Go(func() {
		_, _ = io.Copy(daemon, agent)
		t.drop(daemon)
	})
	_, _ = io.Copy(io.MultiWriter(recorder{t}, agent), daemon)
}

func (t *tap) keep(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.live[c] = true
	}
	return !t.closed
}

func (t *tap) drop(c net.Conn) {
	_ = c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, c)
}

type recorder struct{ t *tap }

func (r recorder) Write(p []byte) (int, error) {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.t.received.Write(p)
}

// bytes returns everything that the agent has received so far.
func (t *tap) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.received.Bytes())
}

func (t *tap) close() {
	_ = t.ln.Close()
	t.mu.Lock()
	t.closed = true
	for c := range t.live {
		_ = c.Close()
	}
	t.mu.Unlock()
	t.wg.Wait()
}
