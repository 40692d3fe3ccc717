package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"chatelaine/internal/testkit"
)

// ptyTimeout bounds one wait for a prompt; a loaded machine is slow.
const ptyTimeout = testkit.Patience

// ptyEnd is written to the terminal after the program's last output, by the test.
const ptyEnd = "\x00end of the output\x00"

// terminal is chatelaine at a pseudo-terminal, with a person at the other end.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	ptm  *os.File
	tty  *os.File
	mu   sync.Mutex // guards seen
	seen strings.Builder
	at   int // how far expect has read
	done chan struct{}
}

// atTerminal starts the program with the pseudo-terminal as its controlling
// terminal. stdin nil means the terminal.
func atTerminal(t *testing.T, runtime string, stdin *os.File, env []string, args ...string) *terminal {
	t.Helper()
	ptm, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := programs["chatelaine"]()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin)
	cmd.Args = append([]string{"chatelaine"}, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if stdin != nil {
		cmd.Stdin = stdin
	}
	home := t.TempDir()
	cmd.Env = append([]string{"HOME=" + home, "TERM=xterm", "CHATELAINE_RUNTIME=" + runtime, "CHATELAINE_AGENT=cli-test",
		"CHATELAINE_CONFIG=" + home, "CHATELAINE_STATE=" + home}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, ptm: ptm, tty: tty, done: make(chan struct{})}
	go x.watch()
	t.Cleanup(func() { cmd.Process.Kill(); tty.Close(); ptm.Close(); <-x.done })
	return x
}

