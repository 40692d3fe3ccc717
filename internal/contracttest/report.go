package contracttest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

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
	Cases     []Case        `json:"cases"`
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

// JSON writes the report as one JSON document.
func (r Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Text writes one aligned line a fixture and, under one that failed, what
// differs: what was wanted beside what was got, and the operator's reason with
// the layer that decided. Control characters of an answer are made visible.
func (r Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Cases {
		word := "ok"
		if !c.OK {
			word = "FAIL"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", word, visible(c.File), visible(c.Got), visible(c.Fixture))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range r.Cases {
		if !c.OK {
			if _, err := io.WriteString(w, c.explain()); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%d fixtures, %d failed, %s\n", len(r.Cases), r.Failed(), r.Took.Round(time.Millisecond))
	return err
}

// explain is the block of one fixture that failed.
func (c Case) explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s\n", visible(c.File), visible(c.Fixture))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  \twant\tgot\n")
	for _, d := range c.Diffs {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", visible(d.What), visible(d.Want), visible(d.Got))
	}
	t.Flush()
	if c.Layer != "" {
		fmt.Fprintf(&b, "  decided by the layer %s\n", c.Layer)
	}
	if c.Reason != "" {
		fmt.Fprintf(&b, "  because %s\n", visible(c.Reason))
	}
	return b.String()
}

// visible writes control and format characters as escapes, so that an answer
// cannot draw on the terminal.
func visible(s string) string {
	q := fmt.Sprintf("%+q", s)
	if q == `"`+s+`"` {
		return s
	}
	q = fmt.Sprintf("%q", s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
