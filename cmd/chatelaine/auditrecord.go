package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"chatelaine/internal/auditlog"
)

// recordAt is a record and what opens it.
type recordAt struct {
	key, dir string
	fd       int
}

func (r *recordAt) add(f *pflag.FlagSet) {
	f.StringVar(&r.key, "key", "", "file with a key that the record is sealed to")
	f.StringVar(&r.dir, "audit", "", "folder of the record instead of the state folder's")
	f.IntVar(&r.fd, "passphrase-fd", -1, "read the operator passphrase for the key from this open descriptor instead of the terminal")
}

// open finds the record and reads the key. What is wrong with the folder is said
// before a passphrase is asked.
func (r *recordAt) open(a *app, cmd *cobra.Command) (auditlog.Identity, error) {
	if r.key == "" {
		return auditlog.Identity{}, usage("the record is sealed: say which key opens it with --key FILE", "the recovery key, or audit-key.age of the state folder")
	}
	if r.dir == "" {
		p, err := a.places()
		if err != nil {
			return auditlog.Identity{}, err
		}
		r.dir = p.Record()
	}
	if _, err := os.ReadDir(r.dir); err != nil {
		return auditlog.Identity{}, usage(fmt.Sprintf("cannot read the record in %s: %v", r.dir, plainCause(err)), "name its folder with --audit or --state")
	}
	return readAuditKey(cmd, r.key, r.fd)
}

// outputError is a failure of f's own, not of the record: what was read could not be
// written.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// read gives f every event, one at a time. The error is for a person: that of f, an
// interrupt, or what is wrong with the record, of which all before that was given to f.
func (r *recordAt) read(ctx context.Context, key auditlog.Identity, f func(*auditlog.Event) error) error {
	collectOften()
	opened := false
	err := auditlog.Read(r.dir, key, func(_ uint64, e auditlog.Event) error {
		opened = true
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(&e); err != nil {
			return &outputError{err}
		}
		return nil
	})
	return r.readError(opened, err)
}

// readGCPercent is what Go does by itself.
const readGCPercent = 100

// collectOften undoes collectSeldom for what reads a record of any length: there is
// always a little in use, and much garbage.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(readGCPercent)
	}
}

// readError says what is wrong with a record that was read, nil for nothing. opened
// says whether the key opened anything at all.
func (r *recordAt) readError(opened bool, err error) error {
	var file *fs.PathError
	var out *outputError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &out):
		return out.err
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, auditlog.ErrNoKey) && !opened:
		return usage(fmt.Sprintf("the key in %s does not open the record in %s", r.key, r.dir), "a record opens with the keys of the init that made it")
	case errors.Is(err, auditlog.ErrNoKey):
		return usage(fmt.Sprintf("a part of the record in %s is not sealed to the key in %s; only what stands before it was read", r.dir, r.key), "give the newer key")
	case errors.Is(err, auditlog.ErrAbsent), errors.As(err, &file):
		return usage(fmt.Sprintf("cannot read the record in %s: %s", r.dir, strings.TrimPrefix(err.Error(), "auditlog: ")), "name its folder with --audit or --state")
	}
	return &failure{exit: exitRefused, cause: err, msg: strings.TrimPrefix(err.Error(), "auditlog: "),
		hints: []string{"only what stands before that place was read; chatelaine audit verify " + r.dir + " says more"}}
}
