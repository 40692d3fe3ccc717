package vault

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"chatelaine/internal/durable"
)

// fileMode is exact: a vault file that others may read is refused, because it
// may have been copied.
const fileMode fs.FileMode = 0o600

// previousPath is where the generation before the current one is kept.
func previousPath(path string) string { return path + ".previous" }

func errExists(path string, err error) error {
	if err != nil {
		return fmt.Errorf("vault: look for %s: %w", path, err)
	}
	return fmt.Errorf("%w: %s", ErrExists, path)
}

// readFile reads the vault file after it has made sure whose it is. It does
// not follow a link and does not wait on a pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, absent(path)
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("%w: %s is a symbolic link", ErrNotPrivate, path)
	case err != nil:
		return nil, fmt.Errorf("vault: open: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("vault: look at %s: %w", path, err)
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("vault: read %s: %w", path, err)
	}
	return b, nil
}

// absent tells a vault that was never made from one that is gone.
func absent(path string) error {
	if _, err := os.Lstat(previousPath(path)); err == nil {
		return fmt.Errorf("%w: %s is missing, but %s is there", ErrAbsent, path, previousPath(path))
	}
	return fmt.Errorf("%w: %s", ErrAbsent, path)
}

// checkPrivate refuses a file that is not ours alone.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file", ErrNotPrivate, path)
	}
	if perm := info.Mode().Perm(); perm&^fileMode != 0 {
		return fmt.Errorf("%w: %s has mode %04o; set it to %04o after you have made sure that nobody copied it", ErrNotPrivate, path, perm, fileMode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, not to %d", ErrNotPrivate, path, st.Uid, os.Geteuid())
	}
	return nil
}

// withPrevious adds the way out to a refusal.
func withPrevious(path string, err error) error {
	if _, serr := os.Lstat(previousPath(path)); serr != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %w; the generation before it is in %s, and `chatelained recover` puts it back", path, err, previousPath(path))
}

// replaceLocked puts a new generation in place of the one that this process
// knows. v.write is held.
//
// On disk after each step: (1) the old generation also under its second name:
// a crash changes nothing; (2) the new one under the vault's name: the old one
// stays under the second. A crash within a step leaves what was before it,
// whole, and a leftover that the next Open removes.
//
// It returns whether the new bytes are in place, which may be so although an
// error says that they might not outlive a power cut.
func (v *Vault) replaceLocked(b []byte) (placed bool, err error) {
	old, err := readFile(v.path)
	if err != nil {
		return false, err
	}
	if sha256.Sum256(old) != v.disk {
		return false, fmt.Errorf("%s: %w; nothing was saved", v.path, ErrChanged)
	}
	if err := durable.WriteFile(previousPath(v.path), old, fileMode); err != nil {
		return false, err
	}
	sum := sha256.Sum256(b)
	if err = durable.WriteFile(v.path, b, fileMode); err != nil {
		now, rerr := readFile(v.path)
		placed = rerr == nil && sha256.Sum256(now) == sum
	} else {
		placed = true
	}
	if placed {
		v.disk = sum
	}
	return placed, err
}
