package actions

import (
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// routeSpec says which target a call goes to: always the same, by enum inputs,
// or by a list of the operator's.
type routeSpec struct {
	by    []string
	cases []routeCase // one without `by` for a fixed route
	list  string
	pos   strictyaml.Pos
}

type routeCase struct {
	values []any // in the order of by
	target string
	with   map[string]any
	pos    strictyaml.Pos
}

const (
	maxBy    = 4
	maxCases = 1000
)

// selecting returns the inputs that choose the target.
func (r routeSpec) selecting() []string { return r.by }

func (d *draft) route(n *strictyaml.Node) {
	if n == nil || !d.f.Map(n, "route", "target", "with", "by", "cases", "list") {
		return
	}
	r := &d.c.route
	r.pos = n.Pos
	by := n.Get("by")
	switch {
	case by == nil:
		d.onlyKeys(n, "a route without by", "target", "with")
		if c, ok := d.routeTarget(n, "route"); ok {
			r.cases = []routeCase{c}
		}
		return
	case n.Get("list") != nil:
		d.onlyKeys(n, "a route by a list", "by", "list")
	default:
		d.onlyKeys(n, "a route by inputs", "by", "cases")
	}
	r.by = d.byInputs(by)
	if l := n.Get("list"); l != nil {
		r.list, _ = d.f.Text(l, "list")
		d.listInput(by)
		return
	}
	d.cases(d.f.Require(n, "route", "cases"))
}

func (d *draft) onlyKeys(n *strictyaml.Node, what string, keys ...string) {
	for _, m := range n.Members {
		known := []string{"target", "with", "by", "cases", "list"}
		if slices.Contains(known, m.Key) && !slices.Contains(keys, m.Key) {
			d.bad(m.KeyPos, "route", "", "%s has no %s", what, m.Key)
		}
	}
}

func (d *draft) byInputs(n *strictyaml.Node) []string {
	if n.Kind == strictyaml.String {
		return []string{n.Text}
	}
	names := d.f.Texts(n, "by")
	if n.Kind == strictyaml.Sequence && (len(names) == 0 || len(names) > maxBy) {
		d.bad(n.Pos, "route", "", "by names one to %d inputs", maxBy)
	}
	return names
}

func (d *draft) routeTarget(n *strictyaml.Node, what string) (routeCase, bool) {
	c := routeCase{pos: n.Pos}
	t := d.f.Require(n, what, "target")
	if t == nil {
		return c, false
	}
	name, ok := d.f.Text(t, "target")
	c.target, c.pos = name, t.Pos
	if w := n.Get("with"); w != nil {
		c.with = constants(d.f, w)
	}
	return c, ok
}

// constants reads the values that stand beside a target.
func constants(f *strictyaml.File, n *strictyaml.Node) map[string]any {
	if !f.Is(n, strictyaml.Mapping, "with") {
		return nil
	}
	for _, m := range n.Members {
		if !inputName.MatchString(m.Key) {
			f.Report(m.KeyPos, "with", "letters, digits, _ and -", "%q is no name of a constant", m.Key)
		}
		if m.Value.Kind == strictyaml.Null {
			f.Report(m.Value.Pos, "with", "", "a constant cannot be null")
		}
	}
	out, _ := n.Value().(map[string]any)
	return out
}

// listInput holds the input of a list route to {type: string}: its names come
// from the list.
func (d *draft) listInput(at *strictyaml.Node) {
	by := d.c.route.by
	if len(by) != 1 {
		d.bad(at.Pos, "route", "", "a route by a list names one input")
		return
	}
	if d.in.root == nil || !d.inputPath(at.Pos, by[0], kindText, false) {
		return
	}
	s := d.in.written(by[0])
	if len(s) != 1 || s["type"] != "string" {
		d.bad(at.Pos, "route", "the loader puts the list's names there as an enum", "the input %q of a list route is written {type: string}", by[0])
	}
}

// isListInput says whether an input gets its enum from the operator's list.
func (d *draft) isListInput(name string) bool {
	return d.c.route.list != "" && slices.Contains(d.c.route.by, name)
}

// cases reads a route by enum inputs and holds it to exactly one case for each
// combination.
func (d *draft) cases(n *strictyaml.Node) {
	r := &d.c.route
	sets := d.enums()
	if n == nil || sets == nil || !d.f.Is(n, strictyaml.Sequence, "cases") {
		return
	}
	combinations := 1
	for _, set := range sets {
		combinations *= len(set)
		if combinations > maxCases {
			d.bad(n.Pos, "route", "", "the inputs have more than %d combinations", maxCases)
			return
		}
	}
	seen := map[string]strictyaml.Pos{}
	for _, it := range n.Items {
		c, ok := d.oneCase(it, sets)
		if !ok {
			continue
		}
		key := caseKey(c.values)
		if first, twice := seen[key]; twice {
			d.bad(it.Pos, "route-case", "", "the case in line %d is the same", first.Line)
			continue
		}
		seen[key] = it.Pos
		r.cases = append(r.cases, c)
	}
	d.missingCases(n, sets, seen)
}

func caseKey(values []any) string { return string(validate.Canonical(values)) }

// enums returns the value sets of the inputs in by.
func (d *draft) enums() [][]any {
	if d.in.root == nil {
		return nil
	}
	var out [][]any
	n := d.root.Get("route").Get("by")
	for _, name := range d.c.route.by {
		s, required, names := d.in.property(d.in.root, name)
		if s == nil || strings.Contains(name, ".") {
			d.bad(n.Pos, "route", strictyaml.DidYouMean(name, names), "there is no input %q", name)
			return nil
		}
		set, ok := s["enum"].([]any)
		if v, isConst := s["const"]; isConst {
			set, ok = []any{v}, true
		}
		if !ok || !required {
			d.bad(n.Pos, "route", "give it an enum and put it under required", "the input %q chooses the target, so it must be a required enum", name)
			return nil
		}
		out = append(out, set)
	}
	return out
}

func (d *draft) oneCase(n *strictyaml.Node, sets [][]any) (routeCase, bool) {
	by := d.c.route.by
	if !d.f.Map(n, "a case", append(slices.Clone(by), "target", "with")...) {
		return routeCase{}, false
	}
	c, ok := d.routeTarget(n, "a case")
	for i, name := range by {
		v := d.f.Require(n, "a case", name)
		if v == nil {
			ok = false
			continue
		}
		val := v.Value()
		if !slices.ContainsFunc(sets[i], func(x any) bool { return validate.Equal(x, val) }) {
			d.bad(v.Pos, "route-case", "", "the input %q has no such value", name)
			ok = false
			continue
		}
		c.values = append(c.values, val)
	}
	return c, ok
}

// missingCases names the first combinations that go nowhere.
func (d *draft) missingCases(n *strictyaml.Node, sets [][]any, seen map[string]strictyaml.Pos) {
	const told = 3
	var missing []string
	total := 0
	var walk func(prefix []any)
	walk = func(prefix []any) {
		if len(prefix) == len(sets) {
			if _, ok := seen[caseKey(prefix)]; !ok {
				if total++; total <= told {
					missing = append(missing, caseWords(d.c.route.by, prefix))
				}
			}
			return
		}
		for _, v := range sets[len(prefix)] {
			walk(append(slices.Clone(prefix), v))
		}
	}
	walk(nil)
	if total == 0 {
		return
	}
	more := ""
	if total > told {
		more = fmt.Sprintf(" and %d more", total-told)
	}
	d.bad(n.Pos, "route-case", "", "no case for %s%s", strings.Join(missing, "; "), more)
}

func caseWords(by []string, values []any) string {
	parts := make([]string, len(by))
	for i, name := range by {
		parts[i] = fmt.Sprintf("%s %v", name, values[i])
	}
	return strings.Join(parts, ", ")
}
