package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shared makes a folder's group one that is not root's own.
func shared(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if os.Getuid() == 0 {
		must(t, os.Chown(path, -1, stranger))
	}
	must(t, os.Chmod(path, mode))
}

// TestWeakPlaces: whoever can change a step of the way to a file can change the
// file. The owner of the test's files stands for the daemon's user.
func TestWeakPlaces(t *testing.T) {
	e := &exam{Facts: Facts{Caller: Caller{UID: stranger}, Daemon: &Daemon{UID: os.Getuid()}}}
	for _, c := range []struct {
		name   string
		make   func(t *testing.T, dir string) string
		want   string // "": nobody but the owner can
		absent bool
	}{
		{"private", func(t *testing.T, d string) string { return write(t, d+"/a/b/file", "") }, "", false},
		{"a file that anybody writes", func(t *testing.T, d string) string {
			p := write(t, d+"/a/file", "")
			must(t, os.Chmod(p, 0o666))
			return p
		}, "/a/file: anybody may write to it (mode 0666)", false},
		{"a parent that anybody writes", func(t *testing.T, d string) string {
			p := write(t, d+"/a/b/file", "")
			must(t, os.Chmod(d+"/a", 0o777))
			return p
		}, "/a: anybody may write to it (mode 0777)", false},
		{"a parent that a group writes", func(t *testing.T, d string) string {
			p := write(t, d+"/a/b/file", "")
			shared(t, d+"/a", 0o775)
			return p
		}, "may write to it (mode 0775)", false},
		{"a sticky parent", func(t *testing.T, d string) string {
			p := write(t, d+"/a/b/file", "")
			must(t, os.Chmod(d+"/a", 0o777|os.ModeSticky))
			return p
		}, "", false},
		{"a link to a private place", func(t *testing.T, d string) string {
			write(t, d+"/real/file", "")
			must(t, os.Symlink("../"+filepath.Base(d)+"/real", d+"/link"))
			return d + "/link/file"
		}, "", false},
		{"a link to a place that anybody writes", func(t *testing.T, d string) string {
			write(t, d+"/open/real/file", "")
			must(t, os.Chmod(d+"/open", 0o777))
			must(t, os.Symlink(d+"/open/real", d+"/link"))
			return d + "/link/file"
		}, "/open: anybody may write to it", false},
		{"a link in a place that anybody writes", func(t *testing.T, d string) string {
			write(t, d+"/real/file", "")
			must(t, os.Mkdir(d+"/open", 0o700))
			must(t, os.Symlink(d+"/real/file", d+"/open/link"))
			must(t, os.Chmod(d+"/open", 0o777))
			return d + "/open/link"
		}, "/open: anybody may write to it", false},
		{"links in a circle", func(t *testing.T, d string) string {
			must(t, os.Symlink("b", d+"/a"))
			must(t, os.Symlink("a", d+"/b"))
			return d + "/a"
		}, "a link that leads nowhere", true},
		{"nothing there", func(t *testing.T, d string) string { return d + "/none/file" }, "cannot be looked at", true},
		{"not a whole path", func(*testing.T, string) string { return "a/b" }, "not a whole path", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := e.weakPlace(c.make(t, t.TempDir()), allowDaemon)
			got := ""
			if w.reason != "" {
				got = w.String()
			}
			if w.missing != c.absent || (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, missing %v", got, w.missing)
			}
		})
	}
}

// Owners: an enemy's file is lost, the daemon's own where it should be root's is
// half lost, and one of somebody else is lost too.
func TestOwners(t *testing.T) {
	own := os.Getuid()
	file := write(t, t.TempDir()+"/file", "")
	other := file
	if own == 0 { // the file must be of a user who is not root
		must(t, os.Chown(file, stranger, -1))
		own = stranger
		other = write(t, t.TempDir()+"/other", "")
		must(t, os.Chown(other, another, -1))
	}
	for _, c := range []struct {
		name       string
		caller     int
		daemon     int
		agents     []uint32
		path       string
		o          owners
		want       string
		daemonOnly bool
	}{
		{"the caller's", own, another, nil, file, allowDaemon, "belongs to your user", false},
		{"an agent's", another, another, []uint32{uint32(own)}, file, allowDaemon, "who is an agent's", false},
		{"the daemon's, and it writes it", another, own, nil, file, allowDaemon, "", false},
		{"the daemon's, and root should have it", another, own, nil, file, rootOnly, "belongs to the daemon's own user", true},
		{"the daemon's, and agents share its user", own, own, []uint32{uint32(own)}, file, allowDaemon, "belongs to your user", false},
	} {
		e := &exam{Facts: Facts{Caller: Caller{UID: c.caller}, Daemon: &Daemon{UID: c.daemon, Told: &Told{AgentUsers: c.agents}}}}
		w := e.weakStep(c.path, c.o)
		if (c.want == "") != (w.reason == "") || !strings.Contains(w.reason, c.want) || w.daemonOnly != c.daemonOnly {
			t.Errorf("%s: %q, only the daemon %v", c.name, w.reason, w.daemonOnly)
		}
	}
	if os.Getuid() == 0 {
		e := &exam{Facts: Facts{Caller: Caller{UID: stranger}, Daemon: &Daemon{UID: stranger}}}
		if w := e.weakStep(other, allowDaemon); !strings.Contains(w.reason, "belongs to user") {
			t.Errorf("somebody else's: %q", w.reason)
		}
	}
}

// A folder of contracts is as strong as its weakest file.
func TestTreeOfContracts(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"/contracts/a/contract.yaml", "/contracts/b/fixtures/ok.yaml"} {
		write(t, dir+f, "")
	}
	e := &exam{Facts: Facts{Caller: Caller{UID: stranger}, Daemon: &Daemon{UID: os.Getuid()}}}
	if w := e.weakTree(dir+"/contracts", allowDaemon); w.reason != "" {
		t.Errorf("a private tree: %s", w)
	}
	must(t, os.Chmod(dir+"/contracts/b/fixtures/ok.yaml", 0o666))
	if w := e.weakTree(dir+"/contracts", allowDaemon); !strings.HasSuffix(w.where, "/b/fixtures/ok.yaml") {
		t.Errorf("a file that anybody writes: %s", w)
	}
	if w := e.weakTree(dir+"/none", allowDaemon); !w.missing {
		t.Errorf("no tree: %s", w)
	}
}

// What a caller may not even pass is closed to it: nothing behind it can be
// changed. Root passes everything, so as root there is nothing to see.
func TestClosedFolder(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir+"/state/vault", "")
	must(t, os.Chmod(dir+"/state", 0))
	t.Cleanup(func() { _ = os.Chmod(dir+"/state", 0o700) })
	e := &exam{Facts: Facts{Caller: Caller{UID: stranger}, Daemon: &Daemon{UID: os.Getuid()}}}
	w := e.weakPlace(file, allowDaemon)
	if closed := os.Getuid() != 0; w.reason != "" || closed != (w.closed == dir+"/state") {
		t.Errorf("got %+v", w)
	}
}
