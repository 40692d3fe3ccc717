package durable

import "time"

// Clock is the daemon's one clock. Mono never steps; Wall is what is written
// down. The zero value reads the process's own clocks.
type Clock struct {
	Wall func() time.Time
	Mono func() time.Duration
}

// started anchors the default monotonic reading.
var started = time.Now()

// Now returns the wall time, without a monotonic reading in it.
func (c Clock) Now() time.Time {
	if c.Wall == nil {
		return time.Now().Round(0)
	}
	return c.Wall().Round(0)
}

func (c Clock) mono() time.Duration {
	if c.Mono == nil {
		return time.Since(started)
	}
	return c.Mono()
}

// Lifetime is a span that began in this run. It is counted on both clocks and
// the earlier end wins, so that stepping the wall clock back lengthens nothing
// and a suspend that the monotonic clock slept through still counts. The zero
// value has ended.
type Lifetime struct {
	wall time.Time
	mono time.Duration
	d    time.Duration
}

// Start begins a span of d now.
func (c Clock) Start(d time.Duration) Lifetime {
	return Lifetime{wall: c.Now(), mono: c.mono(), d: d}
}

// Left returns how much of l is left, zero once it has ended.
func (c Clock) Left(l Lifetime) time.Duration {
	if l.d <= 0 {
		return 0
	}
	byMono := l.d - (c.mono() - l.mono)
	byWall := l.d - c.Now().Sub(l.wall)
	return max(0, min(byMono, byWall))
}

// Over says whether l has ended.
func (c Clock) Over(l Lifetime) bool { return c.Left(l) == 0 }

// Began returns the wall time at which l began.
func (l Lifetime) Began() time.Time { return l.wall }

// Ends returns the wall time at which l ends at the latest.
func (l Lifetime) Ends() time.Time { return l.wall.Add(l.d) }

// StoredOver says whether a span of d that was written down as begun at stored
// has ended. A stored time in the future is ended: the clock stepped back and
// nothing says how far.
func (c Clock) StoredOver(stored time.Time, d time.Duration) bool {
	age := c.Now().Sub(stored)
	return age < 0 || age >= d
}
