package review

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
)

// Page is everything that a reviewer reads about one contract. Its JSON members
// are the documented shape of `contract show --json`; new ones may come, none
// changes its meaning.
type Page struct {
	Action  string `json:"action"`
	Version string `json:"version"`
	Summary string `json:"summary"`
	Owner   string `json:"owner"`
	Effect  string `json:"effect"`
	Digest  string `json:"digest"` // "sha256:" and hex
	// SiteRead says whether a site file was read; without one the destinations
	// have names only.
	SiteRead bool `json:"site_read"`

	Inputs       []Input       `json:"inputs"`
	RouteBy      []string      `json:"route_by"`
	RouteList    string        `json:"route_list,omitzero"`
	Destinations []Destination `json:"destinations"`
	Steps        []Step        `json:"steps"`
	Result       []Output      `json:"result"`
	Display      []Output      `json:"display"`
	Checks       []string      `json:"checks"`
	Codes        []Code        `json:"codes"`
	Approval     Approval      `json:"approval"`
	Once         []string      `json:"once"`
	Retry        *Retry        `json:"retry,omitzero"`
	Exceptions   []Exception   `json:"exceptions"`
	Fixtures     []Fixtures    `json:"fixtures"`
}

// Input is one thing that an agent may vary.
type Input struct {
	Name     string  `json:"name"`
	Required bool    `json:"required"`
	Bound    Bound   `json:"bound"`
	Goes     []Place `json:"goes"`
}

// Output is one member of data or one display text.
type Output struct {
	Name     string   `json:"name"`
	Required bool     `json:"required"`
	Bound    Bound    `json:"bound"`
	From     []string `json:"from"`
}

// Code is one error code that this contract can give by itself, with what the
// HTTP API answers for it.
type Code struct {
	Code      string `json:"code"`
	Own       bool   `json:"own"`
	Status    int    `json:"status"`
	Retryable bool   `json:"retryable"`
	Message   string `json:"message"`
}

// Approval is what a person is asked.
type Approval struct {
	Sentence string   `json:"sentence"` // "" for a read that nobody wrote one for
	Show     []Member `json:"show"`
	Ask      string   `json:"ask"` // the contract's own word
}

// Retry is how often a call may be sent.
type Retry struct {
	Attempts  int      `json:"attempts"`
	Within    string   `json:"within"`
	Codes     []string `json:"codes"`
	RateLimit string   `json:"rate_limit,omitzero"`
}

// Exception is a lint rule set aside.
type Exception struct {
	Rule    string `json:"rule"`
	Because string `json:"because"`
}

// Fixtures counts the fixtures of one kind.
type Fixtures struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// Build makes the page of a loaded contract; set is nil where no site file was
// read. The text is read again from the contract's folder: it has the order of
// members that the loaded form has not.
func Build(c *actions.Contract, set *actions.Set) (Page, actions.Problems) {
	root, problems := actions.Source(c.Dir())
	if len(problems) > 0 {
		return Page{}, problems
	}
	p := Page{
		Action: c.Action(), Version: c.Version(), Summary: c.Summary(), Owner: c.Owner(), Effect: c.Effect().String(),
		Digest: digestText(c), SiteRead: set != nil, RouteBy: orEmpty(c.RouteBy()), RouteList: c.RouteList(),
	}
	p.Inputs = inputs(c, root, set)
	p.Destinations = destinations(c, set)
	for _, s := range stepsOf(root) {
		p.Steps = append(p.Steps, step(s, root))
	}
	p.outputs(root)
	for _, it := range nonNil(root.Get("checks")).Items {
		p.Checks = append(p.Checks, check(it))
	}
	p.Codes = codes(c, root)
	p.Approval = approval(c, root)
	p.Once, p.Retry = once(root), retry(root)
	for _, e := range c.RulesSetAside() {
		p.Exceptions = append(p.Exceptions, Exception{e.Rule, e.Because})
	}
	p.Fixtures = fixtures(c.Dir())
	p.fill()
	return p, nil
}