func (x *terminal) watch() {
	defer close(x.done)
	b := make([]byte, 4096)
	for {
		n, err := x.ptm.Read(b)
		x.mu.Lock()
		x.seen.Write(b[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(x.seen.String(), "\r\n", "\n")
}

// expect waits until the pattern shows, after what was expected before.
func (x *terminal) expect(pattern string) {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(ptyTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text := x.text()
		if loc := re.FindStringIndex(text[min(x.at, len(text)):]); loc != nil {
			x.at += loc[1]
			return
		}
	}
	x.t.Fatalf("the terminal never showed %q; it showed:\n%s", pattern, x.text())
}

// types waits until the echo is off and types, so that nothing is typed too
// early to be hidden.
func (x *terminal) types(s string) {
	x.t.Helper()
	for end := time.Now().Add(ptyTimeout); echoes(x.tty); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("the echo was never switched off")
		}
	}
	if _, err := x.ptm.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the program's end and for all that it wrote.
func (x *terminal) ends(code int) {
	x.t.Helper()
	waited := make(chan error, 1)
	go func() { waited <- x.cmd.Wait() }()
	select {
	case err := <-waited:
		x.drain()
		got := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		}
		if got != code {
			x.t.Fatalf("exit code %d, want %d; it showed:\n%s", got, code, x.text())
		}
	case <-time.After(ptyTimeout):
		x.t.Fatalf("the program did not end; it showed:\n%s", x.text())
	}
	if !echoes(x.tty) {
		x.t.Error("the program ended and left the echo off")
	}
}

// drain waits until the test has read everything that lies in the terminal: it
// comes out in the order in which it was written.
func (x *terminal) drain() {
	x.t.Helper()
	if _, err := x.tty.WriteString(ptyEnd); err != nil {
		x.t.Fatal(err)
	}
	testkit.Until(x.t, "the end of the output", func() bool { return strings.Contains(x.text(), ptyEnd) })
}

func (x *terminal) hides(secrets ...string) {
	x.t.Helper()
	for _, s := range secrets {
		if strings.Contains(x.text(), s) {
			x.t.Errorf("the terminal shows what was typed: %q", s)
		}
	}
}

// atFake starts a fake daemon for one test.
func atFake(t *testing.T, options map[string]string) (*fakeDaemon, string) {
	t.Helper()
	dir, err := tempRuntime()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d, err := startFake(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	return d, dir
}

func TestTerminalApprove(t *testing.T) {
	d, dir := atFake(t, nil)
	d.mu.Lock()
	d.openCard("my-call-0001", obj{"reason": "fixes"})
	d.mu.Unlock()
	x := atTerminal(t, dir, nil, nil, "approve", "my-call-0001")
	x.expect(`Deploy version 2\.14\.3 of api to production`)
	x.expect(`change on deploy-prod as deploy-prod-bot`)
	x.expect(`Reason: +"fixes"`)
	x.expect(`Requested by: +cli-test`)
	x.expect(`operator passphrase: `)
	x.types("typed wrongly\n")
	x.expect(`the passphrase was not taken; try again`)
	x.expect(`operator passphrase: `)
	x.types(fakeOperator + "\n")
	x.expect(`apr_my-call-0001: approved`)
	x.ends(0)
	x.hides("typed wrongly", fakeOperator)
}

func TestTerminalApproveEndsAfterThreeTries(t *testing.T) {
	d, dir := atFake(t, nil)
	d.mu.Lock()
	d.openCard("my-call-0001", obj{})
	d.mu.Unlock()
	x := atTerminal(t, dir, nil, []string{"NO_COLOR=1"}, "approve", "my-call-0001")
	for range proofTries {
		x.expect(`operator passphrase: `)
		x.types("typed wrongly\n")
	}
	x.expect(`the passphrase is wrong \(PROOF_REFUSED\)`)
	x.ends(exitRefused)
	x.hides("typed wrongly", "\x1b")
}

func TestTerminalIdentityPut(t *testing.T) {
	const secret = "typed-secret-of-the-remote"
	d, dir := atFake(t, map[string]string{"secret": "stored-in-the-fake"})
	x := atTerminal(t, dir, nil, nil, "identity", "put", "deploy-test-bot")
	x.expect(`deploy-test-bot \(bearer\) will be bound to the destination of target deploy-test; now it is bound to https://deploy\.test\.example:443/api`)
	x.expect(`secret \(not shown\): `)
	x.types(secret + "\n")
	x.expect(`once more: `)
	x.types(secret + "\n")
	x.expect(`The passphrase covers: do what was asked: .*"operation":"identity\.put","subject":"deploy-test-bot"`)
	x.expect(`operator passphrase: `)
	x.types(fakeOperator + "\n")
	x.expect(`stored, generation 2`)
	x.ends(0)
	x.hides(secret, fakeOperator)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.secret != secret {
		t.Errorf("the daemon got %q", d.secret)
	}
}

// What a person proves is asked of the daemon with the parameters of the command.
func TestTerminalShowsWhatIsCovered(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"identity", "rebind", "deploy-test-bot", "--target", "deploy-test"}, `"of":\{"target":"deploy-test"\},"operation":"identity\.rebind"`},
		{[]string{"identity", "remove", "deploy-test-bot"}, `\{"operation":"identity\.delete","subject":"deploy-test-bot"\}`},
		{[]string{"identity", "check", "deploy-test-bot"}, `\{"operation":"read","subject":""\}`},
		{[]string{"calls", "resolve", "act_lost0001", "--did-not"}, `"of":\{"happened":false\},"operation":"call\.resolve"`},
		{[]string{"calls", "resolve", "act_lost0001", "--happened"}, `"of":\{"happened":true\}`},
		{[]string{"reload"}, `"operation":"reload"`},
	} {
		_, dir := atFake(t, map[string]string{"secret": "stored-in-the-fake", "check": "who_am_i"})
		x := atTerminal(t, dir, nil, nil, c.args...)
		x.expect(`The passphrase covers: .*` + c.want)
		x.expect(`operator passphrase: `)
		x.types(fakeOperator + "\n")
		x.ends(0)
	}
}

// Old and new are shown part by part before the passphrase is asked.
func TestTerminalRebindShowsParts(t *testing.T) {
	_, dir := atFake(t, map[string]string{"secret": "stored-in-the-fake", "identity": "bound elsewhere"})
	x := atTerminal(t, dir, nil, []string{"NO_COLOR=1"}, "identity", "rebind", "deploy-test-bot")
	x.expect(`part  bound +targets\.yaml now`)
	x.expect(`host  deploy\.test\.example +new\.example`)
	x.expect(`CA    the system's roots +sha256:00ff`)
	x.expect(`operator passphrase: `)
	x.types(fakeOperator + "\n")
	x.expect(`rebound, generation 3, bound to https://new\.example:443`)
	x.ends(0)
}

