package executor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"chatelaine/internal/fault"
)

// errBusy keeps the HTTP/2 transport from dialling: it gets the connection
// that was made and checked, once.
var errBusy = errors.New("a second connection was asked for")

// roundTrip2 speaks HTTP/2 over a connection of its own, for targets that say
// so. The standard library's single-connection client never resends.
func (a *attempt) roundTrip2(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := a.s.request2()
	if err != nil {
		a.fail(fault.Internal, err)
		return
	}
	a.ex.Phase = PhaseTLS // the connection's own greeting, nothing of the request
	client, err := a.client2(ctx)
	if err != nil {
		a.lost(a.plain2(ctx, err))
		return
	}
	defer client.Close()
	a.ex.Phase = PhaseAttach
	o, st := a.s.attach(a.c, facts(a.ex.Connection), a.wire.certified)
	if st != nil {
		a.stop(st)
		return
	}
	body := newOnce(a.s.filled(o))
	if n := body.left(); n > 0 {
		// No GetBody: the body cannot be rewound, so nothing can be resent.
		req.Body, req.ContentLength = io.NopCloser(body), int64(n)
	}
	req.Header = a.s.header2(o)
	a.exchange2(ctx, cancel, client, req)
	body.wipe()
	o.wipe() // not the header map: the transport may still read it
}

// client2 puts HTTP/2 over the wire's connection.
func (a *attempt) client2(ctx context.Context) (*http.ClientConn, error) {
	conn := a.wire.conn.(*tls.Conn)
	taken := false
	var p http.Protocols
	p.SetHTTP2(true)
	tr := &http.Transport{
		DisableCompression:     true,
		Protocols:              &p,
		MaxResponseHeaderBytes: a.x.o.MaxHeader,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if taken {
				return nil, errBusy
			}
			taken = true
			return conn, nil
		},
	}
	return tr.NewClientConn(ctx, schemeHTTPS, a.wire.raw.RemoteAddr().String())
}

// exchange2 writes once and reads once. Counting under TLS cannot tell a frame
// of the request from one of the connection's own, so that any byte after the
// credential was attached counts as the request's.
func (a *attempt) exchange2(ctx context.Context, cancel context.CancelCauseFunc, client *http.ClientConn, req *http.Request) {
	a.ex.Phase, a.ex.Writes = PhaseWrite, 1
	before, _ := a.wire.raw.marks()
	timer := time.AfterFunc(a.x.o.HeaderTimeout, func() { cancel(context.DeadlineExceeded) })
	resp, err := client.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		a.wire.raw.seal()
	}
	after, _ := a.wire.raw.marks()
	a.ex.Wrote = after > before
	a.ex.Phase = PhaseHeader
	if err != nil {
		a.settle(answer{err: a.plain2(ctx, err)})
		return
	}
	defer resp.Body.Close()
	a.ex.Phase = PhaseBody
	a.settle(body2(ctx, resp, a.x.o.MaxBody))
}

// body2 reads body and trailers of an HTTP/2 answer.
func body2(ctx context.Context, resp *http.Response, limit int64) answer {
	ans := answer{answered: true, status: resp.StatusCode, header: resp.Header}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	ans.tooLarge = int64(len(body)) > limit
	ans.body, ans.trailer = body[:min(int64(len(body)), limit)], resp.Trailer
	switch {
	case ans.tooLarge:
		ans.err = &refusal{RuleBodyTooLarge, "the body is larger than the limit"}
	case err != nil:
		ans.err = plain2(ctx, err)
	case len(resp.Header.Values("Content-Encoding")) > 0:
		ans.err = &refusal{RuleContentEncoding, "the body is encoded, which nobody asked for"}
	}
	return ans
}

// plain2 is plain2 of a failure before an answer; that the server refused the
// certificate stays what it is.
func (a *attempt) plain2(ctx context.Context, err error) error {
	if a.unwelcome(err) || a.unwelcome(a.lastWord()) {
		return errUnwelcome
	}
	return plain2(ctx, err)
}

// lastWord is what ended the reading of a connection over which nothing more is
// sent. The transport reads by itself: an alert that came before the request was
// written shows there as a connection that cannot be used. TLS keeps the alert.
func (a *attempt) lastWord() error {
	if !a.wire.certified {
		return nil
	}
	a.wire.conn.SetReadDeadline(past) // never waits
	_, err := a.wire.conn.Read(make([]byte, 1))
	return err
}

// plain2 words an HTTP/2 failure without the remote's own text, which a
// GOAWAY frame may carry. A failed connection and a broken frame look alike
// from here, so that both count as a lost answer.
func plain2(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return context.DeadlineExceeded
	}
	return errors.New("the HTTP/2 exchange failed")
}

// request2 makes the request for the standard library, and proves that its
// target is written exactly as the plan has it.
func (s step) request2() (*http.Request, error) {
	target := s.path
	if s.query != "" {
		target += "?" + s.query
	}
	u, err := url.Parse(schemeHTTPS + "://" + s.hostHeader() + target)
	if err != nil || u.RequestURI() != target || u.Host != s.hostHeader() {
		return nil, errors.New("the path cannot be written unchanged over HTTP/2")
	}
	return &http.Request{Method: s.method, URL: u, Host: s.hostHeader(), Proto: "HTTP/2.0", ProtoMajor: 2}, nil
}

// header2 adds the headers that are ours.
func (s step) header2(o *outgoing) http.Header {
	h := o.lines()
	s.ownLines(o, func(name, value string) {
		if name != "Connection" && name != "Content-Length" {
			h[name] = []string{value}
		}
	})
	return h
}

// once is a reader of bytes that is nothing else: the standard library knows
// how to rewind a bytes.Reader. The transport may still read when the attempt has
// ended, so that it is wiped under a lock.
type once struct {
	mu        sync.Mutex // guards the rest
	all, rest []byte
}

func newOnce(b []byte) *once { return &once{all: b, rest: b} }

func (o *once) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func (o *once) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.rest)
}

func (o *once) wipe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.all)
	o.rest = nil
}
