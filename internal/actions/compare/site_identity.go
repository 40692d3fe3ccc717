package compare

import (
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// identity compares one identity: what it is, what it is exchanged for and
// where, and how much of that.
func (d *siteDiffer) identity(name string) handler {
	return func(at string, old, new *strictyaml.Node) {
		what := "the identity " + name + " "
		switch {
		case old == nil:
			d.add("site-identity-added", at, what+"is new", "", short(new))
		case new == nil:
			d.add("site-identity-removed", at, what+"is gone", short(old), "")
		default:
			d.members(at, old, new, d.identityParts(what))
		}
	}
}

func (d *siteDiffer) identityParts(what string) map[string]handler {
	parts := map[string]handler{
		"ask":           d.siteAsk(what),
		"check":         d.plain("site-check-changed", what+"is proved by another action"),
		"token":         d.exchange(what, "is exchanged"),
		"sign":          d.exchange(what, "has its certificates signed"),
		"auth":          d.usually("basic", what),
		"algorithm":     d.usually("RS256", what),
		"scopes":        d.grants(what+"asks for the scope ", what+"names the scopes that it asks for", list),
		"permissions":   d.grants(what+"asks for the permission ", what+"names the permissions that it asks for", permissions),
		"principals":    d.grants(what+"may log in as ", what+"names who it may log in as", list),
		"repositories":  d.repositories(what),
		"valid":         d.valid(what),
		"force_command": d.flag("site-force-command-on", "site-force-command-off", what+"is good for the command of the call only"),
	}
	changed := d.plain("site-identity-changed", what+"shows itself otherwise")
	for _, key := range []string{
		"kind", "name", "prefix", "username", "json", "form", "client_id", "audience", "resource", "app_id", "installation",
		"issuer", "subject", "key_id", "service",
	} {
		parts[key] = changed
	}
	return parts
}

// usually is a word of which silence says one.
func (d *siteDiffer) usually(word, what string) handler {
	said := func(n *strictyaml.Node) string {
		if n == nil {
			return word
		}
		return n.Text
	}
	return func(at string, old, new *strictyaml.Node) {
		if said(old) != said(new) {
			d.add("site-identity-changed", at, what+"shows itself otherwise", said(old), said(new))
		}
	}
}

// grants compares what an identity may have at most. Where nothing is written it
// has whatever the service gives.
func (d *siteDiffer) grants(says, bounds string, read func(n *strictyaml.Node) []string) handler {
	return func(at string, old, new *strictyaml.Node) {
		switch {
		case old == nil:
			d.add("site-grant-bounded", at, bounds, "", short(new))
			return
		case new == nil:
			d.add("site-grant-opened", at, bounds+" no more, and gets what the service gives", short(old), "")
			return
		}
		before, after := read(old), read(new)
		for _, w := range without(after, before) {
			d.add("site-grant-added", at, says+w, "", w)
		}
		for _, w := range without(before, after) {
			d.add("site-grant-removed", at, says+w+" no more", w, "")
		}
	}
}

// permissions writes each permission as the levels that it includes.
func permissions(n *strictyaml.Node) []string {
	var out []string
	levels := []string{"read", "write", "admin"}
	if n.Kind != strictyaml.Mapping {
		return list(n)
	}
	for _, m := range n.Members {
		i := slices.Index(levels, m.Value.Text)
		if i < 0 {
			out = append(out, m.Key+": "+short(m.Value))
		}
		for _, l := range levels[:i+1] {
			out = append(out, m.Key+": "+l)
		}
	}
	return out
}

// repositories compares two lists, or the constants of the target that hold the
// one repository of a call.
func (d *siteDiffer) repositories(what string) handler {
	lists := d.grants(what+"asks for the repository ", what+"names the repositories that it asks for", list)
	return func(at string, old, new *strictyaml.Node) {
		if old != nil && new != nil && (old.Kind == strictyaml.Mapping || new.Kind == strictyaml.Mapping) {
			d.add("site-identity-changed", at, what+"asks for other repositories", short(old), short(new))
			return
		}
		lists(at, old, new)
	}
}

// valid compares how long a certificate lives.
func (d *siteDiffer) valid(what string) handler {
	return func(at string, old, new *strictyaml.Node) {
		a, b := duration(old, 0), duration(new, 0)
		switch {
		case a == 0 || b == 0:
			d.unplaced(at, old, new)
		case b > a:
			d.add("site-valid-longer", at, what+"has certificates that live longer", short(old), short(new))
		case b < a:
			d.add("site-valid-shorter", at, what+"has certificates that end sooner", short(old), short(new))
		}
	}
}

// exchange compares the place where a secret goes beside its target.
func (d *siteDiffer) exchange(what, does string) handler {
	return func(at string, old, new *strictyaml.Node) {
		elsewhere := d.plain("site-exchange-changed", what+does+" elsewhere")
		if old == nil || new == nil {
			elsewhere(at, old, new)
			return
		}
		place := "the place where " + strings.TrimSuffix(what, " ") + " " + does + " "
		d.members(at, old, new, map[string]handler{
			"url": elsewhere, "ca": d.plain("site-trust-changed", place+"is trusted by another authority"),
			"pin": d.pins(place), "allow": d.words("site-network-", "added", "removed", place+"may lie in the network ", nil, nil),
		})
	}
}

// overSSH compares where a target over SSH lies and how it is known.
func (d *siteDiffer) overSSH(what string) handler {
	return func(at string, old, new *strictyaml.Node) {
		elsewhere := d.plain("site-address-changed", what+"lies elsewhere")
		if old == nil || new == nil {
			elsewhere(at, old, new)
			return
		}
		d.members(at, old, new, map[string]handler{
			"address": elsewhere, "user": d.plain("site-identity-switched", what+"is reached as another user"),
			"host_keys": d.words("site-host-key-", "added", "removed", what+"may show the host key ", nil, nil),
			"shell":     d.plain("site-shell-changed", what+"reads words with another shell"),
		})
	}
}
