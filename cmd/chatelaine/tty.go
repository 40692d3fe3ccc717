package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// errNoLine is an end of file or a closed terminal where a line was expected.
var errNoLine = errors.New("no line")

// readHidden asks at the terminal without echo. An interrupt puts the echo
// back before the program ends, and so does an end of file, which the usual
// library waits through.
func readHidden(ctx context.Context, tty *os.File, prompt string) ([]byte, error) {
	fd := int(tty.Fd())
	before, err := unix.IoctlGetTermios(fd, ttyGet)
	if err != nil {
		return nil, usage("cannot switch the terminal's echo off: " + err.Error())
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO | unix.ECHONL
	quiet.Lflag |= unix.ICANON | unix.ISIG
	quiet.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, ttySet, &quiet); err != nil {
		return nil, usage("cannot switch the terminal's echo off: " + err.Error())
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
		b, err := readLine(fd)
		got <- line{b, err}
	}()
	select {
	case <-ctx.Done():
		// The reader stays blocked on the terminal; the program ends now.
		return nil, &failure{exit: exitInterrupted, msg: "interrupted", cause: errInterrupted}
	case l := <-got:
		if l.err != nil {
			return nil, usage("nothing was typed; nothing was done", "the terminal was closed or sent an end of file")
		}
		return checkTyped(l.b)
	}
}

// readLine reads to the newline, a byte a time, so that nothing typed ahead is
// lost to the next prompt.
func readLine(fd int) ([]byte, error) {
	out := make([]byte, 0, ttyLine) // grown never, so that no copy stays behind
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			clear(out)
			return nil, errNoLine
		case b[0] == '\n':
			return out, nil
		case len(out) < ttyLine:
			out = append(out, b[0])
		}
	}
}
