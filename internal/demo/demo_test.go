package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/demo"
)

// contracts are the shipped ones.
const contracts = "../../contracts"

// roomy is the limit of a play on a machine that runs other tests beside it.
const roomy = 5 * time.Minute

// built are the three programs of the demo, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "demo-bin-")
	if err != nil {
		return "", err
	}
	for program, pkg := range map[string]string{"chatelaine": "cmd/chatelaine", "chatelained": "cmd/chatelained", "demo": "internal/demo/cmd"} {
		// Without the stamp of the checkout, which git may refuse to read.
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, program), "chatelaine/"+pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func bin(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// nest makes a folder for temporary files that this test alone uses. Its path
// is short, so that sockets fit.
func nest(t *testing.T) string {
	t.Helper()
	bin(t) // before TMPDIR is another
	dir, err := os.MkdirTemp("/tmp", "nest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// empty fails the test if the demo has left a file or a process.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("%s is left", filepath.Join(dir, e.Name()))
	}
	for _, pid := range processes(dir) {
		t.Errorf("process %s is left", pid)
	}
}

// processes are those that were started in a home below dir; none where the
// system does not show them.
func processes(dir string) []string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var out []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			out = append(out, filepath.Base(filepath.Dir(link)))
		}
	}
	return out
}

// TestDemo plays it whole, and holds the README to what it prints.
func TestDemo(t *testing.T) {
	dir := nest(t)
	var out bytes.Buffer
	err := demo.Run(t.Context(), demo.Options{Bin: bin(t), Contracts: contracts, Out: &out, Limit: roomy})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	empty(t, dir)
	printed := out.String()
	if strings.Contains(printed, "FAILED") || strings.Contains(printed, "\x1b") {
		t.Errorf("a success printed\n%s", printed)
	}
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- demo output: begin -->\n```\n")
	block, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("README.md has no block between the markers of the demo's output")
	}
	got, want := strings.Split(shape(printed), "\n"), strings.Split(shape(block), "\n")
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("line %d of the demo's output in README.md is %q, the demo prints %q; put the output of make demo between the markers", i+1, w, g)
		}
	}
}

// changing is what differs between two plays: ids, times, numbers.
var changing = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`act_[0-9A-Z]+`), "act_ID"},
	{regexp.MustCompile(`dep_[a-z0-9]+`), "dep_ID"},
	{regexp.MustCompile(`Requested by:.*`), "Requested by: …"},
	{regexp.MustCompile(`[0-9][0-9,.]*`), "0"},
	{regexp.MustCompile(` +`), " "},
}

// shape is the output without what differs between two plays.
func shape(s string) string {
	for _, c := range changing {
		s = c.form.ReplaceAllString(s, c.as)
	}
	return strings.TrimSpace(s)
}

// A boundary that lets a lie through is seen: here the contract no longer asks
// whose deployment it is.
func TestDemoFailsWhereAPromiseIsBroken(t *testing.T) {
	dir, weak := nest(t), t.TempDir()
	if err := os.CopyFS(weak, os.DirFS(contracts)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(weak, "deploy_release", "contract.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	without := bytes.Replace(b, []byte("  - same: [result.project_id, target.project_id]\n"), nil, 1)
	if bytes.Equal(b, without) {
		t.Fatal("the shipped contract has no check of the project; this test takes the wrong line")
	}
	if err := os.WriteFile(path, without, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), "demo"), "--bin", bin(t), "--contracts", weak)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("ended with %v\n%s", err, out)
	}
	text := string(out)
	failed := regexp.MustCompile(`(?m)^FAILED  wrong project +OK .*\n +expected +INVALID_RESPONSE`)
	if !failed.MatchString(text) || !strings.Contains(text, "ok      stale time") || !strings.Contains(text, "demo: not every claim holds") {
		t.Errorf("it printed\n%s", text)
	}
	log := regexp.MustCompile(`(?m)^the daemon's log: (.*)$`).FindStringSubmatch(text)
	if log == nil {
		t.Fatalf("it does not say where the log is\n%s", text)
	}
	if _, err := os.Stat(log[1]); err != nil {
		t.Errorf("the log: %v", err)
	}
	if left := processes(dir); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// kept is the home that --keep leaves.
var kept = regexp.MustCompile(`(?m)^kept: (.*)$`)

func TestDemoKeepsTheHome(t *testing.T) {
	dir := nest(t)
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Bin: bin(t), Contracts: contracts, Out: &out, Keep: true, Limit: roomy}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	m := kept.FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("it does not say where the home is\n%s", out.String())
	}
	if left := processes(dir); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	// What it says about looking around works as typed.
	_, advice, _ := strings.Cut(out.String(), "look around, from this folder:\n")
	advice = strings.Replace(advice, "chatelaine unlock ", "chatelaine unlock --passphrase-fd 3 3<<<'throw-away vault words' ", 1)
	advice = strings.Replace(advice, "--did-not ", "--did-not --proof-fd 3 3<<<'throw-away operator words' ", 1)
	advice = strings.Replace(advice, "&\n", "&\nuntil [ -S \"$CHATELAINE_RUNTIME/operator.sock\" ]; do sleep 0.05; done\n", 1)
	advice = strings.Replace(advice, "kill %1;", "kill %1; wait;", 1)
	sh := exec.CommandContext(t.Context(), "bash", "-m", "-c", advice)
	said, err := sh.CombinedOutput()
	if err != nil {
		t.Errorf("looking around: %v", err)
	}
	for _, want := range []string{"chain: valid", "first broken sequence: ", "vault: open", "deploy-0002", "did not happen"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("looking around does not show %q:\n%s\nthe advice was\n%s", want, said, advice)
		}
	}
	if _, err := os.Stat(m[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last line does not remove the home: %v", err)
	}
}

