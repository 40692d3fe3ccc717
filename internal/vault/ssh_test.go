package vault

import (
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"chatelaine/internal/fault"
)

// leaseOf puts a secret and leases it.
func leaseOf(t testing.TB, name string, b Binding, text []byte) *Lease {
	t.Helper()
	v, path := create(t, cheap)
	put(t, v, name, string(text), b)
	v = reopen(t, path, cheap)
	l, err := v.Lease(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestSSHKeysLogIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kinds := map[string][]string{
		"ed25519":   {"-t", "ed25519"},
		"ecdsa-256": {"-t", "ecdsa", "-b", "256"},
		"ecdsa-521": {"-t", "ecdsa", "-b", "521"},
		"pkcs8":     {"-t", "ecdsa", "-b", "384", "-m", "PKCS8"},
	}
	var authorized []string
	for name, args := range kinds {
		authorized = append(authorized, keygen(t, filepath.Join(dir, name), args...))
	}
	kinds["rsa-3072"] = nil
	authorized = append(authorized, writeRSA(t, filepath.Join(dir, "rsa-3072")))
	s := startSSHD(t, strings.Join(authorized, "\n"), "")
	for name := range kinds {
		l := leaseOf(t, "host", s.binding(KindSSHKey), read(t, filepath.Join(dir, name)))
		out, err := s.run(t, l, "echo it works", "", nil)
		if err != nil || out != "it works" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
		l.Close()
		_, err = s.run(t, l, "echo it works", "", nil)
		if err == nil {
			t.Errorf("%s: a closed lease logs in", name)
		}
	}
}

// TestRSASignsWithSHA2Alone asks for SHA-1, which servers of today refuse.
func TestRSASignsWithSHA2Alone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rsa")
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: writeRSA(t, path)}
	l := leaseOf(t, "host", s.binding(KindSSHKey), read(t, path))
	signer, err := l.SSHSigner(t.Context(), s.made(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	many := signer.(ssh.MultiAlgorithmSigner)
	if got := strings.Join(many.Algorithms(), " "); got != "rsa-sha2-512 rsa-sha2-256" {
		t.Errorf("got %s", got)
	}
	if _, err := many.SignWithAlgorithm(rand.Reader, []byte("challenge"), ssh.KeyAlgoRSA); err == nil {
		t.Error("it signs with SHA-1")
	}
}

func TestAnUnknownKeyIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keygen(t, filepath.Join(dir, "other"))
	s := startSSHD(t, "", "")
	l := leaseOf(t, "host", s.binding(KindSSHKey), read(t, filepath.Join(dir, "other")))
	if out, err := s.run(t, l, "echo it works", "", nil); err == nil {
		t.Errorf("got %q", out)
	}
}

// caBinding is a certificate of five minutes for this server's user.
func (s *sshd) caBinding(force bool) Binding {
	p := []Param{{"principals", s.user}, {"valid", "300"}}
	if force {
		p = append([]Param{{"force_command", "true"}}, p...)
	}
	return s.binding(KindSSHCertificate, p...)
}

func TestCertificatesOfACAInTheVault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, ca := range map[string]string{
		"ed25519": keygen(t, filepath.Join(dir, "ed25519")),
		"ecdsa":   keygen(t, filepath.Join(dir, "ecdsa"), "-t", "ecdsa"),
		"rsa":     writeRSA(t, filepath.Join(dir, "rsa")),
	} {
		s := startSSHD(t, "", ca)
		l := leaseOf(t, "pass", s.caBinding(false), read(t, filepath.Join(dir, name)))
		if out, err := s.run(t, l, "echo it works", "", nil); err != nil || out != "it works" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
		l.Close()
		if _, err := s.run(t, l, "echo it works", "", nil); err == nil {
			t.Errorf("%s: a closed lease logs in", name)
		}
	}
}

func TestForceCommandHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := keygen(t, filepath.Join(dir, "ca"))
	s := startSSHD(t, "", ca)
	l := leaseOf(t, "pass", s.caBinding(true), read(t, filepath.Join(dir, "ca")))
	const exact = `printf '%s\n' "one  two" three`
	if out, err := s.run(t, l, exact, exact, nil); err != nil || out != "one  two\nthree" {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err := s.run(t, l, "echo something else", exact, nil); err != nil || out != "one  two\nthree" {
		t.Errorf("another command: got %q, %v", out, err)
	}
	_, err := l.SSHSigner(t.Context(), s.made(), "", nil)
	wantCode(t, err, fault.Internal)
}

func (s *sshd) made() MadeSSH { return MadeSSH{Address: s.address, User: s.user, HostKey: s.hostKey} }

