package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"chatelaine/internal/client"
	"chatelaine/internal/doctor"
	"chatelaine/internal/testkit"
)

// The attacks of another process of the daemon's own user. As root nothing is
// refused, so daemon and attacker then run as somebody else.

// attackRole makes this test's program an attacker of the process it names.
const attackRole = "CHATELAINE_TEST_ATTACK"

func init() {
	pid, err := strconv.Atoi(os.Getenv(attackRole))
	if err != nil {
		return
	}
	r := doctor.Run(context.Background(), doctor.Facts{
		Caller: doctor.Caller{UID: os.Getuid()}, Daemon: &doctor.Daemon{PID: pid, UID: os.Getuid(), Refused: "not asked"},
	})
	if err := json.NewEncoder(os.Stdout).Encode(r.Findings); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// attacks are the tries that read or hold a process.
var attacks = []string{"memory", "memory-call", "environ", "descriptors", "descriptor-copy", "trace", "dumpable"}

// attacked is what an attacker of the process's user got, by attack.
func attacked(t *testing.T, pid int) map[string]doctor.Verdict {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // the folder of a test's program is its owner's only
	cmd.Env = []string{attackRole + "=" + strconv.Itoa(pid)}
	cmd.SysProcAttr = asSomebody()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the attacker: %v", err)
	}
	var all []doctor.Finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]doctor.Verdict{}
	for _, f := range all {
		got[f.ID] = f.Verdict
	}
	return got
}

// refusesAll fails the test if one attack on the process was not refused.
func refusesAll(t *testing.T, when string, pid int) {
	t.Helper()
	got := attacked(t, pid)
	for _, id := range attacks {
		if got[id] != doctor.Solved {
			t.Errorf("%s: %s is %s", when, id, got[id])
		}
	}
}

// daemonUser is whom daemon and attacker run as.
func daemonUser() int {
	if os.Getuid() == 0 {
		return somebody
	}
	return os.Getuid()
}

func asSomebody() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
}

// somebodyElse says whether root can become another user here: some containers have
// none, and as root there is nothing to try.
func somebodyElse(t *testing.T) bool {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{attackRole + "=0"} // an attacker of nobody
	cmd.SysProcAttr = asSomebody()
	if err := cmd.Run(); err != nil {
		t.Logf("not tried: root cannot be another user here: %v", err)
		return false
	}
	return true
}

// given makes a home the daemon's user's own, with a copy of the program in a
// folder that this user may pass. It returns the copy's path.
func (h *home) given(mode fs.FileMode) string {
	h.t.Helper()
	from, err := plainBinary()
	if err != nil {
		h.t.Fatal(err)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		h.t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "chp")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "chatelained")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, b, 0o700), os.Chmod(program, mode)); err != nil {
		h.t.Fatal(err)
	}
	if os.Getuid() == 0 {
		h.chown()
	}
	return program
}

