package review

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pageWidth is how many characters a line of the text form has at most.
const pageWidth = 100

// visible makes a text safe for one line of a terminal or of a page: what a
// reader cannot see, or what would turn the line around, is escaped.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// textPage writes the page as aligned text.
type textPage struct {
	b    strings.Builder
	bold func(string) string
}

// Text writes the page for a terminal, at most 100 columns wide. bold marks
// the headings; it may be nil.
func (p Page) Text(w io.Writer, bold func(string) string) error {
	if bold == nil {
		bold = func(s string) string { return s }
	}
	t := &textPage{bold: bold}
	t.heading(p.Action + " " + p.Version + ", " + p.Effect)
	t.lines("  ", visible(p.Summary))
	t.lines("  ", visible("owner "+p.Owner+", "+p.Digest))
	t.inputs(p)
	t.destinations(p)
	t.steps(p)
	t.back(p)
	t.asked(p)
	t.once(p)
	t.aside(p)
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textPage) heading(s string) { t.b.WriteString(t.bold(visible(s)) + "\n") }

// lines writes wrapped text behind an indent.
func (t *textPage) lines(indent, s string) {
	for i, l := range wrap(s, pageWidth-len(indent)-2) {
		more := ""
		if i > 0 {
			more = "  "
		}
		t.b.WriteString(strings.TrimRight(indent+more+l, " ") + "\n")
	}
}

// The widths of a table's first and last column at most; the middle one, a
// bound in words, takes what is left.
const (
	firstColumn = 26
	lastColumn  = 44
)

