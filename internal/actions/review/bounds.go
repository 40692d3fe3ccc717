package review

import (
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// Bound is what a schema lets through.
type Bound struct {
	Words  string   `json:"words"`
	Values []string `json:"values,omitzero"` // the whole set where the value is one of few
}

// maxNamed is how many values of a set a page names; the rest is counted. The
// JSON form has them all.
const maxNamed = 12

// refDepth bounds how far references are followed; the loader refuses
// recursion.
const refDepth = 16

// bounds reads schemas of one document.
type bounds struct{ root *strictyaml.Node }

// resolve follows local references.
func (b bounds) resolve(n *strictyaml.Node) *strictyaml.Node {
	for range refDepth {
		ref := n.Get("$ref")
		if ref == nil || ref.Kind != strictyaml.String || !strings.HasPrefix(ref.Text, "#") {
			return n
		}
		next := at(b.root, strings.TrimPrefix(ref.Text, "#"))
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// at finds a JSON pointer in a document, nil where it leads nowhere.
func at(n *strictyaml.Node, pointer string) *strictyaml.Node {
	if pointer == "" {
		return n
	}
	for _, tok := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		tok = unescapePointer.Replace(tok)
		var next *strictyaml.Node
		if n != nil && n.Kind == strictyaml.Sequence {
			for i, it := range n.Items {
				if fmt.Sprint(i) == tok {
					next = it
				}
			}
		} else {
			next = n.Get(tok)
		}
		n = next
	}
	return n
}

// of says in words what a schema lets through.
func (b bounds) of(n *strictyaml.Node) Bound {
	n = b.resolve(n)
	if n == nil {
		return Bound{Words: "anything"}
	}
	if n.Kind == strictyaml.Bool {
		return Bound{Words: map[bool]string{true: "anything", false: "nothing"}[n.Truth]}
	}
	if c := n.Get("const"); c != nil {
		return Bound{Words: "always " + word(c), Values: []string{word(c)}}
	}
	if e := n.Get("enum"); e != nil {
		return oneOf(e)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if subs := n.Get(key); subs != nil && n.Get("properties") == nil {
			return Bound{Words: b.either(subs)}
		}
	}
	return Bound{Words: b.byType(n)}
}

// word writes a constant; a plain word needs no quotes.
func word(n *strictyaml.Node) string {
	if n.Kind == strictyaml.String && plainWord.MatchString(n.Text) {
		return n.Text
	}
	return constant(n.Value())
}

func oneOf(e *strictyaml.Node) Bound {
	var all []string
	for _, it := range e.Items {
		all = append(all, word(it))
	}
	shown := all
	if len(all) > maxNamed {
		shown = all[:maxNamed]
	}
	words := "one of " + strings.Join(shown, ", ")
	switch {
	case len(all) == 1:
		words = "always " + all[0]
	case len(all) > maxNamed:
		words = fmt.Sprintf("one of %d: %s and %d more", len(all), strings.Join(shown, ", "), len(all)-maxNamed)
	}
	return Bound{Words: words, Values: all}
}

func (b bounds) either(subs *strictyaml.Node) string {
	var parts []string
	for _, s := range subs.Items {
		parts = append(parts, b.of(s).Words)
	}
	return strings.Join(slices.Compact(parts), ", or ")
}

func (b bounds) byType(n *strictyaml.Node) string {
	t := n.Get("type")
	if t != nil && t.Kind == strictyaml.Sequence {
		var parts []string
		for _, one := range t.Items {
			parts = append(parts, b.typed(n, one.Text))
		}
		return strings.Join(parts, ", or ")
	}
	if t == nil {
		return "what its schema says"
	}
	return b.typed(n, t.Text)
}

func (b bounds) typed(n *strictyaml.Node, kind string) string {
	switch kind {
	case "string":
		return textWords(n)
	case "integer":
		return "whole number" + rangeWords(n)
	case "number":
		return "number" + rangeWords(n)
	case "boolean":
		return "true or false"
	case "null":
		return "null"
	case "array":
		return b.listWords(n)
	case "object":
		return b.objectWords(n)
	}
	return kind
}

// formats are the schema formats in words.
var formats = map[string]string{"date-time": "a time (RFC 3339)", "date": "a date", "uuid": "a UUID"}

func textWords(n *strictyaml.Node) string {
	length := lengthWords(n.Get("minLength"), n.Get("maxLength"), "character", "characters")
	if f := n.Get("format"); f != nil {
		if w, ok := formats[f.Text]; ok {
			return w
		}
		return "text of format " + f.Text + and(length)
	}
	if p := n.Get("pattern"); p != nil {
		return "matches " + patternText(p.Text) + and(length)
	}
	if length == "" {
		return "free text without a bound"
	}
	return "free text, " + length
}

// patternText writes what is not ASCII in a pattern as its escape: letters that
// look alike, and ends of ranges that nobody can see, are told apart.
func patternText(p string) string {
	var b strings.Builder
	for _, r := range p {
		if r < 0x20 || r > 0x7e {
			fmt.Fprintf(&b, `\x{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func and(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func lengthWords(low, high *strictyaml.Node, one, many string) string {
	unit := many
	switch {
	case low != nil && high != nil && low.Text == high.Text:
		if low.Text == "1" {
			unit = one
		}
		return low.Text + " " + unit
	case low != nil && low.Text != "0" && high != nil:
		return low.Text + " to " + high.Text + " " + unit
	case high != nil:
		if high.Text == "1" {
			unit = one
		}
		return "at most " + high.Text + " " + unit
	case low != nil:
		return "at least " + low.Text + " " + unit
	}
	return ""
}

func rangeWords(n *strictyaml.Node) string {
	var parts []string
	low, high := n.Get("minimum"), n.Get("maximum")
	if low != nil && high != nil {
		parts = append(parts, low.Text+" to "+high.Text)
	} else if low != nil {
		parts = append(parts, "at least "+low.Text)
	} else if high != nil {
		parts = append(parts, "at most "+high.Text)
	}
	for _, k := range []struct{ key, word string }{
		{"exclusiveMinimum", "above "}, {"exclusiveMaximum", "below "}, {"multipleOf", "a multiple of "},
	} {
		if v := n.Get(k.key); v != nil {
			parts = append(parts, k.word+v.Text)
		}
	}
	if len(parts) == 0 {
		return " without a bound"
	}
	return " " + strings.Join(parts, ", ")
}

func (b bounds) listWords(n *strictyaml.Node) string {
	size := lengthWords(n.Get("minItems"), n.Get("maxItems"), "element", "elements")
	words := "list without a bound"
	if size != "" {
		words = "list of " + size
	}
	if u := n.Get("uniqueItems"); u != nil && u.Truth {
		words += ", none twice"
	}
	if items := n.Get("items"); items != nil {
		words += ", each " + b.of(items).Words
	}
	if p := n.Get("prefixItems"); p != nil {
		var parts []string
		for _, it := range p.Items {
			parts = append(parts, b.of(it).Words)
		}
		words += ", in order: " + strings.Join(parts, "; ")
	}
	return words
}

func (b bounds) objectWords(n *strictyaml.Node) string {
	var names []string
	required := texts(n.Get("required"))
	for _, m := range members(n.Get("properties")) {
		name := m.Key
		if !slices.Contains(required, name) {
			name += "?"
		}
		names = append(names, name+" ("+b.of(m.Value).Words+")")
	}
	words := "object"
	if len(names) > 0 {
		words = "object with " + strings.Join(names, ", ")
	}
	if a := n.Get("additionalProperties"); a == nil || a.Kind != strictyaml.Bool || a.Truth {
		if u := n.Get("unevaluatedProperties"); u == nil || u.Kind != strictyaml.Bool || u.Truth {
			words += ", open"
		}
	}
	return words
}

func texts(n *strictyaml.Node) []string {
	if n == nil {
		return nil
	}
	var out []string
	for _, it := range n.Items {
		out = append(out, it.Text)
	}
	return out
}

// properties are the members that an object of the schema may have, with those
// of its branches, in the order written; required are those that it must have.
func (b bounds) properties(n *strictyaml.Node, depth int) (props []strictyaml.Member, required []string) {
	n = b.resolve(n)
	if n == nil || depth == 0 {
		return nil, nil
	}
	props = append(props, members(n.Get("properties"))...)
	required = append(required, texts(n.Get("required"))...)
	add := func(sub *strictyaml.Node, must bool) {
		more, req := b.properties(sub, depth-1)
		for _, m := range more {
			if !slices.ContainsFunc(props, func(p strictyaml.Member) bool { return p.Key == m.Key }) {
				props = append(props, m)
			}
		}
		if must {
			required = append(required, req...)
		}
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		if subs := n.Get(key); subs != nil {
			for _, sub := range subs.Items {
				add(sub, key == "allOf")
			}
		}
	}
	for _, key := range []string{"if", "then", "else"} {
		add(n.Get(key), false)
	}
	return props, required
}

// open returns the pointers of the objects that take any member, as an expect
// may say on purpose.
func (b bounds) open(n *strictyaml.Node) []string {
	var out []string
	var walk func(n *strictyaml.Node, ptr string, depth int)
	walk = func(n *strictyaml.Node, ptr string, depth int) {
		n = b.resolve(n)
		if n == nil || depth == 0 {
			return
		}
		if a := n.Get("additionalProperties"); a != nil && (a.Kind != strictyaml.Bool || a.Truth) {
			out = append(out, dashed(ptr))
		}
		for _, m := range members(n.Get("properties")) {
			walk(m.Value, ptr+"/"+m.Key, depth-1)
		}
		walk(n.Get("items"), ptr+"/*", depth-1)
		for _, key := range []string{"allOf", "oneOf", "anyOf"} {
			if subs := n.Get(key); subs != nil {
				for _, sub := range subs.Items {
					walk(sub, ptr, depth-1)
				}
			}
		}
	}
	walk(n, "", refDepth)
	slices.Sort(out)
	return slices.Compact(out)
}

// dashed names the whole body where a pointer is empty.
func dashed(ptr string) string {
	if ptr == "" {
		return "the top"
	}
	return ptr
}
