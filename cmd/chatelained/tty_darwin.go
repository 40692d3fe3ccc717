package main

import "golang.org/x/sys/unix"

// The requests that read and write a terminal's settings.
const (
	ttyGet = unix.TIOCGETA
	ttySet = unix.TIOCSETA
)
