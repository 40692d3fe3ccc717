package actions

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

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

func (s *site) readIdentities(n *strictyaml.Node) {
	if n == nil || !s.f.Is(n, strictyaml.Mapping, "identities") {
		return
	}
	for _, m := range n.Members {
		if !targetName.MatchString(m.Key) {
			s.bad(m.KeyPos, "name", "small letters, digits, - _ and .", "%q is no name of an identity", m.Key)
		}
		if id := s.identity(m); id != nil {
			s.identities[m.Key] = id
		}
	}
}

var (
	identityKinds = []string{KindBearer, KindHeader, KindBasic, KindNone}
	laterKinds    = []string{
		KindClientCertificate, KindOAuth2Client, KindOAuth2Refresh, KindGitHubApp, KindJWTBearer, KindRegistryToken,
		KindBody, KindSSHKey, KindSSHCertificate,
	}
	kindKeys = map[string][]string{
		KindBearer: {"kind", "ask"}, KindHeader: {"kind", "ask", "name", "prefix"},
		KindBasic: {"kind", "ask", "username"}, KindNone: {"kind", "ask"},
	}
)

func (s *site) identity(m strictyaml.Member) *IdentitySpec {
	n := m.Value
	if !s.f.Is(n, strictyaml.Mapping, "an identity") {
		return nil
	}
	k := s.f.Require(n, "an identity", "kind")
	word, ok := s.f.Text(k, "kind")
	switch {
	case !ok:
		return nil
	case slices.Contains(laterKinds, word):
		s.bad(k.Pos, "not-in-this-release", "", "identities of kind %s belong to the format, but this release does not take them yet", word)
		return nil
	}
	if word, ok = s.f.Word(k, "kind", identityKinds...); !ok {
		return nil
	}
	s.f.Map(n, "an identity of kind "+word, kindKeys[word]...)
	id := &IdentitySpec{name: m.Key, kind: word, ask: s.ask(n.Get("ask"))}
	switch word {
	case KindBearer:
		id.headerName, id.prefix = "Authorization", "Bearer "
	case KindBasic:
		id.headerName = "Authorization"
		id.username = s.username(n)
	case KindHeader:
		s.headerIdentity(n, id)
	}
	return id
}

func (s *site) username(n *strictyaml.Node) string {
	u := s.f.Require(n, "an identity of kind basic", "username")
	name, ok := s.f.Text(u, "username")
	if ok && (name == "" || strings.Contains(name, ":") || !oneLine(name)) {
		s.bad(u.Pos, "identity", "", "a user name is not empty and has no colon and no control character")
	}
	return name
}

func (s *site) headerIdentity(n *strictyaml.Node, id *IdentitySpec) {
	h := s.f.Require(n, "an identity of kind header", "name")
	if name, ok := s.f.Text(h, "name"); ok {
		id.headerName = http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) || id.headerName != "Authorization" && (refusedHeader(name) || slices.Contains(headerAllowList, id.headerName)) {
			s.bad(h.Pos, "identity", "such as X-Api-Key", "the header %q cannot carry a credential", name)
		}
	}
	if p := n.Get("prefix"); p != nil {
		text, ok := s.f.Text(p, "prefix")
		if ok && text != "" && !validHeaderText(strings.TrimSuffix(text, " ")) {
			s.bad(p.Pos, "identity", "", "the prefix holds a character that headers cannot have")
		}
		id.prefix = text
	}
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
		if id := s.identities[t.identity]; id != nil {
			t.identityAsk = id.ask
		}
		doc := map[string]any{"target": root.Get("targets").Get(name).Value(), "ca": t.caDigest}
		if id := root.Get("identities").Get(t.identity); id != nil {
			doc["identity"] = id.Value()
		}
		t.digest = digest("target", doc)
		cas[name] = t.caDigest
	}
	s.digest = digest("site", map[string]any{"site": root.Value(), "ca": cas, "keys": s.keyDigests()})
}

// digest is SHA-256 over a label and the canonical form of a value.
func digest(label string, v any) [32]byte {
	h := sha256.New()
	h.Write([]byte("chatelaine/v1 " + label + "\x00"))
	h.Write(validate.Canonical(v))
	return [32]byte(h.Sum(nil))
}

// readCA reads a certificate authority's file beside the site file.
func (s *site) readCA(n *strictyaml.Node, t *Target) {
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
	t.caFile, t.caPEM, t.caDigest = path, b, "sha256:"+hex.EncodeToString(sum[:])
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

func (s *site) pins(n *strictyaml.Node, t *Target) {
	t.pins = s.f.Texts(n, "pin")
	for i, p := range t.pins {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p, "sha256/"))
		if !strings.HasPrefix(p, "sha256/") || err != nil || len(raw) != sha256.Size {
			s.bad(n.Items[min(i, len(n.Items)-1)].Pos, "pin", "sha256/ and the base64 of the digest of the public key (SPKI)", "%q is no pin", p)
		}
	}
	if n.Kind == strictyaml.Sequence && len(t.pins) < 2 {
		s.bad(n.Pos, "pin", "add the pin of a spare key, so that a change of key does not lock you out", "pin needs at least two")
	}
}
