package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemChecks are those that Linux has an answer to.
func systemChecks() []check {
	return []check{
		{tryIDs(), func(_ context.Context, e *exam) []Finding { return e.tries() }},
		{[]string{"exec-window"}, one((*exam).execWindow)},
		{[]string{"dumpable"}, one((*exam).dumpable)},
		{[]string{"no-new-privs"}, one((*exam).noNewPrivs)},
		{[]string{"seccomp"}, one((*exam).seccomp)},
		{[]string{"yama"}, one((*exam).yama)},
		{[]string{"core"}, one((*exam).core)},
		{[]string{"swap"}, one((*exam).swap)},
		{[]string{"pidfd"}, one((*exam).pidfd)},
		{[]string{"clock"}, one((*exam).clock)},
	}
}

// read returns a file of the kernel's, "" where it does not tell. The caller
// names it below /proc.
func (e *exam) read(names ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{e.proc}, names...)...))
	if err != nil {
		return ""
	}
	return string(b)
}

// process returns the path of the daemon's folder in /proc, or why not.
func (e *exam) process(id, attack string) (string, *Finding) {
	var f Finding
	switch {
	case e.Daemon == nil:
		f = unseen(id, attack, "no daemon answers: "+e.Missing, startIt)
	case e.Daemon.PID <= 0:
		f = unseen(id, attack, "the kernel does not name the daemon's process here: it runs in another container", "ask beside the daemon")
	default:
		return strconv.Itoa(e.Daemon.PID), nil
	}
	return "", &f
}

// field is one line of /proc/PID/status.
func (e *exam) field(pid, name string) string {
	for line := range strings.Lines(e.read(pid, "status")) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// execWindow: a program that its user may read starts readable, until the first
// line of main. A descriptor of its memory that was opened then stays good.
func (e *exam) execWindow() Finding {
	const id, attack = "exec-window", "open the daemon's memory in the instant after exec, and keep it open"
	program := e.program()
	uid, known := e.daemonUID()
	if program == "" || !known {
		return unseen(id, attack, "the daemon's program is not known", startIt)
	}
	fi, err := os.Stat(program)
	if err != nil || sysStat(fi) == nil {
		return unseen(id, attack, program+" cannot be looked at", "ask again as a user who may look there")
	}
	f := Finding{ID: id, Attack: attack, Verdict: Solved, Detail: fmt.Sprintf("%s has mode %04o: the daemon's user may run it and not read it, so it is closed from the first instant", program, fi.Mode().Perm())}
	owner, perm := int(sysStat(fi).Uid), fi.Mode().Perm()
	switch {
	case owner != uid && perm&0o004 == 0 && perm&0o040 == 0:
		return f
	case owner != uid && perm&0o044 != 0:
		f.Detail = fmt.Sprintf("%s has mode %04o: until its first line runs, the process is open to others of its user", program, perm)
	default:
		f.Detail = program + " belongs to the daemon's own user, who can read and replace it"
	}
	f.Verdict, f.WayOut = Partial, "chown root "+program+" && chmod 0711 "+program
	if e.mode == ModeSame {
		return f.Still("wait for the daemon's next start and keep its memory open from the first instant")
	}
	return f
}

// dumpable: the kernel gives the private files of a process that nobody may read
// to root (proc(5)).
func (e *exam) dumpable() Finding {
	const id, attack = "dumpable", "make the kernel treat the daemon as any process"
	pid, f := e.process(id, attack)
	if f != nil {
		return *f
	}
	owner, ok := ownerOf(filepath.Join(e.proc, pid, "environ"))
	switch {
	case !ok:
		return unseen(id, attack, "the kernel does not show it", "mount /proc without hidepid, or ask as root")
	case e.Daemon.UID == 0:
		return unseen(id, attack, "the daemon runs as root, where this does not show", "give it a user of its own")
	case owner == 0:
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "PR_SET_DUMPABLE is 0: no dump, no tracer, no reader of its user"}
	}
	return Finding{ID: id, Attack: attack, Verdict: NotSolved, Detail: "PR_SET_DUMPABLE is not 0", WayOut: "report this: the daemon sets it in its first line"}.Still("read the daemon's memory")
}

func (e *exam) noNewPrivs() Finding {
	const id, attack = "no-new-privs", "gain rights through a program that the daemon runs"
	pid, f := e.process(id, attack)
	if f != nil {
		return *f
	}
	switch e.field(pid, "NoNewPrivs") {
	case "1":
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "NoNewPrivs is set"}
	case "0":
		return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "NoNewPrivs is not set", WayOut: "NoNewPrivileges=yes in the unit"}
	}
	return unseen(id, attack, "the kernel does not show it", "mount /proc without hidepid, or ask as root")
}

