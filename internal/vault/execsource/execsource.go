// Package execsource fetches the secret of an identity from a program of the
// operator's, such as `pass show NAME` or `op read REFERENCE`.
//
// It must never run a shell, pass on a variable that was not named, wait longer
// than it was told, keep what the program writes to standard error, or put a byte
// of its output into an error. Only cmd/chatelained may import it.
package execsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// Placeholder is the one argument that the reference takes the place of.
const Placeholder = "{ref}"

const (
	// maxOutput is what a program may write: far above any secret, and little
	// enough to hold in memory for every call at once.
	maxOutput = 64 << 10
	// pipeGrace is how long a program that has ended may leave a child behind
	// that holds its output open.
	pipeGrace = time.Second
	// MaxArguments bounds the fixed arguments; a longer line belongs in a script.
	MaxArguments = 64
	// plainPath is where a program finds others when PATH was not named: the
	// folders that only root writes.
	plainPath = "PATH=/usr/local/bin:/usr/bin:/bin"
)

// Options describe one program. All but Env and Exits are needed.
type Options struct {
	Name string
	// Argv is the program by its whole path and its arguments; exactly one
	// argument is Placeholder.
	Argv []string
	// Env is the whole environment but PATH, NAME=VALUE each.
	Env     []string
	Timeout time.Duration
	// Exits says what an exit status means, in the words of vault.SourceKind:
	// absent, locked, denied. Another status means unavailable.
	Exits map[int]string
	// FirstLine takes the first line of the output only, as pass keeps a secret.
	FirstLine bool
}

// Source runs a program for each fetch. It is safe for concurrent use.
type Source struct{ o Options }

// CheckArgv says what is wrong with a program and its arguments. It does not look
// at the file.
func CheckArgv(argv []string) error {
	switch {
	case len(argv) == 0:
		return errors.New("it names no program")
	case len(argv) > MaxArguments:
		return fmt.Errorf("it has more than %d arguments", MaxArguments)
	case !filepath.IsAbs(argv[0]) || filepath.Clean(argv[0]) != argv[0]:
		return errors.New("the program must be its whole path, from /, and neither . nor .. in it")
	}
	places := 0
	for i, arg := range argv {
		switch {
		case arg == "" || strings.ContainsRune(arg, 0):
			return fmt.Errorf("argument %d is empty or has a zero byte", i)
		case arg == Placeholder && i > 0:
			places++
		case strings.Contains(arg, Placeholder):
			return fmt.Errorf("argument %d holds %s beside other text; the reference is a whole argument", i, Placeholder)
		}
	}
	if places != 1 {
		return fmt.Errorf("exactly one argument must be %q", Placeholder)
	}
	return nil
}

// CheckVariable says what is wrong with the name of a variable that a program is
// to be given. What bends the loader or the resolver is never passed on.
func CheckVariable(name string) error {
	for i, c := range []byte(name) {
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return errors.New("a variable's name has letters, digits and '_'")
		}
	}
	upper := strings.ToUpper(name)
	switch {
	case name == "" || len(name) > maxVariable:
		return fmt.Errorf("a variable's name has 1 to %d letters", maxVariable)
	case strings.HasPrefix(upper, "LD_"), strings.HasPrefix(upper, "DYLD_"), upper == "GODEBUG", upper == "BASH_ENV", upper == "ENV", upper == "IFS":
		return errors.New("this variable changes which code the program runs, and is never passed on")
	}
	return nil
}

// maxVariable is longer than the name of any variable in use.
const maxVariable = 128

// New makes the source; the options were checked by who read them, and once more
// here.
func New(o Options) (*Source, error) {
	if !vault.ValidSourceName(o.Name) {
		return nil, errors.New("a source's name has 1 to 32 of a-z, 0-9, '-' and '_'")
	}
	if err := CheckArgv(o.Argv); err != nil {
		return nil, fmt.Errorf("source %s: %w", o.Name, err)
	}
	if o.Timeout <= 0 {
		return nil, fmt.Errorf("source %s: it has no time-out", o.Name)
	}
	return &Source{o}, nil
}

// Name is the source's name.
func (s *Source) Name() string { return s.o.Name }

// Check looks at the form of a reference: any text that is no flag.
func (s *Source) Check(reference string) error {
	if err := vault.CheckReferenceText(reference); err != nil {
		return fmt.Errorf("source %s: %w", s.o.Name, err)
	}
	return nil
}

