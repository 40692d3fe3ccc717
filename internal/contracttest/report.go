package contracttest

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Case is one fixture played.
type Case struct {
	Action  string        `json:"action"`
	Fixture string        `json:"fixture"`       // the fixture's own name
	File    string        `json:"file"`          // path below the contracts folder
	Path    string        `json:"path"`          // path that opens it
	Line    int           `json:"line"`          // where want stands
	Era     string        `json:"era,omitempty"` // the folder of an old upstream shape
	OK      bool          `json:"ok"`
	Want    string        `json:"want"`
	Got     string        `json:"got"`
	Layer   string        `json:"layer,omitempty"`  // the layer that decided, "" for none
	Row     string        `json:"row,omitempty"`    // the row that took the last answer
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
	Cases     []Case        `json:"cases"`
	Coverage  []Coverage    `json:"coverage"`            // by action
	Mutations []Mutation    `json:"mutations,omitempty"` // by action; only where asked for
	Took      time.Duration `json:"took_ns"`
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

// Decided says which layer decided how the fixture ended.
func (c Case) Decided() string {
	switch {
	case c.Layer != "":
		return c.Layer
	case c.Row != "":
		return "outcome: " + c.Row
	}
	return "no answer was read"
}

// Failed counts the fixtures that did not play as they say.
func (r Report) Failed() int {
	n := 0
	for _, c := range r.Cases {
		if !c.OK {
			n++
		}
	}
	return n
}

// Holes counts the near-misses that a contract took though nothing in it says
// so.
func (r Report) Holes() int {
	n := 0
	for _, m := range r.Mutations {
		n += len(m.Holes)
	}
	return n
}

// visible writes control and format characters as escapes, so that an answer
// cannot draw on a terminal, end a line or break a report.
func visible(s string) string {
	if !strings.ContainsFunc(s, unshown) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r == utf8.RuneError {
			b.WriteString(`\ufffd`)
			continue
		}
		if unshown(r) {
			q := fmt.Sprintf("%q", string(r))
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unshown(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}

// Missing counts the places that no fixture reached.
func (r Report) Missing() int {
	n := 0
	for _, c := range r.Coverage {
		n += len(c.Missing)
	}
	return n
}