func TestTerminalIdentityPutEntriesDiffer(t *testing.T) {
	d, dir := atFake(t, nil)
	x := atTerminal(t, dir, nil, nil, "identity", "put", "deploy-test-bot")
	x.expect(`secret \(not shown\): `)
	x.types("typed-secret-of-the-remote\n")
	x.expect(`once more: `)
	x.types("typed-secret-of-the-remotf\n")
	x.expect(`the two entries differ; nothing was stored`)
	x.ends(exitUsage)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.secret != "" {
		t.Error("something was stored")
	}
}

// A secret from a pipe and a passphrase from the terminal do not mix.
func TestTerminalIdentityPutFromPipe(t *testing.T) {
	d, dir := atFake(t, nil)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("piped-secret-of-the-remote\n")
	w.Close()
	defer r.Close()
	x := atTerminal(t, dir, r, nil, "identity", "put", "deploy-test-bot", "--short", "--target", "deploy-test")
	x.expect(`The passphrase covers: .*"of":\{"short":true,"target":"deploy-test"\}`)
	x.expect(`operator passphrase: `)
	x.types(fakeOperator + "\n")
	x.expect(`stored, generation 2`)
	x.ends(0)
	x.hides("piped-secret", fakeOperator)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.secret != "piped-secret-of-the-remote" {
		t.Errorf("the daemon got %q", d.secret)
	}
}

func TestTerminalUnlock(t *testing.T) {
	_, dir := atFake(t, map[string]string{"vault": "sealed"})
	x := atTerminal(t, dir, nil, nil, "unlock")
	x.expect(`vault passphrase: `)
	x.types("typed wrongly\n")
	x.expect(`try again`)
	x.types(fakeVault + "\n")
	x.expect(`vault: .*open`)
	x.ends(0)
	x.hides("typed wrongly", fakeVault)
}

func TestTerminalInterruptRestoresEcho(t *testing.T) {
	_, dir := atFake(t, map[string]string{"vault": "sealed"})
	x := atTerminal(t, dir, nil, nil, "unlock")
	x.expect(`vault passphrase: `)
	x.types("half a pass\x03")
	x.expect(`interrupted`)
	x.ends(exitInterrupted)
	x.hides("half a pass")
}

func TestTerminalEndOfFile(t *testing.T) {
	_, dir := atFake(t, map[string]string{"vault": "sealed"})
	x := atTerminal(t, dir, nil, nil, "unlock")
	x.expect(`vault passphrase: `)
	x.types("\x04")
	x.expect(`nothing was typed`)
	x.ends(exitUsage)
}

// A descriptor that is the terminal would show the passphrase.
func TestTerminalRefusedAsDescriptor(t *testing.T) {
	_, dir := atFake(t, map[string]string{"vault": "sealed"})
	x := atTerminal(t, dir, nil, nil, "unlock", "--passphrase-fd", "0")
	x.expect(`--passphrase-fd 0 is a terminal, which would show what is typed`)
	x.ends(exitUsage)
}

// Nobody types for a daemon that is not there.
func TestTerminalAsksOnlyWhenDaemonIsThere(t *testing.T) {
	dir, err := tempRuntime()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	x := atTerminal(t, dir, nil, nil, "unlock")
	x.expect(`there is no socket`)
	x.ends(exitLater)
	x.hides("passphrase:")
}

func TestTerminalColour(t *testing.T) {
	_, dir := atFake(t, nil)
	for _, c := range []struct {
		env    string
		colour bool
	}{{"A=b", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		x := atTerminal(t, dir, nil, []string{c.env}, "status")
		x.expect(`listening`)
		x.ends(0)
		if got := strings.Contains(x.text(), "\x1b["); got != c.colour {
			t.Errorf("%s: colour %v, want %v", c.env, got, c.colour)
		}
	}
}

// echoes asks the terminal itself whether it shows what is typed.
func echoes(tty *os.File) bool {
	st, err := unix.IoctlGetTermios(int(tty.Fd()), ttyGet)
	return err == nil && st.Lflag&unix.ECHO != 0
}
