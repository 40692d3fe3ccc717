package ledger

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// The test binary is its own child: only a real process can be killed.
const childEnv = "CHATELAINE_LEDGER_CHILD"

func TestMain(m *testing.M) {
	mode, arg, _ := strings.Cut(os.Getenv(childEnv), ":")
	path := os.Args[len(os.Args)-1]
	switch mode {
	case "":
		os.Exit(m.Run())
	case "die-at":
		childDies(path, arg)
	case "loop":
		childLoops(path)
	case "full":
		childFull(path)
	}
}

func runChild(t *testing.T, mode, path string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$", path)
	c.Env = append(os.Environ(), childEnv+"="+mode)
	c.Stderr = os.Stderr
	return c
}

func openAt(path string) (*durable.Store, *Ledger) { return openAbove(path, 0) }

// openAbove opens a ledger whose record was durable through floor.
func openAbove(path string, floor uint64) (*durable.Store, *Ledger) {
	s, err := durable.OpenStore(path, 5*time.Second, Buckets()...)
	check(err)
	l, err := Open(s, Options{})
	check(err)
	check(l.SetRecordFloor(floor))
	check(l.Unlock(testKeys))
	return s, l
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// killFloor is what the record held after the kill.
const killFloor = 7

// killSteps are the durable steps of a call and what the next run finds after
// a kill -9 right behind each.
var killSteps = []struct {
	name string
	do   func(c *Call) error
	want Verdict
	code string
}{
	{"claimed", func(*Call) error { return nil }, Fresh, ""},
	{"waiting", func(c *Call) error { return c.SetState(Waiting) }, Fresh, ""},
	{"armed", func(c *Call) error { return c.Arm(Armed{Attempt: 1}) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"sent", func(c *Call) error { return c.SetState(Sent) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"proving", func(c *Call) error { return c.SetState(Proving) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"armed again", func(c *Call) error { return c.Arm(Armed{Attempt: 2}) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"polling", func(c *Call) error { return c.Poll(Polled{Captured: []byte("{}")}) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"reconciling", func(c *Call) error { return c.SetState(Reconciling) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"prepared, not recorded", func(c *Call) error { return c.Prepare(recorded(killFloor + 1)) }, Unresolved, "OUTCOME_UNKNOWN"},
	{"prepared and recorded", func(c *Call) error { return c.Prepare(recorded(killFloor)) }, Recorded, ""},
	{"published", func(c *Call) error { c.Publish(); return nil }, Recorded, ""},
}

func childDies(path, at string) {
	_, l := openAt(path)
	c, _, err := l.Claim(ann, "deploy-0001", "deploy_release", inputX, true)
	check(err)
	_, _, err = l.Claim(ann, "deploy-0002", "deploy_release", inputX, true)
	check(err)
	for _, s := range killSteps {
		check(s.do(c))
		if s.name == at {
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		}
	}
}

func TestKillAtEachStep(t *testing.T) {
	for _, s := range killSteps {
		path := filepath.Join(t.TempDir(), "ledger.db")
		if err := runChild(t, "die-at:"+s.name, path).Run(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%s: %v", s.name, err)
		}
		store, l := openAbove(path, killFloor)
		for range 2 { // before and after Recover
			for _, id := range []string{"deploy-0001", "deploy-0002"} {
				c, v, err := l.Claim(ann, id, "deploy_release", inputX, true)
				if err != nil || v != s.want {
					t.Fatalf("killed when %s: %s: verdict %d, %v", s.name, id, v, err)
				}
				if v == Fresh {
					check(c.Release(nil, ""))
					continue
				}
				if out, _ := c.Outcome(); out.Code != s.code || c.RequestID() != "deploy-0001" {
					t.Fatalf("killed when %s: %s answers with %s, %q", s.name, id, c.RequestID(), out.Code)
				}
			}
			_, err := l.Recover()
			check(err)
		}
		check(store.Close())
	}
}

func childLoops(path string) {
	_, l := openAt(path)
	for i := 0; ; i++ {
		id := fmt.Sprintf("call-%d-%d", os.Getpid(), i)
		c, _, err := l.Claim(ann, id, "deploy_release", [32]byte{byte(i), byte(i >> 8)}, false)
		check(err)
		check(c.Arm(Armed{Attempt: 1}))
		fmt.Println("armed", id)
		check(c.Finish(success()))
		fmt.Println("finished", id)
	}
}

// TestKillInALoop kills at any moment: nothing that was acknowledged is lost,
// and nothing armed comes back as fresh.
func TestKillInALoop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	for round := range 4 {
		cmd := runChild(t, "loop", path)
		out, err := cmd.StdoutPipe()
		check(err)
		check(cmd.Start())
		var said bytes.Buffer
		_, err = io.CopyN(&said, out, 1) // a slow machine takes its time to start
		check(err)
		time.AfterFunc(time.Duration(20+30*round)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_, _ = said.ReadFrom(out)
		_ = cmd.Wait()
		want := map[string]string{}
		for line := range strings.Lines(said.String()) {
			if step, id, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && strings.HasSuffix(line, "\n") {
				want[id] = step
			}
		}
		store, l := openAt(path)
		for id, step := range want {
			c, ok, err := l.Lookup(ann, id)
			if err != nil || !ok {
				t.Fatalf("%s %s is gone: %v", step, id, err)
			}
			if step == "finished" && c.State() != Finished {
				t.Fatalf("%s is %s", id, c.State())
			}
			if step == "armed" && c.State() != StateUnresolved && c.State() != Finished {
				t.Fatalf("%s is %s", id, c.State())
			}
		}
		if len(want) == 0 {
			t.Fatal("the child did nothing")
		}
		check(store.Close())
	}
}

// TestDiskFull: a full disk refuses the call, consumes nothing, and the same id
// runs once there is room again.
func TestDiskFull(t *testing.T) {
	out, err := runChild(t, "full", filepath.Join(t.TempDir(), "ledger.db")).Output()
	if err != nil || string(out) != "ok" {
		t.Fatalf("%q, %v", out, err)
	}
}

func childFull(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	s, l := openAt(path)
	sent, _, err := l.Claim(ann, "deploy-0002", "deploy_release", inputY, true)
	check(err)
	check(sent.Arm(Armed{Attempt: 1}))
	unsent, _, err := l.Claim(ann, "deploy-0003", "deploy_release", [32]byte{3}, true)
	check(err)
	check(unsent.Arm(Armed{Attempt: 1}))
	_, _, err = l.Claim(ann, "deploy-0004", "deploy_release", [32]byte{3}, true)
	check(err)
	var old syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: old.Max}))

	big := bytes.Repeat([]byte("p"), 1<<20)
	c, _, err := l.Claim(ann, "deploy-0001", "deploy_release", inputX, true)
	check(err)
	if err := c.Arm(Armed{Attempt: 1, Plan: big}); fault.CodeOf(err) != fault.AuditUnavailable {
		panic(fmt.Sprintf("armed on a full disk: %v", err))
	}
	check(c.Release(nil, "AUDIT_UNAVAILABLE"))
	if err := sent.Finish(Outcome{Fate: fault.Final, Envelope: big}); err == nil {
		panic("finished on a full disk")
	}
	if err := sent.Finish(unknown()); err == nil || sent.State() != StateUnresolved {
		panic("not unresolved")
	}
	// The record failed beside the arming: nothing was sent, and the disk will
	// not even forget the entry. This run knows better.
	if err := unsent.Release(nil, "AUDIT_UNAVAILABLE"); err == nil {
		panic("forgotten on a full disk")
	}
	for _, id := range []string{"deploy-0003", "deploy-0004"} {
		c, v, err := l.Claim(ann, id, "deploy_release", [32]byte{3}, true)
		if err != nil || v != Fresh {
			panic(fmt.Sprintf("%s was consumed: %d, %v", id, v, err))
		}
		check(c.Release(nil, ""))
	}
	if l.Sweep() == nil {
		panic("swept on a full disk")
	}

	check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	c, v, err := l.Claim(ann, "deploy-0001", "deploy_release", inputX, true)
	check(err)
	if v != Fresh {
		panic("the id was consumed")
	}
	check(c.Arm(Armed{Attempt: 1, Plan: big}))
	check(c.Finish(success()))
	check(l.Resolve("deploy-0002", true, []byte(`{"ok":true}`)))
	if _, v, err := l.Claim(ann, "deploy-0002", "deploy_release", inputY, true); err != nil || v != Recorded {
		panic("not resolved")
	}
	check(l.Sweep())
	check(s.Close())
	_, l = openAt(path)
	if n, err := l.Recover(); n != 0 || err != nil {
		panic(fmt.Sprintf("%d unresolved, %v", n, err))
	}
	fmt.Print("ok")
}
