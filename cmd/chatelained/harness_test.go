package main_test

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// The tests of this package drive the real program: a process of its own, real
// sockets, a real vault and record on disk, and a real HTTPS server outside.

const (
	vaultPass    = "vault passphrase of the tests"
	operatorPass = "operator passphrase of the tests"
	// planted is the credential that must turn up nowhere but in the outbound
	// request.
	planted = "tok-9f3a71c2e85d4b60a1f7-planted"
)

// The program is built once as it serves in the tests, and once without the race
// detector. Under -race the serving one is a race build: a race that it reports
// fails a test. What ends by itself (init, recover, a refusal to start) and homes
// whose daemon is killed over and over take the plain one: the detector makes the
// derivation of keys several times as costly, and has little to look at there.
var (
	servingBinary = sync.OnceValues(func() (string, error) { return build("chatelained-serving", raceEnabled) })
	plainBinary   = sync.OnceValues(func() (string, error) {
		if !raceEnabled {
			return servingBinary()
		}
		return build("chatelained", false)
	})
)

// buildDir holds what the tests build. TestMain makes and removes it.
var buildDir string

func build(name string, race bool) (string, error) {
	path := filepath.Join(buildDir, name)
	// Without the stamp of the checkout: git refuses to read one that belongs to
	// another user, as in a container, and the build would fail.
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path)
	if race {
		cmd.Args = append(cmd.Args, "-race")
	}
	if !raceEnabled {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	}
	cmd.Args = append(cmd.Args, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
}

// homesAtOnce is how many tests run beside each other where the command line does
// not say: most of a test is waiting, for a proof a second, a daemon or a limit.
const homesAtOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", homesAtOnce)
	}
	os.Exit(runIn(m))
}

func runIn(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chatelained-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildDir = dir
	return m.Run()
}

// home is one throw-away installation.
type home struct {
	t      testing.TB
	dir    string
	places client.Places
	log    *logFile
	proc   *exec.Cmd
	ended  chan struct{} // closed when proc has ended
	end    error         // how it ended; read after that
	up     *upstream.Server
	env    []string // added to the daemon's environment
	plain  bool     // the daemon is the plain one, under -race too
}

// logFile collects what daemons of one home wrote. It is a file and no pipe, so
// that what a daemon wrote before it answered is there when the answer is.
type logFile struct {
	t    testing.TB
	path string
}

func newLog(t testing.TB) *logFile {
	t.Helper()
	return &logFile{t, filepath.Join(t.TempDir(), "log")}
}

// into makes the log the program's standard output and standard error.
func (l *logFile) into(cmd *exec.Cmd) {
	l.t.Helper()
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = f, f
	l.t.Cleanup(func() { _ = f.Close() })
}

func (l *logFile) bytes() []byte {
	b, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Error(err)
	}
	return b
}

// waitFor waits for a text that a daemon writes after it has answered.
func (l *logFile) waitFor(text string) {
	l.t.Helper()
	testkit.Until(l.t, fmt.Sprintf("%q in the log", text), func() bool { return bytes.Contains(l.bytes(), []byte(text)) })
}

// newHome makes an installation whose targets all lie at up. It is initialised,
// not started. The folder is short: a socket's path has at most 103 bytes.
func newHome(t testing.TB, up *upstream.Server, caFile string) *home {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cht")
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, dir: dir, log: newLog(t), up: up}
	h.places = client.Places{Config: filepath.Join(dir, "c"), State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")}
	t.Cleanup(func() {
		h.kill()
		h.noRace()
		if t.Failed() {
			t.Logf("daemon log:\n%s", h.log.bytes())
		}
		_ = os.RemoveAll(dir)
	})
	h.writeConfig(caFile)
	made, err := initialised()
	if err != nil {
		t.Fatal(err)
	}
	if err := copyTree(filepath.Join(made, "s"), h.places.State); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(filepath.Join(made, "recovery.key"), filepath.Join(dir, "recovery.key")); err != nil {
		t.Fatal(err)
	}
	return h
}

// initialised is one state as init leaves it. Making it takes seconds of key
// derivation, so homes begin with a copy of it.
var initialised = sync.OnceValues(func() (string, error) {
	path, err := plainBinary()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(buildDir, "initialised")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	cmd := exec.Command(path, "--config", filepath.Join(dir, "c"), "--state", filepath.Join(dir, "s"), "--runtime", filepath.Join(dir, "r"),
		"init", "--passes", "3", "--vault-passphrase-fd", "3", "--operator-passphrase-fd", "4", "--recovery-out", filepath.Join(dir, "recovery.key"))
	for _, text := range []string{vaultPass, operatorPass} {
		r, w, err := os.Pipe()
		if err != nil {
			return "", err
		}
		defer r.Close()
		_, err = w.WriteString(text + "\n")
		if err := errors.Join(err, w.Close()); err != nil {
			return "", err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("init: %w\n%s", err, out)
	}
	return dir, nil
})

// copyTree copies a file or a folder with its modes.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.Mkdir(target, info.Mode().Perm())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, info.Mode().Perm())
	})
}

