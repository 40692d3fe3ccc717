package compare

import (
	"slices"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// oneCase is one case of a route as written.
type oneCase struct {
	at     string
	target *strictyaml.Node
	with   *strictyaml.Node
	words  string
	node   *strictyaml.Node // of a case; nil for a fixed route
}

// routeBy returns the selecting inputs, sorted: their order says nothing.
func routeBy(route *strictyaml.Node) []string {
	out := list(route.Get("by"))
	slices.Sort(out)
	return out
}

// routeCases returns the cases by what the selecting inputs say.
func routeCases(at string, route *strictyaml.Node) map[string]oneCase {
	out := map[string]oneCase{}
	if route.Get("by") == nil {
		out[""] = oneCase{at, route.Get("target"), route.Get("with"), "every call", nil}
		return out
	}
	for i, k := range items(route.Get("cases")) {
		key := map[string]any{}
		for _, name := range routeBy(route) {
			key[name] = k.Get(name).Value()
		}
		text := string(validate.Canonical(key))
		out[text] = oneCase{at + "/cases/" + itoa(i), k.Get("target"), k.Get("with"), text, k}
	}
	return out
}

// targets are the targets that a route names; those of a list are the site
// file's.
func targets(route *strictyaml.Node) []string {
	var out []string
	for _, k := range routeCases("", route) {
		if name := k.target; name != nil && !slices.Contains(out, name.Text) {
			out = append(out, name.Text)
		}
	}
	slices.Sort(out)
	return out
}

// route compares which calls go where.
func (d *differ) route(at string, old, new *strictyaml.Node) {
	switch {
	case !slices.Equal(routeBy(old), routeBy(new)) || (old.Get("list") == nil) != (new.Get("list") == nil):
		d.add("route-by-changed", at, "other inputs choose the target", words(old), words(new))
	case !same(old.Get("list"), new.Get("list")):
		d.add("route-list-changed", at+"/list", "another list of the operator's chooses the target", short(old.Get("list")), short(new.Get("list")))
	default:
		d.routeCases(at, old, new)
	}
	d.routeKeys(at, old, new)
	before, after := targets(old), targets(new)
	for _, t := range without(after, before) {
		d.add("target-added", at, "it can end up at the target "+t, "", t)
	}
	for _, t := range without(before, after) {
		d.add("target-removed", at, "it ends up at the target "+t+" no more", t, "")
	}
}

// words tells the selecting inputs.
func words(route *strictyaml.Node) string {
	if by := route.Get("by"); by != nil {
		out := "by " + short(by)
		if l := route.Get("list"); l != nil {
			out += ", list " + l.Text
		}
		return out
	}
	return "always " + short(route.Get("target"))
}

// routeKeys tells what the route or one of its cases has besides what is
// compared elsewhere.
func (d *differ) routeKeys(at string, old, new *strictyaml.Node) {
	known := append([]string{"by", "list", "cases", "target", "with"}, routeBy(d.new.Get("route"))...)
	for _, key := range without(keys(old, new), known) {
		if !same(old.Get(key), new.Get(key)) {
			d.unplaced(at+"/"+escape(key), old.Get(key), new.Get(key))
		}
	}
}

func (d *differ) routeCases(at string, old, new *strictyaml.Node) {
	before, after := routeCases(at, old), routeCases(at, new)
	for _, key := range union(before, after) {
		o, was := before[key]
		n, is := after[key]
		switch {
		case !was:
			d.add("route-case-added", n.at, "a call of "+n.words+" has a target", "", short(n.target))
		case !is:
			d.add("route-case-removed", o.at, "a call of "+o.words+" has no target any more", short(o.target), "")
		default:
			if !same(o.target, n.target) {
				d.add("route-case-target", n.at, n.words+" goes to another target", short(o.target), short(n.target))
			}
			if !same(o.with, n.with) {
				d.add("route-case-constants", n.at, n.words+" goes with other constants", short(o.with), short(n.with))
			}
			d.routeKeys(n.at, o.node, n.node)
		}
	}
}

// approval compares what a person is asked.
func (d *differ) approval(at string, old, new *strictyaml.Node) {
	d.members(at, orMapping(old), orMapping(new), map[string]handler{
		"sentence": d.plain("sentence-changed", "a person is asked with another sentence"),
		"show":     d.shown,
		"ask":      d.ask,
	})
}

// orMapping gives an empty mapping for what is not there.
func orMapping(n *strictyaml.Node) *strictyaml.Node {
	if n == nil {
		return &strictyaml.Node{Kind: strictyaml.Mapping}
	}
	return n
}

func (d *differ) shown(at string, old, new *strictyaml.Node) {
	for _, label := range keys(old, new) {
		a, b := old.Get(label), new.Get(label)
		there := at + "/" + escape(label)
		d.section(func(_ string, a, b *strictyaml.Node) {
			switch {
			case a == nil:
				d.add("show-added", there, "a person is shown "+label+" too", "", valueText(b))
			case b == nil:
				d.add("show-removed", there, "a person is not shown "+label+" any more", valueText(a), "")
			case !sameValue(a, b):
				d.add("show-changed", there, "a person is shown something else as "+label, valueText(a), valueText(b))
			}
		}, there, a, b)
	}
}

// asks orders when a person is asked, from the weakest.
var asks = map[string]int{"never": 1, "session": 2, "every_call": 3}

// askOf is the contract's own word, or what its effect makes of silence.
func askOf(root *strictyaml.Node) string {
	if a := root.Get("approval").Get("ask"); a != nil {
		return a.Text
	}
	switch e := root.Get("effect"); {
	case e == nil || e.Text == "destroy":
		return "every_call"
	case e.Text == "read":
		return "never"
	}
	return "session"
}

func (d *differ) ask(at string, _, _ *strictyaml.Node) {
	before, after := askOf(d.old), askOf(d.new)
	switch {
	case asks[after] < asks[before]:
		d.add("ask-looser", at, "a person is asked less often", before, after)
	case asks[after] > asks[before]:
		d.add("ask-stricter", at, "a person is asked more often", before, after)
	}
}

// exceptions compares the lint rules that are set aside.
func (d *differ) exceptions(at string, old, new *strictyaml.Node) {
	before, after := byRule(old), byRule(new)
	for _, rule := range union(before, after) {
		a, b := before[rule], after[rule]
		switch {
		case a == nil:
			d.add("exception-added", at, "the lint rule "+rule+" is set aside", "", short(b.Get("because")))
		case b == nil:
			d.add("exception-removed", at, "the lint rule "+rule+" holds again", short(a.Get("because")), "")
		case !same(a, b):
			d.members(at, a, b, map[string]handler{"because": d.plain("reason-changed", "another reason is given for setting "+rule+" aside")})
		}
	}
}

func byRule(n *strictyaml.Node) map[string]*strictyaml.Node {
	out := map[string]*strictyaml.Node{}
	for _, it := range items(n) {
		out[short(it.Get("rule"))] = it
	}
	return out
}
