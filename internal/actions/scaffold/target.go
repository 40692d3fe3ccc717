package scaffold

import (
	"maps"
	"slices"
)

// Site is a site file with the suggested target and its identity. It is the
// operator's to change; the secret goes into the vault under the identity's name.
func (o *Outline) Site() string {
	w := &writer{}
	w.line("targets:")
	w.line("  %s:", quoted(o.Service))
	w.line("    url: %s", lineText(o.URL))
	w.line("    identity: %s", quoted(o.identityName()))
	w.line("    actions: [%s]", o.Action)
	if o.Effect != "read" {
		w.line("    effects: [%s]", o.Effect)
		w.line("    ask: every_call")
	}
	if len(o.Constants) > 0 {
		with := tree{}
		for _, name := range slices.Sorted(maps.Keys(o.Constants)) {
			with = append(with, pair{name, o.Constants[name]})
		}
		w.line("    with: %s", flow(with))
	}
	w.line("identities:")
	id := tree{{"kind", o.Identity.Kind}}
	switch o.Identity.Kind {
	case "header":
		id = append(id, pair{"name", o.Identity.Header}, pair{"prefix", ""})
	case "basic":
		id = append(id, pair{"username", o.Identity.Username})
	case "oauth2_client":
		id = append(id, pair{"token", tree{{"url", o.Identity.TokenURL}}}, pair{"client_id", clientID})
		if len(o.Identity.Scopes) > 0 {
			scopes := make([]any, len(o.Identity.Scopes))
			for i, s := range o.Identity.Scopes {
				scopes[i] = s
			}
			id = append(id, pair{"scopes", scopes})
		}
	}
	w.line("  %s: %s", quoted(o.identityName()), flow(id))
	return w.b.String()
}

// clientID stands where the operator writes the one that the service gave.
const clientID = "the-client-id"

// identityName is the target's name and what answers for us there.
func (o *Outline) identityName() string {
	name := o.Service
	const most, tail = 64, "-bot"
	return name[:min(len(name), most-len(tail))] + tail
}
