package executor

import (
	"fmt"
	"net"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

func TestReadsShareAConnectionAndChangesDoNot(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	for i, s := range []step{read(at(srv, ca)), read(at(srv, ca)), change(at(srv, ca)), read(at(srv, ca))} {
		cred := &bearer{}
		ex := sendTo(t, x, s, cred)
		wantCode(t, ex, "")
		if wantReused := i == 1 || i == 3; ex.Reused != wantReused || cred.asked.Load() != 1 {
			t.Errorf("attempt %d: reused %v, credential asked %d times", i, ex.Reused, cred.asked.Load())
		}
		if cred.seen.RemoteAddr.String() != srv.Addr() || len(cred.seen.PeerSPKI) == 0 {
			t.Errorf("attempt %d: the credential saw %+v", i, cred.seen)
		}
	}
	if srv.Conns() != 2 {
		t.Errorf("%d connections, want 2", srv.Conns())
	}
}

func TestIdleConnectionThatIsNotQuiet(t *testing.T) {
	ca := testkit.CA(t)
	send := make(chan []byte)
	done := make(chan bool, 4)
	srv := testkit.Start(t, upstream.Options{Certificate: testkit.Leaf(t, ca), Raw: func(c net.Conn) {
		buf := make([]byte, 4096)
		c.Read(buf)
		c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
		if b, ok := <-send; ok && b != nil {
			c.Write(b)
			done <- true
			c.Read(buf)
			return
		}
		c.Close()
		done <- true
	}})
	defer close(send)
	x := newExecutor(t, Options{})
	wantCode(t, sendTo(t, x, read(at(srv, ca)), &bearer{}), "")
	send <- nil // the server closes the idle connection
	<-done
	untilLoud(t, x, at(srv, ca))
	ex := sendTo(t, x, read(at(srv, ca)), &bearer{})
	if wantCode(t, ex, ""); ex.Reused {
		t.Error("a closed connection was used")
	}
	// The server says something that nobody asked for: a poisoned answer.
	send <- []byte("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"evil\": \"yes\"}")
	<-done
	untilLoud(t, x, at(srv, ca))
	ex = sendTo(t, x, read(at(srv, ca)), &bearer{})
	if wantCode(t, ex, ""); ex.Reused || string(ex.Body) != "{}" {
		t.Errorf("reused %v, body %q", ex.Reused, ex.Body)
	}
}

// untilLoud waits until what the server did has reached the one idle connection.
func untilLoud(t *testing.T, x *Executor, to place) {
	t.Helper()
	l, err := x.laneFor(bot, to)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "what the server did to the idle connection", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.idle) == 1 && !quiet(l.idle[0].raw.Conn)
	})
}

// An upstream that closes a reused connection after reading: nothing is ever
// sent a second time.
func TestStaleConnectionIsNeverResent(t *testing.T) {
	ca := testkit.CA(t)
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			srv := testkit.HTTPS(t, ca, testkit.InOrder(upstream.JSON(200, `{}`), upstream.Answer{Close: upstream.BeforeAnswer}))
			x := newExecutor(t, Options{})
			s, want := read(at(srv, ca)), fault.UpstreamUnavailable
			if method == "POST" { // a change with idempotency
				s, want = change(at(srv, ca)), fault.OutcomeUnknown
				s.reuse = true
				s.header.Set("Idempotency-Key", "6f1c2e9a")
			}
			wantCode(t, sendTo(t, x, s, &bearer{}), "")
			ex := sendTo(t, x, s, &bearer{})
			wantCode(t, ex, want)
			if !ex.Reused || ex.Writes != 1 || len(srv.Requests()) != 2 || srv.Conns() != 1 {
				t.Errorf("reused %v, %d writes, %d requests on %d connections", ex.Reused, ex.Writes, len(srv.Requests()), srv.Conns())
			}
		})
	}
}

func TestWhatIsNotKept(t *testing.T) {
	ca := testkit.CA(t)
	closing := upstream.JSON(200, `{}`)
	closing.Headers = append(closing.Headers, upstream.Header{Name: "Connection", Value: "close"})
	unframed := upstream.JSON(200, `{}`)
	unframed.Unframed = true
	for name, a := range map[string]upstream.Answer{
		"says close":   closing,
		"unframed":     unframed,
		"old":          {Raw: []byte("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")},
		"refused body": {Headers: []upstream.Header{{Name: "Content-Encoding", Value: "br"}}, Body: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			srv := testkit.HTTPS(t, ca, testkit.Always(a))
			x := newExecutor(t, Options{})
			for range 2 {
				if ex := sendTo(t, x, read(at(srv, ca)), &bearer{}); ex.Reused {
					t.Error("reused")
				}
			}
		})
	}
}

func TestClosing(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	again := func() Exchange {
		t.Helper()
		ex := x.send(t.Context(), bot, read(at(srv, ca)), &bearer{})
		wantCode(t, ex, "")
		return ex
	}
	again()
	x.CloseIdentity("other")
	if !again().Reused {
		t.Error("another identity's end closed the connection")
	}
	x.CloseIdentity("bot")
	if ex := again(); ex.Reused || ex.Connection.Resumed {
		t.Error("the identity's connection or session outlived it")
	}
	x.CloseIdle()
	if again().Reused {
		t.Error("an idle connection outlived CloseIdle")
	}
	x.Close()
	ex := x.send(t.Context(), bot, read(at(srv, ca)), &bearer{})
	if wantCode(t, ex, fault.Internal); ex.Wrote {
		t.Error("sent after Close")
	}
}

func TestManyAtOnce(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, func(r upstream.Request) upstream.Answer {
		return upstream.JSON(200, fmt.Sprintf(`{"path":%q}`, r.Path))
	})
	x := newExecutor(t, Options{})
	done := make(chan string)
	for i := range 20 {
		go func() {
			for j := range 5 {
				s := read(at(srv, ca))
				s.path = fmt.Sprintf("/v1/%d/%d", i, j)
				ex := x.send(t.Context(), bot, s, &bearer{})
				if want := fmt.Sprintf(`{"path":%q}`, s.path); string(ex.Body) != want {
					done <- fmt.Sprintf("%s answered %q (%v)", s.path, ex.Body, ex.Err)
					return
				}
			}
			done <- ""
		}()
	}
	for range 20 {
		if msg := <-done; msg != "" {
			t.Error(msg)
		}
	}
}

func TestIdleConnectionsExpireAndAreFew(t *testing.T) {
	testkit.NoLeaks(t)
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, func(upstream.Request) upstream.Answer {
		a := upstream.JSON(200, `{}`)
		a.Delay = 100 * time.Millisecond // so that all are under way at once
		return a
	})
	x := newExecutor(t, Options{})
	done := make(chan bool)
	for range maxIdle + 3 {
		go func() {
			x.send(t.Context(), bot, read(at(srv, ca)), &bearer{})
			done <- true
		}()
	}
	for range maxIdle + 3 {
		<-done
	}
	l, err := x.laneFor(bot, at(srv, ca))
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	idle := append([]*wire(nil), l.idle...)
	l.mu.Unlock()
	if len(idle) == 0 || len(idle) > maxIdle {
		t.Errorf("%d idle connections, at most %d", len(idle), maxIdle)
	}
	for _, w := range idle {
		l.expire(w)
		l.expire(w) // harmless a second time
	}
	if ex := x.send(t.Context(), bot, read(at(srv, ca)), &bearer{}); ex.Err != nil || ex.Reused {
		t.Errorf("reused %v after the idle time (%v)", ex.Reused, ex.Err)
	}
}
