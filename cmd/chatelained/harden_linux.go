package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// harden is the first thing the daemon does: no core dump may hold a secret,
// and another process of the same user may not read this one's memory
// (prctl(2), PR_SET_DUMPABLE).
func harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot forbid core dumps: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("cannot forbid core dumps: %w", err)
	}
	unix.Umask(0o077)
	return nil
}
