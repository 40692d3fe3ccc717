package actions

import (
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/actions/strictyaml"
)

var errNotAFile = errors.New("not a plain file")

// pathless takes the path out of a file error: the problem names it already.
func pathless(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

var (
	targetKeys = []string{
		"url", "identity", "actions", "effects", "ask", "ca", "pin", "headers", "version_headers",
		"keeps_escaped_slash", "read_by_post", "allow", "http2", "with",
	}
	sshTargetKeys = []string{"ssh", "read_commands"}
)

func (s *site) readTargets(n *strictyaml.Node) {
	if n == nil || !s.f.Is(n, strictyaml.Mapping, "targets") {
		return
	}
	if len(n.Members) > maxTargets {
		s.bad(n.Pos, "targets", "", "more than %d targets", maxTargets)
		return
	}
	for _, m := range n.Members {
		if !targetName.MatchString(m.Key) {
			s.bad(m.KeyPos, "name", "small letters, digits, - _ and .", "%q is no name of a target", m.Key)
		}
		before := s.f.Count()
		t := &Target{name: m.Key}
		s.target(m.Value, t)
		if s.f.Count() == before {
			s.targets[m.Key] = t
		} else {
			s.refused[m.Key] = t
		}
	}
}

func (s *site) target(n *strictyaml.Node, t *Target) {
	if ssh := n.Get("ssh"); ssh != nil {
		s.bad(ssh.Pos, "not-in-this-release", "", "targets over SSH belong to the format, but this release does not take them yet")
		return
	}
	if !s.f.Map(n, "a target", append(slices.Clone(targetKeys), sshTargetKeys...)...) {
		return
	}
	if rc := n.Get("read_commands"); rc != nil {
		s.bad(rc.Pos, "not-in-this-release", "", "read_commands belongs to targets over SSH, which this release does not take yet")
	}
	s.allow(n.Get("allow"), t)
	if u := s.f.Require(n, "a target", "url"); u != nil {
		s.address(u, t)
	}
	s.authority(n, t)
	if v := n.Get("ca"); v != nil {
		s.readCA(v, t)
	}
	if v := n.Get("pin"); v != nil {
		s.pins(v, t)
	}
	if t.scheme == "http" && (n.Get("ca") != nil || n.Get("pin") != nil) {
		s.bad(n.Get("url").Pos, "url", "", "ca and pin need https")
	}
	s.words(n, t)
	s.targetHeaders(n, t)
}

// allow reads the address classes that the target may lie in.
func (s *site) allow(n *strictyaml.Node, t *Target) {
	if n == nil {
		return
	}
	words := s.f.Texts(n, "allow")
	for i, w := range words {
		switch w {
		case "loopback":
			t.loopback = true
		case "private":
			t.private = true
		default:
			s.bad(n.Items[i].Pos, "word", strictyaml.DidYouMean(w, []string{"loopback", "private"}), "allow cannot be %q; it is one of loopback, private", w)
		}
	}
}

// authority reads who may use the target and for what.
func (s *site) authority(n *strictyaml.Node, t *Target) {
	if id := s.f.Require(n, "a target", "identity"); id != nil {
		name, ok := s.f.Text(id, "identity")
		known := s.f.Root().Get("identities")
		if ok && known.Get(name) == nil && !slices.Contains(broken(known), name) {
			s.bad(id.Pos, "identity-unknown", strictyaml.DidYouMean(name, known.Keys()), "the site file has no identity %q", name)
		}
		t.identity = name
	}
	t.actions = map[string]bool{}
	if a := s.f.Require(n, "a target", "actions"); a != nil {
		for i, name := range s.f.Texts(a, "actions") {
			if !actionName.MatchString(name) {
				s.bad(a.Items[i].Pos, "action", "", "%q is no name of an action", name)
			}
			t.actions[name] = true
		}
	}
	t.effects = []Effect{Read}
	if e := n.Get("effects"); e != nil {
		s.effects(e, t)
	}
	t.ask = s.ask(n.Get("ask"))
	if (t.AllowsEffect(Change) || t.AllowsEffect(Destroy)) && n.Get("ask") == nil && !slices.Contains(n.Broken(), "ask") {
		s.bad(n.Pos, "ask-missing", "write ask: session where a change is routine, else ask: every_call", "a target that takes changes must write its ask")
	}
}

func broken(n *strictyaml.Node) []string {
	if n == nil {
		return nil
	}
	return n.Broken()
}

func (s *site) effects(n *strictyaml.Node, t *Target) {
	t.effects = nil
	before := s.f.Count()
	defer func() {
		if s.f.Count() > before {
			t.effects = nil // nobody knows which were meant
		}
	}()
	for _, it := range s.f.List(n, "effects") {
		word, ok := s.f.Word(it, "an effect", "read", "change", "destroy")
		if ok && !t.AllowsEffect(effectNames[word]) {
			t.effects = append(t.effects, effectNames[word])
		}
	}
	if n.Kind == strictyaml.Sequence && len(n.Items) == 0 {
		s.bad(n.Pos, "effects", "", "effects is empty")
	}
	slices.Sort(t.effects)
}

// words reads the small switches.
func (s *site) words(n *strictyaml.Node, t *Target) {
	if v := n.Get("keeps_escaped_slash"); v != nil {
		t.keepsSlash, _ = s.f.Flag(v, "keeps_escaped_slash")
	}
	if v := n.Get("http2"); v != nil {
		t.http2, _ = s.f.Flag(v, "http2")
	}
	t.readByPost = map[string]bool{}
	if v := n.Get("read_by_post"); v != nil {
		for i, p := range s.f.Texts(v, "read_by_post") {
			if !strings.HasPrefix(p, "/") {
				s.bad(v.Items[i].Pos, "path", "", "a path begins with /")
			}
			t.readByPost[p] = true
		}
	}
	if v := n.Get("with"); v != nil {
		t.with = constants(s.f, v)
	}
}

func (s *site) targetHeaders(n *strictyaml.Node, t *Target) {
	t.headers, t.versionHeader = map[string]string{}, map[string]bool{}
	if h := n.Get("headers"); h != nil && s.f.Is(h, strictyaml.Mapping, "headers") {
		for _, m := range h.Members {
			value, ok := s.f.Text(m.Value, "a header")
			if s.header(m.KeyPos, m.Key) && ok && !validHeaderText(value) {
				s.bad(m.Value.Pos, "header-value", "", "the header %s holds a character that headers cannot have", m.Key)
			}
			t.headers[http.CanonicalHeaderKey(m.Key)] = value
		}
	}
	if v := n.Get("version_headers"); v != nil {
		for i, name := range s.f.Texts(v, "version_headers") {
			s.header(v.Items[i].Pos, name)
			t.versionHeader[http.CanonicalHeaderKey(name)] = true
		}
	}
}

func (s *site) header(at strictyaml.Pos, name string) bool {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		s.bad(at, "header", "", "%q is no name of a header", name)
	case refusedHeader(name):
		s.bad(at, "header-refused", "", "a target cannot set the header %s", name)
	default:
		return true
	}
	return false
}

