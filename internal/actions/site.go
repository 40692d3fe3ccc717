package actions

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// site is the operator's file while it is being read.
type site struct {
	f          *strictyaml.File
	dir        string
	targets    map[string]*Target
	refused    map[string]*Target // with a mistake; as far as they were read
	identities map[string]*IdentitySpec
	lists      map[string]*list
	listDocs   map[string]any
	keys       map[string]*keySet
	digest     [32]byte
	elsewhere  bool // the contracts at hand are not all that it knows
}

const (
	maxCAFile   = 1 << 20
	maxSiteFile = 2 << 20
	siteNodes   = 200000 // a list may have thousands of names
	maxTargets  = 1000
)

// loadSite reads targets.yaml.
func loadSite(path string) *site {
	return parseSite(readFile(path, strictyaml.Limits{Bytes: maxSiteFile, Nodes: siteNodes}), filepath.Dir(path))
}

// parseSite reads a site file's text; dir is where its other files lie.
func parseSite(f *strictyaml.File, dir string) *site {
	s := &site{
		f: f, dir: dir,
		targets: map[string]*Target{}, refused: map[string]*Target{}, identities: map[string]*IdentitySpec{}, lists: map[string]*list{}, listDocs: map[string]any{},
		keys: map[string]*keySet{},
	}
	root := s.f.Root()
	if root == nil || !s.f.Map(root, "the site file", "targets", "identities", "lists", "keys") {
		return s
	}
	s.readIdentities(s.f.Require(root, "the site file", "identities"))
	s.readTargets(s.f.Require(root, "the site file", "targets"))
	s.readLists(root.Get("lists"))
	s.readKeys(root.Get("keys"))
	s.seal(root)
	return s
}

// readFile reads one file strictly; what cannot be read is a problem of it.
func readFile(path string, l strictyaml.Limits) *strictyaml.File {
	b, err := readBounded(path, max(l.Bytes, 256<<10))
	if err != nil {
		return strictyaml.Unreadable(path, pathless(err))
	}
	return strictyaml.Parse(path, b, l)
}

// readBounded reads at most one byte more than most, so that the reader can say
// that a file is too large without holding all of it. The kind is looked at
// before the open too, since opening a pipe waits for its other end.
func readBounded(path string, most int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotAFile
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errNotAFile
	}
	return io.ReadAll(io.LimitReader(f, int64(most)+1))
}

func (s *site) bad(at strictyaml.Pos, rule, hint, format string, args ...any) {
	s.f.Report(at, rule, hint, format, args...)
}

func (s *site) ask(n *strictyaml.Node) Ask {
	if n == nil {
		return 0
	}
	word, _ := s.f.Word(n, "ask", "session", "every_call")
	return askNames[word]
}

func (s *site) readLists(n *strictyaml.Node) {
	if n == nil || !s.f.Is(n, strictyaml.Mapping, "lists") {
		return
	}
	for _, m := range n.Members {
		if !targetName.MatchString(m.Key) {
			s.bad(m.KeyPos, "name", "small letters, digits, - _ and .", "%q is no name of a list", m.Key)
		}
		if !s.f.Is(m.Value, strictyaml.Mapping, "a list") {
			continue
		}
		if len(m.Value.Members) == 0 {
			s.bad(m.Value.Pos, "list", "", "the list %q has no name", m.Key)
		}
		l := &list{name: m.Key, entries: map[string]listEntry{}}
		for _, e := range m.Value.Members {
			s.listEntry(l, e)
		}
		s.lists[m.Key], s.listDocs[m.Key] = l, m.Value.Value()
	}
}

func (s *site) listEntry(l *list, e strictyaml.Member) {
	if !listKey.MatchString(e.Key) || e.Key == "." || e.Key == ".." {
		s.bad(e.KeyPos, "list", "letters, digits and . _ -, beginning with a letter or a digit", "%q is no name of a list's entry", e.Key)
	}
	if !s.f.Map(e.Value, "an entry of a list", "target", "with") {
		return
	}
	t := s.f.Require(e.Value, "an entry of a list", "target")
	name, ok := s.f.Text(t, "target")
	if !ok {
		return
	}
	if s.targets[name] == nil {
		s.unknownTarget(s.f, t.Pos, name)
	}
	entry := listEntry{target: name}
	if w := e.Value.Get("with"); w != nil {
		entry.with = constants(s.f, w)
	}
	l.entries[e.Key] = entry
}

// unknownTarget reports a target's name that the site file does not have.
func (s *site) unknownTarget(f *strictyaml.File, at strictyaml.Pos, name string) {
	targets := s.f.Root().Get("targets")
	if targets == nil || targets.Get(name) != nil {
		return // refused, or not there at all: told already
	}
	hint := strictyaml.DidYouMean(name, targets.Keys())
	if hint == "" {
		hint = "the operator writes it there under targets"
	}
	f.Report(at, "target-unknown", hint, "the site file has no target %q", name)
}

// seal takes the digests of the targets and of the whole file.
func (s *site) seal(root *strictyaml.Node) {
	cas := map[string]any{}
	for name, t := range s.targets {
		doc := map[string]any{"target": root.Get("targets").Get(name).Value(), "ca": t.caDigest}
		if id := s.identities[t.identity]; id != nil {
			t.identityAsk, t.spec = id.ask, id
			if ca := id.authority(); ca != "" {
				doc["identity_ca"] = ca
			}
		}
		if id := root.Get("identities").Get(t.identity); id != nil {
			doc["identity"] = id.Value()
		}
		t.digest = digest("target", doc)
		cas[name] = t.caDigest
	}
	doc := map[string]any{"site": root.Value(), "ca": cas, "keys": s.keyDigests()}
	places := map[string]any{}
	for name, id := range s.identities {
		if ca := id.authority(); ca != "" {
			places[name] = ca
		}
	}
	if len(places) > 0 { // a file without any keeps the digest it had before there were places
		doc["identity_ca"] = places
	}
	s.digest = digest("site", doc)
}

// digest is SHA-256 over a label and the canonical form of a value.
func digest(label string, v any) [32]byte {
	h := sha256.New()
	h.Write([]byte("chatelaine/v1 " + label + "\x00"))
	h.Write(validate.Canonical(v))
	return [32]byte(h.Sum(nil))
}
