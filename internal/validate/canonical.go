package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Canonical writes a parsed value in the one spelling that digests are taken
// of: members sorted by code point, no space, exact decimals normalised, only
// the escapes that JSON demands. It panics on a value that Parse cannot make,
// because a digest of something else would be worse.
func Canonical(v any) []byte { return appendCanonical(make([]byte, 0, roomFor(v)), v) }

// roomFor is about what a value takes in its canonical form: a digest is taken of
// every schema and file, and what grows by doubling leaves as much again behind.
func roomFor(v any) int {
	const mark = 8 // quotes, comma, colon, true, a short number
	switch v := v.(type) {
	case string:
		return len(v) + mark
	case json.Number:
		return len(v) + mark
	case []any:
		room := mark
		for _, e := range v {
			room += roomFor(e)
		}
		return room
	case map[string]any:
		room := mark
		for name, e := range v {
			room += len(name) + mark + roomFor(e)
		}
		return room
	}
	return mark
}

func appendCanonical(out []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		if v {
			return append(out, "true"...)
		}
		return append(out, "false"...)
	case string:
		return appendText(out, v)
	case json.Number:
		d, ok := parseDecimal(v)
		if !ok {
			panic("validate: Canonical of a number that is not JSON")
		}
		return append(out, d.canonical()...)
	case []any:
		out = append(out, '[')
		for i, e := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, e)
		}
		return append(out, ']')
	case map[string]any:
		out = append(out, '{')
		for i, name := range sortedNames(v) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, name), ':')
			out = appendCanonical(out, v[name])
		}
		return append(out, '}')
	}
	panic(fmt.Sprintf("validate: Canonical of a %T, which Parse does not make", v))
}

// sortedNames lists a map's names by code point. It knows how many there are,
// which slices.Sorted does not: many maps are walked while a set is loaded.
func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

const hexDigits = "0123456789abcdef"

// appendText writes a string. Sorting bytes of UTF-8 is sorting code points.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		out = append(append(out, s[from:i]...), '\\')
		from = i + 1
		switch c {
		case '"', '\\':
			out = append(out, c)
		case '\b':
			out = append(out, 'b')
		case '\f':
			out = append(out, 'f')
		case '\n':
			out = append(out, 'n')
		case '\r':
			out = append(out, 'r')
		case '\t':
			out = append(out, 't')
		default:
			out = append(out, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(out, s[from:]...), '"')
}

// Equal is equality of JSON values: numbers by exact decimal value, objects
// without regard to order. Values of different types are never equal.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case json.Number:
		b, ok := b.(json.Number)
		return ok && Compare(a, b) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	}
	return false
}

// identical is Equal where numbers have the same spelling too.
func identical(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, identical)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, identical)
	}
	return a == b
}

// clone copies a parsed value, so that what is built shares nothing with the
// answer it was picked from.
func clone(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = clone(e)
		}
		return out
	}
	return v
}
