package testkit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"chatelaine/internal/contracttest/planted"
)

// Planted is a secret that must turn up nowhere.
type Planted struct{ *planted.Secret }

// Plant makes the searcher of a secret of at least 12 bytes.
func Plant(secret string) *Planted { return &Planted{planted.New(secret)} }

// Refuse fails the test if the secret stands in b; where says what b is.
func (p *Planted) Refuse(t testing.TB, where string, b []byte) {
	t.Helper()
	if found := p.In(b); len(found) > 0 {
		t.Errorf("%s holds the secret (%s)", where, strings.Join(found, ", "))
	}
}

// RefuseFiles fails the test if the secret stands in a file, or in a file's
// name, anywhere below the folders.
func (p *Planted) RefuseFiles(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			p.Refuse(t, "the name of a file in "+dir, []byte(path))
			if !d.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(path)
			if err == nil {
				p.Refuse(t, path, b)
			}
			return err
		})
		if err != nil {
			t.Errorf("searching %s: %v", dir, err)
		}
	}
}

// RefuseProcess fails the test if the secret stands in a process's arguments or
// environment. Where the system shows neither it looks at nothing and says so.
// The process must have begun to run its program: between fork and exec, and for
// a moment after it, the kernel shows neither, and nothing would be found. A
// process without arguments therefore fails the test.
func (p *Planted) RefuseProcess(t testing.TB, pid int) {
	t.Helper()
	for _, name := range []string{"cmdline", "environ"} {
		path := filepath.Join("/proc", strconv.Itoa(pid), name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Logf("%s is not readable here: %v", path, err)
			continue
		}
		if name == "cmdline" && len(b) == 0 {
			t.Errorf("%s is empty: the process is not there yet, or no more", path)
		}
		p.Refuse(t, path, b)
	}
}
