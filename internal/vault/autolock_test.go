package vault

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watched makes an open vault with a policy, and a switch for sleep.
func watched(t *testing.T, p LockPolicy) (*Vault, *atomic.Int64) {
	t.Helper()
	var slept atomic.Int64
	p.Slept = func() time.Duration { return time.Duration(slept.Load()) }
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); v.Watch(ctx, p) }()
	t.Cleanup(func() { stop(); <-done })
	synctest.Wait()
	return v, &slept
}

func wantLocked(t *testing.T, v *Vault, why string) {
	t.Helper()
	synctest.Wait()
	if s := v.State(); s.State != StateSealed || !strings.Contains(s.Reason, why) {
		t.Errorf("got %+v, want %q", s, why)
	}
	if !v.dataKey.IsZero() {
		t.Error("the key is still there")
	}
}

func TestLocksWhenNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := watched(t, LockPolicy{Idle: 10 * time.Minute})
		reasons := make(chan string, 1)
		v.OnLock(func(r string) { reasons <- r })
		uses := []func(){
			func() { attached(t, v, "a", madeFor(bearer())) },
			func() { put(t, v, "b", planted, bearer()) },
			func() { _, _ = v.Generation(t.Context(), "a") },
			func() { unlock(t, v); unlock(t, v); put(t, v, "b", planted, bearer()) },
		}
		for _, use := range uses {
			time.Sleep(9 * time.Minute)
			use()
		}
		// Looking is no use.
		time.Sleep(9 * time.Minute)
		v.State()
		v.List()
		_ = v.CheckOpen()
		time.Sleep(time.Minute + watchEvery)
		wantLocked(t, v, "not used for 10m")
		if r := <-reasons; r != "by itself: not used for 10m0s" {
			t.Errorf("got %q", r)
		}
		unlock(t, v)
		time.Sleep(9 * time.Minute)
		if v.State().State != StateOpen {
			t.Error("it did not begin anew")
		}
	})
}

func TestLocksByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := watched(t, LockPolicy{Age: time.Hour})
		for range 11 {
			time.Sleep(5 * time.Minute)
			attached(t, v, "a", madeFor(bearer()))
		}
		time.Sleep(5*time.Minute + watchEvery)
		wantLocked(t, v, "open for 1h")
		if got := v.State().AutoLock; got != "open for 1h0m0s" {
			t.Errorf("got %q", got)
		}
	})
}

func TestLocksAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, slept := watched(t, LockPolicy{OnWake: true})
		slept.Store(int64(sleptAtLeast / 2))
		time.Sleep(2 * watchEvery)
		if v.State().State != StateOpen {
			t.Error("the clocks' own difference locks")
		}
		slept.Store(int64(time.Hour))
		// Before the watcher looks, nothing can be used any more.
		_, err := v.Lease(t.Context(), "a")
		wantCode(t, err, "VAULT_LOCKED")
		wantLocked(t, v, "the machine slept")
		unlock(t, v) // sleep of before does not count
		time.Sleep(2 * watchEvery)
		attached(t, v, "a", madeFor(bearer()))
	})
}

func TestSleepCountsAsTimeNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, slept := watched(t, LockPolicy{Idle: time.Hour})
		time.Sleep(10 * time.Minute)
		slept.Store(int64(49 * time.Minute))
		time.Sleep(watchEvery)
		if v.State().State != StateOpen {
			t.Error("locked too early")
		}
		time.Sleep(time.Minute + watchEvery)
		wantLocked(t, v, "not used for 1h")
	})
}

func TestNothingLocksWithoutAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, slept := watched(t, LockPolicy{})
		slept.Store(int64(time.Hour))
		time.Sleep(1000 * time.Hour)
		attached(t, v, "a", madeFor(bearer()))
		if got := v.State().AutoLock; got != "" {
			t.Errorf("got %q", got)
		}
	})
}

// TestAsleep reads the real clocks: sleep is never negative and does not grow
// while a test runs.
func TestAsleep(t *testing.T) {
	a := Asleep()
	if b := Asleep(); a < -sleptAtLeast/2 || b-a >= sleptAtLeast {
		t.Errorf("got %s, then %s", a, b)
	}
}
