package contracttest

import (
	"fmt"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
)

// outline is a contract's text as its author wrote it: the rows of every step,
// the checks, and where each stands. The loader has proved it before; nothing
// here judges it.
type outline struct {
	file   string // path of contract.yaml
	root   *strictyaml.Node
	rows   map[string]*rowText // by the name that a proved answer carries
	order  []string            // names of the rows, as written
	checks []checkText

	mentioned []string // the value paths that an answer may repeat
}

// rowText is one row of outcomes.
type rowText struct {
	name   string
	node   *strictyaml.Node
	expect any // nil: none
	reads  []readPlace
}

// checkText is one entry of checks.
type checkText struct {
	name string // checks[0]
	kind string
	node *strictyaml.Node // the value below the kind
	line int
}

// members are the members of the result that the check looks at.
func (c checkText) members() []string {
	var out []string
	add := func(n *strictyaml.Node) {
		if n == nil {
			return
		}
		if rest, ok := strings.CutPrefix(n.Text, "result."); ok {
			name, _, _ := strings.Cut(rest, ".")
			out = append(out, name)
		}
	}
	if c.node.Kind == strictyaml.Sequence {
		for _, n := range c.node.Items {
			add(n)
		}
	}
	add(c.node.Get("at"))
	return out
}

// steps names the steps of a contract's text with their nodes, in the order in
// which a call comes to them.
func steps(root *strictyaml.Node) (names []string, nodes []*strictyaml.Node) {
	if l := root.Get("lookups"); l != nil {
		for _, m := range l.Members {
			names, nodes = append(names, "lookups."+m.Key), append(nodes, m.Value)
		}
	}
	for _, name := range []string{"request", "poll", "reconcile"} {
		if n := root.Get(name); n != nil {
			names, nodes = append(names, name), append(nodes, n)
		}
	}
	return names, nodes
}

// readOutline reads the text of a contract that was loaded.
func readOutline(c *actions.Contract) (*outline, error) {
	root, problems := actions.Source(c.Dir())
	if len(problems) > 0 {
		return nil, problems
	}
	o := &outline{file: c.Dir() + "/contract.yaml", root: root, rows: map[string]*rowText{}, mentioned: mentioned(root, c)}
	names, nodes := steps(root)
	for i, step := range names {
		rows := nodes[i].Get("outcomes")
		if rows == nil {
			continue
		}
		for j, n := range rows.Items {
			r := &rowText{name: fmt.Sprintf("%s.outcomes[%d]", step, j), node: n}
			if e := n.Get("expect"); e != nil {
				r.expect = e.Value()
			}
			r.reads = readsOf(n)
			o.rows[r.name], o.order = r, append(o.order, r.name)
		}
	}
	if list := root.Get("checks"); list != nil {
		for i, n := range list.Items {
			for _, m := range n.Members { // exactly one
				o.checks = append(o.checks, checkText{fmt.Sprintf("checks[%d]", i), m.Key, m.Value, m.KeyPos.Line})
			}
		}
	}
	return o, nil
}

// picks returns the picks under one keyword of a row: success, display or
// capture.
func (r *rowText) picks(part string) []strictyaml.Member {
	n := r.node.Get(part)
	if n == nil || n.Kind != strictyaml.Mapping {
		return nil
	}
	return n.Members
}
