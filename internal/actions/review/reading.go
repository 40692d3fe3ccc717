package review

import (
	"regexp"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// plainWord is a constant that is shown without quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$`)

// predicate says in words when a row is chosen.
func predicate(n *strictyaml.Node) string {
	if n == nil || n.Kind != strictyaml.Mapping || len(n.Members) != 1 {
		return "…"
	}
	m := n.Members[0]
	arg := func(i int) *strictyaml.Node {
		if i < len(m.Value.Items) {
			return m.Value.Items[i]
		}
		return nil
	}
	switch m.Key {
	case "exists":
		return pointer(m.Value) + " is there"
	case "is_null":
		return pointer(m.Value) + " is null"
	case "not":
		return "not (" + predicate(m.Value) + ")"
	case "all_of", "any_of":
		return joined(m.Value, map[string]string{"all_of": " and ", "any_of": " or "}[m.Key])
	case "equals":
		return pointer(arg(0)) + " is " + operand(arg(1), false)
	case "in":
		return pointer(arg(0)) + " is " + oneOf(nonNil(arg(1))).Words
	case "each":
		return "every element of " + pointer(arg(0)) + " has " + grouped(arg(1))
	case "some":
		return "an element of " + pointer(arg(0)) + " has " + grouped(arg(1))
	case "none":
		return "no element of " + pointer(arg(0)) + " has " + grouped(arg(1))
	case "count":
		return "the number of elements of " + pointer(arg(0)) + " " + nonNil(arg(1)).Text + " " + nonNil(arg(2)).Text
	case "compare":
		return operand(arg(0), true) + " " + nonNil(arg(1)).Text + " " + operand(arg(2), true)
	}
	return m.Key
}

func nonNil(n *strictyaml.Node) *strictyaml.Node {
	if n == nil {
		return &strictyaml.Node{}
	}
	return n
}

func joined(n *strictyaml.Node, word string) string {
	var parts []string
	for _, it := range n.Items {
		if len(n.Items) == 1 {
			return predicate(it)
		}
		parts = append(parts, grouped(it))
	}
	return strings.Join(parts, word)
}

// grouped puts a predicate of several parts in brackets.
func grouped(n *strictyaml.Node) string {
	p := predicate(n)
	if strings.Contains(p, " and ") || strings.Contains(p, " or ") {
		return "(" + p + ")"
	}
	return p
}

func pointer(n *strictyaml.Node) string {
	switch {
	case n == nil:
		return "…"
	case n.Text == "":
		return "the whole body"
	}
	return n.Text
}

// operand writes one side; in a comparison a text is a pointer.
func operand(n *strictyaml.Node, compare bool) string {
	if n == nil {
		return "…"
	}
	if from := n.Get("from"); from != nil {
		return "{" + from.Text + "}"
	}
	if c := n.Get("const"); c != nil && len(n.Members) == 1 {
		return constant(c.Value())
	}
	if !compare {
		return word(n)
	}
	if a := n.Get("at"); a != nil {
		out := pointer(a)
		if z := n.Get("absent"); z != nil {
			out += " (" + z.Text + " where absent)"
		}
		return out
	}
	if n.Kind == strictyaml.String {
		return pointer(n)
	}
	return constant(n.Value())
}

// pick says in words where a member comes from.
func pick(n *strictyaml.Node) string {
	if n == nil || n.Kind != strictyaml.Mapping {
		return pointer(n)
	}
	out := pickStart(n)
	for _, m := range n.Members {
		if step := conversion(n, m); step != "" {
			out += ", " + step
		}
	}
	return out
}

func pickStart(n *strictyaml.Node) string {
	switch {
	case n.Get("find") != nil:
		f := n.Get("find")
		inside := "the element"
		if at := n.Get("at"); at != nil {
			inside = pointer(at) + " of the one element"
		}
		return inside + " of " + pointer(f.Get("in")) + " where " + predicate(f.Get("where"))
	case n.Get("each") != nil:
		e := n.Get("each")
		var parts []string
		for _, m := range members(e.Get("pick")) {
			parts = append(parts, m.Key+" from "+pick(m.Value))
		}
		return "each of at most " + nonNil(e.Get("max")).Text + " of " + pointer(e.Get("in")) + ": " + strings.Join(parts, ", ")
	case n.Get("header") != nil:
		return "header " + n.Get("header").Text
	case n.Get("from") != nil:
		return "{" + n.Get("from").Text + "}"
	case n.Get("const") != nil:
		return "always " + constant(n.Get("const").Value())
	}
	return pointer(n.Get("at"))
}

// conversions are the steps of a pick that need no value to be told.
var conversions = map[string]string{
	"base64": "base64 decoded", "last_segment": "last segment of the URL", "trim": "trimmed", "lower": "in lower case",
	"integer": "as a whole number", "text": "as text", "optional": "may be absent",
}

func conversion(n *strictyaml.Node, m strictyaml.Member) string {
	if w, ok := conversions[m.Key]; ok {
		if m.Value.Truth {
			return w
		}
		return ""
	}
	switch m.Key {
	case "strip_prefix":
		return "without " + quote(m.Value.Text) + " in front"
	case "prefix":
		return quote(m.Value.Text) + " put in front"
	case "matches":
		return "must match " + patternText(m.Value.Text)
	case "time":
		return "time from " + m.Value.Text
	case "null":
		return map[string]string{"keep": "null is kept", "omit": "null leaves it out"}[m.Value.Text]
	case "map":
		return mapping(m.Value, n.Get("other"))
	}
	return ""
}

func mapping(m, other *strictyaml.Node) string {
	var parts []string
	for _, e := range m.Members {
		parts = append(parts, e.Key+" → "+word(e.Value))
	}
	if other != nil {
		parts = append(parts, "anything else → "+word(other))
	}
	return strings.Join(parts, ", ")
}

// check says in words what must hold.
func check(n *strictyaml.Node) string {
	if n == nil || len(n.Members) != 1 {
		return "…"
	}
	m := n.Members[0]
	v := m.Value
	side := func(i int) string {
		if i < len(v.Items) {
			return v.Items[i].Text
		}
		return "…"
	}
	skew := ""
	if s := v.Get("skew"); s != nil {
		skew = ", clocks may differ by " + s.Text
	}
	switch m.Key {
	case "same":
		return side(0) + " is the same as " + side(1)
	case "increased":
		return side(0) + " is greater than " + side(1)
	case "fresh":
		return nonNil(v.Get("at")).Text + " is at most " + nonNil(v.Get("within")).Text + " old" + skew
	case "after_call":
		return nonNil(v.Get("at")).Text + " is after the call" + skew
	case "signed":
		return signed(v)
	}
	return m.Key + " " + inline(valueOf(v))
}

func signed(v *strictyaml.Node) string {
	out := nonNil(v.Get("jws")).Text + " is signed by a key of " + nonNil(v.Get("keys")).Text
	for _, k := range []struct{ key, word string }{{"issuer", "issued by "}, {"audience", "for "}} {
		if n := v.Get(k.key); n != nil {
			out += ", " + k.word + n.Text
		}
	}
	for _, m := range members(v.Get("claims")) {
		out += ", claim " + m.Key + " is " + word(m.Value)
	}
	return out
}
