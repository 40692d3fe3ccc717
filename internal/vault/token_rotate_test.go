package vault

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// What replaces a refresh token is on disk, in the same generation, before the
// access token is given out.
func TestRefreshTokenIsReplaced(t *testing.T) {
	v, path := create(t, cheap)
	gen := put(t, v, "a", firstRefresh, refreshBinding())
	e := rotates()
	for n := 1; n <= 3; n++ {
		wantCarried(t, v, "a", e.exchange, tokenOf(n))
		want := refreshOf(n - 1)
		if form, err := url.ParseQuery(e.last().whole); err != nil || form.Get("refresh_token") != want {
			t.Errorf("exchange %d sent %q", n, e.last().whole)
		}
		w := reopen(t, path, cheap)
		if got := stored(t, w, "a"); got != refreshOf(n) {
			t.Errorf("after exchange %d the file holds %s", n, got)
		}
		if now, err := w.Generation(t.Context(), "a"); err != nil || now != gen {
			t.Errorf("the generation is %d, %v; it was %d", now, err, gen)
		}
		v.tokens.drop(allTokens, errLocked())
	}
}

// The client's secret stays beside it; a server that replaces nothing changes
// nothing.
func TestRefreshWithClientSecret(t *testing.T) {
	v, path := create(t, cheap)
	b := tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": "c", "auth": "body"})
	put(t, v, "a", `{"client_secret":"`+planted+`","refresh_token":"`+firstRefresh+`"}`, b)
	e := rotates()
	wantCarried(t, v, "a", e.exchange, tokenOf(1))
	if got := stored(t, v, "a"); got != `{"refresh_token":"`+refreshOf(1)+`","client_secret":"`+planted+`"}` {
		t.Errorf("the file holds %s", got)
	}
	v.tokens.drop(allTokens, errLocked())
	before := read(t, path)
	same := says(jsonAnswer(200, withToken(`,"refresh_token":"`+refreshOf(1)+`"`)))
	wantCarried(t, v, "a", same.exchange, firstToken)
	v.tokens.drop(allTokens, errLocked())
	wantCarried(t, v, "a", grants().exchange, tokenOf(1))
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was written for nothing")
	}
}

// A lease that was taken before another call's exchange sends what that one got.
func TestOldLeaseSendsTheNewToken(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	old := tokenLease(t, v, "a")
	e := rotates()
	wantCarried(t, v, "a", e.exchange, tokenOf(1))
	v.tokens.drop(allTokens, errLocked())
	if err := old.Ready(t.Context(), Narrow{}, e.exchange); err != nil || !strings.Contains(e.last().whole, refreshOf(1)) {
		t.Errorf("sent %q, %v", e.last().whole, err)
	}
}

// breakSaves makes every save of the vault fail until the returned function is
// called.
func breakSaves(t *testing.T, path string) (mend func()) {
	t.Helper()
	good := read(t, path)
	write(t, path, append(bytes.Clone(good), 'x')) // another hand: nothing may be saved over it
	return func() { write(t, path, good) }
}

// Where it cannot be saved the call ends, nothing is attached, nothing more is sent,
// and it is saved before anything else.
func TestRefreshTokenThatCannotBeSaved(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	e := rotates()
	mend := breakSaves(t, path)
	for range 5 {
		_, err := carried(t, v, "a", e.exchange)
		wantCode(t, err, fault.IdentityUnavailable)
	}
	v.Refresh(t.Context(), e.exchange)
	if e.count() != 1 {
		t.Fatalf("%d exchanges; the second would have sent a token that is used up", e.count())
	}
	mend()
	wantCarried(t, v, "a", e.exchange, tokenOf(2))
	if !strings.Contains(e.last().whole, refreshOf(1)) {
		t.Errorf("sent %q", e.last().whole)
	}
	if got := stored(t, reopen(t, path, cheap), "a"); got != refreshOf(2) {
		t.Errorf("the file holds %s", got)
	}
}

