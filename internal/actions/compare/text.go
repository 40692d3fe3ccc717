package compare

import (
	"fmt"
	"io"
	"strings"

	"chatelaine/internal/actions/review"
)

// Paint marks words of a report; a terminal has colours for them.
type Paint struct{ Heading, Loosens, Bad func(string) string }

func (p *Paint) fill() {
	for _, f := range []*func(string) string{&p.Heading, &p.Loosens, &p.Bad} {
		if *f == nil {
			*f = func(s string) string { return s }
		}
	}
}

// audience is one of those who meet a change.
type audience struct {
	name string
	of   func(Change) Weight
}

// audiences are all of them, in the order of a report.
var audiences = []audience{
	{"agent", func(ch Change) Weight { return ch.Agent }},
	{"operator", func(ch Change) Weight { return ch.Operator }},
	{"upstream", func(ch Change) Weight { return ch.Upstream }},
}

// weights are those that a report lists, the heaviest first.
var weights = []Weight{Breaking, Compatible, Equal}

// visible makes a text safe for one line of a terminal.
func visible(s string) string { return review.Visible(s) }

// Text writes the report for a person. What loosens an authority stands first.
func (r Report) Text(w io.Writer, p Paint) error {
	p.fill()
	var b strings.Builder
	r.loosening(&b, p)
	for _, k := range r.Contracts {
		if k.State != Same {
			b.WriteString(p.Heading(visible(k.title())) + verdict(k, p) + "\n")
			audienceText(&b, k.Changes)
		}
	}
	if len(r.Site) > 0 {
		b.WriteString(p.Heading("site file") + "\n")
		audienceText(&b, r.Site)
	}
	if r.Empty() {
		b.WriteString("nothing changed\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// loosening writes every change that loosens an authority, of all files.
func (r Report) loosening(b *strings.Builder, p Paint) {
	if r.Loosens == 0 {
		return
	}
	b.WriteString(p.Loosens("loosens authority") + "\n")
	each := func(where string, changes []Change) {
		for _, ch := range changes {
			if ch.Loosens {
				b.WriteString("  " + visible(where) + lineText(ch) + ": " + changeText(ch) + "\n")
			}
		}
	}
	for _, k := range r.Contracts {
		each(k.Action, k.Changes)
	}
	each("site file", r.Site)
	b.WriteString("\n")
}

func lineText(ch Change) string {
	if ch.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" line %d", ch.Line)
}

// changeText says what changed, and from what to what.
func changeText(ch Change) string {
	out := visible(ch.Says)
	switch {
	case ch.Old != "" && ch.New != "":
		out += ": " + visible(ch.Old) + " → " + visible(ch.New)
	case ch.New != "" && !strings.Contains(ch.Says, ch.New):
		out += ": " + visible(ch.New)
	case ch.Old != "" && !strings.Contains(ch.Says, ch.Old):
		out += ": was " + visible(ch.Old)
	}
	return out + " [" + ch.Kind + "]"
}

// title names a contract and what became of its version.
func (k Contract) title() string {
	switch k.State {
	case Added:
		return k.Action + " " + k.NewVersion + " is new"
	case Removed:
		return k.Action + " " + k.OldVersion + " is gone"
	}
	if k.OldVersion == k.NewVersion {
		return k.Action + " " + k.OldVersion
	}
	return k.Action + " " + k.OldVersion + " → " + k.NewVersion
}

// verdict says whether the version's bump is enough.
func verdict(k Contract, p Paint) string {
	if k.State != Changed {
		return ""
	}
	out := fmt.Sprintf(": needs %s, made %s", bumpText(k.Needs), bumpText(k.Made))
	if !k.Enough {
		return out + ", " + p.Bad("too small")
	}
	return out
}

func bumpText(b Bump) string {
	switch b {
	case NoBump:
		return "no bump"
	case Backward:
		return "a step backward"
	}
	return "a " + b.String() + " bump"
}

// audienceText writes the changes for each audience, the breaking ones first.
func audienceText(b *strings.Builder, changes []Change) {
	for _, a := range audiences {
		for i, ch := range a.meets(changes) {
			if i == 0 {
				b.WriteString("  for the " + a.name + "\n")
			}
			fmt.Fprintf(b, "    %-10s  %s\n", a.of(ch), changeText(ch))
		}
	}
}

// meets returns the changes that are something to this audience, the heaviest
// first.
func (a audience) meets(changes []Change) []Change {
	var out []Change
	for _, w := range weights {
		for _, ch := range changes {
			if a.of(ch) == w {
				out = append(out, ch)
			}
		}
	}
	return out
}
