package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

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
	return refuseTracer("/proc/self/status")
}

// refuseTracer stops a start under a debugger. Who attached before the line above
// stays attached, and could read the vault's key once there is one. It keeps out
// no enemy, who could answer for the kernel; it keeps a forgotten strace from
// a daemon that holds secrets.
func refuseTracer(status string) error {
	b, err := os.ReadFile(status)
	if err != nil {
		return nil // no /proc: nothing to ask
	}
	for line := range bytes.Lines(b) {
		name, value, _ := strings.Cut(string(line), ":")
		if tracer := strings.TrimSpace(value); name == "TracerPid" && tracer != "0" {
			return errors.New("process " + tracer + " traces this one and could read its memory; start it without a debugger")
		}
	}
	return nil
}
