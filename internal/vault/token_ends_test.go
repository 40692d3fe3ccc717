package vault

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
)

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
