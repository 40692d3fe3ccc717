package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"chatelaine/internal/fault"
)

// Rates keep an agent from flooding the record, the disk and a person's
// attention. They are far above what an honest one does.
const (
	// A session is asked for once an agent run.
	sessionEvery = 5 * time.Second
	sessionBurst = 30
	// Nobody reads more than a card every three seconds.
	cardEvery = 3 * time.Second
	cardBurst = 20
	// ratesMost bounds the table of one limit; full buckets are forgotten.
	ratesMost = 1024
)

// rates is one token bucket a key.
type rates struct {
	mu    sync.Mutex
	every time.Duration
	burst int
	what  string
	by    map[string]*rate.Limiter // guarded by mu
}

func (r *rates) init(every time.Duration, burst int, what string) {
	r.every, r.burst, r.what = every, burst, what
	r.by = map[string]*rate.Limiter{}
}

// take is OVERLOADED, with how long to wait, once a key has used up its bucket.
func (r *rates) take(key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.by[key]
	if l == nil {
		r.makeRoomLocked()
		l = rate.NewLimiter(rate.Every(r.every), r.burst)
		r.by[key] = l
	}
	if l.Allow() {
		return nil
	}
	return fault.Newf(fault.Overloaded, "too many %s in a short time", r.what).After(r.every)
}

// makeRoomLocked forgets the keys whose bucket is full again: they are as good
// as new.
func (r *rates) makeRoomLocked() {
	if len(r.by) < ratesMost {
		return
	}
	for k, l := range r.by {
		if l.Tokens() >= float64(r.burst) {
			delete(r.by, k)
		}
	}
}