// Fetch runs the program once and returns what it wrote, less one line end.
func (s *Source) Fetch(ctx context.Context, reference string) (secret.Secret, error) {
	if err := s.Check(reference); err != nil {
		return secret.Secret{}, err
	}
	if err := s.checkProgram(); err != nil {
		return secret.Secret{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	out := &capped{}
	defer out.wipe()
	err := s.run(ctx, reference, out)
	if err := s.ended(ctx, out, err); err != nil {
		return secret.Secret{}, err
	}
	text := s.cut(out.b)
	if len(text) == 0 {
		return secret.Secret{}, s.fail(vault.ErrSourceLying, "the program ended well and wrote nothing")
	}
	return secret.New(text), nil
}

// run starts the program in a session of its own, so that it has no terminal to
// ask on and ends with everything that it started.
func (s *Source) run(ctx context.Context, reference string, out *capped) error {
	argv := slices.Clone(s.o.Argv)
	argv[slices.Index(argv, Placeholder)] = reference
	ctx, tooMuch := context.WithCancel(ctx)
	defer tooMuch()
	out.full = tooMuch
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = append([]string{plainPath}, s.o.Env...) // of a name that stands twice the last counts
	cmd.Stdout = out
	cmd.WaitDelay = pipeGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = group() // somebody of the group holds the pipe, so its number is not another's
	}
	return err
}

// checkProgram looks at the program before each run: nobody but root and the
// daemon's user may be able to change it.
func (s *Source) checkProgram() error {
	path := s.o.Argv[0]
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.fail(vault.ErrSourceUnavailable, "the program %s is not there", path)
	case err != nil:
		return s.fail(vault.ErrSourceUnavailable, "the program %s cannot be looked at", path)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return s.fail(vault.ErrSourceUnavailable, "%s is no program", path)
	case info.Mode().Perm()&0o022 != 0:
		return s.fail(vault.ErrSourceDenied, "the program %s can be changed by others; take group and other write permission away", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return s.fail(vault.ErrSourceDenied, "the program %s belongs to another user than root and the daemon's", path)
	}
	return nil
}

// ended turns the end of a run into an error of the closed list.
func (s *Source) ended(ctx context.Context, out *capped, err error) error {
	var exit *exec.ExitError
	switch {
	case out.over:
		return s.fail(vault.ErrSourceLying, "the program wrote more than %d bytes", maxOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return s.fail(vault.ErrSourceUnavailable, "the program did not end within %s; it may be waiting for a person", s.o.Timeout)
	case ctx.Err() != nil:
		return s.fail(vault.ErrSourceUnavailable, "the fetch was given up")
	case errors.Is(err, exec.ErrWaitDelay):
		return s.fail(vault.ErrSourceUnavailable, "the program ended and left a child behind that holds its output open")
	case errors.As(err, &exit):
		return s.status(exit)
	case err != nil:
		return s.fail(vault.ErrSourceUnavailable, "the program %s cannot be started", s.o.Argv[0])
	}
	return nil
}

func (s *Source) status(exit *exec.ExitError) error {
	code := exit.ExitCode()
	if code < 0 {
		return s.fail(vault.ErrSourceUnavailable, "the program was ended by a signal")
	}
	kind := vault.ErrSourceUnavailable
	switch s.o.Exits[code] {
	case "absent":
		kind = vault.ErrSourceAbsent
	case "locked":
		kind = vault.ErrSourceLocked
	case "denied":
		kind = vault.ErrSourceDenied
	}
	return s.fail(kind, "the program ended with exit status %d; run it by hand as the daemon's user to see why", code)
}

// fail names the source. Texts are ours, and paths of the configuration.
func (s *Source) fail(kind error, format string, args ...any) error {
	return fmt.Errorf("source %s: %w: %s", s.o.Name, kind, fmt.Sprintf(format, args...))
}

// cut takes away what the program wrote after the secret.
func (s *Source) cut(b []byte) []byte {
	if s.o.FirstLine {
		b, _, _ = bytes.Cut(b, []byte("\n"))
		return bytes.TrimSuffix(b, []byte("\r"))
	}
	return vault.CutLineEnd(b)
}

// capped keeps what is written to it, up to maxOutput, in one piece of memory, so
// that no copy of a secret is left behind by growing.
type capped struct {
	b    []byte
	over bool
	full func() // called when there is too much
}

// ReadFrom is what io.Copy calls in place of Write: it reads into that memory, and no
// buffer in between keeps a copy.
func (c *capped) ReadFrom(r io.Reader) (int64, error) {
	c.b = make([]byte, 0, maxOutput+1)
	for {
		n, err := r.Read(c.b[len(c.b):cap(c.b)])
		c.b = c.b[:len(c.b)+n]
		switch {
		case len(c.b) > maxOutput:
			c.over = true
			c.full()
			return int64(len(c.b)), errTooMuch
		case errors.Is(err, io.EOF):
			return int64(len(c.b)), nil
		case err != nil:
			return int64(len(c.b)), err
		}
	}
}

// Write is there because the library takes only an io.Writer. It is never called.
func (c *capped) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

var errTooMuch = errors.New("too much output")

func (c *capped) wipe() { clear(c.b[:cap(c.b)]) }
