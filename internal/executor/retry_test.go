package executor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

func policy(attempts int, within time.Duration) actions.RetryPolicy {
	return actions.RetryPolicy{Attempts: attempts, Within: within,
		Codes: map[fault.Code]bool{fault.UpstreamUnavailable: true, fault.RemoteRateLimited: true}}
}

func TestRetry(t *testing.T) {
	const down, slow = fault.UpstreamUnavailable, fault.RemoteRateLimited
	for _, c := range []struct {
		name     string
		policy   actions.RetryPolicy
		codes    []fault.Code // of each attempt; the last repeats
		after    time.Duration
		again    bool
		attempts int
		low, hi  time.Duration // of the whole
	}{
		{"success", policy(3, time.Minute), []fault.Code{""}, 0, true, 1, 0, 0},
		{"down, then up", policy(3, time.Minute), []fault.Code{down, ""}, 0, true, 2, 125 * time.Millisecond, 250 * time.Millisecond},
		{"always down", policy(3, time.Minute), []fault.Code{down}, 0, true, 3, 375 * time.Millisecond, 750 * time.Millisecond},
		{"a code that is not the contract's", policy(3, time.Minute), []fault.Code{fault.InvalidResponse}, 0, true, 1, 0, 0},
		{"may not follow", policy(3, time.Minute), []fault.Code{down}, 0, false, 1, 0, 0},
		{"no policy", actions.RetryPolicy{}, []fault.Code{down}, 0, true, 1, 0, 0},
		{"remote says when", policy(2, time.Minute), []fault.Code{slow}, 7 * time.Second, true, 2, 7 * time.Second, 7*time.Second + 125*time.Millisecond},
		{"remote asks for too long", policy(5, 10*time.Second), []fault.Code{slow}, 11 * time.Second, true, 1, 0, 0},
		{"time is up", policy(100, 4*time.Second), []fault.Code{down}, 0, true, 0, 0, 4 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, n := time.Now(), 0
				Retry(context.Background(), c.policy, func(i int) (fault.Code, time.Duration, bool) {
					if n++; i != n {
						t.Errorf("attempt %d is called %d", n, i)
					}
					return c.codes[min(n, len(c.codes))-1], c.after, c.again
				})
				if c.attempts > 0 && n != c.attempts {
					t.Errorf("%d attempts, want %d", n, c.attempts)
				}
				if took := time.Since(start); took < c.low || took > c.hi {
					t.Errorf("took %s, want %s to %s", took, c.low, c.hi)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Second, cancel)
		start, n := time.Now(), 0
		Retry(ctx, policy(100, time.Hour), func(int) (fault.Code, time.Duration, bool) {
			n++
			return fault.UpstreamUnavailable, 2 * time.Second, true
		})
		if took := time.Since(start); took != 3*time.Second || n != 2 {
			t.Errorf("%d attempts, ended after %s", n, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start, n := time.Now(), 0
		Retry(ctx, policy(9, time.Hour), func(int) (fault.Code, time.Duration, bool) {
			n++
			return fault.UpstreamUnavailable, time.Minute, true
		})
		if time.Since(start) != 0 || n != 1 {
			t.Errorf("waited %s for an attempt that could not come", time.Since(start))
		}
	})
}
