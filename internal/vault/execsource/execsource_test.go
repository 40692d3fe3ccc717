package execsource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/secret"
	"chatelaine/internal/testkit"
	"chatelaine/internal/vault"
)

// shell runs a script whose $0 is the reference.
func shell(script string) Options {
	return Options{Name: "pass", Argv: []string{"/bin/sh", "-c", script, Placeholder}, Timeout: testkit.Patience}
}

func fetch(t *testing.T, o Options, reference string) string {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Fetch(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Wipe()
	return text(got)
}

func text(s secret.Secret) (out string) {
	s.Use(func(b []byte) { out = string(b) })
	return out
}

func TestOneLineEndIsCut(t *testing.T) {
	for _, c := range []struct {
		script, want string
		first        bool
	}{
		{"printf 'a b'", "a b", false},
		{`printf 'ab\n'`, "ab", false},
		{`printf 'ab\r\n'`, "ab", false},
		{`printf 'ab\n\n'`, "ab\n", false},
		{`printf 'ab\nuser: x\n'`, "ab\nuser: x", false},
		{`printf 'ab\nuser: x\n'`, "ab", true},
		{`printf 'ab\r\nuser: x\n'`, "ab", true},
		{"printf ab", "ab", true},
	} {
		o := shell(c.script)
		o.FirstLine = c.first
		if got := fetch(t, o, "x"); got != c.want {
			t.Errorf("%s: %q, want %q", c.script, got, c.want)
		}
	}
}

// The reference is one argument, whatever is in it, and no shell reads it.
func TestReferenceIsOneArgument(t *testing.T) {
	for _, reference := range []string{"deploy/bot", "a b", "$(id)", "`id`", "a;b", "'", `"`, "{ref}", "op://vault/item/field"} {
		if got := fetch(t, Options{Name: "p", Argv: []string{"/bin/echo", "-n", Placeholder}, Timeout: testkit.Patience}, reference); got != reference {
			t.Errorf("%q came as %q", reference, got)
		}
	}
	s, err := New(shell("echo"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "-rf", "--", "a\nb", "a\x00b", "a\x1b[1m", "\xff", strings.Repeat("a", 600)} {
		if _, err := s.Fetch(t.Context(), bad); !errors.Is(err, vault.ErrBadReference) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestEnvironmentIsWhatWasNamed(t *testing.T) {
	t.Setenv("CHATELAINE_TEST_STRAY", "stray")
	t.Setenv("LD_PRELOAD_TEST", "stray")
	o := shell("env")
	o.Env = []string{"HOME=/home/bot", "GNUPGHOME=/home/bot/.gnupg"}
	lines := strings.Split(fetch(t, o, "x"), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { // the shell's own
		return strings.HasPrefix(l, "PWD=") || strings.HasPrefix(l, "OLDPWD=") || strings.HasPrefix(l, "SHLVL=") || strings.HasPrefix(l, "_=")
	})
	slices.Sort(lines)
	want := []string{"GNUPGHOME=/home/bot/.gnupg", "HOME=/home/bot", "PATH=/usr/local/bin:/usr/bin:/bin"}
	if !slices.Equal(lines, want) {
		t.Errorf("the program saw %q, want %q", lines, want)
	}
	o.Env = append(o.Env, "PATH=/usr/bin:/bin:/opt/x")
	if got := fetch(t, o, "x"); !strings.Contains(got, "PATH=/usr/bin:/bin:/opt/x") {
		t.Error("a PATH that was named is not the program's")
	}
	o = shell("pwd")
	if got := fetch(t, o, "x"); got != "/" {
		t.Errorf("the program works in %s", got)
	}
}

// gone says whether a process has ended; on Linux also as a zombie that nobody
// waits for.
func gone(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
		return true
	}
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, found := strings.Cut(string(b), ") ")
	return err == nil && found && (rest[0] == 'Z' || rest[0] == 'X')
}

// keeping is a reader that keeps what it was given to read into.
type keeping struct {
	text string
	into [][]byte
}

func (k *keeping) Read(p []byte) (int, error) {
	n := copy(p, k.text)
	k.text, k.into = k.text[n:], append(k.into, p[:n])
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// What a program wrote is in one piece of memory, and nothing of it is left there.
func TestNothingOfTheOutputIsLeft(t *testing.T) {
	for _, size := range []int{1, 40_000, maxOutput, maxOutput + 1, maxOutput + 5} {
		over := false
		out := &capped{full: func() { over = true }}
		from := &keeping{text: strings.Repeat("s", size)}
		_, err := io.Copy(out, from)
		if too := size > maxOutput; too != over || too != errors.Is(err, errTooMuch) || !too && len(out.b) != size {
			t.Errorf("%d bytes: %d were kept, %v", size, len(out.b), err)
		}
		out.wipe()
		for _, b := range from.into {
			if bytes.ContainsRune(b, 's') {
				t.Errorf("%d bytes: a copy is left", size)
			}
		}
	}
}

// What the program started ends with it.
func TestWholeGroupEndsAtTheTimeout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	o := shell("sleep 3600 & echo $! > '" + file + ".new'; mv '" + file + ".new' '" + file + "'; wait")
	o.Timeout = time.Hour
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := s.Fetch(ctx, "x")
		done <- err
	}()
	testkit.Until(t, "the program's child", func() bool { _, err := os.Stat(file); return err == nil })
	cancel()
	if err := <-done; !errors.Is(err, vault.ErrSourceUnavailable) {
		t.Errorf("got %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(b))
	testkit.Until(t, "the child's end", func() bool { return gone(t, pid) })
}

func TestChildLeftBehindEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	o := shell("sleep 3600 & echo $! > '" + file + "'; exit 0")
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), "x"); !errors.Is(err, vault.ErrSourceUnavailable) || !strings.Contains(err.Error(), "child") {
		t.Errorf("got %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the child's end", func() bool { return gone(t, strings.TrimSpace(string(b))) })
}

func TestProgramOfAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho x\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		if !errors.Is(err, syscall.EPERM) {
			t.Fatal(err)
		}
		return // only root can give a file away
	}
	s, err := New(Options{Name: "p", Argv: []string{path, Placeholder}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), "x"); !errors.Is(err, vault.ErrSourceDenied) || !strings.Contains(err.Error(), "another user") {
		t.Errorf("got %v", err)
	}
}

