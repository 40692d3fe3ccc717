package review

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// Value is one value that a step sends: a leaf in words, or a tree of members
// or of items. In Text constants are written as JSON and what is filled in
// stands in braces: {input.name}. A name that ends in "?" is left out where it
// is absent.
type Value struct {
	Text    string   `json:"text,omitzero"`
	Members []Member `json:"members,omitzero"`
	Items   []Value  `json:"items,omitzero"`
}

// Member is one named value.
type Member struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// pure are the functions of one argument.
var pure = []string{"base64", "lower", "text", "json_text"}

// function says which function a mapping of a loaded contract is, "" for an
// object: the loader's own rule, without its care for slips.
func function(n *strictyaml.Node) string {
	if n == nil || n.Kind != strictyaml.Mapping {
		return ""
	}
	if from := n.Get("from"); from != nil && from.Kind == strictyaml.String {
		if len(n.Members) == 1 || len(n.Members) == 2 && n.Get("optional") != nil {
			return "from"
		}
	}
	if n.Get("each") != nil && n.Get("as") != nil && n.Get("give") != nil {
		return "each"
	}
	if len(n.Members) != 1 {
		return ""
	}
	if key := n.Members[0].Key; key == "const" || key == "concat" || key == "join" || key == "add_seconds" || slices.Contains(pure, key) {
		return key
	}
	return ""
}

// bodyFunction is function at the top of a JSON body, where a member may be
// called like a function.
func bodyFunction(n *strictyaml.Node) string {
	if fn := function(n); fn == "from" || fn == "each" || fn == "const" {
		return fn
	}
	return ""
}

// valueOf reads a value node.
func valueOf(n *strictyaml.Node) Value { return valueAs(n, function(n)) }

func valueAs(n *strictyaml.Node, fn string) Value {
	if n == nil {
		return Value{}
	}
	if fn != "" {
		return Value{Text: functionText(n, fn)}
	}
	switch n.Kind {
	case strictyaml.Mapping:
		out := Value{}
		for _, m := range n.Members {
			out.Members = append(out.Members, Member{m.Key, valueOf(m.Value)})
		}
		if len(out.Members) == 0 {
			out.Text = "{}"
		}
		return out
	case strictyaml.Sequence:
		out := Value{}
		for _, it := range n.Items {
			out.Items = append(out.Items, valueOf(it))
		}
		if len(out.Items) == 0 {
			out.Text = "[]"
		}
		return out
	}
	return Value{Text: constant(n.Value())}
}

func functionText(n *strictyaml.Node, fn string) string {
	arg := func(i int) string {
		items := n.Members[0].Value.Items
		if i >= len(items) {
			return "…"
		}
		return inline(valueOf(items[i]))
	}
	switch fn {
	case "from":
		if o := n.Get("optional"); o != nil && o.Truth {
			return "{" + n.Get("from").Text + "?}"
		}
		return "{" + n.Get("from").Text + "}"
	case "const":
		return constant(n.Get("const").Value())
	case "concat":
		var parts []string
		for i := range n.Members[0].Value.Items {
			parts = append(parts, arg(i))
		}
		return strings.Join(parts, " + ")
	case "join":
		return arg(0) + " joined with " + arg(1)
	case "add_seconds":
		return arg(0) + " + " + arg(1) + " seconds"
	case "each":
		return "for each " + n.Get("as").Text + " of " + inline(valueOf(n.Get("each"))) + ": " + inline(valueOf(n.Get("give")))
	}
	return fn + "(" + inline(valueOf(n.Members[0].Value)) + ")"
}

// inline writes a value on one line.
func inline(v Value) string {
	switch {
	case len(v.Members) > 0:
		parts := make([]string, len(v.Members))
		for i, m := range v.Members {
			parts[i] = m.Name + ": " + inline(m.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case len(v.Items) > 0:
		parts := make([]string, len(v.Items))
		for i, it := range v.Items {
			parts[i] = inline(it)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return v.Text
}

// constant writes a JSON value.
func constant(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "…"
	}
	return string(b)
}

// quote is a JSON string in which what a reader cannot see is escaped.
func quote(s string) string { return strconv.QuoteToGraphic(s) }
