package testkit

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// fake records what a test would have failed with.
type fake struct {
	testing.TB
	errors int
}

func (f *fake) Errorf(string, ...any) { f.errors++ }
func (f *fake) Logf(string, ...any)   {}
func (f *fake) Helper()               {}

const secret = "tk-7f3b1c9d5e2a4860"

func TestRefuseFiles(t *testing.T) {
	p, dir := Plant(secret), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "clean"), []byte("nothing here"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	if p.RefuseFiles(f, dir); f.errors != 0 {
		t.Error("found in a clean folder")
	}
	sub := filepath.Join(dir, "a")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sub, "dirty"), []byte("x"+hex.EncodeToString([]byte(secret))), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.RefuseFiles(f, dir); f.errors != 1 {
		t.Errorf("%d finds for one dirty file", f.errors)
	}
	if err := os.WriteFile(filepath.Join(sub, "is-"+secret), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.RefuseFiles(f, dir); f.errors != 3 {
		t.Errorf("%d finds with a dirty name besides", f.errors)
	}
	if p.RefuseFiles(f, filepath.Join(dir, "absent")); f.errors != 4 {
		t.Error("a folder that is not there counts as clean")
	}
}

func TestRefuseProcess(t *testing.T) {
	p := Plant(secret)
	for name, cmd := range map[string]*exec.Cmd{
		"argument":    exec.Command("cat"),
		"environment": exec.Command("cat"),
		"clean":       exec.Command("cat"),
	} {
		switch name {
		case "argument":
			cmd.Args[0] = "cat-" + secret
		case "environment":
			cmd.Env = append(os.Environ(), "TOKEN="+secret)
		}
		running(t, cmd)
		f := &fake{}
		p.RefuseProcess(f, cmd.Process.Pid)
		if _, err := os.Stat("/proc/self/environ"); err != nil {
			continue // no /proc on this system
		}
		if (f.errors > 0) != (name != "clean") {
			t.Errorf("%s: %d finds", name, f.errors)
		}
	}
}

// running starts a cat and returns once it has echoed a byte: Start returns
// before the kernel shows the new arguments and environment.
func running(t *testing.T, cmd *exec.Cmd) {
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if _, err := in.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}
