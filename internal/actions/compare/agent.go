package compare

import (
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// sayings are what a finding means in words, after the name of what it is
// about.
var sayings = map[string]string{
	"narrower": "takes less", "wider": "takes more", "changed": "takes something else, or it cannot be told",
	"described": "is described otherwise", "added": "is new", "required-added": "is new and required",
	"removed": "is gone", "required-removed": "is gone", "now-required": "is required now", "now-optional": "may be left out now",
	"opened": "takes any member now", "closed": "takes no other member any more",
}

// input compares what an agent may vary. Inputs are closed, so that a member
// that comes is one thing more to vary.
func (d *differ) input(at string, old, new *strictyaml.Node) {
	kinds := map[string]string{
		"added": "input-added", "required-added": "input-required-added", "removed": "input-removed", "required-removed": "input-required-removed",
		"opened": "input-changed", "closed": "input-changed",
	}
	for _, f := range compareSchemas(old, new) {
		kind := kinds[f.what]
		if kind == "" {
			kind = "input-" + f.what
		}
		d.add(kind, at+f.at, f.word("input")+" "+sayings[f.what], f.old, f.new)
	}
}

// result compares what an agent gets as data.
func (d *differ) result(at string, old, new *strictyaml.Node) {
	kinds := map[string]string{
		"required-added": "result-added", "required-removed": "result-removed", "opened": "result-changed", "closed": "result-changed",
	}
	for _, f := range compareSchemas(old, new) {
		kind := kinds[f.what]
		if kind == "" {
			kind = "result-" + f.what
		}
		says := map[string]string{"narrower": "tells less", "wider": "may tell more", "changed": "tells something else, or it cannot be told"}[f.what]
		if says == "" {
			says = sayings[f.what]
		}
		d.add(kind, at+f.at, f.word("result")+" "+says, f.old, f.new)
	}
}

// display compares the texts for people.
func (d *differ) display(at string, old, new *strictyaml.Node) {
	for _, name := range keys(old, new) {
		there := at + "/" + escape(name)
		d.section(func(_ string, a, b *strictyaml.Node) {
			switch {
			case a == nil:
				d.add("display-added", there, "the display text "+name+" is new", "", short(b))
			case b == nil:
				d.add("display-removed", there, "the display text "+name+" is gone", short(a), "")
			default:
				d.members(there, a, b, map[string]handler{"max": d.displayBound(name), "lines": d.displayBound(name)})
			}
		}, there, old.Get(name), new.Get(name))
	}
}

func (d *differ) displayBound(name string) handler {
	return func(at string, old, new *strictyaml.Node) {
		switch validate.Compare(number(new, "0"), number(old, "0")) {
		case 1:
			d.add("display-wider", at, "the display text "+name+" may be longer", short(old), short(new))
		case -1:
			d.add("display-narrower", at, "the display text "+name+" is cut earlier", short(old), short(new))
		}
	}
}

// failures compares the contract's own codes.
func (d *differ) failures(at string, old, new *strictyaml.Node) {
	for _, code := range keys(old, new) {
		there := at + "/" + escape(code)
		d.section(func(_ string, a, b *strictyaml.Node) {
			switch {
			case a == nil:
				d.add("code-added", there, "the code "+code+" is new", "", "")
			case b == nil:
				d.add("code-removed", there, "the code "+code+" is gone", "", "")
			default:
				d.members(there, a, b, map[string]handler{
					"message":   d.plain("code-message", "the code "+code+" says something else"),
					"retryable": d.retryable(code),
				})
			}
		}, there, old.Get(code), new.Get(code))
	}
}

func (d *differ) retryable(code string) handler {
	return func(at string, _, new *strictyaml.Node) {
		if new != nil && new.Truth {
			d.add("code-now-retryable", at, "after "+code+" an agent is told that a new call may succeed", "false", "true")
			return
		}
		d.add("code-now-final", at, "after "+code+" an agent is told that no new call succeeds", "true", "false")
	}
}
