package main_test

import "golang.org/x/sys/unix"

// mountSmall mounts a disk of 64 MiB.
func mountSmall(dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m")
}
