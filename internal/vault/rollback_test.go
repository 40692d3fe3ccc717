package vault

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRollbackIsSeen(t *testing.T) {
	withFile, withBackend := cheap, cheap
	withFile.GenerationFile = filepath.Join(t.TempDir(), "generation")
	withBackend.Backend = newMemory()
	for name, o := range map[string]Options{"generation file": withFile, "memory": withBackend} {
		v, path := create(t, o)
		if s := v.State(); !strings.HasPrefix(s.Rollback, name) {
			t.Errorf("%s: got %+v", name, s)
		}
		put(t, v, "a", planted, bearer())
		old := read(t, path)
		put(t, v, "a", planted, bearer())
		now := read(t, path)
		write(t, path, old)
		w, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Unlock(t.Context(), sec(goodPass))
		wantErr(t, err, ErrRolledBack)
		if s := w.State(); s.State != StateRolledBack || !strings.Contains(s.Reason, "has generation 2") || !strings.Contains(s.Reason, "says 3") {
			t.Errorf("%s: got %+v", name, s)
		}
		write(t, path, now)
		unlock(t, w)
		put(t, w, "a", planted, bearer())
		reopen(t, path, o)
	}
}

func TestRollbackWithinOneRunNeedsNoCounter(t *testing.T) {
	v, path := create(t, cheap)
	old := read(t, path)
	put(t, v, "a", planted, bearer())
	v.Lock("test")
	write(t, path, old)
	wantErr(t, v.Unlock(t.Context(), sec(goodPass)), ErrRolledBack)
}

func TestTheGenerationFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "generation")
	o := cheap
	o.GenerationFile = file
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	good := read(t, file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != fileMode {
		t.Errorf("got %v, %v", info, err)
	}
	_, other := create(t, cheap)
	foreign := cheap
	foreign.GenerationFile = file
	w, err := Open(other, foreign)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.Unlock(t.Context(), sec(goodPass)), ErrRolledBack)
	for i := range good {
		b := append([]byte(nil), good...)
		b[i] ^= 1
		write(t, file, b)
		w, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Unlock(t.Context(), sec(goodPass)); !errors.Is(err, ErrRolledBack) {
			t.Fatalf("byte %d altered: got %v", i, err)
		}
	}
	os.Remove(file)
	w = reopen(t, path, o)
	if s := w.State(); !strings.HasPrefix(s.Rollback, "not detectable: generation file") {
		t.Errorf("got %+v", s)
	}
	put(t, w, "a", planted, bearer())
	if s := w.State(); !strings.HasPrefix(s.Rollback, "generation file") {
		t.Errorf("got %+v", s)
	}
}

// A folder that nobody made is said as such, at the start and after a save.
func TestGenerationFileWithoutItsFolder(t *testing.T) {
	t.Parallel()
	c := fileCounter{filepath.Join(t.TempDir(), "nowhere", "counter")}
	if _, err := c.load(t.Context()); !errors.Is(err, errNoFolder) {
		t.Errorf("load: %v", err)
	}
	if err := c.save(t.Context(), []byte("x")); !errors.Is(err, errNoFolder) {
		t.Errorf("save: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(c.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.load(t.Context()); !errors.Is(err, errNoCopy) {
		t.Errorf("load: %v", err)
	}
}
