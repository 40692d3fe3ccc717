package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"chatelaine/internal/secret"
)

// Passphrases: long enough to be one, short enough to be typed.
const (
	passphraseMin = 8
	passphraseMax = 1024
)

// readPassphrase takes a passphrase from a descriptor or from the terminal,
// where it is asked twice without echo.
func readPassphrase(ctx context.Context, what, flag string, fd int) (secret.Secret, error) {
	var b []byte
	var err error
	if fd >= 0 {
		b, err = fromDescriptor(what, fd)
	} else {
		b, err = fromTerminal(ctx, what, flag)
	}
	if err != nil {
		return secret.Secret{}, err
	}
	defer clear(b)
	if len(b) < passphraseMin {
		return secret.Secret{}, usageError{fmt.Errorf("the %s passphrase is shorter than %d bytes; nothing was written", what, passphraseMin)}
	}
	return secret.New(b), nil
}

// checkDescriptor refuses a descriptor that whoever started us has not opened.
// Files of our own, which the runtime opens before main, close on exec; what was
// handed over cannot have that mark, or it would not be here (execve(2)).
func checkDescriptor(what string, fd int) error {
	if fd == noDescriptor {
		return nil
	}
	flags, err := unix.FcntlInt(uintptr(max(fd, 0)), unix.F_GETFD, 0)
	if fd < 0 || err != nil || flags&unix.FD_CLOEXEC != 0 {
		return usageError{fmt.Errorf("descriptor %d for the %s passphrase is not open", fd, what)}
	}
	return nil
}

// noDescriptor asks the terminal instead.
const noDescriptor = -1

func fromDescriptor(what string, fd int) ([]byte, error) {
	f := os.NewFile(uintptr(fd), "passphrase")
	if f == nil {
		return nil, usageError{fmt.Errorf("descriptor %d for the %s passphrase is not open", fd, what)}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, passphraseMax+2))
	if err != nil {
		return nil, usageError{fmt.Errorf("descriptor %d for the %s passphrase: %w", fd, what, err)}
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if len(b) > passphraseMax {
		return nil, usageError{fmt.Errorf("the %s passphrase is longer than %d bytes", what, passphraseMax)}
	}
	return b, nil
}

func fromTerminal(ctx context.Context, what, flag string) ([]byte, error) {
	none := fmt.Sprintf("no terminal to ask for the %s passphrase; give it on a descriptor: --%s 3 3<FILE", what, flag)
	first, err := askHidden(ctx, fmt.Sprintf("New %s passphrase: ", what), none)
	if err != nil {
		return nil, err
	}
	second, err := askHidden(ctx, "Again: ", none)
	if err != nil {
		return nil, err
	}
	defer clear(second)
	if subtle.ConstantTimeCompare(first, second) != 1 {
		return nil, usageError{fmt.Errorf("the %s passphrase was not typed the same twice; nothing was written, run the command again", what)}
	}
	return first, nil
}