// TestOldAndForeignCertificatesAreRefused shows that a real server holds what the
// certificate says: its end, its principals, its issuer.
func TestOldAndForeignCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := keygen(t, filepath.Join(dir, "ca"))
	keygen(t, filepath.Join(dir, "other"))
	s := startSSHD(t, "", ca)
	l := leaseOf(t, "pass", s.caBinding(false), read(t, filepath.Join(dir, "ca")))
	key, err := l.freshKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := holdSSH(key, parseSeed)
	if err != nil {
		t.Fatal(err)
	}
	for name, when := range map[string]time.Time{"ended": time.Now().Add(-time.Hour), "still ahead": time.Now().Add(time.Hour), "good": time.Now()} {
		c, err := l.wantCertificate(signer.PublicKey(), "", when)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.signCertificate(c); err != nil {
			t.Fatal(err)
		}
		certified, err := ssh.NewCertSigner(c, signer)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.dial(certified)
		if (err == nil) != (name == "good") {
			t.Errorf("a certificate that is %s: %v", name, err)
		}
	}
	b := s.caBinding(false)
	b.Params[0].Value = "nobody-here"
	for name, l := range map[string]*Lease{
		"another principal": leaseOf(t, "pass", b, read(t, filepath.Join(dir, "ca"))),
		"another CA":        leaseOf(t, "pass", s.caBinding(false), read(t, filepath.Join(dir, "other"))),
	} {
		if out, err := s.run(t, l, "echo it works", "", nil); err == nil {
			t.Errorf("%s: got %q", name, out)
		}
	}
	s.stop()
	if !strings.Contains(strings.Join(s.log(), "\n"), "expired") {
		t.Errorf("the server does not say that one has expired: %q", s.log())
	}
}

// dial logs in with a signer of the test's own.
func (s *sshd) dial(signer ssh.Signer) (*ssh.Client, error) {
	c, err := ssh.Dial("tcp", s.address, &ssh.ClientConfig{User: s.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err == nil {
		_ = c.Close()
	}
	return c, err
}

// TestWhatACertificateSays reads one as its server does.
func TestWhatACertificateSays(t *testing.T) {
	dir := t.TempDir()
	ca := keygen(t, filepath.Join(dir, "ca"))
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: ca}
	l := leaseOf(t, "pass", s.caBinding(true), read(t, filepath.Join(dir, "ca")))
	seen := map[uint64]bool{}
	var before ssh.PublicKey
	for range 3 {
		signer, err := l.SSHSigner(t.Context(), s.made(), "uptime", nil)
		if err != nil {
			t.Fatal(err)
		}
		c := signer.PublicKey().(*ssh.Certificate)
		if c.CertType != ssh.UserCert || c.KeyId != "chatelaine pass" || strings.Join(c.ValidPrincipals, " ") != "deploy" || len(c.Extensions) != 0 ||
			len(c.CriticalOptions) != 1 || c.CriticalOptions["force-command"] != "uptime" || c.ValidBefore-c.ValidAfter != 300+60 {
			t.Errorf("got %+v", c)
		}
		if seen[c.Serial] || before != nil && string(before.Marshal()) == string(c.Key.Marshal()) {
			t.Error("a serial or a key comes again")
		}
		if err := (&ssh.CertChecker{SupportedCriticalOptions: []string{"force-command"}}).CheckCert("deploy", c); err != nil {
			t.Error(err)
		}
		seen[c.Serial], before = true, c.Key
	}
	l.Close()
	for _, k := range l.keys {
		if !k.IsZero() {
			t.Error("a closed lease keeps a key")
		}
	}
	_, err := l.SSHSigner(t.Context(), s.made(), "uptime", nil)
	wantCode(t, err, fault.Internal)
}

// TestSSHBindingIsComparedBeforeALogin changes each part of the connection; the
// server sees nobody who wants to log in.
func TestSSHBindingIsComparedBeforeALogin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pub := keygen(t, filepath.Join(dir, "key"))
	s := startSSHD(t, pub, "")
	text := read(t, filepath.Join(dir, "key"))
	changed := func(change func(b *Binding)) Binding {
		b := s.binding(KindSSHKey)
		change(&b)
		return b
	}
	for name, b := range map[string]Binding{
		"another host": changed(func(b *Binding) { b.Host = "build.example" }),
		"another port": changed(func(b *Binding) { b.Port++ }),
		"another user": changed(func(b *Binding) { b.User = "deploy" }),
		"another key":  changed(func(b *Binding) { b.HostKeys = []string{pub} }),
	} {
		l := leaseOf(t, "host", b, text)
		_, err := s.login(t, l, "", s.user, parsePub(t, s.hostKey), nil)
		if err == nil {
			t.Errorf("%s: logged in", name)
		}
		if name != "another key" {
			continue
		}
		for _, k := range []string{s.hostKey, pub} {
			if want := ssh.FingerprintSHA256(parsePub(t, k)); !strings.Contains(err.Error(), want) {
				t.Errorf("the cause lacks %s: %v", want, err)
			}
		}
	}
	s.stop()
	for _, line := range s.log() {
		if strings.Contains(line, "publickey") {
			t.Errorf("a key was shown: %s", line)
		}
	}
	s = startSSHD(t, pub, "")
	l := leaseOf(t, "host", s.binding(KindSSHKey), text)
	if _, err := s.login(t, l, "", s.user, parsePub(t, s.hostKey), nil); err != nil {
		t.Error(err)
	}
}

// TestACloseBetweenSigners closes a lease while others make signers of it.
func TestACloseBetweenSigners(t *testing.T) {
	dir := t.TempDir()
	ca := keygen(t, filepath.Join(dir, "ca"))
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: ca}
	l := leaseOf(t, "pass", s.caBinding(false), read(t, filepath.Join(dir, "ca")))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				signer, err := l.SSHSigner(t.Context(), s.made(), "", nil)
				if err == nil {
					_, err = signer.Sign(rand.Reader, []byte("challenge"))
				}
				if err != nil && !errors.Is(err, errLeaseClosed) {
					t.Error(err)
				}
			}
		})
	}
	l.Close()
	wg.Wait()
	for _, k := range l.keys {
		if !k.IsZero() {
			t.Error("a key is left")
		}
	}
}
