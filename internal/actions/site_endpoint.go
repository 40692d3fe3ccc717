package actions

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// endpointUse says what an endpoint is for: it changes the words of the
// mistakes and the end of the path, and nothing of what is refused.
type endpointUse struct {
	what    string // what stands there
	who     string // who says that an address may be local
	many    string // what may be plain http on loopback
	example string
	whole   bool // the path is the whole one, so a slash at its end is a part of it
}

var (
	endpointTarget = endpointUse{"a target", "the target", "targets", "https://deploy.example/api", false}
	endpointToken  = endpointUse{"a token endpoint", "token", "addresses", "https://login.example/oauth2/token", true}
	endpointGitHub = endpointUse{"an app's API", "token", "addresses", "https://api.github.com", false}
	endpointSign   = endpointUse{"a signing endpoint", "sign", "addresses", "https://bao.example/v1/ssh/sign/deploy", true}
	endpointSSH    = endpointUse{"a target over SSH", "the target", "targets", "build.example:22", false}
)

// maxPins is how many the vault keeps with a secret.
const maxPins = 16

// endpointKeys are what every endpoint over HTTPS is written with.
var endpointKeys = []string{"url", "ca", "pin", "allow"}

// endpoint reads url, ca, pin and allow: the one place where a destination of
// HTTPS is read, whatever it is for.
func (s *site) endpoint(n *strictyaml.Node, e *endpoint, use endpointUse) {
	s.allow(n.Get("allow"), e)
	u := s.f.Require(n, use.what, "url")
	if u != nil {
		s.address(u, e, use)
	}
	if v := n.Get("ca"); v != nil {
		s.readCA(v, e)
	}
	if v := n.Get("pin"); v != nil {
		s.pins(v, e)
	}
	if e.scheme == "http" && (n.Get("ca") != nil || n.Get("pin") != nil) {
		s.bad(u.Pos, "url", "", "ca and pin need https")
	}
}

// allow reads the address classes that an endpoint may lie in.
func (s *site) allow(n *strictyaml.Node, e *endpoint) {
	if n == nil {
		return
	}
	words := s.f.Texts(n, "allow")
	for i, w := range words {
		switch w {
		case "loopback":
			e.loopback = true
		case "private":
			e.private = true
		default:
			s.bad(n.Items[i].Pos, "word", strictyaml.DidYouMean(w, []string{"loopback", "private"}), "allow cannot be %q; it is one of loopback, private", w)
		}
	}
}

var (
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	basePath = regexp.MustCompile(`^(/[A-Za-z0-9._~!$&'()*+,=:@-]+)*$`)
	numeric  = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

// address reads url: https, a host, perhaps a port and a base path, and nothing
// else.
func (s *site) address(n *strictyaml.Node, e *endpoint, use endpointUse) {
	text, ok := s.f.Text(n, "url")
	if !ok {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		s.bad(n.Pos, "url", "such as "+use.example, "this is no URL of %s", use.what)
		return
	case u.User != nil:
		s.bad(n.Pos, "url", "the credential lies in the vault", "a URL here holds no user name or password")
		return
	case strings.ContainsAny(text, "?#"):
		s.bad(n.Pos, "url", "", "a URL here holds no query and no fragment")
		return
	case u.Scheme != "https" && u.Scheme != "http":
		s.bad(n.Pos, "url", "write https://", "the scheme %q is not taken", u.Scheme)
		return
	}
	e.scheme, e.host = u.Scheme, u.Hostname()
	e.basePath = u.EscapedPath()
	trimmed := strings.TrimSuffix(e.basePath, "/")
	switch {
	case !use.whole:
		e.basePath = trimmed
	case e.basePath == "":
		e.basePath = "/"
	}
	if !basePath.MatchString(trimmed) || hasDotSegment(trimmed) {
		s.bad(n.Pos, "url", "", "the %spath holds an empty segment, a dot segment or a character that a path cannot have as it is", map[bool]string{false: "base "}[use.whole])
	}
	e.port = map[string]int{"https": 443, "http": 80}[u.Scheme]
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		v, err := strconv.Atoi(p)
		if err != nil || v < 1 || v > 65535 || p[0] == '0' {
			s.bad(n.Pos, "url", "", "the port is not from 1 to 65535")
		}
		e.port = v
	}
	s.host(n, e, use)
}

