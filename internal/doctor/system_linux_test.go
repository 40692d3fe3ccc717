package doctor

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// TestKernel: what the kernel shows of a process and of itself, and the verdict.
func TestKernel(t *testing.T) {
	for _, c := range []struct {
		id, file, content string
		v                 Verdict
		text              string
	}{
		{"no-new-privs", "1/status", "Name:\tx\nNoNewPrivs:\t1\n", Solved, "is set"},
		{"no-new-privs", "1/status", "Name:\tx\nNoNewPrivs:\t0\n", Partial, "not set"},
		{"no-new-privs", "2/status", "NoNewPrivs:\t1\n", Unseen, "does not show"},
		{"seccomp", "1/status", "Seccomp:\t2\n", Solved, "in force"},
		{"seccomp", "1/status", "Seccomp:\t0\n", Partial, "no filter"},
		{"seccomp", "1/status", "", Unseen, "does not show"},
		{"yama", "sys/kernel/yama/ptrace_scope", "1\n", Solved, "is 1"},
		{"yama", "sys/kernel/yama/ptrace_scope", "0\n", Partial, "is 0"},
		{"yama", "sys/kernel/other", "0\n", Partial, "no Yama"},
		{"core", "1/limits", "Max core file size        0                    0                    bytes\n", Solved, "limit is 0"},
		{"core", "1/limits", "Max core file size        0                    unlimited            bytes\n", Partial, "0 unlimited"},
		{"core", "1/limits", "Max cpu time              unlimited            unlimited            seconds\n", Unseen, "limits"},
		{"swap", "swaps", "Filename\tType\n", Solved, "no swap"},
		{"swap", "swaps", "Filename\tType\n/dev/zram0 partition\n", Solved, "no swap"},
		{"swap", "swaps", "Filename\tType\n/swapfile file 1 0 -2\n", Partial, "/swapfile"},
		{"swap", "other", "", Unseen, "does not show"},
	} {
		proc := t.TempDir()
		write(t, filepath.Join(proc, c.file), c.content)
		want(t, found(t, examine(t, installed(), proc), c.id), c.v, c.text)
	}
}

// TestProcessNotNamed: across containers the kernel names no process.
func TestProcessNotNamed(t *testing.T) {
	f := installed()
	f.Daemon.PID = 0
	r := examine(t, f, t.TempDir())
	for _, id := range append(tryIDs(), "dumpable", "no-new-privs", "seccomp", "core") {
		want(t, found(t, r, id), Unseen, "another container")
	}
}

func TestDumpable(t *testing.T) {
	proc := t.TempDir()
	owner := os.Getuid()
	file := write(t, filepath.Join(proc, "1/environ"), "")
	verdict, text := NotSolved, "is not 0"
	if owner == 0 {
		verdict, text = Solved, "is 0"
	}
	want(t, found(t, examine(t, installed(), proc), "dumpable"), verdict, text)
	if owner == 0 {
		must(t, os.Chown(file, another, -1))
		want(t, found(t, examine(t, installed(), proc), "dumpable"), NotSolved, "is not 0")
	}
	f := installed()
	f.Daemon.UID = 0
	want(t, found(t, examine(t, f, proc), "dumpable"), Unseen, "runs as root")
}

// TestExecWindow: only a program that the daemon's user may run and not read is
// closed from its first instant.
func TestExecWindow(t *testing.T) {
	program := write(t, t.TempDir()+"/chatelained", "")
	f := installed()
	f.Daemon.Told.Program = program
	for mode, v := range map[os.FileMode]Verdict{0o711: Solved, 0o755: Partial, 0o751: Partial, 0o700: Solved} {
		must(t, os.Chmod(program, mode))
		want(t, found(t, examine(t, f, t.TempDir()), "exec-window"), v, "")
	}
	must(t, os.Chmod(program, 0o711))
	f.Daemon.UID = os.Getuid()
	want(t, found(t, examine(t, f, t.TempDir()), "exec-window"), Partial, "belongs to the daemon's own user")
	f.Daemon.Told.Program = "/nowhere"
	want(t, found(t, examine(t, f, t.TempDir()), "exec-window"), Unseen, "cannot be looked at")
}

func TestKeychainItems(t *testing.T) {
	noise := make([]byte, 80)
	for i := range noise {
		noise[i] = byte(i*7 + 128)
	}
	sealedText := base64.StdEncoding.EncodeToString(noise)
	for _, c := range []struct {
		name, value string
		want        keychainItem
	}{
		{"00ff/identity/deploy-bot/3", sealedText, keychainItem{"deploy-bot", false, true}},
		{"00ff/identity/deploy-bot/3", "tok-in-the-clear", keychainItem{"deploy-bot", false, false}},
		{"00ff/identity/deploy-bot/3", base64.StdEncoding.EncodeToString([]byte("a token in the clear, only spelled otherwise")), keychainItem{"deploy-bot", false, false}},
		{"00ff/identity/deploy-bot/3", base64.StdEncoding.EncodeToString(noise[:39]), keychainItem{"deploy-bot", false, false}},
		{"00ff/slot/12ab", sealedText, keychainItem{"00ff/slot/12ab", true, false}},
		{"00ff/generation", "chatelaine generation 1", keychainItem{}},
		{"something else", "plain", keychainItem{"something else", false, false}},
	} {
		if got := judgeItem(c.name, []byte(c.value)); got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestSessionBus(t *testing.T) {
	for set, ok := range map[string]bool{
		"unix:path=/run/x": true, "unix:path=/run/x;unix:abstract=y": true,
		"unixexec:path=/bin/sh": false, "tcp:host=127.0.0.1,port=1": false, "unix:path=/a;": false,
	} {
		if _, got := sessionBus(set, stranger); got != ok {
			t.Errorf("%s: taken %v", set, got)
		}
	}
	if _, ok := sessionBus("autolaunch:", stranger); ok {
		t.Error("a bus would be started")
	}
}

// TestNobodyOnTheBus: without an answer nothing is claimed, and what the daemon
// told decides what is said.
func TestNobodyOnTheBus(t *testing.T) {
	f := installed()
	want(t, found(t, examine(t, f, t.TempDir()), "keychain"), Solved, "keeps nothing there")
	f.Daemon.Told.Backend = "OS keychain, service chatelaine dmn_1"
	want(t, found(t, examine(t, f, t.TempDir()), "keychain"), Unseen, "does not answer")
	f.Daemon = nil
	want(t, found(t, examine(t, f, t.TempDir()), "keychain"), Unseen, "does not answer")
	f.Caller.UID = 0
	want(t, found(t, examine(t, f, t.TempDir()), "keychain"), Unseen, "does not answer")
}
