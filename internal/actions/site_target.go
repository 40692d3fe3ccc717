package actions

import (
	"errors"
	"io/fs"
	"net/http"
	"slices"
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
	sshTargetKeys = []string{"ssh", "identity", "actions", "effects", "ask", "read_commands", "allow", "with"}
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
	if n.Get("ssh") != nil || slices.Contains(broken(n), "ssh") {
		s.sshTarget(n, t)
		return
	}
	if !s.f.Map(n, "a target", targetKeys...) {
		return
	}
	s.endpoint(n, &t.endpoint, endpointTarget)
	s.authority(n, t)
	s.words(n, t)
	s.targetHeaders(n, t)
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
		if spec := s.identities[name]; spec != nil {
			s.fits(id, spec, t)
		}
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
