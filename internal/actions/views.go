package actions

import (
	"path/filepath"
	"slices"

	"chatelaine/internal/actions/strictyaml"
)

// This file is what a reviewer's tools read besides the contract itself: the
// text as it was written, and the routes as the site file made them.

// RouteCase is one case of a bound route: the values of the selecting inputs,
// in their order, and where they lead. A fixed route has one case without
// values.
type RouteCase struct {
	Values []any
	Target string
	With   map[string]any
}

// SetAside is one lint rule that the author set aside, and why.
type SetAside struct{ Rule, Because string }

// RouteBy returns the inputs that choose the target, in the order written.
func (c *Contract) RouteBy() []string { return slices.Clone(c.route.by) }

// RouteList returns the name of the operator's list that the route goes by, ""
// where it goes by none.
func (c *Contract) RouteList() string { return c.route.list }

// RouteCases returns the cases in the order written; those of a list come from
// the site file, sorted by name, and are absent where none was read.
func (c *Contract) RouteCases() []RouteCase {
	out := make([]RouteCase, 0, len(c.route.cases))
	for _, k := range c.route.cases {
		with, _ := deepCopy(k.with).(map[string]any)
		out = append(out, RouteCase{slices.Clone(k.values), k.target, with})
	}
	return out
}

// RulesSetAside returns the exceptions in the order written.
func (c *Contract) RulesSetAside() []SetAside {
	out := make([]SetAside, 0, len(c.exceptions))
	for _, e := range c.exceptions {
		out = append(out, SetAside{e.rule, e.because})
	}
	return out
}

// Source reads the text of the contract in a folder, with the places and the
// order of its members. It does not say that the contract is right.
func Source(dir string) (*strictyaml.Node, Problems) {
	f := readFile(filepath.Join(dir, contractFile), strictyaml.Limits{})
	if ps := f.Problems(); len(ps) > 0 {
		return nil, ps
	}
	return f.Root(), nil
}

// SiteText is a site file that was read by itself, with its text.
type SiteText struct{ s *site }

// ReadSite reads a site file and the files that it names, as LoadSet does.
func ReadSite(path string) (*SiteText, Problems) {
	s := loadSite(path)
	if ps := s.f.Problems(); len(ps) > 0 {
		return nil, ps
	}
	return &SiteText{s}, nil
}

// Root returns the text, with the places and the order of its members.
func (t *SiteText) Root() *strictyaml.Node { return t.s.f.Root() }

// FileDigests returns "sha256:" and the hex digest of every file that the site
// file names, under "ca TARGET", "keys NAME", "token IDENTITY" and "sign
// IDENTITY".
func (t *SiteText) FileDigests() map[string]string {
	out := map[string]string{}
	for name, target := range t.s.targets {
		if target.caDigest != "" {
			out["ca "+name] = target.caDigest
		}
	}
	for name, id := range t.s.identities {
		if ca := id.authority(); ca != "" {
			out[id.placeKey()+" "+name] = ca
		}
	}
	for name, k := range t.s.keys {
		out["keys "+name] = k.digest
	}
	return out
}

// ParseContract reads a contract's text as LoadSet reads a folder's. name
// stands before its mistakes; folder is what its folder is called, "" where
// nobody knows; t is nil where there is no site file.
func ParseContract(name, folder string, text []byte, t *SiteText) (*Contract, *strictyaml.Node, Problems) {
	d := parseContract(name, text)
	if folder != "" && d.c.action != "" && d.c.action != folder {
		d.bad(d.root.Get("action").Pos, "action", "", "the action is called %q, its folder %q", d.c.action, folder)
	}
	var s *site
	if t != nil {
		s = t.s
	}
	d.bind(s)
	if ps := d.f.Problems(); len(ps) > 0 {
		return nil, nil, ps
	}
	return d.c, d.root, nil
}

// LoadOne reads one contract folder and the site file, and nothing of the other
// contracts: the set holds this one only.
func LoadOne(sitePath, dir string) (*Contract, *Set, Problems) {
	s := loadSite(sitePath)
	d := readContract(dir)
	d.bind(s)
	if problems := slices.Concat(s.f.Problems(), d.f.Problems()); len(problems) > 0 {
		return nil, nil, problems.Sort()
	}
	set := &Set{
		contracts: map[string]*Contract{d.c.action: d.c},
		targets:   s.targets, identities: s.identities, lists: s.lists, keys: s.keys,
	}
	set.seal(s)
	return d.c, set, nil
}
