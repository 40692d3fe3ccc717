package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func tokensIn(t *testing.T) (Tokens, string) {
	t.Helper()
	dir := t.TempDir()
	tk, err := FindTokens(Places{Runtime: dir}, func(string) string { return "" }, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	return tk, filepath.Join(dir, "tokens")
}

func TestTokens(t *testing.T) {
	tk, dir := tokensIn(t)
	if _, err := tk.Load("a", "/s"); !errors.Is(err, ErrNoSession) {
		t.Fatalf("error %v", err)
	}
	want := SavedSession{Name: "a", SessionID: "ses_1", Token: "planted", PairingCode: "1-2", Peer: "/s"}
	if err := tk.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := tk.Load("a", "/s")
	if err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := tk.Load("a", "/other"); !errors.Is(err, ErrNoSession) {
		t.Errorf("the token of another daemon is used: %v", err)
	}
	fi, err := os.Stat(filepath.Join(dir, "a.json"))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	fi, err = os.Stat(dir)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v", fi.Mode(), err)
	}
	list, _ := os.ReadDir(dir)
	if len(list) != 1 {
		t.Errorf("%d files are left", len(list))
	}
	if err := errors.Join(tk.Drop("a"), tk.Drop("a")); err != nil {
		t.Error(err)
	}
	if _, err := tk.Load("a", "/s"); !errors.Is(err, ErrNoSession) {
		t.Errorf("error %v", err)
	}
}

func TestTokenFilesRefused(t *testing.T) {
	tk, dir := tokensIn(t)
	if err := tk.Save(SavedSession{Name: "a", Token: "planted", Peer: "/s"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.json")
	write := func(s string) func() { return func() { os.WriteFile(path, []byte(s), 0o600) } }
	cases := []struct {
		name string
		do   func()
		want string
	}{
		{"others may read", func() { os.Chmod(path, 0o640) }, "only you can read"},
		{"damaged", func() { os.Chmod(path, 0o600); write(`{"name":"a","token":"planted`)() }, "damaged"},
		{"another's", write(`{"name":"b","token":"planted"}`), "damaged"},
		{"no token", write(`{"name":"a"}`), "damaged"},
		{"a link", func() { os.Remove(path); os.Symlink("/etc/hostname", path) }, "cannot open"},
		{"a folder", func() { os.Remove(path); os.Mkdir(path, 0o700) }, "only you can read"},
	}
	for _, c := range cases {
		c.do()
		_, err := tk.Load("a", "/s")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, name := range []string{"", "../a", "a/b", ".a", "a b", strings.Repeat("x", 65), "a\n"} {
		if err := tk.Save(SavedSession{Name: name, Token: "t"}); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
}

// A daemon of another user has a runtime folder that is not the caller's.
func TestTokensBesideAnotherUsersDaemon(t *testing.T) {
	mine := t.TempDir()
	env := func(k string) string {
		if k == "XDG_RUNTIME_DIR" {
			return mine
		}
		return ""
	}
	tk, err := FindTokens(Places{Runtime: filepath.Join(mine, "absent")}, env, os.Getuid())
	if err != nil || tk.dir != filepath.Join(mine, "chatelaine", "tokens") {
		t.Errorf("%v, %v", tk, err)
	}
	if _, err := FindTokens(Places{Runtime: mine}, env, os.Getuid()+1); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("error %v", err)
	}
}

func TestTokensLock(t *testing.T) {
	tk, _ := tokensIn(t)
	var wg sync.WaitGroup
	var inside atomic.Int32 // the lock is the system's, so the race detector cannot see it
	for range 8 {
		wg.Go(func() {
			unlock, err := tk.Lock()
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two at once")
			}
			inside.Add(-1)
			unlock()
		})
	}
	wg.Wait()
}
