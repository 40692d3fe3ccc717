package executor

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// readBuffer is the size of the buffers between the connection and the parser.
// A trailer block must fit into one.
const readBuffer = 4096

// past is a deadline that has come: setting it ends a read or write at once.
var past = time.Unix(1, 0)

var errSealed = errors.New("the attempt has ended; nothing more is written")

// counter counts what is handed to the operating system under TLS. It can be
// sealed, after which not one byte more leaves.
type counter struct {
	net.Conn

	mu     sync.Mutex // guards the rest
	begun  int64      // writes that were started
	sent   int64      // bytes that the operating system took
	sealed bool
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, errSealed
	}
	c.begun++
	c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	c.sent += int64(n)
	c.mu.Unlock()
	return n, err
}

// marks returns how many writes were begun and how many bytes were taken.
func (c *counter) marks() (begun, sent int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun, c.sent
}

// seal ends writing for good.
func (c *counter) seal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
}

// source remembers whether the connection itself failed, so that a lost
// connection is told from a malformed answer.
type source struct {
	conn net.Conn
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// wire is one connection to a target. It is used by one attempt at a time.
type wire struct {
	raw   *counter
	conn  net.Conn // TLS over raw, or raw for plain http
	src   *source
	br    *bufio.Reader // over src
	facts Connection
	h2    bool
	// certified says that the identity's certificate was shown in the handshake.
	certified bool

	mu       sync.Mutex // guards the rest
	ended    bool       // the attempt's context has ended
	idleStop *time.Timer
}

func newWire(raw *counter, conn net.Conn, facts Connection, h2 bool) *wire {
	w := &wire{raw: raw, conn: conn, facts: facts, h2: h2, src: &source{conn: conn}}
	w.br = bufio.NewReaderSize(w.src, readBuffer)
	return w
}

// watch ends every read and write of the wire when ctx ends. The returned
// function takes the watch away and says whether the wire is still untouched.
func (w *wire) watch(ctx context.Context) (untouched func() bool) {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
		w.conn.SetDeadline(past)
	})
	return stop
}

// within gives the next phase its deadline, which never outlives ctx.
func (w *wire) within(ctx context.Context, d time.Duration) {
	deadline := time.Now().Add(d)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.conn.SetDeadline(deadline)
	}
}

// abort ends the connection at once: not even a close notification of TLS is
// written, which could wait for a remote that does not read.
func (w *wire) abort() {
	w.raw.seal()
	w.close()
}

// close ends the connection, with a close notification where TLS has one;
// nothing can be written afterwards.
func (w *wire) close() {
	w.mu.Lock()
	if w.idleStop != nil {
		w.idleStop.Stop()
	}
	w.mu.Unlock()
	if tc, ok := w.conn.(*tls.Conn); ok {
		tc.Close()
	}
	w.raw.seal()
	w.raw.Conn.Close()
}
