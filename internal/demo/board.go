package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The columns of a line: verdict, claim, what was observed.
const (
	verdictWidth = 6
	claimWidth   = 28
	// lineWidth is where long bytes go on in the next line.
	lineWidth = 112
)

// The few colours, by meaning.
const (
	bold   = "1"
	dimmed = "2"
	red    = "1;31"
	green  = "32"
)

// claim is one promise and what was observed of it.
type claim struct {
	name string
	seen string // the fact, one line
	ok   bool
	want string // what was expected; told only where ok is false
}

// board prints the play and keeps what it printed.
type board struct {
	out            io.Writer
	colour         bool
	claims, failed int
	shown          bytes.Buffer
	gone           func() // called when nobody reads any more
}

func (b *board) paint(colour, text string) string {
	if !b.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (b *board) line(text string) {
	text = strings.TrimRight(text, " ") + "\n"
	b.shown.WriteString(text)
	if _, err := io.WriteString(b.out, text); err != nil {
		b.gone()
	}
}

// scene begins a part of the play.
func (b *board) scene(title string) {
	b.line("")
	b.line(b.paint(bold, title))
}

// claim tells one promise. A failed one says what was expected.
func (b *board) claim(c claim) {
	b.claims++
	verdict, colour := "ok", green
	if !c.ok {
		b.failed++
		verdict, colour = "FAILED", red
	}
	b.line(b.paint(colour, verdict) + pad(verdict, verdictWidth+2) + c.name + pad(c.name, claimWidth) + printable(c.seen))
	if !c.ok {
		b.bytes("expected", c.want)
	}
}

// pad is the space behind a text up to a column, one at least.
func pad(text string, width int) string {
	return strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 1))
}

// Under a claim, what really passed stands in a column of its own.
const (
	bytesIndent = verdictWidth + 4
	labelWidth  = 11
	bytesWidth  = lineWidth - bytesIndent - labelWidth
)

// bytes shows what really passed, under a claim: whole, on as many lines as it
// needs.
func (b *board) bytes(label string, lines ...string) {
	for _, text := range lines {
		for _, part := range wrap(printable(text), bytesWidth) {
			b.line(b.paint(dimmed, strings.Repeat(" ", bytesIndent)+label+pad(label, labelWidth)+part))
			label = ""
		}
	}
}

// wrap cuts a text into pieces of a width, the first one at least. A comma or a
// space near the end of a piece is where it is cut.
func wrap(s string, width int) []string {
	r := []rune(s)
	var out []string
	for len(r) > width {
		cut := width
		for i := width; i > width*2/3; i-- {
			if r[i-1] == ',' || r[i-1] == ' ' {
				cut = i
				break
			}
		}
		out = append(out, string(r[:cut]))
		r = r[cut:]
	}
	return append(out, string(r))
}

// from is a text from a mark on; the cut is shown.
func from(text, mark string) string {
	if i := strings.Index(text, mark); i > 0 {
		return "…" + text[i:]
	}
	return text
}

// clip cuts the middle out of a text that is too long.
func clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	tail := width / 4
	return string(r[:width-tail-1]) + "…" + string(r[len(r)-tail:])
}

// printable keeps a text on its line: what does not print is written out.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands is a number that a person can read.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
