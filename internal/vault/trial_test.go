package vault

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"chatelaine/internal/fault"
)

func TestATrialIsWrittenNowhere(t *testing.T) {
	v, path := create(t, cheap)
	gen := put(t, v, "a", planted, bearer())
	before := read(t, path)
	const candidate = "candidate-of-a-rotation"
	seen := map[uint64]bool{}
	for range 2 {
		own := sec(candidate)
		l, err := v.Trial(t.Context(), "a", own, false)
		if err != nil {
			t.Fatal(err)
		}
		own.Wipe() // the trial has a copy of its own
		if g := l.Generation(); g <= gen || g < trialGeneration || seen[g] {
			t.Errorf("generation %d is not the trial's own", g)
		}
		seen[l.Generation()] = true
		h := headers{}
		if err := l.Attach(h, madeFor(bearer())); err != nil || h["Authorization"][0] != "Bearer "+candidate {
			t.Errorf("got %v, %v", h, err)
		}
		other := madeFor(bearer())
		other.Host = "evil.example"
		wantCode(t, l.Attach(headers{}, other), fault.TargetNotAllowed)
		if len(l.Scan([]byte(candidate))) == 0 || len(l.Scan([]byte(planted))) != 0 {
			t.Error("the search is not for the candidate")
		}
		if v.State().State != StateOpen {
			t.Error(v.State())
		}
		l.Close()
		wantCode(t, l.Attach(headers{}, madeFor(bearer())), fault.Internal)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was written")
	}
	if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer "+planted {
		t.Errorf("the stored secret is %q", got)
	}
}

func TestTrialsThatAreRefused(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	_, err := v.Trial(t.Context(), "b", sec(planted), false)
	wantCode(t, err, fault.IdentityUnavailable)
	_, err = v.Trial(t.Context(), "a", sec("short"), false)
	wantErr(t, err, ErrBadIdentity)
	_, err = v.Trial(t.Context(), "a", sec(planted+"\n"), false)
	wantErr(t, err, ErrBadIdentity)
	for range suspendAfter {
		v.Suspect("a")
	}
	l, err := v.Trial(t.Context(), "a", sec("short"), true)
	if err != nil {
		t.Fatalf("a suspended identity cannot be given a new secret: %v", err)
	}
	v.Lock("test")
	if v.State().State != StateLocking {
		t.Errorf("got %+v", v.State())
	}
	l.Close()
	if v.State().State != StateSealed {
		t.Errorf("got %+v", v.State())
	}
	_, err = v.Trial(t.Context(), "a", sec(planted), false)
	wantCode(t, err, fault.VaultLocked)
}

// An exchange that was sent ends as it would have where the trial is closed meanwhile:
// its answer is searched for the secret, and what took the place of that is known.
func TestTrialClosedDuringItsExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := create(t, cheap)
		put(t, v, "a", "the refresh token of before", refreshBinding())
		given := sec("the refresh token on trial")
		l, err := v.Trial(t.Context(), "a", given, false)
		if err != nil {
			t.Fatal(err)
		}
		e, gate, hits := rotates(), make(chan struct{}), 0
		answer := e.answer
		var cred TokenCredential
		e.answer = func(n int, s sent) (TokenAnswer, error) {
			<-gate
			hits = len(cred.Scan([]byte("bad token: the refresh token on trial")))
			return answer(n, s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = l.Ready(ctx, Narrow{}, func(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
			cred = c
			return e.exchange(ctx, r, c, read)
		})
		wantCode(t, err, fault.UpstreamUnavailable)
		synctest.Wait()
		l.Close()
		close(gate)
		synctest.Wait()
		if hits != 1 {
			t.Errorf("the secret was found %d times", hits)
		}
		if _, err := v.Put(t.Context(), "a", refreshBinding(), given, false); err != nil || stored(t, v, "a") != refreshOf(1) {
			t.Errorf("the put stored %s, %v", stored(t, v, "a"), err)
		}
	})
}
