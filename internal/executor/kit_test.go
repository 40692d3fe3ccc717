package executor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

// token is the planted secret of these tests.
const token = "tok-4f9a77c2d1e84b0c93aa"

// bot is whose connections these tests make.
var bot = owner{identity: "bot"}

// bearer is a Credential that counts how often it was asked.
type bearer struct {
	asked atomic.Int32
	seen  Connection
	err   error
	then  func() // run inside Attach, after the decision
}

func (b *bearer) Attach(out Outgoing, c Connection) error {
	b.asked.Add(1)
	b.seen = c
	if b.then != nil {
		b.then()
	}
	if b.err != nil {
		return b.err
	}
	return out.SetHeader("Authorization", "Bearer "+token)
}

// at is the place of a loopback upstream.
func at(s *upstream.Server, ca *upstream.CA) place {
	return place{scheme: schemeHTTPS, host: "localhost", port: s.Port(), caPEM: ca.PEM(), allowLoopback: true}
}

func read(to place) step {
	return step{to: to, method: http.MethodGet, path: "/v1/things/7", query: "a=b", reuse: true,
		header: http.Header{"Accept": {"application/json"}}, timeout: testkit.Patience}
}

func change(to place) step {
	return step{to: to, method: http.MethodPost, path: "/v1/things", change: true,
		header: http.Header{"Accept": {"application/json"}}, timeout: testkit.Patience,
		contentType: "application/json", body: []byte(`{"a":1}`)}
}

// shortest and longest are the limits that a test of a time-out begins and ends
// with.
const (
	shortest = 300 * time.Millisecond
	longest  = time.Minute
)

// withLimit makes an attempt whose remote falls silent under a short limit, and
// again under twice that until the attempt ends in its phase: a busy machine may
// need longer to get there.
func withLimit(phase string, attempt func(limit time.Duration) Exchange) Exchange {
	limit := shortest
	ex := attempt(limit)
	for ex.Phase != phase && limit < longest {
		limit *= 2
		ex = attempt(limit)
	}
	return ex
}

// quick are limits that make a test of a time-out short.
func quick(limit time.Duration) Options {
	return Options{ConnectTimeout: limit, TLSTimeout: limit, HeaderTimeout: limit}
}

// newExecutor makes an Executor that is closed with the test.
func newExecutor(t *testing.T, o Options) *Executor {
	t.Helper()
	x := New(o)
	t.Cleanup(x.Close)
	return x
}

// sendTo makes one attempt and holds it to what every attempt promises.
func sendTo(t *testing.T, x *Executor, s step, c Credential) Exchange {
	t.Helper()
	ex := x.send(context.Background(), bot, s, c)
	promises(t, s, ex)
	return ex
}

// promises are true of every exchange.
func promises(t *testing.T, s step, ex Exchange) {
	t.Helper()
	planted := testkit.Plant(token)
	if ex.Err != nil {
		planted.Refuse(t, "the error", []byte(ex.Err.Error()))
	}
	if (ex.Err == nil) != (ex.Phase == PhaseDone) {
		t.Errorf("phase %q with error %v", ex.Phase, ex.Err)
	}
	if ex.Err == nil && (!ex.Answered || !ex.Wrote) {
		t.Errorf("a whole answer without request or answer: %+v", ex)
	}
	if ex.Writes > 1 {
		t.Errorf("the request was written %d times", ex.Writes)
	}
	if _, _, rejected := ex.Rejected(); rejected != (fault.CodeOf(errOf(ex)) == fault.InvalidResponse) {
		t.Errorf("rejected %v beside %v", rejected, ex.Err)
	}
	switch code := fault.CodeOf(errOf(ex)); {
	case code == fault.OutcomeUnknown && !(s.change && ex.Wrote):
		t.Errorf("OUTCOME_UNKNOWN for a read or with nothing written")
	case code == fault.UpstreamUnavailable && s.change && ex.Wrote:
		t.Errorf("UPSTREAM_UNAVAILABLE for a change that was written")
	}
	if ex.Started.IsZero() || ex.Ended.Before(ex.Started) {
		t.Errorf("times: %v to %v", ex.Started, ex.Ended)
	}
}

// wiped fails where the place of a credential still has it after the send, or would
// print it.
func wiped(t *testing.T, o Outgoing) {
	t.Helper()
	at := o.(*outgoing)
	if at.value != "" || at.fill != nil {
		t.Error("the credential's place still has it after the send")
	}
	at = &outgoing{value: token, fill: []byte(token), filled: true}
	testkit.Plant(token).Refuse(t, "its print", fmt.Appendf(nil, "%v %+v %#v %s", at, at, at, at))
}

// errOf avoids a nil pointer in an interface.
func errOf(ex Exchange) error {
	if ex.Err == nil {
		return nil
	}
	return ex.Err
}

func wantCode(t *testing.T, ex Exchange, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(errOf(ex)); got != code {
		t.Errorf("code %q, want %q (%v)", got, code, ex.Err)
	}
}

// untilReset waits until the system knows that the other end of a TCP connection
// has reset it. It takes nothing from the connection.
func untilReset(t *testing.T, c net.Conn) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the reset", func() bool {
		gone := false
		err := raw.Control(func(fd uintptr) {
			at := []unix.PollFd{{Fd: int32(fd)}} // an end is told without being asked for
			n, err := unix.Poll(at, 0)
			gone = err == nil && n == 1 && at[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		})
		return err == nil && gone
	})
}
