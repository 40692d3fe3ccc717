package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
)

// following is the program while it follows a record.
type following struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of the standard output, closed at its end
	notes chan string // of the standard error
}

func follow(t *testing.T, args ...string) *following {
	t.Helper()
	bin, err := programs["chatelaine"]()
	if err != nil {
		t.Fatal(err)
	}
	x := &following{t: t, cmd: exec.Command(bin), lines: make(chan string, 100), notes: make(chan string, 100)}
	x.cmd.Args = append([]string{"chatelaine", "audit", "follow"}, args...)
	x.cmd.Env = []string{"HOME=" + t.TempDir(), "TZ=UTC"}
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	notes, err := x.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.cmd.Process.Kill(); x.cmd.Wait() })
	go scanInto(bufio.NewScanner(out), x.lines)
	go scanInto(bufio.NewScanner(notes), x.notes)
	return x
}

func scanInto(s *bufio.Scanner, to chan<- string) {
	for s.Scan() {
		to <- s.Text()
	}
	close(to)
}

// next waits for a line that holds want.
func (x *following) next(from <-chan string, want string) {
	x.t.Helper()
	select {
	case line, ok := <-from:
		if !ok || !strings.Contains(line, want) {
			x.t.Fatalf("%q, %v; want %q", line, ok, want)
		}
	case <-time.After(ptyTimeout):
		x.t.Fatalf("nothing came; want %q", want)
	}
}

// New events come out as they are written, over restarts of the writer, each of which
// begins a new file; an interrupt ends it with 0.
func TestFollowCommand(t *testing.T) {
	dir, key := filepath.Join(t.TempDir(), "audit"), filepath.Join(t.TempDir(), "key")
	own, err := auditlog.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := auditlog.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	to := []auditlog.Recipient{own.Recipient(), other.Recipient()}
	if err := os.WriteFile(key, []byte(own.Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := auditlog.Create(dir, to); err != nil {
		t.Fatal(err)
	}
	write := func(ids ...string) {
		t.Helper()
		var events []auditlog.Event
		for _, id := range ids {
			events = append(events, auditlog.Event{Type: auditlog.TypeIntent, CallID: id, Actor: "worker", Action: "deploy", Wall: time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC),
				Detail: map[string]any{"step": "request", "sentence": "Deploy \x1b[2J"}})
		}
		if err := appendEvents(dir, to, events...); err != nil {
			t.Fatal(err)
		}
	}
	write("call-old")
	x := follow(t, "--key", key, "--audit", dir)
	x.next(x.notes, "following the record in "+dir)
	write("call-1")
	x.next(x.lines, "time")
	x.next(x.lines, `2026-01-05 10:00:00  intent  worker  deploy  -     -       call-1   request: Deploy \u001b[2J`)
	write("call-2", "call-3")
	x.next(x.lines, "call-2")
	x.next(x.lines, "call-3")
	x.cmd.Process.Signal(os.Interrupt)
	if err := x.cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}

	// With --since the old ones too, only what matches, as JSON.
	x = follow(t, "--key", key, "--audit", dir, "--since", "2026-01-01", "--agent", "worker", "--json")
	for _, id := range []string{"call-old", "call-1", "call-2", "call-3"} {
		x.next(x.lines, `"call_id":"`+id+`"`)
	}
	x.next(x.notes, "following")
	write("call-4")
	x.next(x.lines, `"call_id":"call-4"`)
	x.cmd.Process.Signal(syscall.SIGTERM)
	if err := x.cmd.Wait(); err != nil {
		t.Errorf("after a SIGTERM: %v", err)
	}
}
