package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"chatelaine/internal/client"
)

const (
	// maxPassphrase bounds what is read as a passphrase.
	maxPassphrase = 1024
	// maxSecret bounds a secret given to identity put.
	maxSecret = 16 << 10
	// ttyLine is where a terminal in line mode cuts silently (POSIX
	// MAX_CANON, 4096 on Linux with the newline).
	ttyLine = 4095
	// proofTries is how often a person may mistype before the command ends.
	proofTries = 3
	// proofPause is the daemon's own limit: one try a second.
	proofPause = time.Second
	// longestPause is the longest that a command sleeps for the daemon's limit
	// instead of ending with "try again later".
	longestPause = 5 * time.Second
)

// passSource is where a passphrase comes from: a descriptor that another
// program filled, or the terminal.
type passSource struct {
	tty *os.File // nil: from the descriptor
	fd  *os.File
	// keeps says that kept holds the last passphrase that was read, for a command
	// that needs it once more and clears it.
	keeps bool
	kept  []byte
}

// passphraseSource checks where the passphrase will come from, before anything
// else is asked of the person. flag names the flag, fd is -1 where it was not
// given.
func passphraseSource(what, flag string, fd int) (*passSource, error) {
	keepPrivate()
	if fd >= 0 {
		f, err := openFD(flag, fd)
		return &passSource{fd: f}, err
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, usage(fmt.Sprintf("there is no terminal to read %s from", what),
			fmt.Sprintf("run this at a terminal, or give an open descriptor: --%s 3 3<FILE", flag))
	}
	return &passSource{tty: tty}, nil
}

func openFD(flag string, fd int) (*os.File, error) {
	if fd == 1 || fd == 2 {
		return nil, usage(fmt.Sprintf("--%s %d is this program's own output", flag, fd), "use 0 or 3 and above")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, usage(fmt.Sprintf("--%s %d: this descriptor is not open", flag, fd), fmt.Sprintf("open it in the shell: --%s %d %d<FILE", flag, fd, fd))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil, usage(fmt.Sprintf("--%s %d is a folder", flag, fd))
	}
	if term.IsTerminal(fd) {
		return nil, usage(fmt.Sprintf("--%s %d is a terminal, which would show what is typed", flag, fd), "leave the flag out: the terminal is then asked without echo")
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("descriptor %d", fd)), nil
}

func (p *passSource) close() {
	if p.tty != nil {
		p.tty.Close()
	}
}

// interactive says whether a person types.
func (p *passSource) interactive() bool { return p.tty != nil }

// read returns the passphrase; the caller wipes it.
func (p *passSource) read(ctx context.Context, prompt string) ([]byte, error) {
	var b []byte
	var err error
	if p.tty != nil {
		b, err = readHidden(ctx, p.tty, prompt)
	} else {
		b, err = readCapped(p.fd, maxPassphrase, "the passphrase")
	}
	if err != nil {
		return nil, err
	}
	if len(b) > maxPassphrase {
		clear(b)
		return nil, usage(fmt.Sprintf("the passphrase is longer than %d bytes", maxPassphrase))
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		clear(b)
		return nil, usage("the passphrase is not text in UTF-8")
	}
	if p.keeps {
		clear(p.kept)
		p.kept = bytes.Clone(b)
	}
	return b, nil
}

// readCapped reads all of r, without one trailing newline. Empty is refused.
func readCapped(r io.Reader, limit int, what string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+3)) // room for CR LF
	if err != nil {
		return nil, usage(fmt.Sprintf("cannot read %s: %v", what, plainCause(err)))
	}
	b = trimNewline(b)
	switch {
	case len(b) == 0:
		return nil, usage(fmt.Sprintf("%s is empty; nothing was done", what))
	case len(b) > limit:
		clear(b)
		return nil, usage(fmt.Sprintf("%s is longer than %d bytes; nothing was done", what, limit))
	}
	return b, nil
}

func trimNewline(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

func checkTyped(b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, usage("nothing was typed; nothing was done")
	case len(b) >= ttyLine:
		clear(b)
		return nil, usage(fmt.Sprintf("the line is as long as a terminal can take (%d bytes) and may be cut", ttyLine), "give long secrets on standard input")
	}
	return b, nil
}

// proveWith fetches a challenge, shows what a proof over it covers, reads the
// operator passphrase and answers. A challenge that lapsed while the person typed
// is fetched anew, but never one over something else than was shown; a person at
// a terminal may mistype.
func proveWith(ctx context.Context, src *passSource, prompt string, challenge func() (client.Challenge, error), use func(client.Proof) error) error {
	shown, err := challenge()
	if err != nil {
		return err
	}
	if src.interactive() && shown.Covers != "" {
		fmt.Fprintf(src.tty, "The passphrase covers: %s\n", printable(shown.Covers))
	}
	again := func() (client.Challenge, error) { return sameChallenge(shown, challenge) }
	next := func() (client.Challenge, error) { return shown, nil }
	for try := 1; ; try++ {
		pass, err := src.read(ctx, prompt)
		if err != nil {
			return err
		}
		err = proveOnce(ctx, pass, next, again, use)
		clear(pass)
		if client.CodeOf(err) != client.ProofRefused || !src.interactive() || try == proofTries {
			return err
		}
		fmt.Fprintln(src.tty, "chatelaine: the passphrase was not taken; try again")
		if err := pause(ctx, proofPause); err != nil {
			return err
		}
		next = again
	}
}

// sameChallenge fetches another challenge and refuses one that covers something
// else: the person has not seen it.
func sameChallenge(shown client.Challenge, challenge func() (client.Challenge, error)) (client.Challenge, error) {
	next, err := challenge()
	if err == nil && (next.Digest != shown.Digest || next.Covers != shown.Covers) {
		err = &failure{exit: exitLater, msg: "it changed while the passphrase was typed, and nothing was done; it would now " + next.Covers,
			hints: []string{"look again, and run the command again"}}
	}
	return next, err
}

func proveOnce(ctx context.Context, pass []byte, challenge, again func() (client.Challenge, error), use func(client.Proof) error) error {
	for try := 1; ; try++ {
		ch, err := challenge()
		if err != nil {
			return err
		}
		p, err := ch.Prove(pass)
		if err != nil {
			return err
		}
		err = use(p)
		var told *client.Error
		if try > 1 || !errors.As(err, &told) {
			return err
		}
		switch {
		case told.Code == client.ChallengeExpired:
		case told.Code == client.ProofTooSoon && told.RetryAfter <= longestPause:
			if err := pause(ctx, max(told.RetryAfter, proofPause)); err != nil {
				return err
			}
		default:
			return err
		}
		challenge = again
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return &failure{exit: exitInterrupted, msg: "interrupted", cause: errInterrupted}
	case <-t.C:
		return nil
	}
}

// plainCause drops the path that the message already names.
func plainCause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var n syscall.Errno
	if errors.As(err, &n) {
		return n
	}
	return err
}
