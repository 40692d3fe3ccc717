package vault

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshd is a real OpenSSH server on a loopback port that accepts keys and
// certificates of the user who runs the tests.
type sshd struct {
	dir, address, user string
	hostKey            string // its public key, as a binding has it

	mu    sync.Mutex
	lines []string
	done  chan struct{} // closed when its log has ended
	proc  *exec.Cmd
	ended sync.Once
}

// sshdPath is where Debian has it; sshd starts only by an absolute path.
const sshdPath = "/usr/sbin/sshd"

// startSSHD runs a server that trusts the CA and the authorized key, each a
// public key in the form of authorized_keys, "" for none. It ends with the test.
func startSSHD(t *testing.T, authorized, ca string) *sshd {
	t.Helper()
	if _, err := os.Stat(sshdPath); err != nil {
		t.Fatalf("%v; scripts/install-test-deps.sh installs it", err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // where it has root's rights, sshd gives them up in this folder
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &sshd{dir: t.TempDir(), user: me.Username, done: make(chan struct{})}
	s.hostKey = keygen(t, s.path("host_key"))
	s.write(t, "authorized_keys", authorized+"\n")
	s.write(t, "ca.pub", ca+"\n")
	// A port that is free now may be taken by the time sshd wants it; then another
	// is tried.
	for range 20 {
		if s.start(t) {
			t.Cleanup(s.stop)
			return s
		}
	}
	t.Fatalf("sshd found no port: %q", s.log())
	return nil
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// start says whether the server came to listen.
func (s *sshd) start(t *testing.T) bool {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(s.address)
	s.write(t, "sshd_config", strings.Join([]string{
		"Port " + port, "ListenAddress 127.0.0.1", "HostKey " + s.path("host_key"), "PidFile none",
		"AuthorizedKeysFile " + s.path("authorized_keys"), "TrustedUserCAKeys " + s.path("ca.pub"),
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"UsePAM no", "StrictModes no", "SetEnv SHLVL=2", "LogLevel VERBOSE", "",
	}, "\n"))
	s.proc = exec.Command(sshdPath, "-D", "-e", "-f", s.path("sshd_config"))
	out, err := s.proc.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.proc.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan bool, 1)
	go s.follow(bufio.NewScanner(out), up)
	if <-up {
		return true
	}
	<-s.done
	_ = s.proc.Wait()
	s.done = make(chan struct{})
	return false
}

// follow keeps the log and says once whether the server listens.
func (s *sshd) follow(lines *bufio.Scanner, up chan<- bool) {
	defer close(s.done)
	defer func() {
		select {
		case up <- false:
		default:
		}
	}()
	for lines.Scan() {
		s.mu.Lock()
		s.lines = append(s.lines, lines.Text())
		s.mu.Unlock()
		if strings.HasPrefix(lines.Text(), "Server listening on") {
			up <- true
		}
	}
}

func (s *sshd) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// stop ends the server. Its log is whole then: every process of it has ended,
// since no client is connected any more.
func (s *sshd) stop() {
	s.ended.Do(func() {
		_ = s.proc.Process.Kill()
		<-s.done
		_ = s.proc.Wait()
	})
}

// binding is what an identity of the kind is bound to here.
func (s *sshd) binding(kind string, params ...Param) Binding {
	host, text, _ := net.SplitHostPort(s.address)
	port := 0
	_, _ = fmt.Sscan(text, &port)
	return Binding{Kind: kind, Scheme: schemeSSH, Host: host, Port: port, User: s.user, HostKeys: []string{s.hostKey}, Params: params}
}

// login connects as the executor does: it pins the host key, and asks the lease
// for a signer when the server has proved that key.
func (s *sshd) login(t *testing.T, l *Lease, command, user string, pinned ssh.PublicKey, x Exchange) (*ssh.Client, error) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a hang, not a slow machine
	shown := ""
	c := &ssh.ClientConfig{
		User: user,
		// Without this the server may show a key of another type than the pinned
		// one, which looks like a changed key.
		HostKeyAlgorithms: []string{pinned.Type()},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			shown = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
			return nil
		},
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			signer, err := l.SSHSigner(t.Context(), MadeSSH{Address: s.address, User: user, HostKey: shown}, command, x)
			return []ssh.Signer{signer}, err
		})},
	}
	sc, chans, reqs, err := ssh.NewClientConn(conn, s.address, c)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	client := ssh.NewClient(sc, chans, reqs)
	t.Cleanup(func() { _ = client.Close() })
	return client, nil
}

// run logs in and runs a command.
func (s *sshd) run(t *testing.T, l *Lease, command, inCertificate string, x Exchange) (string, error) {
	t.Helper()
	client, err := s.login(t, l, inCertificate, s.user, parsePub(t, s.hostKey), x)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	out, err := session.CombinedOutput(command)
	return strings.TrimSpace(string(out)), err
}

// keygen makes a key as people do and returns its public half.
func keygen(t testing.TB, path string, args ...string) string {
	t.Helper()
	if len(args) == 0 {
		args = []string{"-t", "ed25519"}
	}
	all := append([]string{"-q", "-N", "", "-C", "", "-f", path}, args...)
	if out, err := exec.Command("ssh-keygen", all...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %v: %v: %s", args, err, out)
	}
	pub, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(pub))
}

// writeRSA writes the one RSA key of 3,072 bits as PKCS #1: another would take
// seconds.
func writeRSA(t testing.TB, path string) string {
	t.Helper()
	key := rsaKeys[3072]()
	write(t, path, pem.EncodeToMemory(&pem.Block{Type: pemPKCS1, Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	pub, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub)))
}

func parsePub(t testing.TB, text string) ssh.PublicKey {
	t.Helper()
	k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
