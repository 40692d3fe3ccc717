package compare

import (
	"maps"
	"slices"

	"chatelaine/internal/actions/review"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// Text is the text of one contract that the loader takes. Refused stands for
// one that it does not take any more; only an old side has such, and its Root
// may be nil.
type Text struct {
	File    string
	Root    *strictyaml.Node
	Refused bool
}

// Site is a site file that the loader takes, and the digests of the files that
// it names: "ca TARGET" and "keys NAME". Refused stands for one that it does not
// take any more; only an old side has such.
type Site struct {
	File    string
	Root    *strictyaml.Node
	Digests map[string]string
	Refused bool
}

// Side is one edition: contracts by action, and the site file where there is
// one.
type Side struct {
	Name      string
	Contracts map[string]Text
	Site      *Site
}

// Sides compares two editions, contract by contract and the site file.
func Sides(old, new Side) Report {
	r := Report{Old: old.Name, New: new.Name, Contracts: []Contract{}, Site: []Change{}}
	names := map[string]bool{}
	for _, side := range []Side{old, new} {
		for name := range side.Contracts {
			names[name] = true
		}
	}
	for _, action := range slices.Sorted(maps.Keys(names)) {
		o, before := old.Contracts[action]
		n, after := new.Contracts[action]
		switch {
		case !before:
			r.Contracts = append(r.Contracts, added(action, n))
		case !after:
			r.Contracts = append(r.Contracts, removed(action, o))
		default:
			r.Contracts = append(r.Contracts, Pair(action, o, n))
		}
	}
	if old.Site != nil && new.Site != nil {
		r.SiteCompared, r.Site = true, sites(*old.Site, *new.Site)
	}
	r.count()
	return r
}

func version(root *strictyaml.Node) string {
	if v := root.Get("version"); v != nil {
		return v.Text
	}
	return ""
}

func added(action string, t Text) Contract {
	return Contract{
		Action: action, File: t.File, State: Added, NewVersion: version(t.Root), Enough: true,
		Changes: []Change{newChange("contract-added", "", "there is a new action "+action, "", "")},
	}
}

func removed(action string, t Text) Contract {
	return Contract{
		Action: action, File: t.File, State: Removed, OldVersion: version(t.Root), Enough: true,
		Changes: []Change{newChange("contract-removed", "", "the action "+action+" is gone", "", "")},
	}
}

// Pair compares two editions of one contract.
func Pair(action string, old, new Text) Contract {
	k := Contract{Action: action, File: new.File, State: Changed, OldVersion: version(old.Root), NewVersion: version(new.Root)}
	if old.Refused {
		k.Changes = []Change{newChange("old-refused", "", "the old edition does not load any more, so nothing can be compared", "", "")}
	} else {
		d := &differ{old: old.Root, new: new.Root}
		d.contract()
		k.Changes = d.changes
	}
	if len(k.Changes) == 0 {
		k.Changes = []Change{}
		if k.OldVersion == k.NewVersion {
			k.State = Same
		}
	}
	k.Needs = needed(k.OldVersion, k.Changes)
	k.Made = made(k.OldVersion, k.NewVersion)
	k.Enough = enough(k.Needs, k.Made)
	return k
}

// differ collects the changes between two texts.
type differ struct {
	old, new *strictyaml.Node
	changes  []Change
	told     bool // a handler's difference is part of one that was told already
}

func (d *differ) add(kind, at, says, old, new string) {
	ch := newChange(kind, at, says, old, new)
	ch.Line = line(d.new, at)
	d.changes = append(d.changes, ch)
}

// line is where a pointer leads in the new text, 0 where it leads nowhere.
func line(root *strictyaml.Node, at string) int {
	if n := review.At(root, at); n != nil {
		return n.Pos.Line
	}
	return 0
}

// same says whether two nodes hold the same value: numbers by their exact
// decimal value, mappings without regard to order.
func same(a, b *strictyaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Truth != b.Truth || len(a.Items) != len(b.Items) || len(a.Members) != len(b.Members) {
		return false
	}
	if a.Kind == strictyaml.Number {
		return validate.Compare(number(a, ""), number(b, "")) == 0
	}
	if a.Text != b.Text {
		return false
	}
	for i := range a.Items {
		if !same(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for _, m := range a.Members {
		other := b.Get(m.Key)
		if other == nil || !same(m.Value, other) {
			return false
		}
	}
	return true
}

// handler compares two nodes that differ; one of them may be nil.
type handler func(at string, old, new *strictyaml.Node)

// section runs a handler and sees to it that a difference never goes unsaid:
// where the handler finds the two equal in meaning, the spelling has changed.
func (d *differ) section(h handler, at string, old, new *strictyaml.Node) {
	if same(old, new) {
		return
	}
	before := len(d.changes)
	d.told = false
	h(at, old, new)
	if len(d.changes) > before || d.told {
		return
	}
	// A mapping is never another spelling of something that is none.
	if old != nil && new != nil && (old.Kind == strictyaml.Mapping) != (new.Kind == strictyaml.Mapping) {
		d.unplaced(at, old, new)
		return
	}
	d.add("spelling", at, "it is written otherwise and means the same", "", "")
}

// members compares two mappings key by key. A key without a handler is one that
// this package cannot place.
func (d *differ) members(at string, old, new *strictyaml.Node, handlers map[string]handler) {
	for _, key := range keys(old, new) {
		h, known := handlers[key]
		switch {
		case !known:
			h = d.unplaced
		case h == nil:
			continue
		}
		d.section(h, at+"/"+escape(key), old.Get(key), new.Get(key))
	}
}

// unplaced is the handler of what cannot be told apart.
func (d *differ) unplaced(at string, old, new *strictyaml.Node) {
	d.add("changed", at, "this changed, and what that means cannot be told", short(old), short(new))
}

// plain gives a handler that says one thing whatever changed.
func (d *differ) plain(kind, says string) handler {
	return func(at string, old, new *strictyaml.Node) { d.add(kind, at, says, short(old), short(new)) }
}

// contract compares the whole texts.
func (d *differ) contract() {
	d.members("", d.old, d.new, map[string]handler{
		"version":      nil, // compared by itself
		"action":       d.plain("action-renamed", "the action has another name"),
		"summary":      d.plain("summary-changed", "discovery tells agents something else"),
		"owner":        d.plain("owner-changed", "somebody else answers for it"),
		"effect":       d.effect,
		"input":        d.input,
		"route":        d.route,
		"approval":     d.approval,
		"lookups":      d.lookups,
		"request":      d.step,
		"poll":         d.optionalStep("poll", "it is asked again until a named end", "nothing is asked again until an end"),
		"reconcile":    d.optionalStep("reconcile", "a lost answer is looked up", "a lost answer is not looked up any more"),
		"result":       d.result,
		"display":      d.display,
		"checks":       d.checks,
		"retry":        d.retry,
		"idempotency":  d.idempotency,
		"confirm":      d.coming("confirm", "it goes through a plan", "it goes through no plan any more"),
		"at_most_once": d.atMostOnce,
		"failures":     d.failures,
		"exceptions":   d.exceptions,
	})
	d.lookupOrder()
	d.reaches()
}

// coming gives a handler of a key that comes, goes or changes.
func (d *differ) coming(kind, comes, goes string) handler {
	return func(at string, old, new *strictyaml.Node) {
		switch {
		case old == nil:
			d.add(kind+"-added", at, comes, "", short(new))
		case new == nil:
			d.add(kind+"-removed", at, goes, short(old), "")
		default:
			d.unplaced(at, old, new)
		}
	}
}

var effectOrder = map[string]int{"read": 1, "change": 2, "destroy": 3}

func (d *differ) effect(at string, old, new *strictyaml.Node) {
	kind, says := "effect-raised", "it may do more to the remote system"
	if effectOrder[new.Text] < effectOrder[old.Text] {
		kind, says = "effect-lowered", "it says that it does less, and is asked about less"
	}
	d.add(kind, at, says, short(old), short(new))
}

// reaches tells every place that an input newly leaves the machine by, and
// those that it left.
func (d *differ) reaches() {
	before, after := sent(d.old), sent(d.new)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		for _, p := range after[name] {
			if !slices.Contains(before[name], p) {
				d.add("input-reaches", "/input/properties/"+escape(name), "the input "+name+" reaches the "+p, "", p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, p := range before[name] {
			if !slices.Contains(after[name], p) {
				d.add("input-reaches-less", "/input/properties/"+escape(name), "the input "+name+" reaches the "+p+" no more", p, "")
			}
		}
	}
}

func sent(root *strictyaml.Node) map[string][]string {
	out := map[string][]string{}
	for name, places := range review.Uses(root) {
		for _, p := range places {
			if p.Sent() {
				out[name] = append(out[name], p.Step+" "+partOf(p))
			}
		}
	}
	return out
}

func partOf(p review.Place) string {
	if p.At == "" {
		return p.Part
	}
	return p.Part + " " + p.At
}
