package vault

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
)

func TestUnlockIsIdempotentAndStillChecks(t *testing.T) {
	v, _ := create(t, cheap)
	unlock(t, v)
	unlock(t, v)
	since := v.State().Since
	err := v.Unlock(t.Context(), sec("not "+goodPass))
	wantErr(t, err, ErrWrongPassphrase)
	if s := v.State(); s.State != StateOpen || s.Since != since {
		t.Errorf("a wrong passphrase changed an open vault: %+v", s)
	}
}

func TestWrongPassphraseAndDamageAreToldApart(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	v.Lock("test")
	err := v.Unlock(t.Context(), sec("wrong"))
	wantErr(t, err, ErrWrongPassphrase)
	if errors.Is(err, ErrDamaged) || v.State().State != StateSealed {
		t.Errorf("got %v, %+v", err, v.State())
	}
	w, err := Open(path, cheap)
	if err != nil {
		t.Fatal(err)
	}
	b := read(t, path)
	b[len(b)-40] ^= 1
	write(t, path, b)
	err = w.Unlock(t.Context(), sec(goodPass))
	wantErr(t, err, ErrDamaged)
	if errors.Is(err, ErrWrongPassphrase) || w.State().State != StateDamaged {
		t.Errorf("got %v, %+v", err, w.State())
	}
	// The checksum made right again, the keyed checks still refuse.
	write(t, path, resum(b))
	err = w.Unlock(t.Context(), sec(goodPass))
	wantErr(t, err, ErrDamaged)
	b[len(b)-40] ^= 1
	write(t, path, b)
	unlock(t, w)
}

func TestAnEmptyPassphraseIsRefusedBeforeAnythingElse(t *testing.T) {
	v, _ := create(t, cheap)
	v.Lock("test")
	wantErr(t, v.Unlock(t.Context(), sec("")), ErrBadPassphrase)
	unlock(t, v)
}

func TestUnlockObeysItsContext(t *testing.T) {
	v, _ := create(t, cheap)
	v.Lock("test")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, v.Unlock(ctx, sec(goodPass)), context.Canceled)
	if v.State().State != StateSealed {
		t.Errorf("got %+v", v.State())
	}
}

func TestGuessingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := create(t, cheap)
		if err := v.SetOperatorPassphrase(sec("operator's own")); err != nil {
			t.Fatal(err)
		}
		for name, try := range map[string]func(right bool) error{
			"unlock": func(right bool) error {
				if right {
					return v.Unlock(t.Context(), sec(goodPass))
				}
				return v.Unlock(t.Context(), sec("wrong"))
			},
			"proof": func(right bool) error {
				sum := mac(v.contents.operator.key, []byte(infoProof), []byte("challenge"))
				if !right {
					sum[0] ^= 1
				}
				return v.CheckProof([]byte("challenge"), sum)
			},
		} {
			guess(t, name, try)
		}
	})
}

// guess makes wrong tries and looks at the waits between them.
func guess(t *testing.T, name string, try func(right bool) error) {
	t.Helper()
	waits := []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Minute, time.Minute, time.Minute}
	for round := range 2 {
		for i, wait := range waits {
			err := try(false)
			var soon *ProofError
			if err == nil || errors.As(err, &soon) {
				t.Fatalf("%s: wrong try %d of round %d: got %v", name, i, round, err)
			}
			for _, right := range []bool{false, true} {
				if err := try(right); !errors.As(err, &soon) || soon.RetryAfter != wait {
					t.Fatalf("%s: after %d wrong tries: got %v, want a wait of %s", name, i+1, err, wait)
				}
			}
			time.Sleep(wait - time.Millisecond)
			if err := try(true); !errors.As(err, &soon) || !strings.Contains(err.Error(), "in 1 s") {
				t.Fatalf("%s: a millisecond early: got %v", name, err)
			}
			time.Sleep(time.Millisecond)
		}
		for range 3 { // right ones do not wait, and end the series
			if err := try(true); err != nil {
				t.Fatalf("%s: a right one: got %v", name, err)
			}
		}
	}
}

func TestParallelGuessesAreOneGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes, however slow the machine is
		v, _ := create(t, cheap)
		v.Lock("test")
		results := make(chan error, 50)
		for range cap(results) {
			go func() { results <- v.Unlock(context.Background(), sec("wrong")) }()
		}
		wrong := 0
		for range cap(results) {
			var soon *ProofError
			if err := <-results; !errors.As(err, &soon) {
				wantErr(t, err, ErrWrongPassphrase)
				wrong++
			}
		}
		if wrong != 1 {
			t.Errorf("%d guesses at once", wrong)
		}
	})
}