// The daemon's own pass saves it too, without a call.
func TestRefreshSavesWhatWaits(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	mend := breakSaves(t, path)
	_, err := carried(t, v, "a", rotates().exchange)
	wantCode(t, err, fault.IdentityUnavailable)
	mend()
	v.Refresh(t.Context(), nil)
	if got := stored(t, reopen(t, path, cheap), "a"); got != refreshOf(1) || len(v.rotations.saving) > 0 {
		t.Errorf("the file holds %s", got)
	}
}

// A lock in the middle of an exchange loses nothing: what came is sealed until the
// unlock, and then saved before anything is sent.
func TestLockDuringAnExchange(t *testing.T) {
	inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
		e := rotates()
		x, open := slow(e)
		results := calls(t, v, 3, x)
		v.Lock("test")
		for _, r := range results() {
			wantCode(t, r.err, fault.VaultLocked)
		}
		open()
		synctest.Wait()
		r, ok := v.rotations.saving["a"]
		if !ok || len(r.sealed) == 0 || !r.used.IsZero() || !r.fresh.IsZero() || bytes.Contains(r.sealed, []byte("rt-0")) {
			t.Fatalf("it is not sealed: %d bytes, %v", len(r.sealed), ok)
		}
		unlock(t, v)
		wantCarried(t, v, "a", e.exchange, tokenOf(2))
		if !strings.Contains(e.last().whole, refreshOf(1)) || stored(t, v, "a") != refreshOf(2) {
			t.Errorf("sent %q", e.last().whole)
		}
	})
}

// So does a lock while a save is still to be made.
func TestLockBeforeTheSave(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	mend := breakSaves(t, path)
	_, err := carried(t, v, "a", rotates().exchange)
	wantCode(t, err, fault.IdentityUnavailable)
	waiting := v.rotations.saving["a"]
	v.Lock("test")
	if !waiting.fresh.IsZero() || !waiting.used.IsZero() {
		t.Error("a refresh token is in clear while the vault is locked")
	}
	mend()
	unlock(t, v)
	v.Refresh(t.Context(), nil)
	if got := stored(t, v, "a"); got != refreshOf(1) {
		t.Errorf("the file holds %s", got)
	}
}

// What a person does meanwhile goes before: a new secret is not overwritten, a
// deleted identity does not come back; the same secret in another generation is.
func TestPersonGoesBeforeTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(t *testing.T, v *Vault)
		want string
	}{
		"put": {func(t *testing.T, v *Vault) { put(t, v, "a", "another refresh token", refreshBinding()) }, "another refresh token"},
		"delete": {func(t *testing.T, v *Vault) {
			if err := v.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"rotate the data key": {func(t *testing.T, v *Vault) {
			if _, err := v.RotateKey(t.Context(), "", sec(goodPass)); err != nil {
				t.Fatal(err)
			}
		}, refreshOf(1)},
		"put the same": {func(t *testing.T, v *Vault) { put(t, v, "a", firstRefresh, refreshBinding()) }, refreshOf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
				x, open := slow(rotates())
				results := calls(t, v, 1, x)
				c.act(t, v)
				wantCode(t, results()[0].err, fault.IdentityUnavailable)
				open()
				synctest.Wait()
				if len(v.rotations.saving) > 0 {
					t.Error("something still waits")
				}
				if c.want == "" {
					if len(v.List()) > 0 {
						t.Error("it came back")
					}
					return
				}
				if got := stored(t, v, "a"); got != c.want {
					t.Errorf("the vault holds %s, want %s", got, c.want)
				}
			})
		})
	}
}

// No two exchanges of one refresh token run at once, also across a lock.
func TestExchangesOfOneSecretAreInTurn(t *testing.T) {
	inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
		e := rotates()
		x, open := slow(e)
		first := calls(t, v, 1, x)
		v.Lock("test")
		unlock(t, v)
		second := calls(t, v, 1, x)
		open()
		open()
		wantCode(t, first()[0].err, fault.VaultLocked)
		if r := second()[0]; r.err != nil || r.carried != "Bearer "+tokenOf(2) || !strings.Contains(e.last().whole, refreshOf(1)) {
			t.Errorf("got %q, %v; sent %q", r.carried, r.err, e.last().whole)
		}
	})
}