func TestArguments(t *testing.T) {
	for _, good := range [][]string{{"/usr/bin/pass", "show", Placeholder}, {"/usr/bin/op", "read", "--no-newline", Placeholder}, {"/bin/x", Placeholder, "last"}} {
		if err := CheckArgv(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range [][]string{
		nil, {}, {"pass", Placeholder}, {"./pass", Placeholder}, {"/usr/bin/../bin/pass", Placeholder}, {"/usr/bin/pass"}, {"/usr/bin/pass", "show"},
		{"/usr/bin/pass", Placeholder, Placeholder}, {"/usr/bin/pass", "x" + Placeholder}, {Placeholder}, {"/usr/bin/" + Placeholder, Placeholder},
		{"/usr/bin/pass", "", Placeholder}, {"/usr/bin/pass", "a\x00", Placeholder}, append([]string{"/x", Placeholder}, slices.Repeat([]string{"a"}, MaxArguments)...),
	} {
		if err := CheckArgv(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, bad := range []string{"", "A=B", "1A", "A B", "LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES", "GODEBUG", "BASH_ENV", "ENV", "IFS", strings.Repeat("A", 200)} {
		if err := CheckVariable(bad); err == nil {
			t.Errorf("variable %q was taken", bad)
		}
	}
	if err := CheckVariable("PASSWORD_STORE_DIR"); err != nil {
		t.Error(err)
	}
}
