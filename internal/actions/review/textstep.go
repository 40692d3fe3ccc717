package review

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// stepIndent stands before what belongs to a step.
const stepIndent = "    "

func (t *textPage) steps(p Page) {
	t.heading("What is sent")
	for i, s := range p.Steps {
		t.lines("  ", visible(stepWords(i, len(p.Steps), s)))
		if s.Reads != "" {
			t.lines(stepIndent, "only reads: "+visible(s.Reads))
		}
		if len(s.Query) > 0 {
			t.lines(stepIndent, "query "+visible(pairs(s.Query)))
		}
		for _, h := range s.Headers {
			t.lines(stepIndent, visible(h.Name+": "+inline(h.Value)))
		}
		t.body(s)
		for _, r := range s.Rows {
			t.lines(stepIndent, visible(rowWords(r)))
		}
	}
}

// stepWords is the head of a step; steps are counted where there are several.
func stepWords(i, of int, s Step) string {
	name := s.Name
	if s.Kind == "lookup" {
		name = "lookup " + name
	}
	if of > 1 {
		name = fmt.Sprintf("%d. %s", i+1, name)
	}
	out := name + ": " + s.Method + " " + s.Path + " within " + s.Timeout
	if s.Every != "" {
		out += ", again every " + s.Every + " for at most " + s.Within
	}
	return out
}

// body writes a body on one line where it fits, else as a tree.
func (t *textPage) body(s Step) {
	if s.Body == nil {
		return
	}
	head := s.BodyKind
	if s.ContentType != "" {
		head += " (" + s.ContentType + ")"
	}
	one := visible(head + " " + inline(*s.Body))
	if utf8.RuneCountInString(one)+len(stepIndent) <= pageWidth || len(s.Body.Members)+len(s.Body.Items) == 0 {
		t.lines(stepIndent, one)
		return
	}
	t.lines(stepIndent, visible(head))
	t.tree(stepIndent+"  ", *s.Body)
}

func (t *textPage) tree(indent string, v Value) {
	for _, m := range v.Members {
		t.branch(indent, m.Name+":", m.Value)
	}
	for _, it := range v.Items {
		t.branch(indent, "-", it)
	}
}

func (t *textPage) branch(indent, name string, v Value) {
	one := visible(name + " " + inline(v))
	if utf8.RuneCountInString(one)+len(indent) <= pageWidth || len(v.Members)+len(v.Items) == 0 || len(indent) > pageWidth/2 {
		t.lines(indent, one)
		return
	}
	t.lines(indent, visible(name))
	t.tree(indent+"  ", v)
}

func rowWords(r Row) string {
	out := r.Status
	if r.Media != "json" {
		out += " " + r.Media
	}
	if r.Media == "none" {
		out = r.Status + " without a body"
	}
	if r.When != "" {
		out += " where " + r.When
	}
	out += " → " + r.Ends
	if len(r.Codes) > 0 {
		out += " " + strings.Join(r.Codes, ", ")
	}
	if r.CodeFrom != "" {
		out += " by " + r.CodeFrom
	}
	if len(r.Captures) > 0 {
		out += " with " + captured(r.Captures)
	}
	if r.NotDone {
		out += ", nothing was done"
	}
	if r.Body != "" {
		out += "; body " + r.Body
	}
	return out
}

func captured(ms []Member) string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.Name + " from " + inline(m.Value)
	}
	return strings.Join(parts, ", ")
}

func (t *textPage) back(p Page) {
	t.heading("What comes back")
	if len(p.Result) == 0 {
		t.lines("  ", "nothing but that it worked")
	}
	t.table("  ", outputRows(p.Result))
	if len(p.Display) > 0 {
		t.lines("  ", "for people, never as data:")
		t.table(stepIndent, outputRows(p.Display))
	}
	for i, c := range p.Checks {
		head := "and  "
		if i == 0 {
			head = "only if  "
		}
		t.lines("  ", head+visible(c))
	}
	for _, c := range p.Codes {
		t.lines("  ", visible(codeWords(c)))
	}
}

func outputRows(out []Output) [][]string {
	var rows [][]string
	for _, o := range out {
		from := "← " + strings.Join(o.From, "; or ")
		if len(o.From) == 0 {
			from = "← nothing picks it"
		}
		rows = append(rows, []string{visible(o.Name) + mark(o.Required), visible(o.Bound.Words), visible(from)})
	}
	return rows
}

func codeWords(c Code) string {
	again := "final"
	if c.Retryable {
		again = "a new call may succeed"
	}
	return fmt.Sprintf("%s (HTTP %d, %s): %s", c.Code, c.Status, again, c.Message)
}
