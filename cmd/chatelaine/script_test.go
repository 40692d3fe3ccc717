package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"chatelaine/internal/auditlog"
)

// The tests drive the real programs: built once, without the race detector,
// whose start takes a second, and removed at the end.
func TestMain(m *testing.M) {
	code := m.Run()
	programDirs.Range(func(_, dir any) bool { os.RemoveAll(dir.(string)); return true })
	os.Exit(code)
}

var (
	programDirs sync.Map // by name, what TestMain removes
	programs    = map[string]func() (string, error){"chatelaine": building("chatelaine"), "chatelained": building("chatelained")}
)

// building returns what builds a program when it is first asked for.
func building(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", name+"-")
		if err != nil {
			return "", err
		}
		programDirs.Store(name, dir)
		path := filepath.Join(dir, name)
		// Without the stamp of the checkout: git refuses to read one that belongs
		// to another user, as in a container, and the build would fail.
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "chatelaine/cmd/"+name).CombinedOutput(); err != nil {
			return "", fmt.Errorf("build: %w\n%s", err, out)
		}
		return path, nil
	})
}

// TestScripts drives the real program against fake daemons on real sockets.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"daemon": cmdDaemon, "asked": cmdAsked, "run": cmdRun, "keep": cmdKeep, "mode": cmdMode,
			"realdaemon": cmdRealDaemon, "sent": cmdSent, "record": cmdRecord, "callrecord": cmdCallRecord, "journalrecord": cmdJournalRecord, "answered": cmdAnswered, "damage": cmdDamage,
		},
	})
}

// fakes are the running fake daemons by runtime folder.
var fakes sync.Map

// setupScript gives each script its own places; the runtime folder is short,
// because a socket's path must be.
func setupScript(env *testscript.Env) error {
	dir, err := tempRuntime()
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	env.Setenv("RUNTIME", dir)
	env.Setenv("CHATELAINE_RUNTIME", dir)
	env.Setenv("CHATELAINE_CONFIG", filepath.Join(env.WorkDir, "config"))
	env.Setenv("CHATELAINE_STATE", filepath.Join(env.WorkDir, "state"))
	env.Setenv("CHATELAINE_AGENT", "cli-test")
	env.Setenv("HOME", env.WorkDir)
	contracts, err := filepath.Abs(filepath.Join("..", "..", "contracts"))
	if err != nil {
		return err
	}
	env.Setenv("CONTRACTS", contracts)
	return os.WriteFile(filepath.Join(env.WorkDir, "pass"), []byte(fakeOperator+"\n"), 0o600)
}

// cmdDaemon starts the fake daemon: daemon [option=value…]
func cmdDaemon(ts *testscript.TestScript, _ bool, args []string) {
	options := map[string]string{}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		options[k] = v
	}
	d, err := startFake(ts.Getenv("RUNTIME"), options)
	ts.Check(err)
	ts.Defer(d.stop)
	fakes.Store(ts.Getenv("RUNTIME"), d)
}

// cmdAsked prints what the fake daemon was asked since the last time.
func cmdAsked(ts *testscript.TestScript, _ bool, _ []string) {
	d, _ := fakes.Load(ts.Getenv("RUNTIME"))
	d.(*fakeDaemon).wrote(ts.Stdout())
}

// cmdKeep puts a member of the last JSON output in the environment: keep NAME MEMBER
func cmdKeep(ts *testscript.TestScript, _ bool, args []string) {
	m := regexp.MustCompile(`"` + args[1] + `": "([^"]*)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("there is no member %q in the output", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// cmdMode holds a file to its permissions: mode OCTAL FILE
func cmdMode(ts *testscript.TestScript, _ bool, args []string) {
	fi, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := strconv.FormatUint(uint64(fi.Mode().Perm()), 8); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// cmdRecord writes a small record and closes it: record DIR
func cmdRecord(ts *testscript.TestScript, _ bool, args []string) {
	var to []auditlog.Recipient
	for range 2 {
		id, err := auditlog.GenerateIdentity()
		ts.Check(err)
		to = append(to, id.Recipient())
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(auditlog.Create(dir, to))
	l, err := auditlog.Open(auditlog.Options{Dir: dir, Recipients: to, SegmentBytes: 64 << 10})
	ts.Check(err)
	for range 5 {
		_, err := l.Append(auditlog.Event{Type: "heartbeat", Wall: time.Now()}).Wait(context.Background())
		ts.Check(err)
	}
	ts.Check(l.Close())
}

// cmdRun runs chatelaine without a terminal and checks its exit code:
// run CODE [<FILE] [N<FILE] ARG…
func cmdRun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: run CODE [<FILE] [3<FILE [4<FILE [5<FILE]]] ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	bin, err := programs["chatelaine"]()
	ts.Check(err)
	cmd := exec.Command(bin)
	cmd.Args = []string{"chatelaine"}
	for _, a := range args[1:] {
		fd, file, ok := strings.Cut(a, "<")
		if !ok || (fd != "" && fd != "3" && fd != "4" && fd != "5") {
			cmd.Args = append(cmd.Args, a)
			continue
		}
		f, err := os.Open(ts.MkAbs(file))
		ts.Check(err)
		defer f.Close()
		if fd == "" {
			cmd.Stdin = f
		} else {
			cmd.ExtraFiles = append(cmd.ExtraFiles, f) // 3, then 4, then 5
		}
	}
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = scriptEnv(ts)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, wherever the tests run
	err = cmd.Run()
	io.WriteString(ts.Stdout(), out.String())
	io.WriteString(ts.Stderr(), errOut.String())
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got, want, out.String(), errOut.String())
	}
	for _, planted := range []string{fakeOperator, fakeVault, "tok-planted"} {
		if strings.Contains(out.String()+errOut.String(), planted) {
			ts.Fatalf("the output holds the planted %q", planted)
		}
	}
}

func scriptEnv(ts *testscript.TestScript) []string {
	env := []string{}
	for _, k := range []string{"PATH", "HOME", "TMPDIR", "CHATELAINE_RUNTIME", "CHATELAINE_CONFIG", "CHATELAINE_STATE", "CHATELAINE_AGENT",
		"CHATELAINE_AGENT_URL", "CHATELAINE_DAEMON_USER", "XDG_RUNTIME_DIR", "GOCOVERDIR"} {
		if v := ts.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}
