package vault_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/vault"
	"chatelaine/internal/vault/execsource"
	"chatelaine/internal/vault/unitcreds"
)

const planted = "Xq7-planted-at-a-source-9Zt"

// failure is one way in which a secret cannot be had. fetch brings it about.
type failure struct {
	name  string
	kind  error
	text  string
	fetch func(t *testing.T) error
}

// Every way in which each place of secrets can be missing, locked, slow or lying
// ends in an error of the closed list, that says what to do and has nothing of what
// came.
func TestEveryFailureOfEverySource(t *testing.T) {
	all := append(kvFailures(), append(execFailures(), append(credentialFailures(), keychainFailures()...)...)...)
	for _, f := range all {
		t.Run(f.name, func(t *testing.T) {
			if !strings.HasPrefix(f.name, "keychain") { // those change the environment
				t.Parallel()
			}
			err := f.fetch(t)
			if !errors.Is(err, f.kind) || !strings.Contains(err.Error(), f.text) {
				t.Fatalf("got %v, want %v with %q", err, f.kind, f.text)
			}
			for _, leak := range []string{planted, planted[:12], managerSecret, "hvs."} {
				if strings.Contains(err.Error(), leak) {
					t.Errorf("the error has %q in it: %v", leak, err)
				}
			}
		})
	}
}

// shell is a program that runs a script; $0 is the reference.
func shell(script string) execsource.Options {
	return execsource.Options{
		Name: "pass", Argv: []string{"/bin/sh", "-c", script, execsource.Placeholder}, Timeout: patient,
		Exits: map[int]string{1: "absent", 2: "locked", 3: "denied"},
	}
}

