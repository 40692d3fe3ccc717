package gateway

import (
	"context"
	"sync"
	"time"

	"chatelaine/internal/fault"
)

// places counts the calls between arming and answer.
type places struct {
	mu        sync.Mutex
	limits    Limits
	all       int            // guarded by mu
	perTarget map[string]int // guarded by mu
}

func (p *places) init(l Limits) { p.limits, p.perTarget = l, make(map[string]int) }

// take returns a place, or OVERLOADED at once: a queue here would hide from the
// agent that nothing has happened yet.
func (p *places) take(target string) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fullLocked(target); err != nil {
		return nil, err
	}
	p.all++
	p.perTarget[target]++
	var once sync.Once
	return func() { once.Do(func() { p.give(target) }) }, nil
}

// full is OVERLOADED while no place for the target is free; it takes none.
func (p *places) full(target string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fullLocked(target)
}

func (p *places) fullLocked(target string) error {
	if p.all >= p.limits.Calls {
		return fault.Newf(fault.Overloaded, "%d calls run already (limits.calls)", p.all)
	}
	if p.perTarget[target] >= p.limits.CallsPerTarget {
		return fault.Newf(fault.Overloaded, "%d calls to target %s run already (limits.calls_per_target)", p.perTarget[target], target)
	}
	return nil
}

// placeLook is how often a call that may wait looks for a free place.
const placeLook = 20 * time.Millisecond

// takeBehind is take for a poll: it leaves half of a target's places, and of all,
// to calls that somebody waits for.
func (p *places) takeBehind(target string) (release func(), err error) {
	p.mu.Lock()
	crowded := p.all >= max(1, p.limits.Calls/2) || p.perTarget[target] >= max(1, p.limits.CallsPerTarget/2)
	p.mu.Unlock()
	if crowded {
		return nil, fault.Newf(fault.Overloaded, "half of the places for target %s are taken; a poll leaves the others to calls", target)
	}
	return p.take(target)
}

// wait is take for a call that may wait a little.
func (p *places) wait(ctx context.Context, target string, limit time.Duration) (release func(), err error) {
	return waitFor(ctx, target, limit, p.take)
}

// waitBehind is takeBehind for a poll that may wait a little.
func (p *places) waitBehind(ctx context.Context, target string, limit time.Duration) (release func(), err error) {
	return waitFor(ctx, target, limit, p.takeBehind)
}

func waitFor(ctx context.Context, target string, limit time.Duration, take func(string) (func(), error)) (release func(), err error) {
	look := time.NewTicker(placeLook)
	defer look.Stop()
	for end := time.Now().Add(limit); ; {
		release, err = take(target)
		if err == nil || !time.Now().Before(end) {
			return release, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (p *places) give(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.perTarget[target]--; p.perTarget[target] == 0 {
		delete(p.perTarget, target)
	}
}

func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// running counts the calls under way, so that a stop can wait for them. After
// close no further one enters.
type running struct {
	mu     sync.Mutex
	n      int           // guarded by mu
	closed bool          // guarded by mu
	idle   chan struct{} // guarded by mu; closed once closed and n is 0
}

func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.closed {
		close(r.idle)
	}
}

func (r *running) close() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.idle
	}
	r.closed, r.idle = true, make(chan struct{})
	if r.n == 0 {
		close(r.idle)
	}
	return r.idle
}
