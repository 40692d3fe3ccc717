package compare

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// maxShort is how many characters of an old or new value a report shows.
const maxShort = 160

// short writes a node on one line, cut.
func short(n *strictyaml.Node) string {
	if n == nil {
		return ""
	}
	return shortValue(n.Value())
}

func shortValue(v any) string {
	if s, ok := v.(string); ok {
		return cut(s)
	}
	return cut(string(validate.Canonical(v)))
}

func cut(s string) string {
	if rs := []rune(s); len(rs) > maxShort {
		return string(rs[:maxShort]) + "…"
	}
	return s
}

// keys are the keys of two mappings, the old ones first, each once.
func keys(old, new *strictyaml.Node) []string {
	out := old.Keys()
	for _, k := range new.Keys() {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

// escape writes a name as one token of a JSON pointer.
func escape(s string) string { return pointerToken.Replace(s) }

// items are the elements of a list; one value that may stand for a list is one.
func items(n *strictyaml.Node) []*strictyaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == strictyaml.Sequence:
		return n.Items
	}
	return []*strictyaml.Node{n}
}

// list writes the elements as text, in their order and in full: they are
// compared.
func list(n *strictyaml.Node) []string {
	var out []string
	for _, it := range items(n) {
		if it.Kind == strictyaml.String {
			out = append(out, it.Text)
			continue
		}
		out = append(out, string(validate.Canonical(it.Value())))
	}
	return out
}

// without are the elements of a that b has not.
func without(a, b []string) []string {
	var out []string
	for _, x := range a {
		if !slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// duration reads a length of time as the loader does.
func duration(n *strictyaml.Node, usual time.Duration) time.Duration {
	if n == nil {
		return usual
	}
	digits := strings.TrimRight(n.Text, "mshd")
	v, err := strconv.ParseInt(digits, 10, 64)
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[n.Text[len(digits):]]
	if err != nil {
		return usual
	}
	return time.Duration(v) * unit
}

// number reads a number's text, "usual" where there is none.
func number(n *strictyaml.Node, usual string) json.Number {
	if n == nil {
		return json.Number(usual)
	}
	return json.Number(n.Text)
}

// longer compares two lengths of time: the kind that says what became of them.
func (d *differ) longer(kind, what string, usual time.Duration) handler {
	return d.lengths(kind+"-longer", kind+"-shorter", what, usual)
}

func (d *differ) lengths(more, less, what string, usual time.Duration) handler {
	return func(at string, old, new *strictyaml.Node) {
		a, b := duration(old, usual), duration(new, usual)
		switch {
		case b > a:
			d.add(more, at, what+" is longer", strictyaml.DurationText(a), strictyaml.DurationText(b))
		case b < a:
			d.add(less, at, what+" is shorter", strictyaml.DurationText(a), strictyaml.DurationText(b))
		}
	}
}