// fill makes absent lists empty ones, so that a program always finds a list.
func (p *Page) fill() {
	p.Inputs, p.Destinations, p.Steps = orEmpty(p.Inputs), orEmpty(p.Destinations), orEmpty(p.Steps)
	p.Result, p.Display, p.Checks = orEmpty(p.Result), orEmpty(p.Display), orEmpty(p.Checks)
	p.Codes, p.Once, p.Exceptions, p.Fixtures = orEmpty(p.Codes), orEmpty(p.Once), orEmpty(p.Exceptions), orEmpty(p.Fixtures)
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func inputs(c *actions.Contract, root *strictyaml.Node, set *actions.Set) []Input {
	in := root.Get("input")
	b := bounds{in}
	where := Uses(root)
	props, required := b.properties(in, refDepth)
	var out []Input
	for _, m := range props {
		i := Input{Name: m.Key, Required: slices.Contains(required, m.Key), Bound: b.of(m.Value), Goes: orEmpty(where[m.Key])}
		if c.RouteList() != "" && slices.Contains(c.RouteBy(), m.Key) {
			i.Bound = listBound(c, set)
		}
		out = append(out, i)
	}
	return out
}

// listBound is the bound of an input that takes the names of the operator's
// list.
func listBound(c *actions.Contract, set *actions.Set) Bound {
	words := "a name of the operator's list " + c.RouteList()
	if set == nil {
		return Bound{Words: words}
	}
	var names []string
	for _, k := range c.RouteCases() {
		for _, v := range k.Values {
			if s, ok := v.(string); ok {
				names = append(names, s)
			}
		}
	}
	e := &strictyaml.Node{Kind: strictyaml.Sequence}
	for _, n := range names {
		e.Items = append(e.Items, &strictyaml.Node{Kind: strictyaml.String, Text: n})
	}
	return Bound{Words: words + ": " + strings.TrimPrefix(oneOf(e).Words, "one of "), Values: names}
}

// outputs fills data's members and the display texts with where they are picked
// from.
func (p *Page) outputs(root *strictyaml.Node) {
	result := root.Get("result")
	b := bounds{result}
	props, required := b.properties(result, refDepth)
	for _, m := range props {
		p.Result = append(p.Result, Output{m.Key, slices.Contains(required, m.Key), b.of(m.Value), orEmpty(sources(root, "success", m.Key))})
	}
	for _, m := range members(root.Get("display")) {
		words := "text of at most " + nonNil(m.Value.Get("max")).Text + " characters in " + nonNil(m.Value.Get("lines")).Text + " lines"
		p.Display = append(p.Display, Output{m.Key, false, Bound{Words: words}, orEmpty(sources(root, "display", m.Key))})
	}
}

// sources says where a member is picked from, in each row that picks it.
func sources(root *strictyaml.Node, part, name string) []string {
	var out []string
	for _, s := range stepsOf(root) {
		for _, row := range nonNil(s.Node.Get("outcomes")).Items {
			n := row.Get(part).Get(name)
			if n == nil {
				continue
			}
			from := pick(n)
			if s.Kind != "request" {
				from = s.Name + " " + from
			}
			if !slices.Contains(out, from) {
				out = append(out, from)
			}
		}
	}
	return out
}

// kinds are what a fixture's file name begins with.
var kinds = []string{"accepted", "near-miss", "failure", "hostile"}

// maxFixtureDepth bounds how deep folders of old shapes are looked into.
const maxFixtureDepth = 3

func fixtures(dir string) []Fixtures {
	out := make([]Fixtures, len(kinds))
	for i, k := range kinds {
		out[i].Kind = k
	}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil || depth == 0 {
			return
		}
		for _, e := range entries {
			if e.IsDir() {
				walk(filepath.Join(dir, e.Name()), depth-1)
				continue
			}
			i := slices.IndexFunc(kinds, func(k string) bool { return strings.HasPrefix(e.Name(), k) })
			if ext := filepath.Ext(e.Name()); i >= 0 && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
				out[i].Count++
			}
		}
	}
	walk(filepath.Join(dir, "fixtures"), maxFixtureDepth)
	return out
}
