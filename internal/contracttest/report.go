package contracttest

import "time"

// Case is one fixture played.
type Case struct {
	Action  string        `json:"action"`
	Fixture string        `json:"fixture"` // the fixture's own name
	File    string        `json:"file"`    // path below the contracts folder
	OK      bool          `json:"ok"`
	Want    string        `json:"want"`
	Got     string        `json:"got"`
	Layer   string        `json:"layer,omitempty"`  // the layer that decided, "" for none
	Reason  string        `json:"reason,omitempty"` // the operator's words for a refusal
	Diffs   []Diff        `json:"diffs,omitempty"`
	Took    time.Duration `json:"took_ns"`
}

// Diff is one thing that differs.
type Diff struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Report is what a run found. It holds no credential: the planted ones are
// made for the run and masked where they would show.
type Report struct {
	Cases []Case        `json:"cases"`
	Took  time.Duration `json:"took_ns"`
}

// OK says whether every fixture played as it says, and there was one.
func (r Report) OK() bool {
	for _, c := range r.Cases {
		if !c.OK {
			return false
		}
	}
	return len(r.Cases) > 0
}