func (h *home) chown() {
	h.t.Helper()
	err := filepath.WalkDir(h.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, somebody, somebody)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// serveAs is the daemon of this home as its user, not started.
func (h *home) serveAs(program string) *exec.Cmd {
	cmd := h.command([]string{"serve"})
	cmd.Path, cmd.Args[0] = program, program
	cmd.SysProcAttr = asSomebody()
	cmd.Dir = h.dir
	h.log.into(cmd)
	return cmd
}

func (h *home) operatorOf(uid int) *client.Operator {
	return client.NewOperator(h.places.OperatorSocket(), client.OwnAndRoot().With(uint32(uid)), "test")
}

// TestSameUserReadsNothing: another process of the daemon's user reads nothing of
// it, before the settings are read and while the vault is open; it makes it
// leave no core; and a program put in place of the daemon's changes nothing of
// the one that runs.
func TestSameUserReadsNothing(t *testing.T) {
	t.Parallel()
	if !somebodyElse(t) {
		return
	}
	ca := testkit.CA(t)
	h := newHome(t, testkit.HTTPS(t, ca, goodDeploy), "ca.pem")
	h.write("c/ca.pem", string(ca.PEM()))
	settings := filepath.Join(h.places.Config, "chatelaine.yaml")
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(settings); err != nil {
		t.Fatal(err)
	}
	fifo(t, settings)
	program := h.given(0o755)
	allowCores(t)

	cmd := h.serveAs(program)
	cmd.Env = append(cmd.Env, "GOTRACEBACK=crash") // the runtime would dump
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	h.proc, h.ended = cmd, ended
	go func() { h.end = cmd.Wait(); close(ended) }()

	// The daemon has opened its settings and waits for what is in them.
	var w *os.File
	testkit.Until(t, "the daemon's look at its settings", func() (ok bool) {
		w, err = os.OpenFile(settings, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	refusesAll(t, "before the settings are read", cmd.Process.Pid)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()

	op := h.operatorOf(daemonUser())
	defer op.Close()
	testkit.Until(t, "the daemon", func() bool { _, err := op.Status(h.ctx()); return err == nil })
	if _, err := op.Unlock(h.ctx(), vaultPass); err != nil {
		t.Fatal(err)
	}
	err = patiently(func() error {
		_, err := op.PutIdentity(h.ctx(), "deploy-test-bot", client.PutIdentity{Secret: []byte(planted), Proof: h.proof(op, client.OpIdentityPut, "deploy-test-bot")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	refusesAll(t, "with an open vault", cmd.Process.Pid)

	// A program put in place of the daemon's is not the one that runs.
	evil := filepath.Join(filepath.Dir(program), "evil")
	if err := errors.Join(os.WriteFile(evil, []byte("#!/bin/sh\n"), 0o755), os.Rename(evil, program)); err != nil {
		t.Fatal(err)
	}
	if s, err := op.Status(h.ctx()); err != nil || s.Vault.State != "open" || s.Process.PID != cmd.Process.Pid {
		t.Errorf("after its program was replaced: %+v, %v", s.Process, err)
	}

	// A signal that dumps core leaves none, and no word of what was in memory.
	if err := cmd.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	<-ended
	h.proc = nil
	if cmd.ProcessState.Sys().(syscall.WaitStatus).CoreDump() {
		t.Error("the daemon dumped core")
	}
	if cores, _ := filepath.Glob(filepath.Join(h.dir, "core*")); len(cores) > 0 {
		t.Errorf("there is %v", cores)
	}
	p := testkit.Plant(planted)
	p.Refuse(t, "what a crash writes", h.log.bytes())
	testkit.Plant(vaultPass).Refuse(t, "what a crash writes", h.log.bytes())
	p.RefuseFiles(t, h.places.State, h.places.Config)
}

// allowCores lifts the limit that processes of this test inherit, as far as it
// may: the daemon's own must hold.
func allowCores(t *testing.T) {
	t.Helper()
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		t.Fatal(err)
	}
	before := l
	l.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &before) })
}

// TestInstantOfExec: the kernel stops the new program before its first
// instruction. One that its user may run and not read is closed already; one that
// may be read is not, which is why it is installed as the first (docs/operations.md).
// Under a tracer it does not start.
func TestInstantOfExec(t *testing.T) {
	if !somebodyElse(t) {
		return
	}
	for mode, open := range map[fs.FileMode]bool{0o711: false, 0o755: true} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			if mode == 0o711 && os.Getuid() != 0 {
				mode = 0o111 // who owns the program must not read it either
			}
			h := bare(t)
			program := h.given(mode)
			runtime.LockOSThread() // who traces is a thread
			defer runtime.UnlockOSThread()
			cmd := h.serveAs(program)
			cmd.SysProcAttr.Ptrace = true
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := cmd.Process.Pid
			defer func() { _ = cmd.Process.Kill() }()
			var status unix.WaitStatus
			if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
				t.Fatalf("the new program did not stop: %v, %v", status, err)
			}
			got := attacked(t, pid)
			if worked := got["environ"] == doctor.NotSolved; worked != open {
				t.Errorf("its environment: %s", got["environ"])
			}
			if !open {
				for _, id := range attacks {
					if got[id] != doctor.Solved {
						t.Errorf("%s is %s", id, got[id])
					}
				}
			}
			if code := runTraced(t, pid); code != 1 || !strings.Contains(string(h.log.bytes()), "traces this one") {
				t.Errorf("under a tracer it ended with %d: %s", code, h.log.bytes())
			}
		})
	}
}

// runTraced lets a process that this thread traces run to its end, and returns how
// it exited.
func runTraced(t *testing.T, pid int) int {
	t.Helper()
	signal := 0
	for {
		if err := unix.PtraceCont(pid, signal); err != nil {
			t.Fatal(err)
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
			t.Fatal(err)
		}
		if !status.Stopped() {
			return status.ExitStatus()
		}
		signal = int(status.StopSignal())
	}
}
