package durable

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/testkit"
)

func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	l, err := LockDir(dir, "chatelained serve, pid 12")
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockDir(dir, "second")
	var held *HeldError
	if !errors.As(err, &held) || held.Holder != "chatelained serve, pid 12" || !strings.Contains(err.Error(), "in use by chatelained serve, pid 12") {
		t.Fatalf("%v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(); err != nil {
		t.Errorf("second Unlock: %v", err)
	}
	again, err := LockDir(dir, "third")
	if err != nil {
		t.Fatal(err)
	}
	again.Unlock()
	if err := (&Lock{}).Unlock(); err != nil {
		t.Errorf("the zero lock: %v", err)
	}
}

// The lock ends with the process, however it ends; the holder's text alone
// locks nothing.
func TestLockEndsWithProcess(t *testing.T) {
	dir := t.TempDir()
	cmd, out := startChild(t, "lock "+dir)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	var held *HeldError
	if _, err := LockDir(dir, "me"); !errors.As(err, &held) || held.Holder != "the child" {
		t.Fatalf("%v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	testkit.Until(t, "the lock of a process that is gone", func() bool {
		l, err := LockDir(dir, "me")
		if err == nil {
			l.Unlock()
		}
		return err == nil
	})
}

func TestLockRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	link := filepath.Join(dir, "link")
	os.Symlink(dir, link)
	for _, path := range []string{file, link, filepath.Join(dir, "absent")} {
		if _, err := LockDir(path, "x"); err == nil {
			t.Errorf("%s is locked", path)
		}
	}
}

// The holder's text is shown to a person: control bytes and long lines from a
// planted file do not reach the terminal.
func TestHolderIsPrintable(t *testing.T) {
	dir := t.TempDir()
	l, err := LockDir(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	os.WriteFile(filepath.Join(dir, holderFile), []byte("a\x1b[2Jb"+strings.Repeat("c", 1000)+"\nsecond"), 0o600)
	var held *HeldError
	if _, err := LockDir(dir, "y"); !errors.As(err, &held) || !strings.HasPrefix(held.Holder, "a[2Jbccc") || len(held.Holder) > maxHolderBytes {
		t.Fatalf("%+v", held)
	}
}
