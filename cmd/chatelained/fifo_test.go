package main_test

import (
	"syscall"
	"testing"
)

// fifo makes a named pipe: who opens it to read waits for a writer.
func fifo(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