// table writes rows of three cells under each other.
func (t *textPage) table(indent string, rows [][]string) {
	width := []int{0, 0, 0}
	for _, r := range rows {
		for i := range width {
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	width[0], width[2] = min(width[0], firstColumn), min(width[2], lastColumn)
	width[1] = min(width[1], pageWidth-len(indent)-width[0]-width[2]-4)
	for _, r := range rows {
		cells, height := make([][]string, len(r)), 0
		for i, c := range r {
			cells[i] = wrap(c, width[i])
			height = max(height, len(cells[i]))
		}
		for y := range height {
			var b strings.Builder
			b.WriteString(indent)
			for i := range cells {
				c := ""
				if y < len(cells[i]) {
					c = cells[i][y]
				}
				b.WriteString(c + strings.Repeat(" ", max(width[i]-utf8.RuneCountInString(c), 0)+2))
			}
			t.b.WriteString(strings.TrimRight(b.String(), " ") + "\n")
		}
	}
}

// wrap breaks a text at spaces, and a word that is longer than a line anywhere.
func wrap(s string, width int) []string {
	var out []string
	line := []rune{}
	for _, w := range strings.Split(s, " ") {
		word := []rune(w)
		if len(line) > 0 && len(line)+1+len(word) > width {
			out, line = append(out, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		line = append(line, word...)
		for len(line) > width {
			out, line = append(out, string(line[:width])), line[width:]
		}
	}
	return append(out, string(line))
}

func (t *textPage) inputs(p Page) {
	t.heading("An agent may vary")
	if len(p.Inputs) == 0 {
		t.lines("  ", "nothing")
	}
	var rows [][]string
	for _, i := range p.Inputs {
		rows = append(rows, []string{visible(i.Name) + mark(i.Required), visible(i.Bound.Words), visible(goesWords(i))})
	}
	t.table("  ", rows)
}

// mark is what stands behind the name of something that may be absent.
func mark(required bool) string {
	if required {
		return ""
	}
	return "?"
}

func goesWords(i Input) string {
	if len(i.Goes) == 0 {
		return "→ nowhere"
	}
	parts := make([]string, len(i.Goes))
	for j, p := range i.Goes {
		parts[j] = p.String()
	}
	return "→ " + strings.Join(parts, ", ")
}

func (t *textPage) destinations(p Page) {
	t.heading("It can end up at")
	if p.RouteList != "" {
		t.lines("  ", "the names of the operator's list "+visible(p.RouteList)+", by "+visible(strings.Join(p.RouteBy, ", ")))
	}
	for _, d := range p.Destinations {
		t.lines("  ", visible(destinationWords(d, p.SiteRead)))
		if w := identityWords(d); w != "" {
			t.lines("    ", visible(w))
		}
		for i, c := range d.Cases {
			if i == maxNamed {
				t.lines("    ", fmt.Sprintf("and %d cases more", len(d.Cases)-maxNamed))
				break
			}
			if w := caseWords(c); w != "" {
				t.lines("    ", visible(w))
			}
		}
	}
}

func destinationWords(d Destination, siteRead bool) string {
	switch {
	case !siteRead:
		return d.Target + " (no site file was read: address and identity are not known)"
	case d.Address == "":
		return d.Target + ": nothing gets there, " + d.Closed
	}
	out := d.Target + ": " + d.Address + d.BasePath + " as " + d.Identity + " (" + d.Kind + "), takes " + strings.Join(d.Effects, ", ")
	for _, p := range d.Places {
		out += ", may be " + p
	}
	if d.Closed != "" {
		return out + "; nothing gets there, " + d.Closed
	}
	return out + "; " + askWords(d.Ask)
}

// identityWords says how the identity of a destination shows itself, "" where
// its kind says it all.
func identityWords(d Destination) string {
	var out []string
	if d.Exchange != "" {
		out = append(out, "at "+d.Exchange)
	}
	for _, g := range d.Grants {
		out = append(out, g.Name+" "+inline(g.Value))
	}
	if d.ReadOnly {
		out = append(out, "for reading only")
	}
	if len(out) == 0 {
		return ""
	}
	return d.Identity + " is " + strings.ReplaceAll(d.Kind, "_", " ") + " " + strings.Join(out, ", ")
}

// askWords says when a person is asked.
func askWords(ask string) string {
	switch ask {
	case "never":
		return "nobody is asked but for the session"
	case "session":
		return "asked once, with the session"
	case "every_call":
		return "asked at every call"
	}
	return ask
}

func caseWords(c Case) string {
	out := pairs(c.When)
	if len(c.With) > 0 {
		if out != "" {
			out += ", "
		}
		out += "with " + pairs(c.With)
	}
	return out
}

func pairs(ms []Member) string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.Name + "=" + inline(m.Value)
	}
	return strings.Join(parts, " ")
}

func (t *textPage) asked(p Page) {
	t.heading("What is asked")
	if p.Approval.Sentence == "" {
		t.lines("  ", "the contract has no sentence: where a target asks, the summary and all inputs are shown")
		return
	}
	t.lines("  ", visible(quote(p.Approval.Sentence)))
	for _, s := range p.Approval.Show {
		t.lines("    ", visible(s.Name+": "+inline(s.Value)))
	}
	if !p.SiteRead {
		t.lines("  ", "the contract alone: "+visible(askWords(p.Approval.Ask)))
	}
}

func (t *textPage) once(p Page) {
	t.heading("Done once")
	if len(p.Once) == 0 && p.Effect == "read" {
		t.lines("  ", "it only reads")
	}
	for _, o := range p.Once {
		t.lines("  ", visible(o))
	}
	t.lines("  ", visible(retryWords(p.Retry)))
}

func retryWords(r *Retry) string {
	if r == nil {
		return "no retry: one attempt"
	}
	out := fmt.Sprintf("retry: %d attempts within %s after %s", r.Attempts, r.Within, strings.Join(r.Codes, ", "))
	if r.RateLimit != "" {
		out += "; the wait is told by " + r.RateLimit
	}
	return out
}

func (t *textPage) aside(p Page) {
	for i, e := range p.Exceptions {
		if i == 0 {
			t.heading("Rules set aside")
		}
		t.lines("  ", visible(e.Rule+": "+e.Because))
	}
	t.heading("Fixtures")
	t.lines("  ", visible(fixtureWords(p.Fixtures)))
}

func fixtureWords(fs []Fixtures) string {
	parts := make([]string, len(fs))
	for i, f := range fs {
		parts[i] = fmt.Sprintf("%s %d", f.Kind, f.Count)
	}
	return strings.Join(parts, ", ")
}
