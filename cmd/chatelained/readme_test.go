package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// readmeBlocks are the README's shell blocks by their first line, in order, and
// why one is not typed.
var readmeBlocks = []struct{ first, not string }{
	{"make demo ", "the demo has a test of its own, and make test is what runs this one"},
	{"make build\n", ""},
	{"cp -R contracts/deploy_release", ""},
	{"chatelained serve &", ""},
	{"chatelaine session start", ""},
	{"export CHATELAINE_AGENT=build-worker", ""},
	{"chatelaine calls list", ""},
	{`socket="$CHATELAINE_RUNTIME/agent.sock"`, ""},
	{"chatelaine contract show", ""},
}

// notTyped are commands that the test has done already.
var notTyped = map[string]bool{"make build": true} // the programs are built, into bin/

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestReadme types the README into a shell at a terminal: built programs, a
// scratch home, and nothing of its own but what the text tells a person to put
// in: passphrases, addresses, and the ids and the token that were printed.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) != len(readmeBlocks) {
		t.Fatalf("the README has %d shell blocks, the test knows %d", len(blocks), len(readmeBlocks))
	}
	s := newShell(t, releaseService)
	for i, b := range readmeBlocks {
		block := blocks[i][1]
		if !strings.HasPrefix(block, b.first) {
			t.Fatalf("block %d begins otherwise than %q:\n%s", i, b.first, block)
		}
		if b.not != "" {
			continue
		}
		for _, command := range commandsOf(block) {
			if !notTyped[command] {
				s.follow(command)
			}
		}
	}
	testkit.Plant(planted).Refuse(t, "what the terminal showed", []byte(s.text()))
}

// commandsOf cuts a block into whole commands: here-documents and continued
// lines stay together, remarks and empty lines go.
func commandsOf(block string) []string {
	var out []string
	var open []string
	end := ""
	for _, line := range strings.Split(strings.TrimSuffix(block, "\n"), "\n") {
		if len(open) == 0 && (strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")) {
			continue
		}
		open = append(open, line)
		if _, word, ok := strings.Cut(line, "<<'"); ok {
			end = strings.TrimSuffix(word, "'")
		}
		if end != "" && line != end || strings.HasSuffix(line, `\`) {
			continue
		}
		out, open, end = append(out, strings.Join(open, "\n")), nil, ""
	}
	return out
}

// shell is a person at a terminal.
type shell struct {
	t       *testing.T
	home    string
	up      *upstream.Server
	ca      string
	ptm     *os.File
	mu      sync.Mutex
	seen    strings.Builder // guarded by mu
	session string          // the id that was printed last
}

// terminals lets one shell run at a time: the daemon of the texts listens on the
// port that it takes by default.
var terminals sync.Mutex

const shellPrompt = "READY> "

// releaseService is the README's remote system.
func releaseService(r upstream.Request) upstream.Answer {
	if r.Method == "GET" {
		return upstream.JSON(200, strings.Replace(string(release("test", "2.14.3").Body), `"queued"`, `"healthy"`, 1))
	}
	return release("production", versionOf(r))
}

func newShell(t *testing.T, service func(upstream.Request) upstream.Answer) *shell {
	t.Helper()
	terminals.Lock()
	t.Cleanup(terminals.Unlock)
	home, err := os.MkdirTemp("/tmp", "chr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	daemon, err := servingBinary()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(daemon, filepath.Join(bin, "chatelained")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "../chatelaine").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(home, "contracts"), os.DirFS("../../contracts")); err != nil {
		t.Fatal(err)
	}
	ca := testkit.CA(t)
	s := &shell{t: t, home: home, ca: testkit.CAFile(t, ca), up: testkit.HTTPS(t, ca, service)}
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TERM=dumb", "PATH=" + os.Getenv("PATH"), "PS1=" + shellPrompt, "PS2=", "HISTFILE="}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ptm, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 400})
	if err != nil {
		t.Fatal(err)
	}
	s.ptm = ptm
	go s.watch()
	t.Cleanup(func() {
		_, _ = ptm.WriteString("\nkill %1; wait; exit\n")
		ended := time.AfterFunc(testkit.Patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		ended.Stop()
		_ = ptm.Close()
		if t.Failed() {
			t.Logf("the terminal:\n%s", s.text())
		}
	})
	s.settle(0)
	return s
}

func (s *shell) watch() {
	b := make([]byte, 4096)
	for {
		n, err := s.ptm.Read(b)
		s.mu.Lock()
		s.seen.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *shell) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.seen.String(), "\r", "")
}

// asks are the prompts of the two programs, and what the person types; "" is
// the same again. The daemon's log runs over the same terminal, so that a prompt
// need not be the last thing on it.
var asks = map[string]string{
	"vault passphrase: ": vaultPass, "operator passphrase: ": operatorPass, "secret (not shown): ": planted,
	"Again: ": "", "once more: ": "",
}

var anyPrompt = regexp.MustCompile(`vault passphrase: |operator passphrase: |secret \(not shown\): |Again: |once more: `)

// settle answers prompts until the shell is ready again, and returns what was
// shown since at.
func (s *shell) settle(at int) string {
	s.t.Helper()
	answered, last := 0, ""
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		shown := s.text()[at:]
		if strings.Contains(shown, shellPrompt) {
			return shown
		}
		// A person who types before the echo is off sees what they typed.
		if prompts := anyPrompt.FindAllString(shown, -1); len(prompts) > answered && !s.echoes() {
			if a := asks[prompts[answered]]; a != "" {
				last = a
			}
			answered++
			s.write(last)
		}
	}
	s.t.Fatalf("the shell is not ready again:\n%s", s.text()[at:])
	return ""
}

// echoes says whether the terminal shows what is typed. Both ends of it know.
func (s *shell) echoes() bool {
	raw, err := s.ptm.SyscallConn() // Fd would make reading block for good
	if err != nil {
		s.t.Fatal(err)
	}
	on := true
	if err := raw.Control(func(fd uintptr) {
		st, err := unix.IoctlGetTermios(int(fd), ttyGet)
		on = err != nil || st.Lflag&unix.ECHO != 0
	}); err != nil {
		s.t.Fatal(err)
	}
	return on
}

func (s *shell) write(line string) {
	s.t.Helper()
	if _, err := s.ptm.WriteString(line + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// run types one command and fails the test unless it ends as expected.
func (s *shell) run(command, want string) string {
	s.t.Helper()
	at := len(s.text())
	s.write(command)
	out := s.settle(at)
	at = len(s.text())
	s.write("echo \"code=$?\"")
	code := regexp.MustCompile(`(?m)^code=(\d+)`).FindStringSubmatch(s.settle(at))
	if code == nil || code[1] != want {
		s.t.Fatalf("%s\nended with %v, want %s:\n%s", command, code, want, out)
	}
	return out
}

var (
	sessionID = regexp.MustCompile(`ses_[A-Za-z0-9_-]+`)
	cardID    = regexp.MustCompile(`apr_[A-Za-z0-9_-]+`)
	token     = regexp.MustCompile(`"token": ?"([^"]+)"`)
)

