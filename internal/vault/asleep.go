package vault

import (
	"time"

	"golang.org/x/sys/unix"
)

// between is how far the second clock is ahead of the first; 0 where either
// cannot be read.
func between(awake, all int32) time.Duration {
	var a, b unix.Timespec
	if unix.ClockGettime(awake, &a) != nil || unix.ClockGettime(all, &b) != nil {
		return 0
	}
	return time.Duration(b.Nano() - a.Nano())
}
