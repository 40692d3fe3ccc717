package main_test

import "golang.org/x/sys/unix"

// ttyGet reads a terminal's settings.
const ttyGet = unix.TCGETS

// mountSmall mounts a disk of 64 MiB.
func mountSmall(dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m")
}
