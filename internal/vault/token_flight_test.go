package vault

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
)

// inBubble runs a test of time with an open vault that holds one identity.
func inBubble(t *testing.T, b Binding, text string, f func(t *testing.T, v *Vault)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v, _ := create(t, cheap)
		put(t, v, "a", text, b)
		f(t, v)
	})
}

// slow answers as e does, each time only after open was called.
func slow(e *endpoint) (x Exchange, open func()) {
	gate := make(chan struct{})
	return func(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
		select {
		case <-gate:
			return e.exchange(ctx, r, c, read)
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func() { gate <- struct{}{} }
}

// result of one call that ran beside the test.
type result struct {
	carried string
	err     error
}

// calls starts n calls and returns what gives their results.
func calls(t *testing.T, v *Vault, n int, x Exchange) func() []result {
	t.Helper()
	out := make([]result, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i].carried, out[i].err = carried(t, v, "a", x) })
	}
	synctest.Wait()
	return func() []result {
		wg.Wait()
		return out
	}
}

// A thousand calls that meet an ended token make one exchange.
func TestOneExchangeForAll(t *testing.T) {
	inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
		e := grants()
		wantCarried(t, v, "a", e.exchange, tokenOf(1))
		time.Sleep(2 * time.Hour)
		x, open := slow(e)
		results := calls(t, v, 1000, x)
		open()
		for _, r := range results() {
			if r.err != nil || r.carried != "Bearer "+tokenOf(2) {
				t.Fatalf("got %q, %v", r.carried, r.err)
			}
		}
		if e.count() != 2 {
			t.Errorf("%d exchanges", e.count())
		}
	})
}

// Who gives up takes nothing from the others, also where it began the exchange.
func TestWaitersHaveTheirOwnContext(t *testing.T) {
	inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
		e := grants()
		x, open := slow(e)
		first, cancel := context.WithCancel(t.Context())
		l := tokenLease(t, v, "a")
		gone := make(chan error)
		go func() { gone <- l.Ready(first, Narrow{}, x) }()
		synctest.Wait()
		results := calls(t, v, 3, func(context.Context, TokenRequest, TokenCredential, func(TokenAnswer) error) error {
			panic("a second exchange")
		})
		cancel()
		wantCode(t, <-gone, fault.UpstreamUnavailable)
		open()
		for _, r := range results() {
			if r.err != nil || r.carried != "Bearer "+tokenOf(1) {
				t.Errorf("got %q, %v", r.carried, r.err)
			}
		}
		// One who waits beside nobody: the token is there for the next.
		v.tokens.drop(allTokens, errLocked())
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, l.Ready(short, Narrow{}, x), fault.UpstreamUnavailable)
		open()
		synctest.Wait()
		wantCarried(t, v, "a", x, tokenOf(2))
	})
}

// A failed exchange is told to all who wait, and answers for the ones after it
// until its back-off is over.
func TestFailedExchange(t *testing.T) {
	for name, c := range map[string]struct {
		answer TokenAnswer
		code   fault.Code
		wait   time.Duration
	}{
		"refused": {jsonAnswer(401, `{"error":"invalid_client"}`), fault.RemoteUnauthenticated, exchangeBackoff},
		"down":    {jsonAnswer(503, ""), fault.UpstreamUnavailable, exchangeBackoff},
		"slow down": {TokenAnswer{429, map[string][]string{"Retry-After": {"60"}}, nil},
			fault.RemoteRateLimited, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
				e := says(c.answer)
				x, open := slow(e)
				results := calls(t, v, 100, x)
				open()
				for _, r := range results() {
					wantCode(t, r.err, c.code)
				}
				time.Sleep(c.wait - time.Millisecond)
				for _, r := range calls(t, v, 100, e.exchange)() {
					wantCode(t, r.err, c.code)
				}
				if e.count() != 1 {
					t.Errorf("%d exchanges before the back-off is over", e.count())
				}
				time.Sleep(time.Millisecond)
				wantCarried(t, v, "a", grants().exchange, tokenOf(1))
			})
		})
	}
}

