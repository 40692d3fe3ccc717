package client

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	// maxReply bounds one reply: the answer limit of a call (1 MiB) with its
	// display text, or a long list for an operator.
	maxReply = 4 << 20
	// maxOperatorReply also holds a backup: the largest vault, in an age file, in
	// base64.
	maxOperatorReply = 24 << 20
	// maxReplyHeader bounds the headers; the daemon sends a handful.
	maxReplyHeader = 32 << 10
	// replyTimeout bounds a request that waits for nobody.
	replyTimeout = 30 * time.Second
	// callTimeout bounds a call that needs no person: the contract's own steps
	// and retries end long before.
	callTimeout = 10 * time.Minute
	// MaxWait is the longest wait that one request to the daemon may ask for.
	MaxWait = 50 * time.Second
)

// wire is one peer: how to reach it and what to say about it.
type wire struct {
	http  *http.Client
	base  string // scheme and host of every request
	where string // for messages
	token string
	agent string // User-Agent
	most  int64  // bytes of one reply
}

type dialFunc func(ctx context.Context) (net.Conn, error)

// oneConnection keeps what the daemon ties to a connection (an operator's read
// session) with it; fewConnections is for agents, whose long polls must not hold up
// their other calls.
const (
	oneConnection = 1
	// fewConnections is what one agent opens at most: calls beyond it wait in
	// the client, since the daemon takes sixteen of one user.
	fewConnections = 8
)

func newWire(base, where, agent string, conns int, dial dialFunc) *wire {
	return &wire{
		base: base, where: where, agent: agent, most: maxReply,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
				DisableCompression:     true,
				MaxConnsPerHost:        conns,
				MaxIdleConns:           1,
				MaxResponseHeaderBytes: maxReplyHeader,
			},
		},
	}
}

func (w *wire) close() { w.http.CloseIdleConnections() }

// reply is one answer, whole and within the limits, not yet understood.
type reply struct {
	call   string
	status int
	header http.Header
	body   []byte
}

// send makes one request. body nil sends none; it is wiped afterwards, because
// some bodies carry a secret.
func (w *wire) send(ctx context.Context, limit time.Duration, method, path string, body any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var sent atomic.Bool
	req, payload, err := w.request(ctx, method, path, body, &sent)
	if err != nil {
		return reply{}, err
	}
	defer clear(payload)
	res, err := w.http.Do(req)
	if err != nil {
		return reply{}, w.unreachable(err, sent.Load())
	}
	defer res.Body.Close()
	call := method + " " + path
	b, err := io.ReadAll(io.LimitReader(res.Body, w.most+1))
	if err != nil {
		return reply{}, w.unreachable(err, true)
	}
	if int64(len(b)) > w.most {
		return reply{}, &ReplyError{call, res.StatusCode, fmt.Errorf("it is larger than %d bytes", w.most)}
	}
	if err := checkMedia(res.Header); err != nil {
		return reply{}, &ReplyError{call, res.StatusCode, err}
	}
	return reply{call: call, status: res.StatusCode, header: res.Header, body: b}, nil
}

func (w *wire) request(ctx context.Context, method, path string, body any, sent *atomic.Bool) (*http.Request, []byte, error) {
	var payload []byte
	var r io.Reader
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, nil, fmt.Errorf("cannot write the request: %w", err)
		}
		r = bytes.NewReader(payload)
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, w.base+path, r)
	if err != nil {
		return nil, nil, errors.New("cannot make a request of this: " + path)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", w.agent)
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	return req, payload, nil
}

// unreachable unwraps the noise of net/http and keeps the cause.
func (w *wire) unreachable(err error, sent bool) error {
	var stranger *StrangerError
	if errors.As(err, &stranger) {
		return stranger
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			break
		}
		err = inner
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it took too long")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the connection was closed")
	}
	return &UnreachableError{Where: w.where, Sent: sent, Err: err}
}

func checkMedia(h http.Header) error {
	if h.Get("Content-Encoding") != "" {
		return errors.New("it is encoded, which was not asked for")
	}
	mt, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || mt != "application/json" {
		return errors.New("it is not application/json")
	}
	return nil
}

// decode reads strict JSON: duplicate names, invalid UTF-8, other letter case
// and trailing data are refused. Members that this client does not know are
// let through, so that a newer daemon can be asked; closed refuses them too.
func decode(b []byte, out any, closed bool) error {
	err := json.Unmarshal(b, out, json.RejectUnknownMembers(closed))
	if err == nil {
		return nil
	}
	// The library's text quotes the input; a reply may hold what is not for a
	// terminal, so only the place is told.
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		return fmt.Errorf("it is not strict JSON (byte %d)", syn.ByteOffset)
	}
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		return fmt.Errorf("the member %q is not what was expected (byte %d)", string(sem.JSONPointer), sem.ByteOffset)
	}
	return errors.New("it is not what was expected")
}