func TestLockDropsKeysAndTellsOthers(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	key := v.dataKey
	var heard []string
	v.OnLock(func(reason string) {
		heard = append(heard, "first "+reason)
		if fault.CodeOf(v.PutState("x", nil)) != fault.VaultLocked {
			t.Error("still open while others are told")
		}
	})
	v.OnLock(func(reason string) { heard = append(heard, "second "+reason) })
	v.Lock("idle")
	v.Lock("again")
	if got := strings.Join(heard, ", "); got != "first idle, second idle" {
		t.Errorf("heard %q", got)
	}
	if !key.IsZero() || v.contents != nil {
		t.Error("the data key is still there")
	}
	if s := v.State(); s.State != StateSealed || s.Reason != "idle" {
		t.Errorf("got %+v", s)
	}
	unlock(t, v)
	if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer "+planted {
		t.Errorf("got %q", got)
	}
}

func TestLeasesOutliveALock(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	l, err := v.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	v.Lock("test")
	if s := v.State(); s.State != StateLocking {
		t.Errorf("got %+v", s)
	}
	h := http.Header{}
	if err := l.Attach(headers(h), madeFor(bearer())); err != nil || h.Get("Authorization") != "Bearer "+planted {
		t.Errorf("got %v", err)
	}
	if len(l.Scan([]byte(planted))) == 0 {
		t.Error("the search ended with the lock")
	}
	unlock(t, v) // while locking
	if s := v.State(); s.State != StateOpen {
		t.Errorf("got %+v", s)
	}
	v.Lock("test")
	l.Close()
	l.Close()
	if s := v.State(); s.State != StateSealed {
		t.Errorf("got %+v", s)
	}
	wantCode(t, l.Attach(headers{}, madeFor(bearer())), fault.Internal)
	if l.Scan([]byte(planted)) != nil {
		t.Error("a closed lease still has the secret")
	}
}

func TestALockWhileUnlockingWins(t *testing.T) {
	v, _ := create(t, cheap)
	v.Lock("test")
	slow := newMemory()
	v.o.Backend = lockingBackend{slow, v}
	err := v.Unlock(t.Context(), sec(goodPass))
	wantCode(t, err, fault.VaultLocked)
	if s := v.State(); s.State != StateSealed || s.Reason != "while unlocking" {
		t.Errorf("got %+v", s)
	}
	v.o.Backend = slow
	unlock(t, v)
}

// lockingBackend locks the vault when it is asked for something.
type lockingBackend struct {
	*memory
	v *Vault
}

func (b lockingBackend) Get(ctx context.Context, name string) ([]byte, error) {
	if s := b.v.State(); s.State != StateOpening {
		return nil, errors.New("not opening: " + s.State)
	}
	b.v.Lock("while unlocking")
	return b.memory.Get(ctx, name)
}

func TestAnOpenVaultLocksWhenItsFileIsDamaged(t *testing.T) {
	for name, change := range map[string]func(path string, old []byte){
		"damaged": func(path string, _ []byte) { os.WriteFile(path, []byte("junk"), fileMode) },
		"older":   func(path string, old []byte) { os.WriteFile(path, old, fileMode) },
	} {
		v, path := create(t, cheap)
		old := read(t, path)
		put(t, v, "a", planted, bearer())
		now := read(t, path)
		heard := false
		v.OnLock(func(string) {
			heard = true
			_ = v.PutState("x", nil) // must not hang
		})
		change(path, old)
		err := v.Unlock(t.Context(), sec(goodPass))
		if s := v.State(); err == nil || s.State != StateDamaged || !heard {
			t.Errorf("%s: got %v, %+v", name, err, s)
		}
		refuseLeak(t, err)
		err = v.Unlock(t.Context(), sec(goodPass))
		if err == nil {
			t.Errorf("%s: opened", name)
		}
		write(t, path, now)
		unlock(t, v)
	}
}

func TestNothingIsSavedOverAForeignFile(t *testing.T) {
	v, path := create(t, cheap)
	old := read(t, path)
	put(t, v, "a", planted, bearer())
	write(t, path, old)
	_, err := v.Put(t.Context(), "b", bearer(), sec(planted), false)
	wantErr(t, err, ErrChanged)
	os.Remove(path)
	_, err = v.Put(t.Context(), "b", bearer(), sec(planted), false)
	wantErr(t, err, ErrAbsent)
	if len(v.List()) != 1 {
		t.Error("what was not saved is shown")
	}
}

func TestAnotherVaultInPlaceIsRefused(t *testing.T) {
	v, path := create(t, cheap)
	_, other := create(t, cheap)
	v.Lock("test")
	write(t, path, read(t, other))
	err := v.Unlock(t.Context(), sec(goodPass))
	wantErr(t, err, ErrChanged)
	if s := v.State(); s.State != StateDamaged {
		t.Errorf("got %+v", s)
	}
}
