package vault

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"chatelaine/internal/fault"
)

// signer is an SSH secrets engine as its page describes it, behind the send of an
// exchange. change makes it lie.
type signer struct {
	t      *testing.T
	ca     ssh.Signer
	change func(c *ssh.Certificate)
	answer func(a *TokenAnswer)
	seen   []signRequest
}

func (s *signer) exchange(_ context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
	s.t.Helper()
	h := headers{}
	made := Made{Scheme: "https", Host: "bao.example", Port: 443, BasePath: "/v1/ssh/sign/deploy", PeerSPKI: []string{}}
	if err := c.Attach(h, made); err != nil {
		return err
	}
	if h["Authorization"][0] != "Bearer "+planted || r.Method != "POST" || r.Path != "/v1/ssh/sign/deploy" || r.MediaType != "application/json" || strings.Contains(string(r.Body), planted[:8]) {
		s.t.Errorf("got %v, %+v", h, r)
	}
	var q signRequest
	if err := json.Unmarshal(r.Body, &q); err != nil {
		s.t.Fatal(err)
	}
	s.seen = append(s.seen, q)
	a := TokenAnswer{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}}
	a.Body, _ = json.Marshal(map[string]any{"lease_id": "", "data": map[string]any{"serial_number": "c7", "signed_key": s.sign(q)}})
	if s.answer != nil {
		s.answer(&a)
	}
	return read(a)
}

func (s *signer) sign(q signRequest) string {
	seconds, err := strconv.Atoi(strings.TrimSuffix(q.TTL, "s"))
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	c := &ssh.Certificate{
		Key: parsePub(s.t, q.PublicKey), CertType: ssh.UserCert, KeyId: "vault-token", Serial: 7,
		ValidPrincipals: strings.Split(q.ValidPrincipals, ","),
		ValidAfter:      uint64(now.Add(-30 * time.Second).Unix()), ValidBefore: uint64(now.Unix() + int64(seconds)),
	}
	c.CriticalOptions, c.Extensions = q.CriticalOptions, map[string]string{"permit-pty": ""}
	if s.change != nil {
		s.change(c)
	}
	if err := c.SignCert(rand.Reader, s.ca); err != nil {
		s.t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(c))
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := ssh.NewSignerFromKey(crypto.Signer(key))
	if err != nil {
		t.Fatal(err)
	}
	return &signer{t: t, ca: ca}
}

func (s *signer) public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.ca.PublicKey())))
}

// asking is a binding whose certificates the endpoint signs.
func (s *sshd) asking(force bool) Binding {
	b := s.caBinding(force)
	b.Token = &Place{Scheme: "https", Host: "bao.example", Port: 443, Path: "/v1/ssh/sign/deploy"}
	return b
}

func TestCertificatesOfASigningEndpoint(t *testing.T) {
	t.Parallel()
	e := newSigner(t)
	s := startSSHD(t, "", e.public())
	l := leaseOf(t, "pass", s.asking(true), []byte(planted))
	if out, err := s.run(t, l, "echo something else", "echo it works", e.exchange); err != nil || out != "it works" {
		t.Errorf("got %q, %v", out, err)
	}
	q := e.seen[0]
	if q.TTL != "300s" || q.CertType != "user" || q.ValidPrincipals != s.user || q.CriticalOptions["force-command"] != "echo it works" {
		t.Errorf("got %+v", q)
	}
	if len(l.Scan([]byte("hvs."+planted))) == 0 {
		t.Error("the search does not know the endpoint's token")
	}
}