// Who waits for another exchange of the same secret has all of the time for its own:
// an answer that is cut off loses the refresh token in it.
func TestWaitingTakesNothingFromAnExchange(t *testing.T) {
	inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
		e := rotates()
		gate := make(chan struct{})
		x := func(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
			if end, ok := ctx.Deadline(); !ok || time.Until(end) != exchangeTimeout {
				t.Errorf("the exchange has %s left, want %s", time.Until(end), exchangeTimeout)
			}
			<-gate
			return e.exchange(ctx, r, c, read)
		}
		calls(t, v, 1, x)
		v.Lock("test")
		unlock(t, v)
		second := calls(t, v, 1, x)
		time.Sleep(exchangeTimeout - tokenTimeout/2)
		gate <- struct{}{}
		gate <- struct{}{}
		if r := second()[0]; r.err != nil {
			t.Error(r.err)
		}
	})
}

// A source that takes its time with a new refresh token holds up no other change of
// the vault.
func TestSlowSourceHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := create(t, cheap)
		f := &slowKeeper{fakeSource: fakeSource{value: firstRefresh}, hold: make(chan struct{})}
		v.SetSources([]SourceSetup{{Source: f, Kind: "kv"}})
		if _, err := v.PutIdentity(t.Context(), "a", refreshBinding(), secret.Secret{}, PutOptions{Source: ref}); err != nil {
			t.Fatal(err)
		}
		results := calls(t, v, 1, rotates().exchange)
		synctest.Wait()
		put(t, v, "b", planted, bearer()) // would wait for ever
		close(f.hold)
		if r := results()[0]; r.err != nil || f.value != refreshOf(1) {
			t.Errorf("%v; the source has %s", r.err, f.value)
		}
	})
}

// slowKeeper stores only when it is let.
type slowKeeper struct {
	fakeSource
	hold chan struct{}
}

func (s *slowKeeper) Store(ctx context.Context, reference string, old, value secret.Secret) error {
	<-s.hold
	return s.fakeSource.Store(ctx, reference, old, value)
}

// A keychain and a source keep it as the file does.
func TestRefreshTokenElsewhere(t *testing.T) {
	o := cheap
	o.Backend = newMemory()
	v, path := create(t, o)
	put(t, v, "a", firstRefresh, refreshBinding())
	wantCarried(t, v, "a", rotates().exchange, tokenOf(1))
	w := reopen(t, path, o)
	cur, err := w.current()
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.unsealItem(t.Context(), cur, cur.contents.items["a"])
	if err != nil || !s.Equal(sec(refreshOf(1))) {
		t.Errorf("the keychain holds another one, %v", err)
	}
	v.tokens.drop(allTokens, errLocked())
	o.Backend.(*memory).setFail(ErrKeychainUnavailable)
	_, err = carried(t, v, "a", rotates().exchange)
	wantCode(t, err, fault.IdentityUnavailable)
}

// A secret on trial is replaced too; what is put afterwards is the one that still
// works.
func TestTrialOfARefreshToken(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", "the refresh token of before", refreshBinding())
	given := sec("the refresh token on trial")
	l, err := v.Trial(t.Context(), "a", given, false)
	if err != nil {
		t.Fatal(err)
	}
	e := rotates()
	for n := 1; n <= 2; n++ {
		if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
			t.Fatal(err)
		}
		h := headers{}
		if err := l.Attach(h, madeFor(refreshBinding())); err != nil || h["Authorization"][0] != "Bearer "+tokenOf(n) {
			t.Errorf("attached %v, %v", h, err)
		}
		l.Rejected()
	}
	l.Close()
	if got := stored(t, v, "a"); got != "the refresh token of before" {
		t.Errorf("the trial was stored: %s", got)
	}
	if len(v.tokens.entries) > 0 {
		t.Error("the token of a trial is kept with the others")
	}
	if _, err := v.Put(t.Context(), "a", refreshBinding(), given, false); err != nil || stored(t, v, "a") != refreshOf(2) {
		t.Errorf("the put stored %s, %v", stored(t, v, "a"), err)
	}
	put(t, v, "a", "quite another refresh token", refreshBinding())
	if got := stored(t, v, "a"); got != "quite another refresh token" {
		t.Errorf("the put stored %s", got)
	}
}
