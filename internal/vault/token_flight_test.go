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

// What ends a token ends it in every phase, and tells those who wait.
func TestDrops(t *testing.T) {
	ends := map[string]struct {
		end  func(t *testing.T, v *Vault)
		code fault.Code // for those who wait
		next string     // what the next call meets: a token, or a code
	}{
		"lock": {func(t *testing.T, v *Vault) { v.Lock("test"); unlock(t, v) }, fault.VaultLocked, ""},
		"put":  {func(t *testing.T, v *Vault) { put(t, v, "a", "another client secret", clientBinding()) }, fault.IdentityUnavailable, ""},
		"rebind": {func(t *testing.T, v *Vault) {
			b := clientBinding()
			b.BasePath = "/api/deeper"
			if err := v.Rebind(t.Context(), "a", b); err != nil {
				t.Fatal(err)
			}
		}, fault.IdentityUnavailable, ""},
		"rotate": {func(t *testing.T, v *Vault) {
			if _, err := v.RotateKey(t.Context(), "", sec(goodPass)); err != nil {
				t.Fatal(err)
			}
		}, fault.IdentityUnavailable, ""},
		"delete": {func(t *testing.T, v *Vault) {
			if err := v.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}, fault.IdentityUnavailable, string(fault.IdentityUnavailable)},
		"suspend": {func(t *testing.T, v *Vault) {
			for range suspendAfter {
				v.Suspect("a")
			}
		}, fault.IdentityUnavailable, string(fault.IdentityUnavailable)},
	}
	for name, c := range ends {
		for _, at := range []phase{phaseMinting, phaseGood, phaseRenewing, phaseSpent} {
			t.Run(name+" while "+string(at), func(t *testing.T) {
				inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
					e := grants()
					x, open := slow(e)
					var old *heldToken
					results := func() []result { return nil }
					if at == phaseMinting {
						results = calls(t, v, 3, x)
					} else {
						wantCarried(t, v, "a", e.exchange, tokenOf(1))
						old = v.tokens.entries[tokenKey{name: "a", generation: v.contents.items["a"].generation}].token
					}
					switch at {
					case phaseRenewing:
						time.Sleep(50 * time.Minute)
						go v.Refresh(t.Context(), x)
						synctest.Wait()
					case phaseSpent:
						time.Sleep(2 * time.Hour)
					}
					c.end(t, v)
					if old != nil && at != phaseSpent && !old.text.IsZero() {
						t.Error("the token is not wiped")
					}
					for _, r := range results() {
						wantCode(t, r.err, c.code)
					}
					if at == phaseMinting || at == phaseRenewing {
						open() // what comes now is for nobody
						synctest.Wait()
					}
					n := e.count()
					got, err := carried(t, v, "a", e.exchange)
					if c.next != "" {
						wantCode(t, err, fault.Code(c.next))
					} else if err != nil || got != "Bearer "+tokenOf(n+1) {
						t.Errorf("the next call sends %q, %v; want a new token", got, err)
					}
				})
			})
		}
	}
}

// A lease that has its token keeps it over a lock, as it keeps any credential, and
// wipes it.
func TestLeaseKeepsItsToken(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", clientSecret, clientBinding())
	l, other := tokenLease(t, v, "a"), tokenLease(t, v, "a")
	for _, l := range []*Lease{l, other} {
		if err := l.Ready(t.Context(), Narrow{}, grants().exchange); err != nil {
			t.Fatal(err)
		}
	}
	held, _ := l.token()
	v.Lock("test")
	h := headers{}
	if err := l.Attach(h, madeFor(clientBinding())); err != nil || h["Authorization"][0] != "Bearer "+tokenOf(1) {
		t.Errorf("attached %v, %v", h, err)
	}
	wantCode(t, other.Ready(t.Context(), Narrow{}, grants().exchange), fault.VaultLocked)
	unlock(t, v)
	wantCarried(t, v, "a", grants().exchange, tokenOf(1)) // the lock is over, and nobody waits for a back-off
	l.Close()
	if held.text.IsZero() {
		t.Error("wiped while another lease has it")
	}
	other.Close()
	if !held.text.IsZero() {
		t.Error("not wiped with the last lease")
	}
	wantCode(t, l.Attach(headers{}, madeFor(clientBinding())), fault.Internal)
	wantCode(t, l.Ready(t.Context(), Narrow{}, grants().exchange), fault.Internal)
	var none *Lease
	wantCode(t, none.Ready(t.Context(), Narrow{}, nil), fault.Internal)
	none.Rejected()
	if err := NoLease().Ready(t.Context(), Narrow{}, nil); err != nil {
		t.Error(err)
	}
	put(t, v, "static", planted, bearer())
	static := tokenLease(t, v, "static")
	if err := static.Ready(t.Context(), Narrow{}, nil); err != nil {
		t.Error(err)
	}
	static.Rejected()
}