// TestASignedCertificateIsCheckedLikeAnyAnswer lets the endpoint lie in each part.
func TestASignedCertificateIsCheckedLikeAnyAnswer(t *testing.T) {
	other := newSigner(t)
	dir := t.TempDir()
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: keygen(t, filepath.Join(dir, "host"))}
	l := leaseOf(t, "pass", s.asking(true), []byte(planted))
	certificates := map[string]func(c *ssh.Certificate){
		"another key":        func(c *ssh.Certificate) { c.Key = other.ca.PublicKey() },
		"a host":             func(c *ssh.Certificate) { c.CertType = ssh.HostCert },
		"another principal":  func(c *ssh.Certificate) { c.ValidPrincipals = []string{"root"} },
		"one more principal": func(c *ssh.Certificate) { c.ValidPrincipals = append(c.ValidPrincipals, "root") },
		"twice as long":      func(c *ssh.Certificate) { c.ValidBefore += 300 },
		"for ever":           func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity },
		"ended":              func(c *ssh.Certificate) { c.ValidAfter -= 9999; c.ValidBefore -= 9999 },
		"not yet":            func(c *ssh.Certificate) { c.ValidAfter += 200 },
		"ends first":         func(c *ssh.Certificate) { c.ValidAfter = c.ValidBefore },
		"no force-command":   func(c *ssh.Certificate) { c.CriticalOptions = nil },
		"another command":    func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"force-command": "id"} },
		"one more option": func(c *ssh.Certificate) {
			c.CriticalOptions = map[string]string{"force-command": "uptime", "source-address": "10.0.0.1"}
		},
	}
	for name, change := range certificates {
		e := newSigner(t)
		e.change = change
		_, err := l.SSHSigner(t.Context(), s.made(), "uptime", e.exchange)
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
		wantCode(t, err, fault.InvalidResponse)
	}
	for name, c := range map[string]struct {
		answer func(a *TokenAnswer)
		code   fault.Code
	}{
		"403":                {func(a *TokenAnswer) { a.Status = 403 }, fault.RemoteUnauthenticated},
		"400":                {func(a *TokenAnswer) { a.Status = 400 }, fault.RemoteUnauthenticated},
		"429":                {func(a *TokenAnswer) { a.Status = 429 }, fault.RemoteRateLimited},
		"503":                {func(a *TokenAnswer) { a.Status = 503 }, fault.UpstreamUnavailable},
		"204":                {func(a *TokenAnswer) { a.Status = 204 }, fault.InvalidResponse},
		"no JSON":            {func(a *TokenAnswer) { a.Body = []byte(planted) }, fault.InvalidResponse},
		"no media type":      {func(a *TokenAnswer) { a.Header = nil }, fault.InvalidResponse},
		"no data":            {func(a *TokenAnswer) { a.Body = []byte(`{"data":"` + planted + `"}`) }, fault.InvalidResponse},
		"no key":             {func(a *TokenAnswer) { a.Body = []byte(`{"data":{}}`) }, fault.InvalidResponse},
		"a number":           {func(a *TokenAnswer) { a.Body = []byte(`{"data":{"signed_key":1}}`) }, fault.InvalidResponse},
		"two keys":           {func(a *TokenAnswer) { a.Body = []byte(`{"data":{"signed_key":"x"},"data":{}}`) }, fault.InvalidResponse},
		"no certificate":     {keyAnswer(s.hostKey), fault.InvalidResponse},
		"options before it":  {keyAnswer(`command="id" ` + s.hostKey), fault.InvalidResponse},
		"another line":       {keyAnswer(s.hostKey + "\n" + s.hostKey), fault.InvalidResponse},
		"nothing of the key": {keyAnswer("ssh-ed25519-cert-v01@openssh.com AAAA"), fault.InvalidResponse},
	} {
		e := newSigner(t)
		e.answer = c.answer
		_, err := l.SSHSigner(t.Context(), s.made(), "uptime", e.exchange)
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
		wantCode(t, err, c.code)
	}
	broken := newSigner(t)
	broken.answer = func(a *TokenAnswer) {
		c := signedBy(t, a)
		c.Signature.Blob[5] ^= 1
		keyAnswer(string(ssh.MarshalAuthorizedKey(c)))(a)
	}
	_, err := l.SSHSigner(t.Context(), s.made(), "uptime", broken.exchange)
	wantCode(t, err, fault.InvalidResponse)
	_, err = l.SSHSigner(t.Context(), s.made(), "uptime", nil)
	wantCode(t, err, fault.Internal)
	_, err = l.SSHSigner(t.Context(), s.made(), "uptime", func(context.Context, TokenRequest, TokenCredential, func(TokenAnswer) error) error {
		return fault.New(fault.UpstreamUnavailable, errors.New("no route"))
	})
	wantCode(t, err, fault.UpstreamUnavailable)
}

