package compare

import (
	"fmt"
	"strings"

	"chatelaine/internal/actions/review"
	"chatelaine/internal/actions/strictyaml"
)

const (
	maxExpand = 50000 // places of one schema after its references are resolved
	maxDepth  = 64    // of references inside references; the loader refuses recursion
)

// expand writes a schema without local references and without $defs. It gives
// up, false, on a schema that grows beyond all bounds.
func expand(n *strictyaml.Node) (any, bool) {
	x := &expander{root: n, left: maxExpand}
	out := x.schema(n, 0)
	return out, x.left > 0
}

type expander struct {
	root *strictyaml.Node
	left int
}

// schema expands a place where a schema stands.
func (x *expander) schema(n *strictyaml.Node, depth int) any {
	x.left--
	if n == nil || n.Kind != strictyaml.Mapping || x.left <= 0 || depth > maxDepth {
		if depth > maxDepth {
			x.left = 0
		}
		return n.Value()
	}
	out := map[string]any{}
	for _, m := range n.Members {
		if m.Key == "$defs" || m.Key == "$ref" {
			continue
		}
		out[m.Key] = x.keyword(m.Key, m.Value, depth)
	}
	ref := n.Get("$ref")
	if ref == nil {
		return out
	}
	target := review.At(x.root, strings.TrimPrefix(ref.Text, "#"))
	if target == nil {
		out["$ref"] = ref.Text
		return out
	}
	meant := x.schema(target, depth+1)
	inner, isMap := meant.(map[string]any)
	if !isMap || !onlyAnnotations(out) {
		out["$ref"] = meant // both hold; compared as one piece
		return out
	}
	for k, v := range out {
		inner[k] = v
	}
	return inner
}

func onlyAnnotations(m map[string]any) bool {
	for k := range m {
		known := false
		for _, a := range annotations {
			known = known || a == k
		}
		if !known {
			return false
		}
	}
	return true
}

// keyword expands a keyword's value where schemas stand in it.
func (x *expander) keyword(key string, n *strictyaml.Node, depth int) any {
	switch key {
	case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains", "not", "if", "then", "else":
		return x.schema(n, depth)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		out := make([]any, len(n.Items))
		for i, it := range n.Items {
			out[i] = x.schema(it, depth)
		}
		return out
	case "properties", "patternProperties", "dependentSchemas":
		out := map[string]any{}
		for _, m := range n.Members {
			out[m.Key] = x.schema(m.Value, depth)
		}
		return out
	}
	x.left -= weight(n)
	return n.Value()
}

// weight is how many places a value has.
func weight(n *strictyaml.Node) int {
	w := 1
	for _, it := range n.Items {
		w += weight(it)
	}
	for _, m := range n.Members {
		w += weight(m.Value)
	}
	return w
}

// word joins what a finding is about and what it says.
func (f finding) word(root string) string {
	if f.path == "" {
		return root
	}
	if strings.HasPrefix(f.path, "[") {
		return root + f.path
	}
	return fmt.Sprintf("%s.%s", root, f.path)
}
