package vault

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"chatelaine/internal/durable"
	"chatelaine/internal/secret"
)

// counter is a second place for the generation counter. An old vault file put
// back in place then shows.
type counter interface {
	load(ctx context.Context) ([]byte, error) // errNoCopy where there is none
	save(ctx context.Context, b []byte) error
	label() string
}

var (
	errNoCopy   = errors.New("there is no copy")
	errNoFolder = errors.New("its folder is not there; make one that the daemon may write to")
)

// counter returns the configured place, nil where there is none.
func (v *Vault) counter(id [idBytes]byte) counter {
	switch {
	case v.o.GenerationFile != "":
		return fileCounter{v.o.GenerationFile}
	case v.o.GenerationBackend != nil:
		return backendCounter{v.o.GenerationBackend, fmt.Sprintf("%x/generation", id[:8])}
	case v.o.Backend != nil:
		return backendCounter{v.o.Backend, fmt.Sprintf("%x/generation", id[:8])}
	}
	return nil
}

type fileCounter struct{ path string }

func (c fileCounter) label() string { return "generation file " + c.path }

func (c fileCounter) load(context.Context) ([]byte, error) {
	b, err := readFile(c.path)
	if errors.Is(err, ErrAbsent) || errors.Is(err, fs.ErrNotExist) {
		if c.folderMissing() {
			return nil, errNoFolder
		}
		return nil, errNoCopy
	}
	return b, err
}

func (c fileCounter) save(_ context.Context, b []byte) error {
	err := durable.WriteFile(c.path, b, fileMode)
	if err != nil && c.folderMissing() {
		return errNoFolder
	}
	return err
}

func (c fileCounter) folderMissing() bool {
	_, err := os.Stat(filepath.Dir(c.path))
	return errors.Is(err, fs.ErrNotExist)
}

type backendCounter struct {
	backend Backend
	name    string
}

func (c backendCounter) label() string { return c.backend.Name() }

func (c backendCounter) load(ctx context.Context) ([]byte, error) {
	b, err := c.backend.Get(ctx, c.name)
	if errors.Is(err, ErrKeychainAbsent) {
		return nil, errNoCopy
	}
	return b, err
}

func (c backendCounter) save(ctx context.Context, b []byte) error {
	return c.backend.Put(ctx, c.name, b)
}

// copyMark begins the copy: one line of text, "chatelaine generation 1", the
// vault's id in hex, the generation, and their MAC in hex.
const copyMark = "chatelaine generation 1"

func encodeCopy(id [idBytes]byte, generation uint64, key secret.Secret) []byte {
	text := fmt.Sprintf("%s %x %d", copyMark, id, generation)
	return fmt.Appendf(nil, "%s %x\n", text, mac(key, []byte(text)))
}

// decodeCopy accepts only what encodeCopy writes for this vault.
func decodeCopy(b []byte, id [idBytes]byte, key secret.Secret) (uint64, bool) {
	rest, ok := strings.CutPrefix(string(b), fmt.Sprintf("%s %x ", copyMark, id))
	number, _, ok2 := strings.Cut(rest, " ")
	generation, err := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil {
		return 0, false
	}
	return generation, hmac.Equal(encodeCopy(id, generation, key), b)
}

// compareGeneration refuses a vault that is older than the copy says. A copy
// that is missing or cannot be reached does not keep the operator out; the
// state then says that a rollback would not be noticed.
func (v *Vault) compareGeneration(ctx context.Context, o opened) error {
	c := v.counter(o.head.id)
	if c == nil {
		return nil
	}
	key, err := o.rootKey(infoGeneration)
	if err != nil {
		return err
	}
	defer key.Wipe()
	b, err := c.load(ctx)
	if err != nil {
		v.setRollback("not detectable: " + c.label() + ": " + err.Error())
		return nil
	}
	generation, ok := decodeCopy(b, o.head.id, key)
	if !ok {
		return fmt.Errorf("%w, or its counter belongs to another vault: %s is not this vault's; remove it if that is right", ErrRolledBack, c.label())
	}
	if o.head.generation < generation {
		return fmt.Errorf("%w: %s has generation %d, %s says %d", ErrRolledBack, v.path, o.head.generation, c.label(), generation)
	}
	v.setRollback(c.label())
	return nil
}

// noteGeneration writes the copy after a save. A copy that is behind is safe,
// so a failure only shows in the state.
func (v *Vault) noteGeneration(ctx context.Context) {
	o, err := v.current()
	if err != nil {
		return
	}
	c := v.counter(o.head.id)
	if c == nil {
		return
	}
	key, err := o.rootKey(infoGeneration)
	if err != nil {
		return
	}
	defer key.Wipe()
	if err := c.save(ctx, encodeCopy(o.head.id, o.head.generation, key)); err != nil {
		v.setRollback("not detectable: " + c.label() + ": " + err.Error())
		return
	}
	v.setRollback(c.label())
}

func (v *Vault) setRollback(s string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rollback = s
}
