package main

import (
	"bufio"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
)

// blockRows is how many rows of a long table are measured together: columns only get
// wider from one block to the next, and the table is never held whole.
const blockRows = 500

// sink writes results and remembers the first failure, so that a full disk is not
// taken for a whole export.
type sink struct{ w *bufio.Writer }

func newSink(w io.Writer) sink { return sink{bufio.NewWriter(w)} }

func (s sink) failed(err error) error {
	if err == nil {
		return nil
	}
	return refused(fmt.Sprintf("the output cannot be written: %v", plainCause(err)))
}

// check says whether everything so far could be written.
func (s sink) check() error {
	_, err := s.w.Write(nil)
	return s.failed(err)
}

func (s sink) flush() error { return s.failed(s.w.Flush()) }

// line writes one JSON value on a line of its own.
func (s sink) line(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true), json.WithMarshalers(nanoseconds))
	if err != nil {
		return err
	}
	s.w.WriteString(visibleJSON(string(b)))
	s.w.WriteByte('\n')
	return s.check()
}

// blocks is a table of any length.
type blocks struct {
	sink    sink
	colour  bool
	heading []string
	every   int // rows in a block
	rows    []row
	width   []int
	began   bool
}

func (b *blocks) add(r row) error {
	b.rows = append(b.rows, r)
	if len(b.rows) < b.every {
		return nil
	}
	return b.end()
}

// end writes the rows that wait, and before the first ones the heading.
func (b *blocks) end() error {
	if len(b.rows) == 0 {
		return nil
	}
	if !b.began {
		head := make(row, len(b.heading))
		for i, h := range b.heading {
			head[i] = cell{h, dimmed}
		}
		b.rows, b.began = append([]row{head}, b.rows...), true
	}
	b.width = measure(b.width, b.rows)
	writeRows(b.sink.w, b.colour, b.rows, b.width, "")
	b.rows = b.rows[:0]
	return b.sink.check()
}

// listJSON is an object whose first member is a list of any length.
type listJSON struct {
	sink sink
	n    int
}

func (l *listJSON) begin(name string) { fmt.Fprintf(l.sink.w, "{\n  %q: [", name) }

func (l *listJSON) add(v any) error {
	if l.n++; l.n > 1 {
		l.sink.w.WriteByte(',')
	}
	l.sink.w.WriteString("\n    ")
	return l.value(v, "    ")
}

func (l *listJSON) value(v any, indent string) error {
	b, err := json.Marshal(v, jsontext.WithIndentPrefix(indent), jsontext.WithIndent("  "), json.Deterministic(true), json.WithMarshalers(nanoseconds))
	if err != nil {
		return err
	}
	l.sink.w.WriteString(visibleJSON(string(b)))
	return l.sink.check()
}

// member adds one after the list; the list is closed by the first.
func (l *listJSON) close() {
	if l.n > 0 {
		l.sink.w.WriteString("\n  ")
	}
	l.sink.w.WriteByte(']')
}

func (l *listJSON) member(name string, v any) error {
	fmt.Fprintf(l.sink.w, ",\n  %q: ", name)
	return l.value(v, "  ")
}

func (l *listJSON) end() error {
	l.sink.w.WriteString("\n}\n")
	return l.sink.flush()
}

// csvLine writes cells as RFC 4180 has it, each in quotes. A spreadsheet that opens
// the file takes none of them for a formula.
func (s sink) csvLine(cells []string) error {
	for i, text := range cells {
		if i > 0 {
			s.w.WriteByte(',')
		}
		s.w.WriteByte('"')
		s.w.WriteString(strings.ReplaceAll(text, `"`, `""`))
		s.w.WriteByte('"')
	}
	s.w.WriteString("\r\n")
	return s.check()
}

// formulaMarks begin a formula in spreadsheets, those of full width in some.
const formulaMarks = "=+-@＝＋－＠"

// csvText makes text from elsewhere safe for a cell: what steers is made visible, and a
// ' stands before what would begin a formula: at the start, and after a semicolon,
// where a spreadsheet of some countries begins another cell.
func csvText(text string) string {
	var b strings.Builder
	starts := true
	for _, r := range printable(text) {
		switch {
		case starts && strings.ContainsRune(formulaMarks, r):
			b.WriteByte('\'')
			starts = false
		case r == ';':
			starts = true
		case r != ' ' && r != '"' && r != '\u00a0':
			starts = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// csvJSON is a JSON value in a cell: it begins with none of the marks, and a semicolon,
// which stands only inside strings, is written as an escape.
func csvJSON(v jsontext.Value) string {
	return strings.ReplaceAll(visibleJSON(string(v)), ";", `\u003b`)
}
