package review

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// Place is where an input of a contract is used. Step is the step's name, ""
// outside steps; Part says what of it; At is a name or a JSON pointer inside
// the part, "" where there is none.
type Place struct {
	Step string `json:"step,omitzero"`
	Part string `json:"part"`
	At   string `json:"at,omitzero"`
}

// The parts of a Place. Those under which an input leaves the machine are told
// by Sent.
const (
	PartRoute    = "chooses the target"
	PartSentence = "sentence"
	PartCard     = "card"
	PartCheck    = "check"
	PartReading  = "reads the answer"
	PartPath     = "path"
	PartQuery    = "query"
	PartHeader   = "header"
	PartBody     = "body"
)

// Sent says whether an input leaves the machine there.
func (p Place) Sent() bool {
	return p.Part == PartPath || p.Part == PartQuery || p.Part == PartHeader || p.Part == PartBody
}

// String gives the place in words, the step's name left out for the request.
func (p Place) String() string {
	out := p.Part
	switch p.Step {
	case "", "request":
	case "poll", "reconcile":
		out = p.Step + " " + out
	default:
		out = "lookup " + p.Step + " " + out
	}
	if p.At != "" {
		out += " " + p.At
	}
	return out
}

// Uses says for every top-level input of a contract's text where it is used,
// each place once, in the order of the text.
func Uses(root *strictyaml.Node) map[string][]Place {
	u := uses{}
	route := root.Get("route")
	if by := route.Get("by"); by != nil {
		for _, n := range append([]*strictyaml.Node{by}, by.Items...) {
			if n.Kind == strictyaml.String {
				u.add(n.Text, Place{Part: PartRoute})
			}
		}
	}
	for _, s := range stepsOf(root) {
		u.step(s)
	}
	if a := root.Get("approval"); a != nil {
		u.template(a.Get("sentence"), Place{Part: PartSentence})
		u.values(a.Get("show"), Place{Part: PartCard}, nil)
	}
	if c := root.Get("checks"); c != nil {
		u.mentions(c, Place{Part: PartCheck})
	}
	return u
}

// StepText is one step of a contract as written.
type StepText struct {
	Kind string // lookup, request, poll or reconcile
	Name string // the lookup's own name, else the kind
	Node *strictyaml.Node
}

// stepsOf returns the steps in the order in which a call may come to them.
func stepsOf(root *strictyaml.Node) []StepText {
	var out []StepText
	if l := root.Get("lookups"); l != nil {
		for _, m := range l.Members {
			out = append(out, StepText{"lookup", m.Key, m.Value})
		}
	}
	for _, k := range []string{"request", "poll", "reconcile"} {
		if n := root.Get(k); n != nil {
			out = append(out, StepText{k, k, n})
		}
	}
	return out
}

type uses map[string][]Place

func (u uses) add(name string, p Place) {
	name, _, _ = strings.Cut(name, ".")
	if !slices.Contains(u[name], p) {
		u[name] = append(u[name], p)
	}
}

var inBraces = regexp.MustCompile(`\{input\.([A-Za-z0-9_-]+)`)

// template finds the inputs of a path or a sentence.
func (u uses) template(n *strictyaml.Node, p Place) {
	if n == nil {
		return
	}
	for _, m := range inBraces.FindAllStringSubmatch(n.Text, -1) {
		u.add(m[1], p)
	}
}

func (u uses) step(s StepText) {
	u.template(s.Node.Get("path"), Place{Step: s.Name, Part: PartPath})
	for _, m := range members(s.Node.Get("query")) {
		u.values(m.Value, Place{s.Name, PartQuery, m.Key}, nil)
	}
	for _, m := range members(s.Node.Get("headers")) {
		u.values(m.Value, Place{s.Name, PartHeader, m.Key}, nil)
	}
	if b := s.Node.Get("json"); b != nil {
		u.tree(b, bodyFunction(b), Place{Step: s.Name, Part: PartBody}, nil)
	}
	if b := s.Node.Get("form"); b != nil {
		u.tree(b, "", Place{Step: s.Name, Part: PartBody}, nil)
	}
	u.values(s.Node.Get("text"), Place{Step: s.Name, Part: PartBody}, nil)
	u.values(s.Node.Get("argv"), Place{Step: s.Name, Part: PartBody, At: "argv"}, nil)
	u.values(s.Node.Get("stdin"), Place{Step: s.Name, Part: PartBody, At: "stdin"}, nil)
	if o := s.Node.Get("outcomes"); o != nil {
		u.mentions(o, Place{Step: s.Name, Part: PartReading})
	}
}

func members(n *strictyaml.Node) []strictyaml.Member {
	if n == nil {
		return nil
	}
	return n.Members
}

func (u uses) values(n *strictyaml.Node, p Place, as map[string]string) {
	if n != nil {
		u.tree(n, function(n), p, as)
	}
}

// tree walks a value; as holds the names that each gives to elements, with the
// input they come from.
func (u uses) tree(n *strictyaml.Node, fn string, p Place, as map[string]string) {
	switch fn {
	case "":
	case "const":
		return
	case "from":
		root, rest, _ := strings.Cut(n.Get("from").Text, ".")
		if from, ok := as[root]; ok {
			u.add(from, p)
		} else if root == "input" {
			u.add(rest, p)
		}
		return
	case "each":
		u.each(n, p, as)
		return
	default:
		arg := n.Members[0].Value
		if arg.Kind != strictyaml.Sequence {
			u.values(arg, p, as)
		}
		for _, it := range arg.Items {
			u.values(it, p, as)
		}
		return
	}
	for _, m := range n.Members {
		inner := p
		switch p.Part {
		case PartBody:
			inner.At += "/" + m.Key
		case PartCard:
			inner.At = m.Key
		}
		u.values(m.Value, inner, as)
	}
	for i, it := range n.Items {
		inner := p
		if p.Part == PartBody {
			inner.At += "/" + strconv.Itoa(i)
		}
		u.values(it, inner, as)
	}
}

func (u uses) each(n *strictyaml.Node, p Place, as map[string]string) {
	list := n.Get("each")
	u.values(list, p, as)
	inner := map[string]string{}
	for k, v := range as {
		inner[k] = v
	}
	if from := list.Get("from"); from != nil {
		root, rest, _ := strings.Cut(from.Text, ".")
		if known, ok := as[root]; ok {
			inner[n.Get("as").Text] = known
		} else if root == "input" {
			inner[n.Get("as").Text] = rest
		}
	}
	u.values(n.Get("give"), p, inner)
}

// mentions finds every text of the form input.NAME that stands by itself:
// paths in predicates, picks and checks.
func (u uses) mentions(n *strictyaml.Node, p Place) {
	if n.Kind == strictyaml.String {
		if rest, ok := strings.CutPrefix(n.Text, "input."); ok && !strings.ContainsAny(rest, " /") {
			u.add(rest, p)
		}
	}
	for _, m := range n.Members {
		u.mentions(m.Value, p)
	}
	for _, it := range n.Items {
		u.mentions(it, p)
	}
}
