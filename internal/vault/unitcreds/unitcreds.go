// Package unitcreds fetches the secret of an identity from the folder in which a
// service manager puts the credentials of a unit (systemd.exec(5), "Credentials").
//
// It must never follow a link, leave the folder, or read what other users can
// write or read. Only cmd/chatelained may import it.
package unitcreds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

const (
	// maxName is what systemd takes for the name of a credential.
	maxName = 255
	// maxFile is far above any secret that an identity may have.
	maxFile = 64 << 10
	// readableByOthers is what no credential's file may have. The manager gives
	// group read permission where it uses access lists for a dynamic user.
	readableByOthers = 0o027
	// writableByOthers is what the folder may not have.
	writableByOthers = 0o022
)

// Source reads files of one folder. It is safe for concurrent use.
type Source struct{ name, dir string }

// New makes the source over a folder; "" is a service manager that gave none,
// which each fetch then says.
func New(name, dir string) (*Source, error) {
	if !vault.ValidSourceName(name) {
		return nil, errors.New("a source's name has 1 to 32 of a-z, 0-9, '-' and '_'")
	}
	return &Source{name, dir}, nil
}

// Name is the source's name.
func (s *Source) Name() string { return s.name }

// Check wants the name of one credential: a file name without a path.
func (s *Source) Check(reference string) error {
	if err := vault.CheckReferenceText(reference); err != nil {
		return fmt.Errorf("source %s: %w", s.name, err)
	}
	if strings.ContainsRune(reference, '/') || strings.HasPrefix(reference, ".") || len(reference) > maxName {
		return fmt.Errorf("source %s: %w: it is the name of one credential, without / and without a dot at its beginning", s.name, vault.ErrBadReference)
	}
	return nil
}

// Fetch reads one credential, less one line end.
func (s *Source) Fetch(ctx context.Context, reference string) (secret.Secret, error) {
	if err := s.Check(reference); err != nil {
		return secret.Secret{}, err
	}
	if ctx.Err() != nil {
		return secret.Secret{}, s.fail(vault.ErrSourceUnavailable, "the fetch was given up")
	}
	if err := s.checkFolder(); err != nil {
		return secret.Secret{}, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, reference), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return secret.Secret{}, s.fail(vault.ErrSourceAbsent, "the unit has no credential of that name; see LoadCredentialEncrypted= in the unit")
	case errors.Is(err, syscall.ELOOP):
		return secret.Secret{}, s.fail(vault.ErrSourceDenied, "the credential is a link")
	case errors.Is(err, fs.ErrPermission):
		return secret.Secret{}, s.fail(vault.ErrSourceDenied, "the daemon may not read it")
	case err != nil:
		return secret.Secret{}, s.fail(vault.ErrSourceUnavailable, "it cannot be opened")
	}
	defer f.Close()
	return s.read(f)
}

func (s *Source) checkFolder() error {
	if s.dir == "" {
		return s.fail(vault.ErrSourceUnavailable, "the service manager gave no credentials (CREDENTIALS_DIRECTORY is not set)")
	}
	info, err := os.Lstat(s.dir)
	switch {
	case err != nil:
		return s.fail(vault.ErrSourceUnavailable, "the folder of the credentials cannot be looked at")
	case !info.IsDir():
		return s.fail(vault.ErrSourceDenied, "the folder of the credentials is a link or no folder")
	}
	return s.ours("the folder of the credentials", info, writableByOthers)
}

func (s *Source) read(f *os.File) (secret.Secret, error) {
	info, err := f.Stat()
	if err != nil {
		return secret.Secret{}, s.fail(vault.ErrSourceUnavailable, "it cannot be looked at")
	}
	if !info.Mode().IsRegular() {
		return secret.Secret{}, s.fail(vault.ErrSourceDenied, "the credential is no file")
	}
	if err := s.ours("the credential", info, readableByOthers); err != nil {
		return secret.Secret{}, err
	}
	buf := make([]byte, maxFile+1)
	defer clear(buf)
	n, err := io.ReadFull(f, buf)
	switch {
	case errors.Is(err, io.EOF):
		return secret.Secret{}, s.fail(vault.ErrSourceLying, "the credential is empty")
	case err == nil:
		return secret.Secret{}, s.fail(vault.ErrSourceLying, "the credential has more than %d bytes", maxFile)
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return secret.Secret{}, s.fail(vault.ErrSourceUnavailable, "it cannot be read")
	}
	return secret.New(vault.CutLineEnd(buf[:n])), nil
}

// ours wants root or the daemon's user as the owner, and no permission of bad.
func (s *Source) ours(what string, info fs.FileInfo, bad fs.FileMode) error {
	if info.Mode().Perm()&bad != 0 {
		return s.fail(vault.ErrSourceDenied, "%s has mode %04o, so others may have changed or read it", what, info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return s.fail(vault.ErrSourceDenied, "%s belongs to another user than root and the daemon's", what)
	}
	return nil
}

// fail names the source; the reference is not repeated.
func (s *Source) fail(kind error, format string, args ...any) error {
	return fmt.Errorf("source %s: %w: %s", s.name, kind, fmt.Sprintf(format, args...))
}
