package strictyaml

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unreadable stands for a file that could not be opened or read: it has no root
// and one problem.
func Unreadable(name string, err error) *File {
	f := &File{name: name}
	f.ReportFile("file", "", "cannot be read: %v", err)
	return f
}

// Name returns the file's name as given to Parse.
func (f *File) Name() string { return f.name }

// Root returns the file's value, nil where nothing could be read.
func (f *File) Root() *Node { return f.root }

// Problems returns everything reported so far, in the order of the lines.
func (f *File) Problems() Problems { return f.problems.Sort() }

// Count returns how many problems were reported so far, repeats included.
func (f *File) Count() int { return len(f.problems) }

// Report adds a problem at a place.
func (f *File) Report(at Pos, rule, hint, format string, args ...any) {
	excerpt := ""
	if at.Line >= 1 && at.Line <= len(f.lines) {
		excerpt = f.lines[at.Line-1]
	}
	f.problems = append(f.problems, Problem{
		File: f.name, Line: at.Line, Column: at.Column, Rule: rule,
		Message: fmt.Sprintf(format, args...), Hint: hintOr(hint, rule), Excerpt: excerpt,
	})
}

// ReportFile adds a problem that belongs to no line.
func (f *File) ReportFile(rule, hint, format string, args ...any) {
	f.problems = append(f.problems, Problem{File: f.name, Rule: rule, Message: fmt.Sprintf(format, args...), Hint: hintOr(hint, rule)})
}

// Is checks a node's kind and reports another one; what names the value in the
// message.
func (f *File) Is(n *Node, kind Kind, what string) bool {
	if n == nil {
		return false
	}
	if n.Kind != kind {
		f.Report(n.Pos, "type", kindHints[kind], "%s must be %s, not %s", what, kind, n.Kind)
		return false
	}
	return true
}

// Watch calls seen with the keys of every mapping that Map checks from now on.
// Tests hold the published schemas against what the readers take.
func (f *File) Watch(seen func(what string, keys []string)) { f.watch = seen }

// Map checks that n is a mapping with no other keys than allowed, and reports
// each unknown key with the nearest known one.
func (f *File) Map(n *Node, what string, allowed ...string) bool {
	if f.watch != nil {
		f.watch(what, allowed)
	}
	if !f.Is(n, Mapping, what) {
		return false
	}
	for _, m := range n.Members {
		if !slices.Contains(allowed, m.Key) {
			f.Report(m.KeyPos, "unknown-key", didYouMean(m.Key, allowed), "%s has no key %q", what, m.Key)
		}
	}
	return true
}

// Require returns the value of key and reports its absence.
func (f *File) Require(n *Node, what, key string) *Node {
	v := n.Get(key)
	if v == nil && n != nil && n.Kind == Mapping && !slices.Contains(n.broken, key) {
		f.Report(n.Pos, "missing-key", "", "%s needs the key %q", what, key)
	}
	return v
}

// Text returns the text of a node, "" after reporting what is no text.
func (f *File) Text(n *Node, what string) (string, bool) {
	if n == nil {
		return "", false
	}
	if n.Kind != String {
		hint := kindHints[String]
		if n.Kind == Number || n.Kind == Bool || n.Kind == Null {
			hint = "put it in quotes"
		}
		f.Report(n.Pos, "type", hint, "%s must be text, not %s", what, n.Kind)
		return "", false
	}
	return n.Text, true
}

// Flag returns true or false.
func (f *File) Flag(n *Node, what string) (bool, bool) {
	if !f.Is(n, Bool, what) {
		return false, false
	}
	return n.Truth, true
}

// Whole returns a whole number within bounds.
func (f *File) Whole(n *Node, what string, low, high int64) (int64, bool) {
	if !f.Is(n, Number, what) {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil || v < low || v > high {
		f.Report(n.Pos, "range", "", "%s must be a whole number from %d to %d", what, low, high)
		return 0, false
	}
	return v, true
}

// Duration reads a whole number with a unit (ms, s, m, h, d), such as 10s, within
// bounds.
func (f *File) Duration(n *Node, what string, low, high time.Duration) (time.Duration, bool) {
	if n == nil || n.Kind != Number { // a number without a unit gets the sentence about units
		if _, ok := f.Text(n, what); !ok {
			return 0, false
		}
	}
	d, ok := parseDuration(n.Text)
	if !ok {
		f.Report(n.Pos, "duration", "write a whole number and ms, s, m, h or d, such as 10s", "%s is no length of time", what)
		return 0, false
	}
	if d < low || d > high {
		f.Report(n.Pos, "range", "", "%s must be from %s to %s", what, DurationText(low), DurationText(high))
		return 0, false
	}
	return d, true
}

func parseDuration(s string) (time.Duration, bool) {
	digits := strings.TrimRight(s, "mshd")
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[s[len(digits):]]
	v, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || unit == 0 || digits != strconv.FormatUint(v, 10) || v > uint64(math.MaxInt64/int64(unit)) {
		return 0, false
	}
	return time.Duration(v) * unit, true
}

// DurationText writes a length of time as Duration reads it.
func DurationText(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d/time.Millisecond)
}

// Word returns a text that is one of words, with a hint at the nearest.
func (f *File) Word(n *Node, what string, words ...string) (string, bool) {
	s, ok := f.Text(n, what)
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		f.Report(n.Pos, "word", didYouMean(s, words), "%s cannot be %q; it is one of %s", what, s, strings.Join(words, ", "))
		return "", false
	}
	return s, true
}

// List returns the items of a list.
func (f *File) List(n *Node, what string) []*Node {
	if !f.Is(n, Sequence, what) {
		return nil
	}
	return n.Items
}

// Texts returns a list of different texts.
func (f *File) Texts(n *Node, what string) []string {
	var out []string
	for _, it := range f.List(n, what) {
		s, ok := f.Text(it, "an entry of "+what)
		switch {
		case !ok:
		case slices.Contains(out, s):
			f.Report(it.Pos, "repeated", "", "%q stands twice in %s", s, what)
		default:
			out = append(out, s)
		}
	}
	return out
}

// DidYouMean is the hint at the nearest of some known words, "" where none is
// near.
func DidYouMean(word string, known []string) string { return didYouMean(word, known) }

func didYouMean(word string, known []string) string {
	best, bestAt := 3, "" // more than two slips is another word
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best && d < len(k) {
			best, bestAt = d, k
		}
	}
	if bestAt != "" {
		return fmt.Sprintf("did you mean %q?", bestAt)
	}
	if len(known) > 0 && len(known) <= 12 {
		return "known here: " + strings.Join(known, ", ")
	}
	return ""
}

// distance is the number of inserted, dropped, changed or swapped letters
// between two short words; long ones are never near.
func distance(a, b string) int {
	const longest = 40
	x, y := []rune(a), []rune(b)
	if len(x) > longest || len(y) > longest {
		return longest
	}
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}