// What a send answers without an answer of the endpoint keeps its code; a lost
// answer is never unknown, since nothing of the call was sent.
func TestUnansweredExchange(t *testing.T) {
	for given, code := range map[error]fault.Code{
		fault.New(fault.OutcomeUnknown, nil):      fault.UpstreamUnavailable,
		fault.New(fault.UpstreamUnavailable, nil): fault.UpstreamUnavailable,
		fault.New(fault.AuditUnavailable, nil):    fault.AuditUnavailable,
		fault.New(fault.Overloaded, nil):          fault.Overloaded,
		fault.New(fault.TargetNotAllowed, nil):    fault.TargetNotAllowed,
		fmt.Errorf("a mistake"):                   fault.Internal,
	} {
		e := &endpoint{answer: func(int, sent) (TokenAnswer, error) { return TokenAnswer{}, given }}
		_, err := exchangingOf(clientBinding(), clientSecret, e.exchange).run(t.Context())
		wantCode(t, err, code)
	}
	silent := func(context.Context, TokenRequest, TokenCredential, func(TokenAnswer) error) error { return nil }
	_, err := exchangingOf(clientBinding(), clientSecret, silent).run(t.Context())
	wantCode(t, err, fault.Internal)
	_, err = exchangingOf(clientBinding(), clientSecret, nil).run(t.Context())
	wantCode(t, err, fault.Internal)
	synctest.Test(t, func(t *testing.T) {
		v, _ := create(t, cheap)
		put(t, v, "a", clientSecret, clientBinding())
		never, _ := slow(grants()) // ends with its own time-out
		_, err := carried(t, v, "a", never)
		wantCode(t, err, fault.UpstreamUnavailable)
	})
}

// A token is given out until its margin, counted from when it came.
func TestEndOfAToken(t *testing.T) {
	for body, good := range map[string]time.Duration{
		withToken(`,"expires_in":3600`):    3600*time.Second - time.Minute,
		withToken(`,"expires_in":100`):     90 * time.Second,
		withToken(`,"expires_in":1`):       900 * time.Millisecond,
		withToken(""):                      270 * time.Second,
		withToken(`,"expires_in":9999999`): longestLife - time.Minute,
	} {
		inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
			e := says(jsonAnswer(200, body))
			wantCarried(t, v, "a", e.exchange, firstToken)
			time.Sleep(good - time.Nanosecond)
			wantCarried(t, v, "a", e.exchange, firstToken)
			if e.count() != 1 {
				t.Errorf("%s: %d exchanges before the margin", body, e.count())
			}
			time.Sleep(time.Nanosecond)
			wantCarried(t, v, "a", e.exchange, firstToken)
			if e.count() != 2 {
				t.Errorf("%s: %d exchanges after the end", body, e.count())
			}
		})
	}
}

// A token in use is renewed at four fifths of its life, while calls go on with the
// old one; one that nobody uses is let go.
func TestRenewalOffThePath(t *testing.T) {
	inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
		e := grants()
		wantCarried(t, v, "a", e.exchange, tokenOf(1))
		time.Sleep(48*time.Minute - time.Nanosecond)
		v.Refresh(t.Context(), e.exchange)
		if e.count() != 1 {
			t.Fatal("renewed too early")
		}
		time.Sleep(time.Nanosecond)
		x, open := slow(e)
		done := make(chan struct{})
		go func() {
			v.Refresh(t.Context(), x)
			close(done)
		}()
		synctest.Wait()
		wantCarried(t, v, "a", x, tokenOf(1)) // nobody waits
		v.Refresh(t.Context(), x)             // begins no second one
		open()
		<-done
		wantCarried(t, v, "a", x, tokenOf(2))

		v.tokens.entries[tokenKey{name: "a", generation: v.contents.items["a"].generation}].used = false
		time.Sleep(50 * time.Minute)
		v.Refresh(t.Context(), e.exchange)
		if e.count() != 2 {
			t.Error("renewed what nobody uses")
		}
		time.Sleep(time.Hour)
		v.Refresh(t.Context(), e.exchange)
		v.Refresh(t.Context(), e.exchange)
		if n := len(v.tokens.entries); n != 0 {
			t.Errorf("%d tokens are kept after their end", n)
		}
	})
}

func TestRenewalThatFails(t *testing.T) {
	inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
		e, down := grants(), says(jsonAnswer(503, ""))
		wantCarried(t, v, "a", e.exchange, tokenOf(1))
		time.Sleep(50 * time.Minute)
		v.Refresh(t.Context(), down.exchange)
		wantCarried(t, v, "a", down.exchange, tokenOf(1)) // it is still good
		v.Refresh(t.Context(), down.exchange)
		if down.count() != 1 {
			t.Errorf("%d renewals within the back-off", down.count())
		}
		time.Sleep(exchangeBackoff)
		v.Refresh(t.Context(), e.exchange)
		wantCarried(t, v, "a", down.exchange, tokenOf(2))

		// The token ends while its renewal is under way: calls wait for that one.
		time.Sleep(59*time.Minute - time.Second)
		x, open := slow(e)
		go v.Refresh(t.Context(), x)
		time.Sleep(2 * time.Second)
		results := calls(t, v, 10, down.exchange)
		open()
		for _, r := range results() {
			if r.err != nil || r.carried != "Bearer "+tokenOf(3) {
				t.Errorf("got %q, %v", r.carried, r.err)
			}
		}
	})
}
