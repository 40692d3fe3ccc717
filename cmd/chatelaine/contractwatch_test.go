package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// watched is the command at work on copies of two shipped contracts.
type watched struct {
	t     *testing.T
	dir   string
	lines chan string
	end   context.CancelFunc
	exit  chan int
}

func watchCopies(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), lines: make(chan string), exit: make(chan int, 1)}
	shipped := filepath.Join("..", "..", "contracts")
	for _, action := range []string{"read_stock", "get_job_run"} {
		if err := os.CopyFS(filepath.Join(w.dir, action), os.DirFS(filepath.Join(shipped, action))); err != nil {
			t.Fatal(err)
		}
	}
	site, err := os.ReadFile(filepath.Join(shipped, "targets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("targets.yaml", string(site))
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	t.Cleanup(cancel)
	r, out := io.Pipe()
	a := newApp(strings.NewReader(""), out, out, func(string) string { return "" })
	go func() {
		code := a.run(ctx, []string{"contract", "test", "--watch", "--contracts", w.dir})
		out.Close()
		w.exit <- code
	}()
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			w.lines <- s.Text()
		}
		close(w.lines)
	}()
	return w
}

func (w *watched) write(name, text string) {
	w.t.Helper()
	// In one step, as editors do that care: nothing is read half.
	tmp := filepath.Join(w.t.TempDir(), "new")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// turn returns what one turn wrote, up to where the command waits again.
func (w *watched) turn(last string) string {
	w.t.Helper()
	var b strings.Builder
	for line := range w.lines {
		b.WriteString(line + "\n")
		if strings.Contains(line, last) {
			return b.String()
		}
	}
	w.t.Fatalf("it ended:\n%s", b.String())
	return ""
}

// A change plays its contract alone, a change of the site file plays all, what
// does not load is told and played once it does, and an interrupt is how it
// ends.
func TestWatchPlaysWhatChanges(t *testing.T) {
	const waits = "interrupt to end"
	w := watchCopies(t)
	if text := w.turn(waits); !strings.Contains(text, "read_stock ") || !strings.Contains(text, "get_job_run ") || strings.Contains(text, "\x1b") {
		t.Fatalf("the first turn:\n%s", text)
	}
	fixture := filepath.Join("read_stock", "fixtures", "accepted-r1.yaml")
	old, err := os.ReadFile(filepath.Join(w.dir, fixture))
	if err != nil {
		t.Fatal(err)
	}
	w.write(fixture, strings.Replace(string(old), "qty: ", "qty: 9", 1))
	if text := w.turn(waits); !strings.Contains(text, "FAIL") || !strings.Contains(text, "data.qty") || strings.Contains(text, "get_job_run") {
		t.Errorf("after a fixture:\n%s", text)
	}
	contract := filepath.Join("read_stock", "contract.yaml")
	text, err := os.ReadFile(filepath.Join(w.dir, contract))
	if err != nil {
		t.Fatal(err)
	}
	w.write(contract, "nonsense: true\n"+string(text))
	if text := w.turn("nothing is loaded"); !strings.Contains(text, "contract.yaml:1:") {
		t.Errorf("after a slip:\n%s", text)
	}
	w.write(fixture, string(old))
	w.turn("nothing is loaded")
	w.write(contract, string(text))
	if text := w.turn(waits); strings.Contains(text, "FAIL") || !strings.Contains(text, "read_stock") || strings.Contains(text, "get_job_run") {
		t.Errorf("after the slip was taken back:\n%s", text)
	}
	site, err := os.ReadFile(filepath.Join(w.dir, "targets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("targets.yaml", string(site)+"\n")
	if text := w.turn(waits); !strings.Contains(text, "read_stock") || !strings.Contains(text, "get_job_run") {
		t.Errorf("after the site file:\n%s", text)
	}
	w.end()
	if code := <-w.exit; code != exitDone {
		t.Errorf("an interrupt ended it with %d", code)
	}
}

// Which change leads to what.
func TestWatchTellsChangesApart(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		op   fsnotify.Op
		want string
	}{
		"a fixture":        {"one/fixtures/v1/x.yaml", fsnotify.Write, "one"},
		"a new folder":     {"one", fsnotify.Create, "one"},
		"the site file":    {"targets.yaml", fsnotify.Write, "all"},
		"a folder's end":   {"two", fsnotify.Remove, "all"},
		"beside":           {"../keys.json", fsnotify.Write, "all"},
		"rights":           {"one/contract.yaml", fsnotify.Chmod, "none"},
		"the report":       {"one/report.xml", fsnotify.Write, "none"},
		"a file in nobody": {"three/fixtures/x.yaml", fsnotify.Write, "three"},
	} {
		cw := contractWatch{pending: map[string]bool{}, t: contractTest{files: contractFiles{contracts: dir}, junit: filepath.Join(dir, "one", "report.xml")}}
		relevant := cw.changed(fsnotify.Event{Name: filepath.Join(dir, filepath.FromSlash(c.path)), Op: c.op})
		got := "none"
		switch {
		case cw.all:
			got = "all"
		case len(cw.pending) == 1:
			got = sortedKeys(cw.pending)[0]
		}
		if got != c.want || relevant == (got == "none") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
