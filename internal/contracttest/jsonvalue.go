package contracttest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// typeName is the JSON type of a value as the parser makes it.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

func numberText(v any) string {
	n, _ := v.(json.Number)
	return string(n)
}

// encoder writes a JSON document; at one object it writes one member twice,
// which no tree can hold.
type encoder struct {
	b     bytes.Buffer
	twice string // the place of that object, "-" for none
}

const nowhere = "-"

// encode writes the document.
func encode(v any) []byte { return encodeTwice(v, nowhere) }

// encodeTwice writes the first member of the object at the place twice.
func encodeTwice(v any, place string) []byte {
	e := encoder{twice: place}
	e.value(v, "")
	return e.b.Bytes()
}

func (e *encoder) value(v any, at string) {
	switch v := v.(type) {
	case map[string]any:
		e.b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				e.b.WriteByte(',')
			} else if at == e.twice {
				e.text(name)
				e.b.WriteByte(':')
				e.value(v[name], nowhere)
				e.b.WriteByte(',')
			}
			e.text(name)
			e.b.WriteByte(':')
			e.value(v[name], at+"/"+escapeToken(name))
		}
		e.b.WriteByte('}')
	case []any:
		e.b.WriteByte('[')
		for i, it := range v {
			if i > 0 {
				e.b.WriteByte(',')
			}
			e.value(it, at+"/"+strconv.Itoa(i))
		}
		e.b.WriteByte(']')
	case string:
		e.text(v)
	case json.Number:
		e.b.WriteString(string(v))
	case bool:
		e.b.WriteString(strconv.FormatBool(v))
	default:
		e.b.WriteString("null")
	}
}

// text writes a JSON string. The parser gave it, so that it is valid UTF-8.
func (e *encoder) text(s string) {
	enc := json.NewEncoder(&e.b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err == nil {
		e.b.Truncate(e.b.Len() - 1) // the newline
	}
}

func escapeToken(t string) string {
	return strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
}

// pointerOf writes a place as a JSON pointer.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, t := range path {
		b.WriteString("/" + escapeToken(t))
	}
	return b.String()
}

// at gives what stands at a place.
func at(v any, path []string) (any, bool) {
	for _, t := range path {
		switch c := v.(type) {
		case map[string]any:
			e, ok := c[t]
			if !ok {
				return nil, false
			}
			v = e
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// removed is the mark for edit that takes a member away.
type removed struct{}

// edit returns the document with another value at the place; what does not lie
// on the way to it is shared with the old one.
func edit(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch c := v.(type) {
	case map[string]any:
		out := maps.Clone(c)
		if _, gone := value.(removed); gone && len(path) == 1 {
			delete(out, path[0])
			return out
		}
		out[path[0]] = edit(c[path[0]], path[1:], value)
		return out
	case []any:
		out := slices.Clone(c)
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(out) {
			out[i] = edit(out[i], path[1:], value)
		}
		return out
	}
	return v
}

// spread returns the places of the document that a read place stands for.
func spread(v any, path []string) [][]string {
	for i, t := range path {
		if t != anyElement {
			continue
		}
		list, _ := at(v, path[:i])
		items, _ := list.([]any)
		var out [][]string
		for j := range items {
			out = append(out, spread(v, below(append(slices.Clone(path[:i]), strconv.Itoa(j)), path[i+1:]...))...)
		}
		return out
	}
	if _, ok := at(v, path); !ok {
		return nil
	}
	return [][]string{slices.Clone(path)}
}
