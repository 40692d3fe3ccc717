package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// holderFile names who took the lock. It is advice for the person who reads
// the refusal: the lock itself is the kernel's, and ends with the process.
const holderFile = "holder"

// maxHolderBytes bounds what is read back from holderFile, which anyone with
// access to the folder could have written.
const maxHolderBytes = 256

// Lock is a folder held by this process. The zero value holds nothing.
type Lock struct{ dir *os.File }

// HeldError says that another process holds the folder. Holder is what that
// process wrote about itself, or empty.
type HeldError struct {
	Dir    string
	Holder string
}

// Error names the folder and, where known, the holder.
func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("%s is in use by another process; stop it first", e.Dir)
	}
	return fmt.Sprintf("%s is in use by %s; stop it first", e.Dir, e.Holder)
}

// LockDir takes the folder itself, with flock, for as long as the process
// lives or until Unlock. It does not wait: a taken folder is a *HeldError.
// holder (one line, such as "chatelained serve, pid 12") is written to the
// file "holder" in the folder for the next one who is refused.
func LockDir(dir, holder string) (*Lock, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("durable: lock: %w", err)
	}
	if err := flock(d); err != nil {
		d.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{Dir: dir, Holder: readHolder(dir)}
		}
		return nil, fmt.Errorf("durable: lock %s: %w", dir, err)
	}
	if err := WriteFile(filepath.Join(dir, holderFile), []byte(holder+"\n"), 0o600); err != nil {
		d.Close()
		return nil, err
	}
	return &Lock{dir: d}, nil
}

// flock asks for the exclusive lock without waiting. A signal may interrupt
// the call, which says nothing about the lock: it is asked again.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// readHolder returns the first line of the holder file in printable form.
func readHolder(dir string) string {
	f, err := os.OpenFile(filepath.Join(dir, holderFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, maxHolderBytes)
	n, _ := f.Read(b)
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return -1
		}
		return r
	}, line)
}

// Unlock gives the folder back. A second call, or one on the zero value, does
// nothing.
func (l *Lock) Unlock() error {
	if l == nil || l.dir == nil {
		return nil
	}
	err := l.dir.Close()
	l.dir = nil
	if err != nil {
		return fmt.Errorf("durable: unlock: %w", err)
	}
	return nil
}
