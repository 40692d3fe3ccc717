package actions

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"chatelaine/internal/actions/strictyaml"
)

const (
	maxHostKeys     = 16
	maxReadCommands = 100
	maxCommandWords = 32
	// minHostRSA is the shortest RSA key that a host may have, as for the keys
	// that sign answers.
	minHostRSA = 2048
)

var (
	sshUser   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$`)
	sshShells = []string{"posix", "fish", "csh"}
	// hostKeyTypes are the signatures of keys that a host may show; ssh-dss is
	// none, and a certificate is no key.
	hostKeyTypes = []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
	}
)

// sshTarget reads a target over SSH. It is shown and its identity can be kept;
// no contract of this release goes there.
func (s *site) sshTarget(n *strictyaml.Node, t *Target) {
	if !s.f.Map(n, endpointSSH.what, sshTargetKeys...) {
		return
	}
	t.ssh = &SSHPlace{shell: sshShells[0]}
	s.allow(n.Get("allow"), &t.endpoint)
	if v := n.Get("ssh"); v != nil && s.f.Map(v, "ssh", "address", "user", "host_keys", "shell") {
		s.sshPlace(v, t)
	}
	s.authority(n, t)
	if v := n.Get("read_commands"); v != nil {
		s.readCommands(v, t.ssh)
	}
	if v := n.Get("with"); v != nil {
		t.with = constants(s.f, v)
	}
	t.readByPost, t.headers, t.versionHeader = map[string]bool{}, map[string]string{}, map[string]bool{}
}

func (s *site) sshPlace(n *strictyaml.Node, t *Target) {
	if a := s.f.Require(n, "ssh", "address"); a != nil {
		s.sshAddress(a, t)
	}
	if u := s.f.Require(n, "ssh", "user"); u != nil {
		name, ok := s.f.Text(u, "user")
		if ok && !sshUser.MatchString(name) {
			s.bad(u.Pos, "identity", "letters, digits and _ . @ + -, such as deploy", "%q is no name of a user", name)
		}
		t.ssh.user = name
	}
	if k := s.f.Require(n, "ssh", "host_keys"); k != nil {
		s.hostKeys(k, t.ssh)
	}
	if w := n.Get("shell"); w != nil {
		t.ssh.shell, _ = s.f.Word(w, "shell", sshShells...)
	}
}

// sshAddress reads HOST:PORT; the host is held to the rules of every other one.
func (s *site) sshAddress(n *strictyaml.Node, t *Target) {
	text, ok := s.f.Text(n, "address")
	if !ok {
		return
	}
	host, port, err := net.SplitHostPort(text)
	v, perr := strconv.Atoi(port)
	if err != nil || host == "" || perr != nil || v < 1 || v > 65535 || strconv.Itoa(v) != port {
		s.bad(n.Pos, "url", "HOST:PORT, such as build.example:22", "%q is no address of a host and its port", text)
		return
	}
	t.scheme, t.host, t.port = "ssh", host, v
	t.ssh.address = net.JoinHostPort(host, port)
	s.host(n, &t.endpoint, endpointSSH)
}

// hostKeys reads the keys that the host may show, as they stand in its .pub
// files or behind the names in known_hosts.
func (s *site) hostKeys(n *strictyaml.Node, p *SSHPlace) {
	const hint = "a line of the host's /etc/ssh/ssh_host_*_key.pub: ssh-ed25519 AAAA…"
	s.f.Texts(n, "host_keys")
	if n.Kind != strictyaml.Sequence {
		return
	}
	if len(n.Items) == 0 || len(n.Items) > maxHostKeys {
		s.bad(n.Pos, "ssh-target", hint, "host_keys has one to %d keys", maxHostKeys)
	}
	for _, it := range n.Items {
		if it.Kind != strictyaml.String {
			continue // told already
		}
		key, why := hostKey(it.Text)
		switch {
		case why != "":
			s.bad(it.Pos, "ssh-target", hint, "this host key cannot be taken: %s", why)
		case slices.Contains(p.hostKeys, key):
			s.bad(it.Pos, "ssh-target", "write it once", "the same host key stands twice")
		default:
			p.hostKeys = append(p.hostKeys, key)
		}
	}
	slices.Sort(p.hostKeys)
}

// hostKey reads one line into "TYPE BASE64", or says why it is none.
func hostKey(line string) (key, why string) {
	k, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return "", "it is no public key"
	case len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 || strings.ContainsAny(line, "\r\n"):
		return "", "it is more than a type, a key and a comment"
	case !slices.Contains(hostKeyTypes, k.Type()):
		return "", "keys of the type " + k.Type() + " are not taken"
	}
	if c, ok := k.(ssh.CryptoPublicKey); ok {
		if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() < minHostRSA {
			return "", "an RSA key has at least " + strconv.Itoa(minHostRSA) + " bits"
		}
	}
	return k.Type() + " " + base64.StdEncoding.EncodeToString(k.Marshal()), ""
}

// readCommands reads the leading words of commands that only read.
func (s *site) readCommands(n *strictyaml.Node, p *SSHPlace) {
	items := s.f.List(n, "read_commands")
	if len(items) > maxReadCommands {
		s.bad(n.Pos, "ssh-target", "", "read_commands has at most %d commands", maxReadCommands)
		return
	}
	for _, it := range items {
		var words []string
		for _, w := range s.f.List(it, "a command") {
			text, ok := s.f.Text(w, "a word of a command")
			if ok && (text == "" || !oneLine(text)) {
				s.bad(w.Pos, "text", "", "a word of a command is not empty and stands on one line")
			}
			words = append(words, text)
		}
		if it.Kind == strictyaml.Sequence && (len(words) == 0 || len(words) > maxCommandWords) {
			s.bad(it.Pos, "ssh-target", "such as [systemctl, show]", "a command has one to %d words", maxCommandWords)
		}
		p.readCommands = append(p.readCommands, words)
	}
}
