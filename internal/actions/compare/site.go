package compare

import (
	"net/http"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// sites compares two site files. It has no version, so nothing here needs a
// bump; what loosens is called out all the same.
func sites(old, new Site) []Change {
	if old.Refused {
		return []Change{newChange("old-refused", "", "the old site file does not load any more, so nothing can be compared", "", "")}
	}
	d := &siteDiffer{differ: differ{old: old.Root, new: new.Root}, before: old.Digests, after: new.Digests}
	d.members("", old.Root, new.Root, map[string]handler{
		"targets":    d.each(d.target),
		"identities": d.each(d.identity),
		"lists":      d.each(d.list),
		"keys":       d.each(d.keySet),
	})
	d.files()
	return orEmpty(d.changes)
}

func orEmpty(changes []Change) []Change {
	if changes == nil {
		return []Change{}
	}
	return changes
}

type siteDiffer struct {
	differ
	before, after map[string]string // digests of the files named
}

// each runs a handler for every name of a mapping.
func (d *siteDiffer) each(h func(name string) handler) handler {
	return func(at string, old, new *strictyaml.Node) {
		for _, name := range keys(old, new) {
			d.section(h(name), at+"/"+escape(name), old.Get(name), new.Get(name))
		}
	}
}

func (d *siteDiffer) target(name string) handler {
	return func(at string, old, new *strictyaml.Node) {
		switch {
		case old == nil:
			d.add("site-target-added", at, "there is a new target "+name, "", whereTo(new))
			return
		case new == nil:
			d.add("site-target-removed", at, "the target "+name+" is gone", whereTo(old), "")
			return
		}
		what := "the target " + name + " "
		d.members(at, old, new, map[string]handler{
			"url":                 d.plain("site-address-changed", what+"lies elsewhere"),
			"identity":            d.plain("site-identity-switched", what+"is reached as another identity"),
			"actions":             d.words("site-action-", "listed", "unlisted", what+"takes the action ", nil, nil),
			"effects":             d.words("site-effect-", "added", "removed", what+"takes the effect ", []string{"read"}, nil),
			"ask":                 d.siteAsk(what),
			"ca":                  d.plain("site-trust-changed", what+"is trusted by another authority"),
			"pin":                 d.pins(what),
			"headers":             d.plain("site-headers-changed", what+"gets other constant headers"),
			"version_headers":     d.words("site-version-header-", "added", "removed", what+"lets contracts set the header ", nil, http.CanonicalHeaderKey),
			"read_by_post":        d.words("site-read-by-post-", "added", "removed", what+"takes for reading a POST to ", nil, nil),
			"keeps_escaped_slash": d.flag("site-escaped-slash-on", "site-escaped-slash-off", what+"keeps an escaped slash"),
			"allow":               d.words("site-network-", "added", "removed", what+"may lie in the network ", nil, nil),
			"http2":               d.flag("site-http2-changed", "site-http2-changed", what+"speaks HTTP/2"),
			"with":                d.plain("site-constants-changed", what+"has other constants"),
			"ssh":                 d.overSSH(what),
			"read_commands":       d.words("site-read-command-", "added", "removed", what+"takes for reading the command ", nil, nil),
		})
	}
}

// whereTo is the address of a target, over HTTPS or over SSH.
func whereTo(target *strictyaml.Node) string {
	if ssh := target.Get("ssh"); ssh != nil {
		return short(ssh.Get("address"))
	}
	return short(target.Get("url"))
}

// words compares two sets of words of which usual is what silence says.
func (d *siteDiffer) words(kind, comes, goes, says string, usual []string, canonical func(string) string) handler {
	read := func(n *strictyaml.Node) []string {
		if n == nil {
			return usual
		}
		out := list(n)
		if canonical != nil {
			for i := range out {
				out[i] = canonical(out[i])
			}
		}
		return out
	}
	return func(at string, old, new *strictyaml.Node) {
		before, after := read(old), read(new)
		for _, w := range without(after, before) {
			d.add(kind+comes, at, says+w, "", w)
		}
		for _, w := range without(before, after) {
			d.add(kind+goes, at, says+w+" no more", w, "")
		}
	}
}

func (d *siteDiffer) flag(on, off, says string) handler {
	truth := func(n *strictyaml.Node) bool { return n != nil && n.Truth }
	return func(at string, old, new *strictyaml.Node) {
		switch a, b := truth(old), truth(new); {
		case b && !a:
			d.add(on, at, says, "", "")
		case a && !b:
			d.add(off, at, says+" no more", "", "")
		}
	}
}

// siteAsk compares when the operator asks; silence asks for nothing more.
func (d *siteDiffer) siteAsk(what string) handler {
	word := func(n *strictyaml.Node) string {
		if n == nil {
			return "never"
		}
		return n.Text
	}
	return func(at string, old, new *strictyaml.Node) {
		a, b := word(old), word(new)
		switch {
		case asks[b] < asks[a]:
			d.add("site-ask-looser", at, what+"asks less often", a, b)
		case asks[b] > asks[a]:
			d.add("site-ask-stricter", at, what+"asks more often", a, b)
		}
	}
}

// pins compares the pinned keys: fewer pins bind more, none bind nothing.
func (d *siteDiffer) pins(what string) handler {
	return func(at string, old, new *strictyaml.Node) {
		before, after := list(old), list(new)
		gone, come := without(before, after), without(after, before)
		switch {
		case len(before) == 0:
			d.add("site-pin-added", at, what+"is pinned", "", strings.Join(after, ", "))
		case len(after) == 0:
			d.add("site-pin-removed", at, what+"is not pinned any more", strings.Join(before, ", "), "")
		case len(gone)+len(come) > 0:
			d.add("site-trust-changed", at, what+"is pinned to other keys", strings.Join(before, ", "), strings.Join(after, ", "))
		}
	}
}

func (d *siteDiffer) list(name string) handler {
	return func(at string, old, new *strictyaml.Node) {
		for _, key := range keys(old, new) {
			a, b := old.Get(key), new.Get(key)
			there := at + "/" + escape(key)
			switch {
			case a == nil:
				d.add("site-list-entry-added", there, "the list "+name+" has the new name "+key, "", short(b))
			case b == nil:
				d.add("site-list-entry-removed", there, "the list "+name+" has no name "+key+" any more", short(a), "")
			case !same(a, b):
				d.add("site-list-entry-changed", there, "the name "+key+" of the list "+name+" means something else", short(a), short(b))
			}
		}
	}
}

func (d *siteDiffer) keySet(name string) handler {
	return func(at string, old, new *strictyaml.Node) {
		what := "the key set " + name + " "
		switch {
		case old == nil:
			d.add("site-keys-added", at, what+"is new", "", short(new))
		case new == nil:
			d.add("site-keys-removed", at, what+"is gone", short(old), "")
		default:
			d.add("site-keys-changed", at, what+"is another file", short(old), short(new))
		}
	}
}

// files compares the files that the site file names: the same name may hold
// other keys.
func (d *siteDiffer) files() {
	for _, file := range union(d.before, d.after) {
		a, wasThere := d.before[file]
		b, isThere := d.after[file]
		if !wasThere || !isThere || a == b {
			continue // the key that names it came or went, and was told
		}
		part, name, _ := strings.Cut(file, " ")
		kind, at, says := "site-trust-changed", "/targets/"+escape(name)+"/ca", "the authority's file of the target "+name+" holds something else"
		switch part {
		case "keys":
			kind, at, says = "site-keys-changed", "/keys/"+escape(name), "the file of the key set "+name+" holds other keys"
		case "token", "sign":
			at, says = "/identities/"+escape(name)+"/"+part+"/ca", "the authority's file of the "+part+" of the identity "+name+" holds something else"
		}
		if !slices.ContainsFunc(d.changes, func(ch Change) bool { return ch.Kind == kind && ch.At == at }) {
			d.add(kind, at, says, a, b)
		}
	}
}
