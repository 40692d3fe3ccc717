package durable

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootClock returns the clock that a daemon runs on: wall time and
// CLOCK_BOOTTIME, which goes on while the machine sleeps.
func BootClock() Clock {
	return Clock{Mono: func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			return time.Since(started)
		}
		return time.Duration(ts.Nano())
	}}
}
