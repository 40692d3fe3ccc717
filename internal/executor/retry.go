package executor

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

const (
	// firstWait is about how long a service needs to fail over a connection.
	firstWait = 250 * time.Millisecond
	// longestWait bounds the doubling; a remote that wants more says so with
	// Retry-After.
	longestWait = 5 * time.Second
)

// Retry runs attempt as often as the contract allows. attempt gets the number
// of the attempt, from 1, and returns its code ("" for success), how long the
// remote asks to wait (zero where it does not say) and whether another attempt
// may follow at all. Another follows only if it may, the code is one of the
// policy's, attempts are left, and its wait ends within the policy's time and
// before ctx ends. Waits double, with jitter; the remote's own wish is never
// undercut. Retry itself sends nothing.
func Retry(ctx context.Context, p actions.RetryPolicy, attempt func(n int) (code fault.Code, after time.Duration, again bool)) {
	start := time.Now()
	retry(p, attempt, func(wait time.Duration) bool {
		return (p.Within <= 0 || time.Since(start)+wait <= p.Within) && sleep(ctx, wait)
	})
}

// RetryAtOnce is Retry for contract tests: it counts the waits against the
// policy's time but takes none.
func RetryAtOnce(ctx context.Context, p actions.RetryPolicy, attempt func(n int) (code fault.Code, after time.Duration, again bool)) {
	var waited time.Duration
	retry(p, attempt, func(wait time.Duration) bool {
		waited += wait
		return (p.Within <= 0 || waited <= p.Within) && ctx.Err() == nil
	})
}

// retry is the loop itself; wait says whether the next attempt still fits.
func retry(p actions.RetryPolicy, attempt func(n int) (fault.Code, time.Duration, bool), wait func(time.Duration) bool) {
	for n := 1; ; n++ {
		code, after, again := attempt(n)
		if !again || code == "" || !p.Codes[code] || n >= p.Attempts || !wait(pause(n, after)) {
			return
		}
	}
}

// pause is the wait after attempt n: half fixed, half by chance, so that
// callers that failed together do not come back together.
func pause(n int, after time.Duration) time.Duration {
	base := longestWait
	if n < 6 { // 250 ms doubled five times is beyond the longest wait
		base = min(firstWait<<(n-1), longestWait)
	}
	jitter := time.Duration(random() % uint64(base/2))
	return max(after, base/2) + jitter
}

// sleep waits, and says whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
}
