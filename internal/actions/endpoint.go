package actions

import "slices"

// endpoint is one origin that the operator's file names, with what makes a
// connection to it the right one: a target is one, and so is the place where a
// secret is exchanged.
type endpoint struct {
	scheme, host string
	port         int
	basePath     string
	caFile       string
	caPEM        []byte
	caDigest     string
	pins         []string
	loopback     bool
	private      bool
}

// Scheme returns "https", or "http" for a loopback address.
func (e *endpoint) Scheme() string { return e.scheme }

// Host returns the host name or address, without port, in lower case.
func (e *endpoint) Host() string { return e.host }

// Port returns the TCP port, the scheme's own where none was written.
func (e *endpoint) Port() int { return e.port }

// CAFile returns the path of the certificate authority's file as written, ""
// for the system's roots.
func (e *endpoint) CAFile() string { return e.caFile }

// CAPEM returns the bytes of CAFile as they were when the set was loaded, nil
// for the system's roots.
func (e *endpoint) CAPEM() []byte { return slices.Clone(e.caPEM) }

// CADigest returns "sha256:" and the hex digest of CAPEM, "" for the system's
// roots.
func (e *endpoint) CADigest() string { return e.caDigest }

// Pins returns the pinned public keys ("sha256/BASE64"), none or at least two.
func (e *endpoint) Pins() []string { return slices.Clone(e.pins) }

// AllowLoopback says whether the address may lie on this machine.
func (e *endpoint) AllowLoopback() bool { return e.loopback }

// AllowPrivate says whether the address may lie in a private network.
func (e *endpoint) AllowPrivate() bool { return e.private }

// Place is a fixed HTTPS destination beside a target: where an identity's secret
// is exchanged for what the target takes, or where a certificate is signed.
type Place struct{ endpoint }

// Path returns the escaped path that the exchange is sent to: "/token" and the
// like. For a github_app it is what stands before GitHub's own paths, "" or
// "/api/v3".
func (p *Place) Path() string { return p.basePath }

// SSHPlace is a machine that is reached over SSH.
type SSHPlace struct {
	address, user string
	hostKeys      []string
	shell         string
	readCommands  [][]string
}

// Address returns HOST:PORT, an IPv6 host in brackets.
func (p *SSHPlace) Address() string { return p.address }

// User returns the name of the user there.
func (p *SSHPlace) User() string { return p.user }

// HostKeys returns the host's public keys, one or more, each as "TYPE BASE64"
// without a comment, sorted.
func (p *SSHPlace) HostKeys() []string { return slices.Clone(p.hostKeys) }

// Shell returns what words are quoted for: posix, fish or csh.
func (p *SSHPlace) Shell() string { return p.shell }

// ReadCommands returns the leading constant words of commands that only read.
func (p *SSHPlace) ReadCommands() [][]string {
	out := make([][]string, len(p.readCommands))
	for i, words := range p.readCommands {
		out[i] = slices.Clone(words)
	}
	return out
}

// SSH returns where the target is over SSH; false for a target over HTTPS.
func (t *Target) SSH() (*SSHPlace, bool) { return t.ssh, t.ssh != nil }
