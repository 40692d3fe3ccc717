package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"chatelaine/internal/contracttest"
)

// The widths of a report for people.
const (
	// plainWidth is that of a report that is no terminal's: a build log.
	plainWidth = 120
	// leastWidth keeps both sides readable in a narrow terminal.
	leastWidth = 72
	// labelWidth bounds the name of what differs.
	labelWidth = 28
	// cellLines bounds one side of a difference.
	cellLines = 8
)

// width is how wide a report may be.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return max(leastWidth, min(w, plainWidth))
		}
	}
	return plainWidth
}

func (a *app) writeCases(rep contracttest.Report, t contractTest) {
	passed, count := map[string]int{}, map[string]int{}
	for _, x := range rep.Cases {
		count[x.Action]++
		if !x.OK {
			a.writeFailed(x)
			continue
		}
		passed[x.Action]++
		if t.verbose {
			fmt.Fprintf(a.out, "%s  %s  %s: %s\n", a.paint(good, "ok  "), printable(x.File), printable(x.Fixture), printable(x.Got))
		}
	}
	a.writeHoles(rep)
	if t.coverage {
		a.writeCoverage(rep)
	}
	a.writeSummary(rep, passed, count)
	if !t.coverage { // else every place was listed above
		a.writeMissing(rep)
	}
}

// writeFailed shows one fixture that failed: what was wanted beside what was
// got, and the layer that decided.
func (a *app) writeFailed(x contracttest.Case) {
	fmt.Fprintf(a.out, "%s  %s:%d  %s\n", a.paint(bad, "FAIL"), printable(x.Path), x.Line, printable(x.Fixture))
	fmt.Fprintf(a.out, "      decided by %s\n", printable(x.Decided()))
	if x.Reason != "" {
		a.writeWrapped("      because    ", printable(x.Reason))
	}
	label := len("want")
	for _, d := range x.Diffs {
		label = max(label, min(labelWidth, utf8.RuneCountInString(printable(d.What))))
	}
	side := (a.width() - 6 - label - 4) / 2
	a.writeSides(label, side, cell{text: ""}, cc(dimmed, "want"), cc(dimmed, "got"))
	for _, d := range x.Diffs {
		a.writeSides(label, side, c(d.What), c(d.Want), c(d.Got))
	}
}

// writeSides writes one difference in three aligned columns.
func (a *app) writeSides(label, side int, what, want, got cell) {
	columns := [][]string{fold(what.text, label, cellLines), fold(want.text, side, cellLines), fold(got.text, side, cellLines)}
	widths := []int{label, side, side}
	colours := []string{dimmed, want.colour, got.colour}
	for line := 0; ; line++ {
		var b strings.Builder
		b.WriteString("      ")
		more := false
		for i, col := range columns {
			text := ""
			if line < len(col) {
				text, more = col[line], true
			}
			b.WriteString(a.paint(colours[i], text))
			if i < len(columns)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
			}
		}
		if !more {
			return
		}
		fmt.Fprintln(a.out, strings.TrimRight(b.String(), " "))
	}
}

// fold cuts a text into lines of at most width characters, at spaces where
// there are some, and into at most so many of them; 0 is any number.
func fold(s string, width, most int) []string {
	r := []rune(s)
	var out []string
	for len(r) > width && (most == 0 || len(out) < most-1) {
		cut := width
		for i := width; i > width/2; i-- {
			if r[i] == ' ' {
				cut = i
				break
			}
		}
		out = append(out, string(r[:cut]))
		if r = r[cut:]; r[0] == ' ' {
			r = r[1:]
		}
	}
	if len(r) > width {
		r = append(r[:width-1:width-1], '…')
	}
	return append(out, string(r))
}

// writeWrapped writes a text behind a heading, its further lines below its first.
func (a *app) writeWrapped(heading, text string) {
	for i, line := range fold(text, a.width()-len(heading), cellLines) {
		if i > 0 {
			heading = strings.Repeat(" ", len(heading))
		}
		fmt.Fprintln(a.out, heading+line)
	}
}

// writeHoles tells every near-miss that was taken, with its way out.
func (a *app) writeHoles(rep contracttest.Report) {
	for _, m := range rep.Mutations {
		for _, h := range m.Holes {
			fmt.Fprintf(a.out, "%s  %s:%d  %s: %s at %s\n", a.paint(bad, "HOLE"), printable(h.Contract), h.Line, printable(h.Row), h.Kind, printable(orWhole(h.Place)))
			a.writeWrapped("      ", printable(h.Why))
			a.writeWrapped("      there    ", printable(h.Value))
			a.writeWrapped("      answer   ", printable(h.Step+" in "+h.File))
			a.writeWrapped("      way out  ", printable(h.WayOut))
		}
	}
}

func orWhole(place string) string {
	if place == "" {
		return "the whole answer"
	}
	return place
}

func (a *app) writeCoverage(rep contracttest.Report) {
	for _, v := range rep.Coverage {
		for _, p := range v.Missing {
			fmt.Fprintf(a.out, "%s  %s:%d  %s: %s\n", a.paint(warn, "MISS"), printable(v.Contract), p.Line, printable(p.Name), p.Why)
		}
		for _, p := range v.OldOnly {
			fmt.Fprintf(a.out, "%s  %s:%d  %s: only fixtures of old shapes reach it\n", a.paint(dimmed, "OLD "), printable(v.Contract), p.Line, printable(p.Name))
		}
		for _, p := range v.NeverRefused {
			fmt.Fprintf(a.out, "%s  %s:%d  %s: it held, and no fixture is refused by it\n", a.paint(dimmed, "HELD"), printable(v.Contract), p.Line, printable(p.Name))
		}
	}
}

// writeSummary writes one line a contract.
func (a *app) writeSummary(rep contracttest.Report, passed, count map[string]int) {
	heading := []string{"action", "fixtures passed", "places reached"}
	if len(rep.Mutations) > 0 {
		heading = append(heading, "near-misses", "refused", "same answer", "written out", "holes")
	}
	made := map[string]contracttest.Mutation{}
	for _, m := range rep.Mutations {
		made[m.Action] = m
	}
	var rows []row
	for _, v := range rep.Coverage {
		r := row{c(v.Action), c(fmt.Sprintf("%d of %d", passed[v.Action], count[v.Action])), c(fmt.Sprintf("%d of %d", v.Reached, v.Places))}
		if m, ok := made[v.Action]; ok {
			holes := cc(plain, fmt.Sprint(len(m.Holes)))
			if len(m.Holes) > 0 {
				holes.colour = bad
			}
			more := ""
			if m.Capped {
				more = "+" // an answer was too large to try everything
			}
			r = append(r, c(fmt.Sprint(m.Made)+more), c(fmt.Sprint(m.Refused+m.Failed)), c(fmt.Sprint(m.Same)), c(fmt.Sprint(m.Allowed)), holes)
		}
		rows = append(rows, r)
	}
	a.table(heading, rows)
}

// writeMissing names the first places of each contract that nothing reaches.
func (a *app) writeMissing(rep contracttest.Report) {
	for _, v := range rep.Coverage {
		if len(v.Missing) > 0 {
			a.writeWrapped("", printable(v.Action)+": no fixture reaches "+printable(contracttest.MissingWords(v.Missing, missingShown)))
		}
	}
}

// missingShown are the places that the summary names of one contract.
const missingShown = 3
