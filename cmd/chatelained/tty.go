package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// errInterrupted is Ctrl-C, or SIGTERM, at a question; what was typed is dropped.
var errInterrupted = errors.New("interrupted; nothing was changed")

// askHidden asks once at the terminal, without echo. An interrupt ends the question
// and puts the echo back: the signals are caught for the daemon's sake, so nothing
// else would. noTerminal is the sentence where there is none.
func askHidden(ctx context.Context, prompt, noTerminal string) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, usageError{errors.New(noTerminal)}
	}
	defer tty.Close()
	fd := int(tty.Fd())
	before, err := unix.IoctlGetTermios(fd, ttyGet)
	if err != nil {
		return nil, fmt.Errorf("cannot switch the terminal's echo off: %w", err)
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO | unix.ECHONL
	if err := unix.IoctlSetTermios(fd, ttySet, &quiet); err != nil {
		return nil, fmt.Errorf("cannot switch the terminal's echo off: %w", err)
	}
	fmt.Fprint(tty, prompt) // now, so that what is pasted at once is hidden too
	defer func() {
		_ = unix.IoctlSetTermios(fd, ttySet, before) // a closed terminal has no echo to restore
		fmt.Fprintln(tty)
	}()
	type line struct {
		b   []byte
		err error
	}
	got := make(chan line, 1)
	go func() {
		b, err := term.ReadPassword(fd)
		got <- line{b, err}
	}()
	select {
	case l := <-got:
		return l.b, l.err
	case <-ctx.Done():
		// The reader stays blocked on the terminal; the program ends now.
		return nil, errInterrupted
	}
}
