package actions

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"chatelaine/internal/validate"
)

// maxShown is how many characters of one text a person is shown.
const maxShown = 200

// bareText is what may be shown without quotes, where an enum, a pattern or a
// list of the operator's bounds the input.
var bareText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$`)

// oneLine says whether a text has no control, bidirectional or invisible
// character.
func oneLine(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

// quoted shows a text in quotes, cut, with everything that a reader cannot see
// or that would turn the line around made visible.
func quoted(s string) string {
	rs := []rune(s)
	if len(rs) <= maxShown {
		return strconv.Quote(s)
	}
	return strconv.Quote(string(rs[:maxShown])) + fmt.Sprintf("… (%d characters)", len(rs))
}

// rendered shows a value to a person. bare says that the text comes from a
// closed set or a pattern.
func rendered(v any, bare bool) string {
	switch v := v.(type) {
	case nil:
		return "(not given)"
	case string:
		if bare && len(v) <= maxShown && bareText.MatchString(v) {
			return v
		}
		return quoted(v)
	case json.Number:
		if text, err := decimalText(v); err == nil && len(text) <= maxShown {
			return text
		}
		return quoted(string(v))
	case bool:
		return strconv.FormatBool(v)
	}
	return quoted(string(validate.Canonical(v)))
}

// bare says whether a node's text may be shown without quotes: the operator's
// constants, the daemon's own values, and inputs with an enum, a constant or a
// pattern.
func (c *Contract) bare(n *valueNode) bool {
	if n.op == opConst {
		return true
	}
	if n.op != opFrom {
		return false
	}
	root, rest, _ := cutPath(n.path)
	if root != "input" {
		return root == "target" || root == "call" // what an answer said is always quoted
	}
	view := schemaView{root: c.inputDoc}
	s, _, _ := view.property(c.inputDoc, rest)
	return s["enum"] != nil || s["const"] != nil || s["pattern"] != nil
}

// show works one shown value out; an absent one is said to be so.
func (c *Contract) show(n *valueNode, e env) string {
	v, err := n.eval(e)
	if err != nil {
		v = nil
	}
	if s, ok := v.(string); ok && e.frozen && n.uses("call.now") {
		return "(set when it is sent: " + s + ")"
	}
	return rendered(v, c.bare(n))
}

// sentence renders the card's sentence and lines. A read that is asked about
// without an approval shows its summary and all inputs.
func (c *Contract) sentence(in Input, e env) (string, []CardLine) {
	if c.approval.sentence == nil {
		return c.summary, c.allInputs(in)
	}
	var b strings.Builder
	for _, p := range c.approval.sentence {
		if p.node == nil {
			b.WriteString(p.lit)
			continue
		}
		b.WriteString(c.show(p.node, e))
	}
	var lines []CardLine
	for _, s := range c.approval.show {
		lines = append(lines, CardLine{Label: s.label, Value: c.show(s.node, e)})
	}
	return b.String(), lines
}

func (c *Contract) allInputs(in Input) []CardLine {
	var lines []CardLine
	for _, name := range sortedKeys(in.value) {
		n := &valueNode{op: opFrom, path: "input." + name}
		lines = append(lines, CardLine{Label: name, Value: rendered(in.value[name], c.bare(n))})
	}
	return lines
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// daemonLine is what the daemon itself says under every sentence.
func (c *Contract) daemonLine(t *Target, id string) string {
	return fmt.Sprintf("%s on %s as %s, by contract %s %s", c.effect, t.name, id, c.action, c.version)
}