func (h *home) writeConfig(caFile string) {
	h.t.Helper()
	h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nlog: {level: debug}\n")
	for _, from := range contractFiles(h.t) {
		text, err := os.ReadFile(from)
		if err != nil {
			h.t.Fatal(err)
		}
		h.write(filepath.Join("c/contracts", filepath.Base(filepath.Dir(from)), "contract.yaml"), string(text))
	}
	h.write("c/targets.yaml", h.site(caFile))
}

// shipped is how many contracts the repository ships.
func shipped(t testing.TB) int {
	t.Helper()
	return len(contractFiles(t))
}

// contractFiles are the shipped contracts without their fixtures, hundreds of
// files that a daemon never opens.
func contractFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../contracts/*/contract.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped contracts: %v", err)
	}
	return files
}

// site is the shipped example with every address led to the upstream.
func (h *home) site(caFile string) string {
	b, err := os.ReadFile("../../contracts/targets.yaml")
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "url: https://"); ok {
			base := ""
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				base = rest[i:]
			}
			line = fmt.Sprintf("    url: https://%s%s\n    ca: %s\n    allow: [loopback]", h.up.Addr(), base, caFile)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (h *home) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// command runs the plain program with this home's folders. Extra descriptors
// hold the texts given, from 3 on.
func (h *home) command(args []string, fds ...string) *exec.Cmd {
	h.t.Helper()
	return h.commandOf(plainBinary, args, fds...)
}

func (h *home) commandOf(program func() (string, error), args []string, fds ...string) *exec.Cmd {
	h.t.Helper()
	path, err := program()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--config", h.places.Config, "--state", h.places.State, "--runtime", h.places.Runtime}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+h.dir)
	cmd.Env = append(cmd.Env, h.env...)
	for _, text := range fds {
		r, w, err := os.Pipe()
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := w.WriteString(text + "\n"); err != nil {
			h.t.Fatal(err)
		}
		_ = w.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, r)
		h.t.Cleanup(func() { _ = r.Close() })
	}
	return cmd
}

func (h *home) mustInit() {
	h.t.Helper()
	cmd := h.command([]string{"init", "--passes", "3", "--vault-passphrase-fd", "3", "--operator-passphrase-fd", "4", "--recovery-out", filepath.Join(h.dir, "recovery.key")}, vaultPass, operatorPass)
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("init: %v\n%s", err, out)
	}
}

// start runs the daemon and waits until it answers.
func (h *home) start() {
	h.t.Helper()
	if h.proc != nil {
		select {
		case <-h.ended:
		default:
			h.t.Fatal("a daemon of this home runs already; a second one would outlive the test")
		}
	}
	program := servingBinary
	if h.plain {
		program = plainBinary
	}
	cmd := h.commandOf(program, []string{"serve"})
	h.log.into(cmd)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	h.proc, h.ended = cmd, ended
	go func() {
		h.end = cmd.Wait()
		close(ended)
	}()
	op := h.operator()
	defer op.Close()
	testkit.Until(h.t, "the daemon", func() bool {
		select {
		case <-ended:
			h.t.Fatalf("the daemon did not come up: %v\n%s", h.end, h.log.bytes())
		default:
		}
		_, err := op.Status(h.ctx())
		return err == nil
	})
}

// open starts the daemon and unlocks it.
func (h *home) open() {
	h.t.Helper()
	h.start()
	h.unlock()
}

func (h *home) unlock() {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	if _, err := op.Unlock(h.ctx(), vaultPass); err != nil {
		h.t.Fatalf("unlock: %v", err)
	}
}

// kill is kill -9.
func (h *home) kill() {
	if h.proc == nil {
		return
	}
	_ = h.proc.Process.Kill()
	<-h.ended
	h.proc = nil
}

// noRace fails the test where a daemon of this home, a race build, told of a race:
// one that is killed ends with no code of its own.
func (h *home) noRace() {
	h.t.Helper()
	if bytes.Contains(h.log.bytes(), []byte("WARNING: DATA RACE")) {
		h.t.Errorf("the daemon reports a data race:\n%s", h.log.bytes())
	}
}

// stop asks the daemon to end and returns how it did.
func (h *home) stop() error {
	h.t.Helper()
	if h.proc == nil {
		return errors.New("not running")
	}
	_ = h.proc.Process.Signal(syscall.SIGTERM)
	<-h.ended
	h.proc = nil
	return h.end
}

func (h *home) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	h.t.Cleanup(cancel)
	return ctx
}

func (h *home) operator() *client.Operator {
	return client.NewOperator(h.places.OperatorSocket(), client.OwnAndRoot(), "test")
}

// proof answers a fresh challenge with the operator passphrase; of are the
// parameters of the request, where it has any. The daemon takes one try a second;
// a test that proves several things waits for it.
func (h *home) proof(op *client.Operator, operation, subject string, of ...client.Params) client.Proof {
	h.t.Helper()
	var params client.Params
	if len(of) > 0 {
		params = of[0]
	}
	ch, err := op.Challenge(h.ctx(), operation, subject, params)
	if err != nil {
		h.t.Fatalf("challenge %s: %v", operation, err)
	}
	p, err := prove(ch)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// patiently repeats what the daemon calls too soon.
func patiently(f func() error) error {
	for {
		err := f()
		if client.CodeOf(err) != client.ProofTooSoon {
			return err
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// put stores the planted credential for the identities.
func (h *home) put(names ...string) {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	for _, name := range names {
		err := patiently(func() error {
			_, err := op.PutIdentity(h.ctx(), name, client.PutIdentity{Secret: []byte(planted), Proof: h.proof(op, client.OpIdentityPut, name)})
			return err
		})
		if err != nil {
			h.t.Fatalf("put %s: %v", name, err)
		}
	}
}

// agent opens a session and has it authorised.
func (h *home) agent(name string) *client.Agent {
	h.t.Helper()
	a, err := client.NewAgent(client.AgentOptions{Socket: h.places.AgentSocket(), Owners: client.OwnAndRoot(), UserAgent: "test"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(a.Close)
	s, err := a.OpenSession(h.ctx(), name, "self")
	if err != nil {
		h.t.Fatalf("session: %v", err)
	}
	a.SetToken(s.Token)
	op := h.operator()
	defer op.Close()
	if err := patiently(func() error { return op.Authorize(h.ctx(), s.ID, h.proof(op, client.OpAuthorize, s.ID)) }); err != nil {
		h.t.Fatalf("authorize: %v", err)
	}
	return a
}

// approve decides the one open card.
func (h *home) approve() client.Card {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	card := h.openCard(op)
	var decided client.Card
	err := patiently(func() error {
		ch, err := op.ApprovalChallenge(h.ctx(), card.ID)
		if err != nil {
			return err
		}
		p, err := prove(ch)
		if err != nil {
			return err
		}
		decided, err = op.Approve(h.ctx(), card.ID, p)
		return err
	})
	if err != nil {
		h.t.Fatalf("approve: %v", err)
	}
	return decided
}

// openCard waits for exactly one open card.
func (h *home) openCard(op *client.Operator) client.Card {
	h.t.Helper()
	var open []client.Card
	testkit.Until(h.t, "one open card", func() bool {
		cards, err := op.Approvals(h.ctx())
		if err != nil {
			h.t.Fatal(err)
		}
		open = slices.DeleteFunc(cards, func(c client.Card) bool { return c.State != "open" })
		return len(open) == 1
	})
	return open[0]
}

// result waits for the end of a call that a person has decided about, or until
// patience ends.
func (h *home) result(a *client.Agent, id string) (client.Envelope, error) {
	h.t.Helper()
	for end := time.Now().Add(testkit.Patience); ; {
		e, err := a.Result(h.ctx(), id, 20*time.Second)
		if waits := code(e) == "APPROVAL_REQUIRED" || code(e) == "IN_PROGRESS"; err != nil || !waits || time.Now().After(end) {
			return e, err
		}
	}
}

// call performs an action and returns the envelope.
func (h *home) call(a *client.Agent, action, id, input string) client.Envelope {
	h.t.Helper()
	e, err := a.Call(h.ctx(), action, client.CallRequest{Input: jsontext.Value(input), RequestID: id})
	if err != nil {
		h.t.Fatalf("call %s: %v", action, err)
	}
	return e
}

func code(e client.Envelope) string {
	if e.OK {
		return "OK"
	}
	return string(e.Err.Code)
}

// release is a good answer of the deployment service, observed now.
func release(environment, version string) upstream.Answer {
	return upstream.JSON(201, fmt.Sprintf(
		`{"deployment_id":"dep_8f2k1m9q","project_id":"shop-api","environment":%q,"version":%q,"state":"queued","observed_at":%q}`,
		environment, version, time.Now().UTC().Format(time.RFC3339)))
}

const deployProd = `{"service":"api","environment":"production","version":"2.14.3","reason":"fixes payment retries"}`

// rig is a home with a running, unlocked daemon and one script of the upstream.
func rig(t testing.TB, script upstream.Script) *home {
	t.Helper()
	ca := testkit.CA(t)
	up := testkit.HTTPS(t, ca, script)
	return newHome(t, up, testkit.CAFile(t, ca))
}
