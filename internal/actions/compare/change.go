package compare

import (
	"slices"
)

// Change is one difference. At is a JSON pointer into the contract, or into the
// site file; Line is its line in the new file, 0 where the new file has nothing
// there. Old and New are short and for people.
type Change struct {
	Kind     string `json:"kind"`
	At       string `json:"at"`
	Line     int    `json:"line,omitzero"`
	Says     string `json:"says"`
	Old      string `json:"old,omitzero"`
	New      string `json:"new,omitzero"`
	Agent    Weight `json:"agent,omitzero"`
	Operator Weight `json:"operator,omitzero"`
	Upstream Weight `json:"upstream,omitzero"`
	Loosens  bool   `json:"loosens"`
}

// newChange fills in what the kind means.
func newChange(kind, at, says, old, new string) Change {
	r, ok := rules[kind]
	if !ok {
		r = rules["changed"]
	}
	return Change{
		Kind: kind, At: at, Says: says, Old: old, New: new,
		Agent: r.Agent, Operator: r.Operator, Upstream: r.Upstream, Loosens: r.Loosens,
	}
}

// State says what became of a contract.
type State string

// The states of a contract between two editions.
const (
	Same    State = "same"
	Changed State = "changed"
	Added   State = "added"
	Removed State = "removed"
)

// Contract is what changed in one contract.
type Contract struct {
	Action     string   `json:"action"`
	File       string   `json:"file,omitzero"` // the new file, or the old one of a removed contract
	State      State    `json:"state"`
	OldVersion string   `json:"old_version,omitzero"`
	NewVersion string   `json:"new_version,omitzero"`
	Needs      Bump     `json:"needs"`
	Made       Bump     `json:"made"`
	Enough     bool     `json:"enough"`
	Changes    []Change `json:"changes"`
}

// Report is everything that changed between two sides. Its JSON members are the
// documented shape of `contract diff --json`.
type Report struct {
	Old       string     `json:"old"`
	New       string     `json:"new"`
	Enough    bool       `json:"enough"`  // every bump covers what its changes need
	Loosens   int        `json:"loosens"` // how many changes loosen an authority
	Contracts []Contract `json:"contracts"`
	// SiteCompared says whether both sides had a site file.
	SiteCompared bool     `json:"site_compared"`
	Site         []Change `json:"site"`
}

// count fills what follows from the parts.
func (r *Report) count() {
	r.Enough = true
	for _, k := range r.Contracts {
		r.Enough = r.Enough && k.Enough
		r.Loosens += loosening(k.Changes)
	}
	r.Loosens += loosening(r.Site)
}

func loosening(changes []Change) int {
	n := 0
	for _, ch := range changes {
		if ch.Loosens {
			n++
		}
	}
	return n
}

// TooSmall returns the actions whose version bump is not enough.
func (r Report) TooSmall() []string {
	var out []string
	for _, k := range r.Contracts {
		if !k.Enough {
			out = append(out, k.Action)
		}
	}
	return out
}

// Empty says whether nothing changed.
func (r Report) Empty() bool {
	return len(r.Site) == 0 && !slices.ContainsFunc(r.Contracts, func(k Contract) bool { return k.State != Same })
}
