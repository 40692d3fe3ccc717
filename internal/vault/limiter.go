package vault

import (
	"errors"
	"sync"
	"time"
)

// How fast a passphrase or a proof may be guessed: one try a second, and after
// five wrong ones in a row one a minute, until a right one.
const (
	afterWrong   = time.Second
	afterMany    = time.Minute
	manyFailures = 5
)

// limiter lets one attempt run at a time and makes wrong ones wait. A right one
// costs nothing, so that a person who decides quickly is not held up. It is
// kept in memory: a restart forgets it, but a restart is seen.
type limiter struct {
	mu       sync.Mutex
	failures int
	next     time.Time
}

// reset forgets the wrong tries.
func (l *limiter) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures, l.next = 0, time.Time{}
}

// try runs f unless it is too soon. wrong is the error that counts as a guess.
func (l *limiter) try(f func() error, wrong error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := time.Until(l.next); wait > 0 {
		return &ProofError{RetryAfter: wait}
	}
	err := f()
	switch {
	case err == nil:
		l.failures, l.next = 0, time.Time{}
	case errors.Is(err, wrong):
		l.failures++
		pause := afterWrong
		if l.failures >= manyFailures {
			pause = afterMany
		}
		l.next = time.Now().Add(pause)
	}
	return err
}
