package actions

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time that this process has used, all its threads
// together: what a benchmark on a shared machine can compare.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
