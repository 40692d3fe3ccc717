package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// saveChildEnv makes the test program act as the process that is killed or that
// holds a lock.
const saveChildEnv = "CHATELAINE_TEST_DURABLE_CHILD"

func init() {
	if job := os.Getenv(saveChildEnv); job != "" {
		os.Exit(fileChild(job))
	}
}

// fileChild runs "save PATH" or "lock DIR" until it is killed.
func fileChild(job string) int {
	what, path, _ := strings.Cut(job, " ")
	if what == "lock" {
		if _, err := LockDir(path, "the child"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		fmt.Println("locked")
		select {}
	}
	for i := 0; ; i++ {
		if err := WriteFile(path, content(i), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		fmt.Println(i)
	}
}

// content is a file whose every byte tells which save it is from.
func content(i int) []byte {
	return bytes.Repeat([]byte{byte(i)}, 1000+(i*7919)%90_000)
}

// startChild runs the test program as a child and returns it with its output.
func startChild(t *testing.T, job string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), saveChildEnv+"="+job)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, out
}

// TestKillInSaveLoop kills a process that saves one file again and again. The
// file is always one whole save, never older than the last acknowledged one,
// and the leftovers are found and removed.
func TestKillInSaveLoop(t *testing.T) {
	const kills = 40
	path := filepath.Join(t.TempDir(), "vault")
	leftovers := 0
	for k := range kills {
		cmd, out := startChild(t, "save "+path)
		var printed bytes.Buffer
		if _, err := io.CopyN(&printed, out, 2); err != nil { // the first save, however long the start takes
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(k%17)*time.Millisecond, func() { cmd.Process.Kill() })
		_, _ = printed.ReadFrom(out)
		cmd.Wait()
		acked := -1
		for line := range strings.Lines(printed.String()) {
			if strings.HasSuffix(line, "\n") { // not a line that the kill has cut
				fmt.Sscan(line, &acked)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 || !bytes.Equal(got, bytes.Repeat(got[:1], len(got))) {
			t.Fatalf("kill %d: %d bytes of more than one save", k, len(got))
		}
		if acked < 0 || !bytes.Equal(got, content(acked)) && !bytes.Equal(got, content(acked+1)) {
			t.Fatalf("kill %d: %d bytes of save %d, save %d was acknowledged", k, len(got), got[0], acked)
		}
		leftovers += cleaned(t, filepath.Dir(path))
	}
	t.Logf("%d kills, %d leftovers removed", kills, leftovers)
}

// cleaned runs CleanTemp and says how many files it removed.
func cleaned(t *testing.T, dir string) int {
	t.Helper()
	before, _ := os.ReadDir(dir)
	if err := CleanTemp(dir); err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadDir(dir)
	if len(after) > 1 {
		t.Fatalf("leftovers stay: %v", after)
	}
	return len(before) - len(after)
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for i, perm := range []fs.FileMode{0o600, 0o640, 0o644} {
		if err := WriteFile(path, content(i), perm); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != perm {
			t.Errorf("mode %v, want %v: %v", st.Mode(), perm, err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, content(i)) {
			t.Errorf("save %d is not there", i)
		}
	}
	if err := WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("leftovers: %v", entries)
	}
}

// A relative name is written to the folder the process is in.
func TestWriteFileRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := WriteFile("here", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A save that fails leaves the old file and nothing else.
func TestWriteFileRefusals(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{taken, "replace"},
		{dir + "/", "names no file"},
		{filepath.Join(dir, "absent", "f"), "no such file"},
	} {
		if err := WriteFile(c.path, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("leftovers: %v", entries)
	}
}

// A link at the place of the file is replaced, never written through.
func TestWriteFileReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	os.WriteFile(other, []byte("other"), 0o600)
	path := filepath.Join(dir, "f")
	if err := os.Symlink("other", path); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(other); string(b) != "other" {
		t.Errorf("the other file holds %q", b)
	}
}

func TestCleanTempKeepsOthers(t *testing.T) {
	dir := t.TempDir()
	keep := []string{"f", ".f", "f.tmp-0011223344556677", ".f.tmp-", ".f.tmp-xyz", ".f.tmp-001122", ".tmp-0011223344556677", ".f.tmp-0011223344556677.bak"}
	drop := []string{".f.tmp-0011223344556677", ".a.tmp-b.tmp-0011223344556677"}
	for _, name := range append(keep, drop...) {
		os.WriteFile(filepath.Join(dir, name), nil, 0o600)
	}
	os.Mkdir(filepath.Join(dir, ".d.tmp-0011223344556677"), 0o700)
	if err := CleanTemp(dir); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != len(keep)+1 {
		t.Errorf("left: %v", entries)
	}
	for _, name := range drop {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s stays", name)
		}
	}
	if err := CleanTemp(filepath.Join(dir, "absent")); err == nil {
		t.Error("a folder that is not there is clean")
	}
}

func TestSyncDir(t *testing.T) {
	if err := SyncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
