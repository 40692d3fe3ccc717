package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// role makes this test's own program a victim or an attacker, in a process and
// with a user of its own: as root nothing would be refused.
const role = "DOCTOR_TEST_ROLE"

func TestMain(m *testing.M) {
	switch as, pid, _ := strings.Cut(os.Getenv(role), " "); as {
	case "open", "closed":
		victim(as == "closed")
	case "attacker":
		attacker(pid)
	default:
		os.Exit(m.Run())
	}
}

// victim says when it is ready, and lives until its input ends.
func victim(closed bool) {
	if closed {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			panic(err)
		}
	} else {
		// Where the kernel has Yama, it lets only parents attach otherwise.
		_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// attacker tries everything on the process, and says what came of each.
func attacker(pid string) {
	n, err := strconv.Atoi(pid)
	if err != nil {
		panic(err)
	}
	for _, t := range liveTries {
		f := t.finding(t.attempt(n))
		fmt.Printf("%s %s %s\n", t.id, f.Verdict, f.Detail)
	}
	fmt.Printf("tracer %s\n", tracerOf(n))
}

// playing is this program in another role, as a user who is not root.
func playing(as string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe") // the folder of a test's program is its owner's only
	cmd.Env = []string{role + "=" + as}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	}
	return cmd
}

// somebodyElse says whether root can become another user here: some containers have
// none, and as root nothing is refused.
func somebodyElse(t *testing.T) bool {
	t.Helper()
	if err := playing("open").Run(); err != nil { // its input is empty, so it ends
		t.Logf("not tried: root cannot be another user here: %v", err)
		return false
	}
	return true
}

// startVictim starts one and waits until it has said that it is ready.
func startVictim(t *testing.T, as string) *exec.Cmd {
	t.Helper()
	cmd := playing(as)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the victim said %q, %v", line, err)
	}
	return cmd
}

// tried is what an attacker of the victim's own user got, by the try's id.
func tried(t *testing.T, victim *exec.Cmd) map[string]string {
	t.Helper()
	out, err := playing("attacker " + strconv.Itoa(victim.Process.Pid)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(out)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[id] = rest
	}
	return got
}

// TestTriesOnAClosedProcess: a process that is not dumpable refuses each try of
// another process of its user.
func TestTriesOnAClosedProcess(t *testing.T) {
	if !somebodyElse(t) {
		return
	}
	got := tried(t, startVictim(t, "closed"))
	for _, id := range tryIDs() {
		if !strings.HasPrefix(got[id], "solved refused: ") && !strings.HasPrefix(got[id], "solved the kernel has no such call") {
			t.Errorf("%s: %s", id, got[id])
		}
	}
}

// TestTriesOnAnOpenProcess: each try works where nothing guards a process, so that
// "refused" means something, and it lets go at once.
func TestTriesOnAnOpenProcess(t *testing.T) {
	if !somebodyElse(t) {
		return
	}
	v := startVictim(t, "open")
	got := tried(t, v)
	for _, id := range tryIDs() {
		if got[id] == "solved refused: operation not permitted" && filtered(id) {
			t.Logf("%s: a filter of system calls refuses it to every process here", id)
			continue
		}
		if !strings.HasPrefix(got[id], "not_solved it worked, and was let go at once") {
			t.Errorf("%s: %s", id, got[id])
		}
	}
	if got["tracer"] != "0" {
		t.Errorf("the process is still traced by %s", got["tracer"])
	}
	if err := v.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process did not live on: %v", err)
	}
}

// filtered says whether a call is refused even over this very process, as in a
// container.
func filtered(id string) bool {
	switch id {
	case "descriptor-copy":
		return errors.Is(copyDescriptor(os.Getpid()), unix.EPERM)
	case "memory-call":
		return errors.Is(readByCall(os.Getpid()), unix.EPERM)
	}
	return false
}

// TestTriesOnNothing: a process that is gone is no proof of anything.
func TestTriesOnNothing(t *testing.T) {
	if !somebodyElse(t) {
		return
	}
	cmd := playing("open")
	must(t, cmd.Run()) // its input is empty, so it ends
	for _, try := range liveTries {
		if f := try.finding(try.attempt(cmd.Process.Pid)); f.Verdict != Unseen {
			t.Errorf("%s: %s %s", try.id, f.Verdict, f.Detail)
		}
	}
}
