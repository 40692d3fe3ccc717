package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable makes what came from elsewhere safe for one line of a terminal:
// control characters and the characters that reorder text are made visible.
func printable(s string) string { return escape(s, false) }

// printableLines is printable for text of several lines.
func printableLines(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' && lines, r == '\t' && lines:
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError:
			b.WriteString(`\ufffd`)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden says whether a character steers a terminal or the reading order
// instead of showing itself.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// The few colours, by meaning.
const (
	plain  = ""
	bold   = "1"
	good   = "32"
	warn   = "33"
	bad    = "31"
	dimmed = "2"
)

func (a *app) paint(colour, s string) string { return paintIf(a.colour, colour, s) }

func paintIf(on bool, colour, s string) string {
	if !on || colour == plain || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// stateColour is the colour of a state's word.
func stateColour(state string) string {
	switch state {
	case "open", "authorised", "approved", "writing", "listening", "serving", "up", "stored", "ok", "spent":
		return good
	case "pending", "waiting", "claimed", "looking", "armed", "sent", "proving", "polling", "missing":
		return warn
	case "sealed", "locked", "latched", "unresolved", "reconciling", "denied", "revoked", "suspended", "damaged", "destroy":
		return bad
	}
	return plain
}

// cell is one field of a table: its text decides the width, its colour does not.
type cell struct{ text, colour string }

func c(text string) cell          { return cell{text: printable(text)} }
func cc(colour, text string) cell { return cell{text: printable(text), colour: colour} }
func stateCell(s string) cell     { return cc(stateColour(s), s) }

type row []cell

// table writes aligned columns, two spaces apart, with a heading.
func (a *app) table(heading []string, rows []row) {
	head := make(row, len(heading))
	for i, h := range heading {
		head[i] = cell{h, dimmed}
	}
	writeTable(a.out, a.colour, append([]row{head}, rows...), "")
}

// pairs writes "label  value" lines, the labels aligned.
func (a *app) pairs(rows []row) { writeTable(a.out, a.colour, rows, "") }

func writeTable(w io.Writer, colour bool, rows []row, indent string) {
	writeRows(w, colour, rows, measure(nil, rows), indent)
}

// measure widens the columns to what the rows need.
func measure(width []int, rows []row) []int {
	for _, r := range rows {
		for i, f := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(f.text))
		}
	}
	return width
}

func writeRows(w io.Writer, colour bool, rows []row, width []int, indent string) {
	for _, r := range rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, f := range r {
			b.WriteString(paintIf(colour, f.colour, f.text))
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(f.text)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// nanoseconds writes durations as a whole number; their members say so by name.
var nanoseconds = json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
	return e.WriteToken(jsontext.Int(int64(d)))
})

// printJSON writes a value for a program: indented, one value, one newline.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v, jsontext.WithIndent("  "), json.Deterministic(true), json.WithMarshalers(nanoseconds))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, visibleJSON(string(b)))
	return err
}

// visibleJSON writes what would steer a terminal as JSON escapes. Such
// characters stand only inside strings, so the value stays the same.
func visibleJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || !hidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

// compact is a JSON value on one line, for a table.
func compact(v jsontext.Value) string {
	v = v.Clone()
	if v.Compact() != nil {
		return ""
	}
	if v.Kind() == '"' {
		if s, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(s)
		}
	}
	return string(v)
}

// clock is a time for a person: local, to the second; "-" where there is none.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func clockOf(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return clock(*t)
}

// left says how long something still lasts.
func left(t time.Time) string {
	d := time.Until(t).Round(time.Second)
	switch {
	case t.IsZero():
		return "-"
	case d <= 0:
		return "over"
	}
	return "in " + d.String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
