package strictyaml

import (
	"fmt"
	"io"
	"sort"
	"strings"
)

// Problem is one mistake in a file. Line and Column count from one; Column
// counts characters. Excerpt is the offending line of the file. The files read
// here are the operator's and the contract author's own, so a problem may quote
// them; it quotes nothing of a file that is no mapping, which is another file.
type Problem struct {
	File         string
	Line, Column int
	Rule         string
	Message      string
	Hint         string
	Excerpt      string
}

// Error gives "file:line:column: message".
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problems are all mistakes of one or more files, in the order of the files'
// lines.
type Problems []Problem

// Error gives one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the problems by file, line and column and drops repeats.
func (ps Problems) Sort() Problems {
	out := append(Problems(nil), ps...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	kept := out[:0]
	for i, p := range out {
		if i == 0 || p != out[i-1] {
			kept = append(kept, p)
		}
	}
	return kept
}

// excerptLimit keeps a printed line within a terminal's width; longer lines are
// shown around the mistake.
const excerptLimit = 160

// Render prints each problem with its line, a caret under the place and the
// hint.
func (ps Problems) Render(w io.Writer) error {
	for _, p := range ps {
		if _, err := io.WriteString(w, p.render()); err != nil {
			return err
		}
	}
	return nil
}

func (p Problem) render() string {
	var b strings.Builder
	b.WriteString(p.Error())
	if p.Rule != "" {
		b.WriteString(" [" + p.Rule + "]")
	}
	b.WriteString("\n")
	if p.Excerpt != "" {
		line, column := window([]rune(p.Excerpt), p.Column)
		b.WriteString("  | " + visible(line) + "\n  | " + strings.Repeat(" ", max(column-1, 0)) + "^\n")
	}
	if p.Hint != "" {
		b.WriteString("  = " + p.Hint + "\n")
	}
	return b.String()
}

// window cuts a long line around column and returns the new column.
func window(line []rune, column int) (string, int) {
	if len(line) <= excerptLimit {
		return string(line), column
	}
	start := min(max(column-excerptLimit/2, 0), len(line)-excerptLimit)
	return string(line[start : start+excerptLimit]), column - start
}

// visible replaces what would move the caret or the terminal's cursor: one
// character for one character, so that the caret stays in place.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20 || r == 0x7f, r >= 0x80 && r < 0xa0, r >= 0x200b && r <= 0x200f,
			r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
			return '\ufffd'
		}
		return r
	}, s)
}
