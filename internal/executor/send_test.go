package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

func TestExactlyWhatLeaves(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{"ok":true}`)))
	x := newExecutor(t, Options{})
	host := fmt.Sprintf("localhost:%d", srv.Port())

	c := &bearer{}
	ex := sendTo(t, x, read(at(srv, ca)), c)
	wantCode(t, ex, "")
	if string(ex.Body) != `{"ok":true}` || ex.Status != 200 || ex.Header.Get("Content-Type") != "application/json" {
		t.Errorf("answer: %d %v %q", ex.Status, ex.Header, ex.Body)
	}
	ex = sendTo(t, x, change(at(srv, ca)), &bearer{})
	wantCode(t, ex, "")
	got := srv.Requests()
	want := []string{
		"GET /v1/things/7?a=b HTTP/1.1\r\nHost: " + host + "\r\nAccept: application/json\r\nAuthorization: Bearer " + token +
			"\r\nUser-Agent: chatelaine\r\nAccept-Encoding: identity\r\n\r\n",
		"POST /v1/things HTTP/1.1\r\nHost: " + host + "\r\nAccept: application/json\r\nAuthorization: Bearer " + token +
			"\r\nUser-Agent: chatelaine\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{\"a\":1}",
	}
	if len(got) != len(want) {
		t.Fatalf("%d requests, want %d", len(got), len(want))
	}
	for i := range want {
		if string(got[i].Raw) != want[i] {
			t.Errorf("request %d:\n%q\nwant\n%q", i, got[i].Raw, want[i])
		}
	}
	if c.asked.Load() != 1 || c.seen.Host != "localhost" || c.seen.Port != srv.Port() || len(c.seen.PeerSPKI) != 2 ||
		c.seen.RemoteAddr.String() != srv.Addr() || c.seen.Scheme != "https" {
		t.Errorf("the credential saw %+v, asked %d times", c.seen, c.asked.Load())
	}
}

// faultCase is one way a remote misbehaves after it was reached.
type faultCase struct {
	name         string
	answer       upstream.Answer
	read, change fault.Code
	phase        string
	answered     bool
	rule         string
}

func faultCases() []faultCase {
	const unavailable, unknown, invalid = fault.UpstreamUnavailable, fault.OutcomeUnknown, fault.InvalidResponse
	ok := upstream.JSON(200, `{"ok":true,"text":"long enough to be cut"}`)
	with := func(f func(*upstream.Answer)) upstream.Answer { a := ok; f(&a); return a }
	header := func(name, value string) upstream.Answer {
		return with(func(a *upstream.Answer) {
			a.Headers = append(a.Headers[:1:1], upstream.Header{Name: name, Value: value})
		})
	}
	raw := func(s string) upstream.Answer { return upstream.Answer{Raw: []byte(s), Last: true} }
	rejected := func(name, rule, phase string, answered bool, a upstream.Answer) faultCase {
		return faultCase{name, a, invalid, invalid, phase, answered, rule}
	}
	lost := func(name, phase string, answered bool, a upstream.Answer) faultCase {
		return faultCase{name, a, unavailable, unknown, phase, answered, ""}
	}
	return []faultCase{
		{"whole", ok, "", "", PhaseDone, true, ""},
		{"chunked, one byte each, with trailers", with(func(a *upstream.Answer) { a.Chunk = 1; a.Trailers = []upstream.Header{{Name: "Etag", Value: "x"}} }), "", "", PhaseDone, true, ""},
		{"one byte at a time", with(func(a *upstream.Answer) { a.Drip = time.Microsecond }), "", "", PhaseDone, true, ""},
		{"ended by the connection", with(func(a *upstream.Answer) { a.Unframed = true }), "", "", PhaseDone, true, ""},
		{"three early hints", with(func(a *upstream.Answer) { a.Informational = 3 }), "", "", PhaseDone, true, ""},
		{"no content", upstream.Answer{Status: 204}, "", "", PhaseDone, true, ""},
		{"old version", raw("HTTP/1.0 200 OK\r\n\r\nhello"), "", "", PhaseDone, true, ""},

		lost("closed before the answer", PhaseHeader, false, upstream.Answer{Close: upstream.BeforeAnswer}),
		lost("reset before the answer", PhaseHeader, false, upstream.Answer{Close: upstream.BeforeAnswer, Reset: true}),
		lost("silent before the answer", PhaseHeader, false, upstream.Answer{Hang: upstream.BeforeAnswer}),
		lost("closed in the headers", PhaseHeader, false, with(func(a *upstream.Answer) { a.Close = upstream.MidHeaders })),
		lost("silent in the headers", PhaseHeader, false, with(func(a *upstream.Answer) { a.Hang = upstream.MidHeaders })),
		lost("closed after the headers", PhaseBody, true, with(func(a *upstream.Answer) { a.Close = upstream.AfterHeaders })),
		lost("silent after the headers", PhaseBody, true, with(func(a *upstream.Answer) { a.Hang = upstream.AfterHeaders })),
		lost("closed in the body", PhaseBody, true, with(func(a *upstream.Answer) { a.Close = upstream.MidBody })),
		lost("reset in the body", PhaseBody, true, with(func(a *upstream.Answer) { a.Close = upstream.MidBody; a.Reset = true })),
		lost("silent in the body", PhaseBody, true, with(func(a *upstream.Answer) { a.Hang = upstream.MidBody })),
		lost("closed in a chunk", PhaseBody, true, with(func(a *upstream.Answer) { a.Chunk = 5; a.Close = upstream.MidBody })),
		lost("headers one byte a while", PhaseHeader, false, with(func(a *upstream.Answer) { a.Drip = 50 * time.Millisecond })),
		lost("length says more", PhaseBody, true, with(func(a *upstream.Answer) { a.Length = "500"; a.Last = true })),

		rejected("length says less", RuleExtraBytes, PhaseBody, true, with(func(a *upstream.Answer) { a.Length = "3" })),
		rejected("a second answer behind the first", RuleExtraBytes, PhaseBody, true, with(func(a *upstream.Answer) { a.Extra = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") })),
		rejected("a body where there is none", RuleExtraBytes, PhaseBody, true, upstream.Answer{Status: 204, Extra: []byte("x")}),
		rejected("two lengths", RuleContentLength, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx")),
		rejected("a list of lengths", RuleContentLength, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx")),
		rejected("a negative length", RuleContentLength, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx")),
		rejected("length beside chunks", RuleContentLength, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
		rejected("another coding", RuleTransferCoding, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")),
		rejected("chunks that are none", RuleChunk, PhaseBody, true, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n")),
		rejected("endless trailer", RuleChunk, PhaseBody, true, with(func(a *upstream.Answer) {
			a.Trailers = []upstream.Header{{Name: "X", Value: strings.Repeat("t", 10000)}}
		})),
		rejected("not HTTP", RuleMalformedHead, PhaseHeader, false, raw("SSH-2.0-OpenSSH_9.2\r\n\r\n")),
		rejected("HTTP/2 frame", RuleMalformedHead, PhaseHeader, false, raw("HTTP/2 200\r\n\r\n")),
		rejected("a status of two digits", RuleMalformedHead, PhaseHeader, false, raw("HTTP/1.1 20 OK\r\n\r\n")),
		rejected("a continued header", RuleMalformedHead, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n")),
		rejected("a space before the colon", RuleMalformedHead, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nA : b\r\n\r\n")),
		rejected("NUL in a header", RuleMalformedHead, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n")),
		rejected("a lone CR in a header", RuleMalformedHead, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n")),
		rejected("huge header", RuleHeaderTooLarge, PhaseHeader, false, header("X-Big", strings.Repeat("h", 70<<10))),
		rejected("many headers", RuleHeaderTooLarge, PhaseHeader, false, raw("HTTP/1.1 200 OK\r\n"+strings.Repeat("A: b\r\n", 20000)+"\r\n")),
		rejected("header line without end", RuleHeaderTooLarge, PhaseHeader, false, raw("HTTP/1.1 200 "+strings.Repeat("x", 1<<20))),
		rejected("flood of early hints", RuleInformational, PhaseHeader, false, with(func(a *upstream.Answer) { a.Informational = 1000 })),
		rejected("protocol switch", RuleSwitch, PhaseHeader, false, raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")),
		rejected("gzip", RuleContentEncoding, PhaseBody, true, header("Content-Encoding", "gzip")),
		rejected("identity written out", RuleContentEncoding, PhaseBody, true, header("Content-Encoding", "identity")),
		rejected("too large", RuleBodyTooLarge, PhaseBody, true, with(func(a *upstream.Answer) { a.Body = make([]byte, 2<<20) })),
		rejected("too large in chunks", RuleBodyTooLarge, PhaseBody, true, with(func(a *upstream.Answer) { a.Body = make([]byte, 2<<20); a.Chunk = 9000 })),
		rejected("too large by one", RuleBodyTooLarge, PhaseBody, true, with(func(a *upstream.Answer) { a.Body = make([]byte, 1<<20+1) })),
		{"as large as can be", with(func(a *upstream.Answer) { a.Body = make([]byte, 1<<20) }), "", "", PhaseDone, true, ""},
	}
}

func TestFaults(t *testing.T) {
	testkit.NoLeaks(t)
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() {
		log.SetOutput(os.Stderr)
		if logged.Len() > 0 {
			t.Errorf("something was logged: %q", logged.String())
		}
	})
	ca := testkit.CA(t)
	leaf := testkit.Leaf(t, ca)
	for _, c := range faultCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []func(place) step{read, change} {
				var srv *upstream.Server
				var s step
				attempt := func(o Options, limit time.Duration) Exchange {
					srv = testkit.Start(t, upstream.Options{Certificate: leaf, Script: testkit.Always(c.answer)})
					s = kind(at(srv, ca))
					s.timeout = limit
					return sendTo(t, newExecutor(t, o), s, &bearer{})
				}
				var ex Exchange
				if c.answer.Hang != upstream.Nowhere || c.answer.Drip >= time.Millisecond {
					ex = withLimit(c.phase, func(limit time.Duration) Exchange { return attempt(Options{HeaderTimeout: 2 * limit}, 4*limit) })
				} else {
					ex = attempt(Options{}, testkit.Patience)
				}
				want := c.read
				if s.change {
					want = c.change
				}
				wantCode(t, ex, want)
				if ex.Phase != c.phase || ex.Answered != c.answered || !ex.Wrote || ex.Writes != 1 {
					t.Errorf("%s: phase %q answered %v wrote %v writes %d", s.method, ex.Phase, ex.Answered, ex.Wrote, ex.Writes)
				}
				if _, rule, _ := ex.Rejected(); rule != c.rule {
					t.Errorf("%s: rule %q, want %q (%v)", s.method, rule, c.rule, ex.Err)
				}
				if ex.TooLarge != (c.rule == RuleBodyTooLarge) || len(ex.Body) > DefaultMaxBody {
					t.Errorf("%s: too large %v, %d bytes kept", s.method, ex.TooLarge, len(ex.Body))
				}
				testkit.Until(t, "the request", func() bool { return len(srv.Requests()) > 0 })
				if n := len(srv.Requests()); n != 1 {
					t.Errorf("%s: %d requests arrived for one attempt", s.method, n)
				}
			}
		})
	}
}

func TestTrailersAreKept(t *testing.T) {
	ca := testkit.CA(t)
	a := upstream.JSON(200, `{}`)
	a.Trailers = []upstream.Header{{Name: "X-Sum", Value: "42"}}
	srv := testkit.HTTPS(t, ca, testkit.Always(a))
	ex := sendTo(t, newExecutor(t, Options{}), read(at(srv, ca)), nil)
	if wantCode(t, ex, ""); ex.Trailer.Get("X-Sum") != "42" {
		t.Errorf("trailer %v", ex.Trailer)
	}
}

func TestUnreachable(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	leaf := testkit.Leaf(t, ca)
	start := func(o upstream.Options) place {
		o.Certificate = leaf
		return at(testkit.Start(t, o), ca)
	}
	hang := func(p upstream.Phase) upstream.Options {
		return upstream.Options{OnConn: func(int) upstream.Answer { return upstream.Answer{Hang: p} }}
	}
	closed := place{scheme: schemeHTTPS, host: "127.0.0.1", port: testkit.DeadPort(t), caPEM: ca.PEM(), allowLoopback: true}
	plain := at(testkit.Start(t, upstream.Options{Raw: func(c net.Conn) { c.Write([]byte("220 mail ready\r\n")) }}), ca)
	for _, c := range []struct {
		name  string
		to    place
		phase string
	}{
		{"nobody listens", closed, PhaseConnect},
		{"silent before TLS", start(hang(upstream.AtAccept)), PhaseTLS},
		{"closed before TLS", start(upstream.Options{OnConn: func(int) upstream.Answer { return upstream.Answer{Close: upstream.AtAccept} }}), PhaseTLS},
		{"reset before TLS", start(upstream.Options{OnConn: func(int) upstream.Answer { return upstream.Answer{Close: upstream.AtAccept, Reset: true} }}), PhaseTLS},
		{"does not speak TLS", plain, PhaseTLS},
	} {
		t.Run(c.name, func(t *testing.T) {
			cred := &bearer{}
			ex := withLimit(c.phase, func(limit time.Duration) Exchange {
				return sendTo(t, newExecutor(t, quick(limit)), change(c.to), cred)
			})
			wantCode(t, ex, fault.UpstreamUnavailable)
			// A reset may be seen while connecting already.
			early := c.name == "reset before TLS" && ex.Phase == PhaseConnect
			if ex.Phase != c.phase && !early || ex.Wrote || ex.Writes != 0 || cred.asked.Load() != 0 {
				t.Errorf("phase %q wrote %v, credential asked %d times", ex.Phase, ex.Wrote, cred.asked.Load())
			}
		})
	}
}

func TestSlowLookupAndConnect(t *testing.T) {
	testkit.NoLeaks(t)
	silent := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	to := place{scheme: schemeHTTPS, host: "slow.example", port: 443}
	o := quick(shortest)
	o.Resolver = waitingResolver{}
	ex := sendTo(t, newExecutor(t, o), read(to), nil)
	if wantCode(t, ex, fault.UpstreamUnavailable); ex.Phase != PhaseResolve {
		t.Errorf("phase %q", ex.Phase)
	}
	o = quick(shortest)
	o.Dial = silent
	ex = sendTo(t, newExecutor(t, o), read(to), nil)
	if wantCode(t, ex, fault.UpstreamUnavailable); ex.Phase != PhaseConnect {
		t.Errorf("phase %q", ex.Phase)
	}
}

func TestCredentialRefuses(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	for _, c := range []struct {
		name string
		cred Credential
		want fault.Code
	}{
		{"with a code", &bearer{err: fault.Newf(fault.VaultLocked, "locked meanwhile")}, fault.VaultLocked},
		{"without a code", &bearer{err: errors.New("bound elsewhere")}, fault.TargetNotAllowed},
		{"two headers", attachFunc(func(o Outgoing) { o.SetHeader("A", token); o.SetHeader("B", token) }), fault.Internal},
		{"one header twice", attachFunc(func(o Outgoing) { o.SetHeader("A", token); o.SetHeader("A", token) }), fault.Internal},
		{"a header of the request", attachFunc(func(o Outgoing) { o.SetHeader("Accept", token) }), fault.Internal},
		{"the same in another case", attachFunc(func(o Outgoing) { o.SetHeader("accept", token) }), fault.Internal},
		{"the host", attachFunc(func(o Outgoing) { o.SetHeader("Host", token) }), fault.Internal},
		{"the length", attachFunc(func(o Outgoing) { o.SetHeader("Content-Length", "0") }), fault.Internal},
		{"a line break", attachFunc(func(o Outgoing) { o.SetHeader("Authorization", token+"\r\nX: y") }), fault.Internal},
		{"a broken name", attachFunc(func(o Outgoing) { o.SetHeader("A b", token) }), fault.Internal},
		{"a body without a hole", attachFunc(func(o Outgoing) { o.FillBody(appends(token)) }), fault.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(srv.Requests())
			ex := sendTo(t, x, change(at(srv, ca)), c.cred)
			wantCode(t, ex, c.want)
			if ex.Wrote || ex.Writes != 0 || ex.Phase != PhaseAttach || ex.Connection.RemoteAddr.String() != srv.Addr() {
				t.Errorf("wrote %v, phase %q, connection %+v", ex.Wrote, ex.Phase, ex.Connection)
			}
			if len(srv.Requests()) != before {
				t.Error("a request arrived")
			}
		})
	}
	x.Close()
	for i, b := range srv.Arrived() {
		if len(b) > 0 {
			t.Errorf("connection %d: %d bytes arrived", i, len(b))
		}
	}
}

// attachFunc is a credential that misbehaves.
type attachFunc func(Outgoing)

func (f attachFunc) Attach(o Outgoing, _ Connection) error { f(o); return nil }

func appends(s string) func([]byte) []byte {
	return func(dst []byte) []byte { return append(dst, s...) }
}

// keeper remembers what it wrote into.
type keeper struct{ o Outgoing }

func (k *keeper) Attach(o Outgoing, _ Connection) error {
	k.o = o
	return o.SetHeader("Authorization", "Bearer "+token)
}

func TestCredentialIsTakenOutAgain(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	s, k := read(at(srv, ca)), &keeper{}
	ex := sendTo(t, newExecutor(t, Options{}), s, k)
	wantCode(t, ex, "")
	planted := testkit.Plant(token)
	wiped(t, k.o)
	planted.Refuse(t, "the step", []byte(fmt.Sprintf("%+v", s)))
	planted.Refuse(t, "the exchange", []byte(fmt.Sprintf("%+v", ex)))
}

func TestNothingWrittenAfterAReset(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.Start(t, upstream.Options{Certificate: testkit.Leaf(t, ca),
		OnConn: func(int) upstream.Answer { return upstream.Answer{Close: upstream.BeforeRead, Reset: true} }})
	var conn net.Conn
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var err error
		conn, err = new(net.Dialer).DialContext(ctx, network, srv.Addr())
		return conn, err
	}
	// The remote resets while the credential is compared: the write that
	// follows hands not one byte to the system.
	c := &bearer{then: func() { untilReset(t, conn) }}
	ex := sendTo(t, newExecutor(t, Options{Dial: dial}), change(at(srv, ca)), c)
	wantCode(t, ex, fault.UpstreamUnavailable)
	if ex.Wrote || ex.Phase != PhaseWrite {
		t.Errorf("wrote %v in phase %q", ex.Wrote, ex.Phase)
	}
}

func TestAnswerBeforeTheRequestIsRead(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.Start(t, upstream.Options{Certificate: testkit.Leaf(t, ca), Raw: func(c net.Conn) {
		c.Write([]byte("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"))
		c.Read(make([]byte, 1)) // and go away when the request has begun
	}})
	s := change(at(srv, ca))
	s.body = make([]byte, 16<<20) // more than the system's buffers hold
	ex := sendTo(t, newExecutor(t, Options{}), s, nil)
	if ex.Err != nil && ex.Err.Code() != fault.OutcomeUnknown {
		t.Errorf("code %v", ex.Err)
	}
	if !ex.Wrote {
		t.Error("something was written")
	}
}

func TestCancelled(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var arrived time.Time
	srv := testkit.HTTPS(t, ca, func(upstream.Request) upstream.Answer {
		arrived = time.Now()
		cancel()
		return upstream.Answer{Hang: upstream.BeforeAnswer}
	})
	s := change(at(srv, ca))
	ex := newExecutor(t, Options{HeaderTimeout: testkit.Patience}).send(ctx, bot, s, &bearer{})
	promises(t, s, ex)
	// Far below the limits of the attempt, which would have ended it too.
	if wantCode(t, ex, fault.OutcomeUnknown); time.Since(arrived) > testkit.Patience/2 {
		t.Errorf("it went on for %s after the end", time.Since(arrived))
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	ex = newExecutor(t, Options{}).send(cancelled, bot, s, &bearer{})
	if wantCode(t, ex, fault.UpstreamUnavailable); ex.Wrote {
		t.Error("written after the end")
	}
}

func TestCancelWhileAttaching(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ex := newExecutor(t, Options{}).send(ctx, bot, change(at(srv, ca)), &bearer{then: cancel})
	if wantCode(t, ex, fault.UpstreamUnavailable); ex.Wrote || ex.Writes != 0 || len(srv.Requests()) != 0 {
		t.Errorf("wrote %v, %d writes", ex.Wrote, ex.Writes)
	}
}

// A remote that never reads holds the attempt to its own time-out, not longer.
func TestRemoteThatNeverReads(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	ended := make(chan struct{})
	srv := testkit.Start(t, upstream.Options{Certificate: testkit.Leaf(t, ca), Raw: func(net.Conn) { <-ended }})
	t.Cleanup(func() { close(ended) })
	s := change(at(srv, ca))
	s.body = make([]byte, 16<<20)
	ex := withLimit(PhaseHeader, func(limit time.Duration) Exchange {
		s.timeout = limit
		return sendTo(t, newExecutor(t, Options{HeaderTimeout: 2 * testkit.Patience}), s, &bearer{})
	})
	wantCode(t, ex, fault.OutcomeUnknown)
	if took := ex.Ended.Sub(ex.Started); took > s.timeout+testkit.Patience/2 || !ex.Wrote {
		t.Errorf("took %s of %s, wrote %v", took, s.timeout, ex.Wrote)
	}
}
