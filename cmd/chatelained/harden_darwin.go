package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// harden is the first thing the daemon does: no core dump may hold a secret.
func harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("cannot forbid core dumps: %w", err)
	}
	unix.Umask(0o077)
	return nil
}
