package vault

import (
	"time"

	"golang.org/x/sys/unix"
)

// Asleep is how long the machine has slept since it was started: CLOCK_MONOTONIC
// goes on in a sleep here, CLOCK_UPTIME_RAW does not (clock_gettime(3)).
func Asleep() time.Duration { return between(unix.CLOCK_UPTIME_RAW, unix.CLOCK_MONOTONIC) }
