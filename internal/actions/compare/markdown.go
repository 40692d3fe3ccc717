package compare

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the report for the text of a pull request. Every text of a
// contract is escaped, so that it can neither format the page nor call anybody.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("## Contracts\n\n")
	if r.Empty() {
		b.WriteString("Nothing changed.\n")
	}
	r.looseningMarkdown(&b)
	r.bumpTable(&b)
	for _, k := range r.Contracts {
		if k.State != Same {
			b.WriteString("\n### " + markdown(k.title()) + "\n")
			audienceMarkdown(&b, k.Changes)
		}
	}
	if len(r.Site) > 0 {
		b.WriteString("\n### Site file\n")
		audienceMarkdown(&b, r.Site)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) looseningMarkdown(b *strings.Builder) {
	if r.Loosens == 0 {
		return
	}
	b.WriteString("### ⚠ Loosens authority\n\n")
	each := func(where string, changes []Change) {
		for _, ch := range changes {
			if ch.Loosens {
				b.WriteString("- **" + markdown(where) + "**" + lineText(ch) + ": " + changeMarkdown(ch) + "\n")
			}
		}
	}
	for _, k := range r.Contracts {
		each(k.Action, k.Changes)
	}
	each("site file", r.Site)
	b.WriteString("\n")
}

// bumpTable lists what each changed version needs.
func (r Report) bumpTable(b *strings.Builder) {
	first := true
	for _, k := range r.Contracts {
		if k.State != Changed {
			continue
		}
		if first {
			b.WriteString("| contract | version | needs | made | |\n|---|---|---|---|---|\n")
			first = false
		}
		mark := "✓"
		if !k.Enough {
			mark = "✗ too small"
		}
		fmt.Fprintf(b, "| %s | %s → %s | %s | %s | %s |\n", cellText(k.Action), cellText(k.OldVersion), cellText(k.NewVersion), k.Needs, k.Made, mark)
	}
}

func audienceMarkdown(b *strings.Builder, changes []Change) {
	for _, a := range audiences {
		for i, ch := range a.meets(changes) {
			if i == 0 {
				b.WriteString("\nFor the " + a.name + ":\n\n")
			}
			fmt.Fprintf(b, "- %s: %s\n", a.of(ch), changeMarkdown(ch))
		}
	}
}

func changeMarkdown(ch Change) string {
	out := markdown(ch.Says)
	switch {
	case ch.Old != "" && ch.New != "":
		out += ": " + code(ch.Old) + " → " + code(ch.New)
	case ch.New != "" && !strings.Contains(ch.Says, ch.New):
		out += ": " + code(ch.New)
	case ch.Old != "" && !strings.Contains(ch.Says, ch.Old):
		out += ": was " + code(ch.Old)
	}
	return out + " (" + ch.Kind + ")"
}

// markdown escapes a text: every ASCII punctuation character that Markdown may
// read gets a backslash, and what HTML begins with becomes an entity. A text
// that could call somebody or point at an issue becomes a code span, since such
// words are looked for after the escapes are gone.
func markdown(s string) string {
	if strings.ContainsAny(s, "@#") {
		return code(s)
	}
	var b strings.Builder
	for _, r := range visible(s) {
		switch r {
		case '<', '>', '&', '|':
			fmt.Fprintf(&b, "&#%d;", r)
		case '\\', '`', '*', '_', '{', '}', '[', ']', '(', ')', '+', '-', '!', '~', ':', '.':
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cellText is markdown for a table, where a bar ends a cell even inside code.
func cellText(s string) string { return strings.ReplaceAll(markdown(s), "|", `\|`) }

// code writes a text as a code span, fenced with more backticks than it holds.
func code(s string) string {
	s = visible(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}