var (
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	basePath = regexp.MustCompile(`^(/[A-Za-z0-9._~!$&'()*+,=:@-]+)*$`)
	numeric  = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

// address reads url: https, a host, perhaps a port and a base path, and nothing
// else.
func (s *site) address(n *strictyaml.Node, t *Target) {
	text, ok := s.f.Text(n, "url")
	if !ok {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		s.bad(n.Pos, "url", "such as https://deploy.example/api", "this is no URL of a target")
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
	t.scheme, t.host = u.Scheme, u.Hostname()
	t.basePath = strings.TrimSuffix(u.EscapedPath(), "/")
	if !basePath.MatchString(t.basePath) || hasDotSegment(t.basePath) {
		s.bad(n.Pos, "url", "", "the base path holds an empty segment, a dot segment or a character that a path cannot have as it is")
	}
	t.port = map[string]int{"https": 443, "http": 80}[u.Scheme]
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		v, err := strconv.Atoi(p)
		if err != nil || v < 1 || v > 65535 || p[0] == '0' {
			s.bad(n.Pos, "url", "", "the port is not from 1 to 65535")
		}
		t.port = v
	}
	s.host(n, t)
}

func hasDotSegment(p string) bool {
	for _, seg := range strings.Split(p, "/") {
		if seg == "." || seg == ".." {
			return true
		}
	}
	return false
}

// host checks a name or a literal address against what the target allows. Names
// are checked again after DNS, by the dialer.
func (s *site) host(n *strictyaml.Node, t *Target) {
	local := t.host == "localhost" || strings.HasSuffix(t.host, ".localhost")
	if addr, err := netip.ParseAddr(t.host); err == nil {
		local = addr.IsLoopback()
		s.literal(n, t, addr)
	} else {
		last := t.host[strings.LastIndex(t.host, ".")+1:]
		if len(t.host) > 253 || !hostName.MatchString(t.host) || numeric.MatchString(last) {
			s.bad(n.Pos, "url", "small ASCII letters (xn-- for other alphabets), no dot at the end", "%q is no host name", t.host)
			return
		}
		if local && !t.loopback {
			s.bad(n.Pos, "address", "write allow: [loopback]", "a loopback address is taken only where the target says so")
		}
	}
	if t.scheme == "http" && !local {
		s.bad(n.Pos, "url", "write https://", "plain http is taken for loopback targets only")
	}
}

func (s *site) literal(n *strictyaml.Node, t *Target, addr netip.Addr) {
	switch {
	case addr.Zone() != "" || addr.Is4In6():
		s.bad(n.Pos, "address", "", "an address with a zone, or a mapped one, is not taken")
	case addr.IsLoopback():
		if !t.loopback {
			s.bad(n.Pos, "address", "write allow: [loopback]", "a loopback address is taken only where the target says so")
		}
	case addr.IsPrivate():
		if !t.private {
			s.bad(n.Pos, "address", "write allow: [private]", "a private address is taken only where the target says so")
		}
	case !addr.IsGlobalUnicast() || addr.IsLinkLocalUnicast():
		s.bad(n.Pos, "address", "", "this address belongs to no host that a target can be")
	}
}