// follow types a command of the README, with what a person puts in.
func (s *shell) follow(command string) {
	s.t.Helper()
	want := "0"
	switch {
	case strings.HasPrefix(command, "chatelaine contract lint"):
		s.putAddressesIn()
	case strings.Contains(command, "SESSION_ID"):
		command = strings.Replace(command, "SESSION_ID", s.session, 1)
	case strings.Contains(command, "APPROVAL_ID"):
		command = strings.Replace(command, "APPROVAL_ID", cardID.FindString(s.run("chatelaine approvals", "0")), 1)
	case strings.HasPrefix(command, "chatelaine call "), strings.HasPrefix(command, "chatelaine session start "):
		want = "3" // it waits for a person
	}
	out := s.run(command, want)
	if id := sessionID.FindString(out); id != "" {
		s.session = id
	}
	switch {
	case strings.HasPrefix(command, "chatelained serve"):
		s.waitFor(filepath.Join(s.home, "chatelaine", "run", "operator.sock"))
	case strings.HasPrefix(command, "chatelaine approve "):
		s.waitForRequest("POST")
	case strings.Contains(command, "/v1/sessions"):
		m := token.FindStringSubmatch(out)
		if m == nil {
			s.t.Fatalf("no token in\n%s", out)
		}
		s.run("TOKEN="+m[1], "0")
		s.run("chatelaine session authorize "+s.session, "0") // "the operator authorises the session as above"
	case strings.Contains(command, "/v1/actions/get_deployment"):
		if !strings.Contains(out, `"ok":true`) || !strings.Contains(out, "dep_8f2k1m9q") {
			s.t.Errorf("the call over curl answered\n%s", out)
		}
	}
}

// putAddressesIn does what the text says of the example: "put your own addresses
// in".
func (s *shell) putAddressesIn() {
	s.t.Helper()
	path := filepath.Join(s.home, "chatelaine", "config", "targets.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	own := regexp.MustCompile(`(?m)^    url: https://\S+$`).ReplaceAllString(string(b), "    url: https://"+s.up.Addr()+"\n    ca: "+s.ca+"\n    allow: [loopback]")
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) waitFor(path string) {
	s.t.Helper()
	testkit.Until(s.t, path, func() bool {
		c, err := net.Dial("unix", path) // a socket is there a moment before anybody listens
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

func (s *shell) waitForRequest(method string) {
	s.t.Helper()
	testkit.Until(s.t, "a request after the approval", func() bool {
		return slices.ContainsFunc(s.up.Requests(), func(r upstream.Request) bool { return r.Method == method })
	})
}