// Ctrl-C, at three moments: nothing is left.
func TestDemoInterrupted(t *testing.T) {
	for _, at := range []string{"Set up", "the operator sees a card", "killed before the answer"} {
		t.Run(at, func(t *testing.T) {
			dir := nest(t)
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), "demo"), "--bin", bin(t), "--contracts", contracts)
			watch := &watcher{mark: at, then: func() { _ = cmd.Process.Signal(syscall.SIGINT) }}
			cmd.Stdout = watch
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("ended with %v\n%s", err, watch.all.String())
			}
			empty(t, dir)
		})
	}
}

// watcher does something once when it reads a mark.
type watcher struct {
	all  bytes.Buffer
	mark string
	then func()
	once sync.Once
}

func (w *watcher) Write(p []byte) (int, error) {
	w.all.Write(p)
	if bytes.Contains(w.all.Bytes(), []byte(w.mark)) {
		w.once.Do(w.then)
	}
	return len(p), nil
}

// A pager that is left early is no reason to leave anything behind.
func TestDemoWithoutAReader(t *testing.T) {
	dir := nest(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), "demo"), "--bin", bin(t), "--contracts", contracts)
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := io.ReadFull(r, make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("a play that nobody could read is a success")
	}
	empty(t, dir)
}

func TestDemoSaysWhatIsMissing(t *testing.T) {
	dir := nest(t)
	for name, c := range map[string]struct {
		o    demo.Options
		want string
	}{
		"no programs":  {demo.Options{Bin: t.TempDir(), Contracts: contracts}, "chatelaine: no such file or directory; run make demo"},
		"no contracts": {demo.Options{Bin: bin(t), Contracts: t.TempDir()}, "deploy_release/contract.yaml: no such file or directory; run make demo"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.o.Out = &out
			err := demo.Run(context.Background(), c.o)
			if err == nil || !strings.Contains(err.Error()+out.String(), c.want) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
	if left := processes(dir); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestDemoTakesOnlyFlags(t *testing.T) {
	out, err := exec.Command(filepath.Join(bin(t), "demo"), "now").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "only flags") {
		t.Errorf("%v %s", err, out)
	}
}