func hasDotSegment(p string) bool {
	for _, seg := range strings.Split(p, "/") {
		if seg == "." || seg == ".." {
			return true
		}
	}
	return false
}

// host checks a name or a literal address against what is allowed. Names
// are checked again after DNS, by the dialer.
func (s *site) host(n *strictyaml.Node, e *endpoint, use endpointUse) {
	local := e.host == "localhost" || strings.HasSuffix(e.host, ".localhost")
	if addr, err := netip.ParseAddr(e.host); err == nil {
		local = addr.IsLoopback()
		s.literal(n, e, use, addr)
	} else {
		last := e.host[strings.LastIndex(e.host, ".")+1:]
		if len(e.host) > 253 || !hostName.MatchString(e.host) || numeric.MatchString(last) {
			s.bad(n.Pos, "url", "small ASCII letters (xn-- for other alphabets), no dot at the end", "%q is no host name", e.host)
			return
		}
		if local && !e.loopback {
			s.bad(n.Pos, "address", "write allow: [loopback]", "a loopback address is taken only where %s says so", use.who)
		}
	}
	if e.scheme == "http" && !local {
		s.bad(n.Pos, "url", "write https://", "plain http is taken for loopback %s only", use.many)
	}
}

func (s *site) literal(n *strictyaml.Node, e *endpoint, use endpointUse, addr netip.Addr) {
	switch {
	case addr.Zone() != "" || addr.Is4In6():
		s.bad(n.Pos, "address", "", "an address with a zone, or a mapped one, is not taken")
	case addr.IsLoopback():
		if !e.loopback {
			s.bad(n.Pos, "address", "write allow: [loopback]", "a loopback address is taken only where %s says so", use.who)
		}
	case addr.IsPrivate():
		if !e.private {
			s.bad(n.Pos, "address", "write allow: [private]", "a private address is taken only where %s says so", use.who)
		}
	case !addr.IsGlobalUnicast() || addr.IsLinkLocalUnicast():
		s.bad(n.Pos, "address", "", "this address belongs to no host that %s can be", use.what)
	}
}

// readCA reads a certificate authority's file beside the site file.
func (s *site) readCA(n *strictyaml.Node, e *endpoint) {
	name, ok := s.f.Text(n, "ca")
	if !ok {
		return
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	b, err := readBounded(path, maxCAFile)
	switch {
	case err != nil:
		s.bad(n.Pos, "ca", "", "the file %q cannot be read: %v", name, pathless(err))
		return
	case len(b) > maxCAFile:
		s.bad(n.Pos, "ca", "", "the file %q has more than %d bytes", name, maxCAFile)
		return
	}
	if !certificates(b) {
		s.bad(n.Pos, "ca", "it holds PEM blocks of the type CERTIFICATE", "the file %q holds no certificate that can be read", name)
		return
	}
	sum := sha256.Sum256(b)
	e.caFile, e.caPEM, e.caDigest = path, b, "sha256:"+hex.EncodeToString(sum[:])
}

func certificates(b []byte) bool {
	found := false
	for {
		block, rest := pem.Decode(b)
		if block == nil {
			return found
		}
		if block.Type != "CERTIFICATE" {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		found, b = true, rest
	}
}

func (s *site) pins(n *strictyaml.Node, e *endpoint) {
	e.pins = s.f.Texts(n, "pin")
	for i, p := range e.pins {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p, "sha256/"))
		if !strings.HasPrefix(p, "sha256/") || err != nil || len(raw) != sha256.Size {
			s.bad(n.Items[min(i, len(n.Items)-1)].Pos, "pin", "sha256/ and the base64 of the digest of the public key (SPKI)", "%q is no pin", p)
		}
	}
	switch {
	case n.Kind == strictyaml.Sequence && len(e.pins) < 2:
		s.bad(n.Pos, "pin", "add the pin of a spare key, so that a change of key does not lock you out", "pin needs at least two")
	case len(e.pins) > maxPins:
		s.bad(n.Pos, "pin", "take away those of keys that are gone", "pin has at most %d", maxPins)
	}
}
