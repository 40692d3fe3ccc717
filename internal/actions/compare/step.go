package compare

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/actions/review"
	"chatelaine/internal/actions/strictyaml"
)

func itoa(i int) string { return strconv.Itoa(i) }

// usualTimeout is what the loader takes where a step says nothing.
const usualTimeout = 30 * time.Second

// optionalStep gives the handler of a step that need not be there.
func (d *differ) optionalStep(kind, comes, goes string) handler {
	return func(at string, old, new *strictyaml.Node) {
		switch {
		case old == nil:
			d.add(kind+"-added", at, comes, "", stepText(new))
		case new == nil:
			d.add(kind+"-removed", at, goes, stepText(old), "")
		default:
			d.step(at, old, new)
		}
	}
}

func stepText(n *strictyaml.Node) string {
	return short(n.Get("method")) + " " + short(n.Get("path"))
}

// lookups compares the read steps before the approval.
func (d *differ) lookups(at string, old, new *strictyaml.Node) {
	for _, name := range keys(old, new) {
		h := d.optionalStep("lookup", "the lookup "+name+" is made before anybody is asked", "the lookup "+name+" is not made any more")
		d.section(h, at+"/"+escape(name), old.Get(name), new.Get(name))
	}
}

// lookupOrder compares the order of the lookups on both sides: they run as
// written, and two mappings in another order are the same value.
func (d *differ) lookupOrder() {
	before, after := d.old.Get("lookups").Keys(), d.new.Get("lookups").Keys()
	stay := func(names, other []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(other, n) })
	}
	if x, y := stay(before, after), stay(after, before); !slices.Equal(x, y) {
		d.add("lookup-order", "/lookups", "the lookups run in another order", cut(strings.Join(x, ", ")), cut(strings.Join(y, ", ")))
	}
}

// step compares what is sent and how the answer is read.
func (d *differ) step(at string, old, new *strictyaml.Node) {
	name := at[1:]
	d.members(at, old, new, map[string]handler{
		"method":       d.plain("method-changed", name+" uses another method"),
		"path":         d.plain("path-changed", name+" goes to another path"),
		"query":        d.sentMembers("query", name+" query ", func(s string) string { return s }),
		"headers":      d.sentMembers("header", name+" header ", http.CanonicalHeaderKey),
		"json":         d.body,
		"form":         d.body,
		"text":         d.body,
		"content_type": d.plain("body-changed", name+" sends its body as another media type"),
		"reads":        d.reads,
		"timeout":      d.longer("timeout", name+" may take: the time", usualTimeout),
		"outcomes":     d.outcomes,
		"every":        d.lengths("poll-slower", "poll-faster", "the wait between two polls", 0),
		"within":       d.longer("poll", "the time that is polled for", 0),
	})
}

func (d *differ) reads(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("reads-added", at, "a POST is taken for one that only reads", "", short(new))
	case new == nil:
		d.add("reads-removed", at, "a POST is not taken any more for one that only reads", short(old), "")
	default:
		d.add("reason-changed", at, "another reason is given for reading by POST", short(old), short(new))
	}
}

// sentMembers compares named values that are sent: query keys and headers.
func (d *differ) sentMembers(kind, what string, canonical func(string) string) handler {
	return func(at string, old, new *strictyaml.Node) {
		before, after := named(old, canonical), named(new, canonical)
		for _, name := range union(before, after) {
			a, b := before[name], after[name]
			there := at + "/" + escape(name)
			switch {
			case a == nil:
				d.add(kind+"-added", there, what+name+" is sent too", "", valueText(b))
			case b == nil:
				d.add(kind+"-removed", there, what+name+" is not sent any more", valueText(a), "")
			case !sameValue(a, b):
				d.add(kind+"-changed", there, what+name+" has another value", valueText(a), valueText(b))
			}
		}
	}
}

func named(n *strictyaml.Node, canonical func(string) string) map[string]*strictyaml.Node {
	out := map[string]*strictyaml.Node{}
	if n != nil {
		for _, m := range n.Members {
			out[canonical(m.Key)] = m.Value
		}
	}
	return out
}

func union[V any](a, b map[string]V) []string {
	var out []string
	for _, m := range []map[string]V{a, b} {
		for k := range m {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	slices.Sort(out)
	return out
}

// body compares a body as a tree, so that a change is told at its member.
func (d *differ) body(at string, old, new *strictyaml.Node) {
	d.bodyTree(at, old, new, true)
}

// bodyTree walks objects and lists of the same length; top says that this is
// the whole body, where a mapping is never taken for a function of one member.
func (d *differ) bodyTree(at string, old, new *strictyaml.Node, top bool) {
	switch {
	case old == nil:
		d.add("body-added", at, at[1:]+" is sent too", "", valueText(new))
	case new == nil:
		d.add("body-removed", at, at[1:]+" is not sent any more", valueText(old), "")
	case sameValue(old, new):
	case isObject(old, top) && isObject(new, top):
		for _, name := range keys(old, new) {
			d.bodyTree(at+"/"+escape(name), old.Get(name), new.Get(name), false)
		}
	case old.Kind == strictyaml.Sequence && new.Kind == strictyaml.Sequence && len(old.Items) == len(new.Items):
		for i := range old.Items {
			d.bodyTree(at+"/"+itoa(i), old.Items[i], new.Items[i], false)
		}
	default:
		d.add("body-changed", at, at[1:]+" is sent with another value", valueText(old), valueText(new))
	}
}

// isObject says whether a value is an object of its own members.
func isObject(n *strictyaml.Node, top bool) bool {
	if n.Kind != strictyaml.Mapping {
		return false
	}
	fn := review.Function(n)
	return fn == "" || top && fn != "from" && fn != "each" && fn != "const"
}

func valueText(n *strictyaml.Node) string { return cut(review.ValueWords(n)) }
