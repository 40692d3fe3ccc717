package vault

import (
	"time"

	"golang.org/x/sys/unix"
)

// Asleep is how long the machine has slept since it was started: CLOCK_BOOTTIME
// goes on in a suspend, CLOCK_MONOTONIC does not (clock_gettime(2)).
func Asleep() time.Duration { return between(unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME) }
