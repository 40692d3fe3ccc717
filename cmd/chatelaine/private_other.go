//go:build !linux

package main

import "golang.org/x/sys/unix"

// keepPrivate runs before a passphrase or a secret is read: no dump may hold it.
func keepPrivate() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