// A refused token is not given out again, and the next call gets a new one; where
// that is refused too, calls are told so for a while.
func TestRejected(t *testing.T) {
	inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
		e := grants()
		l, late := tokenLease(t, v, "a"), tokenLease(t, v, "a")
		for _, l := range []*Lease{l, late} {
			if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
				t.Fatal(err)
			}
		}
		l.Rejected()
		wantCarried(t, v, "a", e.exchange, tokenOf(2))
		late.Rejected() // of the first token
		l.Rejected()
		wantCarried(t, v, "a", e.exchange, tokenOf(2))

		again := tokenLease(t, v, "a")
		if err := again.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
			t.Fatal(err)
		}
		again.Rejected() // at once: a new token does not help
		for range 10 {
			_, err := carried(t, v, "a", e.exchange)
			wantCode(t, err, fault.RemoteUnauthenticated)
		}
		time.Sleep(exchangeBackoff)
		wantCarried(t, v, "a", e.exchange, tokenOf(3))

		// While the next token is on its way: calls wait for that.
		time.Sleep(50 * time.Minute)
		x, open := slow(e)
		go v.Refresh(t.Context(), x)
		synctest.Wait()
		last := tokenLease(t, v, "a")
		if err := last.Ready(t.Context(), Narrow{}, x); err != nil {
			t.Fatal(err)
		}
		last.Rejected()
		results := calls(t, v, 3, x)
		open()
		for _, r := range results() {
			if r.err != nil || r.carried != "Bearer "+tokenOf(4) {
				t.Errorf("got %q, %v", r.carried, r.err)
			}
		}
	})
}

// A token for reading is never the one for writing, nor that of one repository the
// one of another.
func TestTokensOfEachNarrowing(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", keyPEM(t, testKeys()["RS256"]), githubBinding(`["api","web"]`, `{"contents":"write"}`))
	e := &endpoint{}
	e.answer = func(n int, _ sent) (TokenAnswer, error) {
		return jsonAnswer(201, `{"token":"`+tokenOf(n)+`","permissions":{"contents":"read"}}`), nil
	}
	for i, n := range []Narrow{{}, {ReadOnly: true}, {Repositories: []string{"api"}}, {Repositories: []string{"web"}}, {ReadOnly: true, Repositories: []string{"web"}}} {
		for range 2 {
			l := tokenLease(t, v, "a")
			if err := l.Ready(t.Context(), n, e.exchange); err != nil {
				t.Fatal(err)
			}
			if held, _ := l.token(); !held.text.Equal(sec(tokenOf(i+1))) || e.count() != i+1 {
				t.Errorf("%+v: another token, after %d exchanges", n, e.count())
			}
		}
	}
	wantCode(t, tokenLease(t, v, "a").Ready(t.Context(), Narrow{Repositories: []string{"secrets"}}, e.exchange), fault.TargetNotAllowed)
}

// Renewals are no use of the vault: it locks by itself as if there were none, also
// where each of them saves a new refresh token.
func TestRenewalPutsOffNoLock(t *testing.T) {
	inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
		watching, stop := context.WithCancel(t.Context())
		defer stop()
		go v.Watch(watching, LockPolicy{Idle: 70 * time.Minute})
		synctest.Wait()
		e := rotates()
		wantCarried(t, v, "a", e.exchange, tokenOf(1))
		time.Sleep(50 * time.Minute)
		v.Refresh(t.Context(), e.exchange)
		if e.count() != 2 || stored(t, v, "a") != refreshOf(2) {
			t.Fatalf("%d exchanges", e.count())
		}
		time.Sleep(21 * time.Minute)
		if got := v.State().State; got != StateSealed {
			t.Errorf("the vault is %s", got)
		}
	})
}
