package contracttest

import (
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// anyElement stands in a place for every index of an array.
const anyElement = "*"

// readPlace is one place of an answer that a row reads, and what for.
type readPlace struct {
	path  []string // names and indices; anyElement for each element
	part  string   // when, success, display, capture, failure, signed
	pick  *strictyaml.Node
	name  string // the member that is picked, "" for none
	shape bool   // only whether it is there, or how many: exists, is_null, count
	list  bool   // an array whose elements other reads look into: each, some, none
	find  bool   // the place decides which element find takes
	// absent says that the predicate has a meaning of its own for a place that
	// is not there: compare with absent, and the list of none.
	absent bool
	either bool             // inside any_of, where another branch may be true
	each   *strictyaml.Node // the pick of a list that this one is inside of
}

// readsOf gathers every pointer of a row.
func readsOf(row *strictyaml.Node) []readPlace {
	g := &gatherer{}
	g.predicate(row.Get("when"), nil, readPlace{part: "when"})
	for _, part := range []string{"success", "display", "capture"} {
		n := row.Get(part)
		if n == nil {
			continue
		}
		for _, m := range n.Members {
			g.pick(m.Value, nil, readPlace{part: part, name: m.Key})
		}
	}
	if f := row.Get("failure"); f.Get("at") != nil {
		g.add(split(f.Get("at").Text), readPlace{part: "failure"})
	}
	return g.out
}

type gatherer struct{ out []readPlace }

func (g *gatherer) add(path []string, r readPlace) {
	r.path = path
	g.out = append(g.out, r)
}

// split takes a JSON pointer apart.
func split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts
}

func below(base []string, more ...string) []string {
	return append(append([]string{}, base...), more...)
}

// predicate follows one predicate; base is where its pointers begin.
func (g *gatherer) predicate(n *strictyaml.Node, base []string, r readPlace) {
	if n == nil || len(n.Members) != 1 {
		return
	}
	op, v := n.Members[0].Key, n.Members[0].Value
	switch op {
	case "exists", "is_null":
		r.shape = true
		g.add(below(base, split(v.Text)...), r)
	case "not":
		g.predicate(v, base, r)
	case "all_of", "any_of":
		r.either = r.either || op == "any_of"
		for _, it := range v.Items {
			g.predicate(it, base, r)
		}
	case "each", "some", "none":
		if len(v.Items) == 2 {
			list := below(base, split(v.Items[0].Text)...)
			whole := r
			whole.list, whole.absent = true, op == "none"
			g.add(list, whole)
			g.predicate(v.Items[1], below(list, anyElement), r)
		}
	case "count":
		if len(v.Items) == 3 {
			r.shape = true
			g.add(below(base, split(v.Items[0].Text)...), r)
		}
	case "compare":
		for i, it := range v.Items {
			switch {
			case i != 1 && it.Kind == strictyaml.String:
				g.add(below(base, split(it.Text)...), r)
			case it.Get("at") != nil:
				side := r
				side.absent = it.Get("absent") != nil
				g.add(below(base, split(it.Get("at").Text)...), side)
			}
		}
	default: // equals, in
		if len(v.Items) == 2 {
			g.add(below(base, split(v.Items[0].Text)...), r)
		}
	}
}

// pick follows one pick; base is where its pointers begin.
func (g *gatherer) pick(n *strictyaml.Node, base []string, r readPlace) {
	r.pick = n
	if n.Kind == strictyaml.String {
		g.add(below(base, split(n.Text)...), r)
		return
	}
	at := n.Get("at")
	if f := n.Get("find"); f != nil && f.Get("in") != nil {
		element := below(base, below(split(f.Get("in").Text), anyElement)...)
		where := r
		where.find = true
		g.predicate(f.Get("where"), element, where)
		if at != nil {
			g.add(below(element, split(at.Text)...), r)
		} else {
			g.add(element, r)
		}
		return
	}
	if e := n.Get("each"); e != nil && e.Get("in") != nil {
		element := below(base, below(split(e.Get("in").Text), anyElement)...)
		if p := e.Get("pick"); p != nil {
			for _, m := range p.Members {
				inner := r
				inner.name, inner.each = r.name+"."+m.Key, n
				g.pick(m.Value, element, inner)
			}
		}
		return
	}
	if at != nil {
		g.add(below(base, split(at.Text)...), r)
	}
}

// covers says whether a read of place r looks at path, at something in it, or
// at something that holds it.
func (r readPlace) covers(path []string) bool {
	for i := range min(len(r.path), len(path)) {
		if r.path[i] != anyElement && r.path[i] != path[i] {
			return false
		}
	}
	if r.shape || r.list {
		return len(path) <= len(r.path)
	}
	return true
}

// exactly says whether a read is of this very place.
func (r readPlace) exactly(path []string) bool {
	return len(r.path) == len(path) && r.covers(path)
}

// saysYes says whether a pick has a flag.
func saysYes(pick *strictyaml.Node, flag string) bool {
	n := pick.Get(flag)
	return n != nil && n.Truth
}