func keyAnswer(key string) func(a *TokenAnswer) {
	return func(a *TokenAnswer) {
		a.Body, _ = json.Marshal(map[string]any{"data": map[string]any{"signed_key": key}})
	}
}

func signedBy(t *testing.T, a *TokenAnswer) *ssh.Certificate {
	t.Helper()
	var doc struct {
		Data struct {
			SignedKey string `json:"signed_key"`
		} `json:"data"`
	}
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		t.Fatal(err)
	}
	return parsePub(t, doc.Data.SignedKey).(*ssh.Certificate)
}

// TestTheEndpointsTokenGoesNowhereElse changes each part of the connection to it.
func TestTheEndpointsTokenGoesNowhereElse(t *testing.T) {
	dir := t.TempDir()
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: keygen(t, filepath.Join(dir, "host"))}
	l := leaseOf(t, "pass", s.asking(false), []byte(planted))
	good := Made{Scheme: "https", Host: "bao.example", Port: 443, BasePath: "/v1/ssh/sign/deploy"}
	for name, change := range map[string]func(m *Made){
		"scheme": func(m *Made) { m.Scheme = "http" },
		"host":   func(m *Made) { m.Host = "evil.example" },
		"port":   func(m *Made) { m.Port = 8200 },
		"path":   func(m *Made) { m.BasePath = "/v1/ssh/sign/root" },
		"deeper": func(m *Made) { m.BasePath += "/x" },
		"CA":     func(m *Made) { m.CADigest = "sha256:0" },
	} {
		_, err := l.SSHSigner(t.Context(), s.made(), "", func(_ context.Context, _ TokenRequest, c TokenCredential, _ func(TokenAnswer) error) error {
			m := good
			change(&m)
			h := headers{}
			err := c.Attach(h, m)
			if err == nil || len(h) > 0 {
				t.Errorf("%s: the token is attached", name)
			}
			return err
		})
		wantCode(t, err, fault.TargetNotAllowed)
	}
}

// FuzzReadCertificate reads answers of a signing endpoint. None breaks anything,
// and none that is not for our key, by a signature that holds, is taken.
func FuzzReadCertificate(f *testing.F) {
	dir := f.TempDir()
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: keygen(f, filepath.Join(dir, "ca"))}
	l := leaseOf(f, "pass", s.caBinding(true), read(f, filepath.Join(dir, "ca")))
	signer, err := l.SSHSigner(f.Context(), s.made(), "uptime", nil)
	if err != nil {
		f.Fatal(err)
	}
	want := signer.PublicKey().(*ssh.Certificate)
	var good TokenAnswer
	keyAnswer(string(ssh.MarshalAuthorizedKey(want)))(&good)
	f.Add(good.Body)
	f.Add([]byte(`{"data":{"signed_key":"` + s.hostKey + `"}}`))
	f.Add([]byte(`{"data":{"signed_key":"ssh-ed25519-cert-v01@openssh.com AAAA"}}`))
	header := http.Header{"Content-Type": {"application/json"}}
	now := time.Now()
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readCertificate(TokenAnswer{Status: 200, Header: header, Body: b})
		if err == nil {
			err = checkCertificate(c, want, now)
		}
		if err != nil {
			wantCode(t, err, fault.InvalidResponse)
			return
		}
		if string(c.Marshal()) != string(want.Marshal()) { // nobody but the CA can make another
			t.Errorf("%q is taken", b)
		}
	})
}