func (e *exam) seccomp() Finding {
	const id, attack = "seccomp", "reach rare system calls through a mistake in the daemon"
	pid, f := e.process(id, attack)
	if f != nil {
		return *f
	}
	switch e.field(pid, "Seccomp") {
	case "1", "2":
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "a filter of system calls is in force"}
	case "0":
		return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "no filter of system calls", WayOut: "SystemCallFilter=@system-service in the unit"}
	}
	return unseen(id, attack, "the kernel does not show it", "mount /proc without hidepid, or ask as root")
}

// yama guards the programs around the daemon: the one that passphrases are typed
// into is as private as the shell.
func (e *exam) yama() Finding {
	const id, attack = "yama", "trace another program of the same user, such as the one that asks for a passphrase"
	v := strings.TrimSpace(e.read("sys/kernel/yama/ptrace_scope"))
	switch v {
	case "":
		return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "the kernel has no Yama; the daemon and chatelaine guard themselves, a shell does not", WayOut: "a kernel with Yama, and kernel.yama.ptrace_scope=1"}
	case "0":
		return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "kernel.yama.ptrace_scope is 0; the daemon and chatelaine guard themselves, a shell does not", WayOut: "sysctl -w kernel.yama.ptrace_scope=1"}
	}
	return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "kernel.yama.ptrace_scope is " + v}
}

func (e *exam) core() Finding {
	const id, attack = "core", "make the daemon dump its memory to disk"
	pid, f := e.process(id, attack)
	if f != nil {
		return *f
	}
	limit := ""
	for line := range strings.Lines(e.read(pid, "limits")) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			limit = strings.Join(strings.Fields(rest), " ")
		}
	}
	pattern := strings.TrimSpace(e.read("sys/kernel/core_pattern"))
	if pattern == "" {
		pattern = "not shown"
	}
	switch {
	case limit == "":
		return unseen(id, attack, "the kernel does not show its limits", "ask as the daemon's user or root")
	case strings.HasPrefix(limit, "0 0"):
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "its limit is 0 and may not be raised (core_pattern: " + pattern + ")"}
	}
	return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "its limit is " + limit + " (core_pattern: " + pattern + ")", WayOut: "LimitCORE=0 in the unit"}
}

// swap: memory that was swapped out lies on a disk.
func (e *exam) swap() Finding {
	const id, attack = "swap", "find the vault's key on the swap disk"
	var open []string
	lines := strings.Split(e.read("swaps"), "\n")
	for _, line := range lines[min(1, len(lines)):] {
		if w := strings.Fields(line); len(w) > 0 && !inMemory(w[0]) {
			open = append(open, w[0])
		}
	}
	switch {
	case lines[0] == "":
		return unseen(id, attack, "the kernel does not show its swap", "")
	case len(open) == 0:
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "no swap, or only in memory or encrypted"}
	}
	if e.Daemon != nil && e.Daemon.PID > 0 && e.noSwapInCgroup() {
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "the daemon's cgroup is kept out of swap"}
	}
	return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "swap in the clear: " + strings.Join(open, ", "), WayOut: "MemorySwapMax=0 in the unit, or an encrypted swap"}
}

// inMemory says whether a swap device never leaves memory, or is encrypted.
func inMemory(device string) bool {
	real, err := filepath.EvalSymlinks(device)
	if err != nil {
		real = device
	}
	base := filepath.Base(real)
	if strings.HasPrefix(base, "zram") {
		return true
	}
	b, err := os.ReadFile(filepath.Join("/sys/block", base, "dm/uuid"))
	return err == nil && strings.HasPrefix(string(b), "CRYPT-")
}

func (e *exam) noSwapInCgroup() bool {
	for line := range strings.Lines(e.read(strconv.Itoa(e.Daemon.PID), "cgroup")) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", path, "memory.swap.max"))
			return err == nil && strings.TrimSpace(string(b)) == "0"
		}
	}
	return false
}

// pidfd asks for SO_PEERPIDFD (Linux 6.5), by which a listener gets a handle of
// the process that called.
func (e *exam) pidfd() Finding {
	const id, attack = "pidfd", "take the process number of a caller that has ended"
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unseen(id, attack, "no socket could be made", "")
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	fd, err := unix.GetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		unix.Close(fd)
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "the kernel hands out the caller itself (SO_PEERPIDFD); a session is tied to its token and user"}
	}
	if errors.Is(err, unix.ENOPROTOOPT) {
		return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "the kernel tells only a number, which may come again", WayOut: "Linux 6.5 or later"}
	}
	return unseen(id, attack, "the kernel did not answer", "")
}

// timeError is TIME_ERROR of adjtimex(2): the clock is not synchronised.
const timeError = 5

func (e *exam) clock() Finding {
	const id, attack = "clock", "let a clock that is wrong make old answers fresh"
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	switch {
	case err != nil:
		return unseen(id, attack, "the kernel does not tell about its clock", "")
	case state == timeError:
		return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "the clock is not synchronised", WayOut: "run a time service, such as systemd-timesyncd or chrony"}
	}
	return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "the clock is synchronised"}
}