func run(t *testing.T, o execsource.Options) error {
	t.Helper()
	s, err := execsource.New(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Fetch(t.Context(), "deploy/bot")
	got.Wipe()
	return err
}

func execFailures() []failure {
	row := func(name string, kind error, text, script string) failure {
		return failure{"exec: " + name, kind, text, func(t *testing.T) error { return run(t, shell(script)) }}
	}
	slow := func(name, script string) failure {
		return failure{"exec: " + name, vault.ErrSourceUnavailable, "did not end within", func(t *testing.T) error {
			o := shell(script)
			o.Timeout = impatient
			return run(t, o)
		}}
	}
	program := func(name string, kind error, text string, make func(t *testing.T) string) failure {
		return failure{"exec: " + name, kind, text, func(t *testing.T) error {
			o := shell(":")
			o.Argv[0] = make(t)
			return run(t, o)
		}}
	}
	file := func(mode os.FileMode) func(t *testing.T) string {
		return func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "program")
			if err := errors.Join(os.WriteFile(path, []byte("no program"), 0o600), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	return []failure{
		program("no program", vault.ErrSourceUnavailable, "not there", func(*testing.T) string { return "/no/such/program" }),
		program("a folder", vault.ErrSourceUnavailable, "no program", func(t *testing.T) string { return t.TempDir() }),
		program("a file that cannot be run", vault.ErrSourceUnavailable, "no program", file(0o600)),
		program("a file that is no program", vault.ErrSourceUnavailable, "cannot be started", file(0o700)),
		program("one that others can change", vault.ErrSourceDenied, "changed by others", file(0o722)),
		slow("hangs", "exec sleep 3600"),
		slow("hangs and takes no signal", "trap '' TERM INT HUP; while :; do sleep 3600; done"),
		slow("drips", "while :; do printf x; sleep 3600; done"),
		row("writes without end", vault.ErrSourceLying, "more than", "while :; do echo "+planted+"; done"),
		row("writes nothing", vault.ErrSourceLying, "wrote nothing", ":"),
		row("writes a line end", vault.ErrSourceLying, "wrote nothing", "echo"),
		row("waits for input", vault.ErrSourceLying, "wrote nothing", "cat"),
		row("wants a terminal", vault.ErrSourceUnavailable, "exit status 9", "cat </dev/tty || exit 9"),
		row("has none", vault.ErrSourceAbsent, "exit status 1", "echo "+planted+" >&2; exit 1"),
		row("is locked", vault.ErrSourceLocked, "exit status 2", "exit 2"),
		row("refuses", vault.ErrSourceDenied, "exit status 3", "exit 3"),
		row("fails", vault.ErrSourceUnavailable, "exit status 4", "echo "+planted+"; exit 4"),
		row("is killed", vault.ErrSourceUnavailable, "signal", "kill -9 $$"),
		row("leaves a child behind", vault.ErrSourceUnavailable, "child", "echo "+planted+"; sleep 3600 & exit 0"),
	}
}

func credentialFailures() []failure {
	row := func(name string, kind error, text string, make func(t *testing.T, dir, path string) error) failure {
		return failure{"credentials: " + name, kind, text, func(t *testing.T) error {
			dir := t.TempDir()
			if err := make(t, dir, filepath.Join(dir, "bot")); err != nil {
				t.Fatal(err)
			}
			return readCredential(t, dir)
		}}
	}
	file := func(b string, mode os.FileMode) func(*testing.T, string, string) error {
		return func(_ *testing.T, _, path string) error {
			return errors.Join(os.WriteFile(path, []byte(b), 0o600), os.Chmod(path, mode))
		}
	}
	rows := []failure{
		{"credentials: no service manager", vault.ErrSourceUnavailable, "CREDENTIALS_DIRECTORY", func(t *testing.T) error { return readCredential(t, "") }},
		{"credentials: no folder", vault.ErrSourceUnavailable, "cannot be looked at", func(t *testing.T) error { return readCredential(t, "/no/such/folder") }},
		row("no file", vault.ErrSourceAbsent, "LoadCredentialEncrypted", func(*testing.T, string, string) error { return nil }),
		row("a link", vault.ErrSourceDenied, "a link", func(_ *testing.T, dir, path string) error {
			return errors.Join(os.WriteFile(dir+"/other", []byte(planted), 0o400), os.Symlink("other", path))
		}),
		row("a folder", vault.ErrSourceDenied, "no file", func(_ *testing.T, _, path string) error { return os.Mkdir(path, 0o700) }),
		row("a pipe", vault.ErrSourceDenied, "no file", func(_ *testing.T, _, path string) error { return syscall.Mkfifo(path, 0o600) }),
		row("others can read it", vault.ErrSourceDenied, "mode 0644", file(planted, 0o644)),
		row("a group can write it", vault.ErrSourceDenied, "mode 0620", file(planted, 0o620)),
		row("empty", vault.ErrSourceLying, "empty", file("", 0o400)),
		row("too large", vault.ErrSourceLying, "more than", file(strings.Repeat(planted, 4000), 0o400)),
		row("others can write the folder", vault.ErrSourceDenied, "mode 0777", func(t *testing.T, dir, path string) error {
			return errors.Join(file(planted, 0o400)(t, dir, path), os.Chmod(dir, 0o777))
		}),
	}
	if os.Geteuid() == 0 { // nobody else can give a file away
		rows = append(rows, row("of another user", vault.ErrSourceDenied, "another user", func(t *testing.T, dir, path string) error {
			return errors.Join(file(planted, 0o400)(t, dir, path), os.Chown(path, 65534, 65534))
		}))
	}
	return rows
}

func readCredential(t *testing.T, dir string) error {
	s, err := unitcreds.New("unit", dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Fetch(t.Context(), "bot")
	got.Wipe()
	return err
}

// keychainFailures are those that need no real keychain; the others are in
// keychain_linux_test.go.
func keychainFailures() []failure {
	row := func(name, address, text string) failure {
		return failure{"keychain: " + name, vault.ErrKeychainUnavailable, text, func(t *testing.T) error {
			t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
			_, err := vault.Keychain("chatelaine test", time.Second).Get(context.Background(), "x")
			return err
		}}
	}
	return keychainRows(row)
}
