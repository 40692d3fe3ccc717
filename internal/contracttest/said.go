package contracttest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// said is what a row's expect says about one place of an answer.
type said struct {
	schemas []map[string]any // every schema that applies there
	open    bool             // it lies where an object was opened in so many words
	free    bool             // a schema without any word stands there: true or {}
}

// named says that some schema was written for the place.
func (s said) named() bool { return len(s.schemas) > 0 || s.free }

// unsaid says that nobody wrote anything about the place.
func (s said) unsaid() bool { return !s.named() && !s.open }

// schemaDepth bounds references that lead to each other; the loader refuses
// those, so that it is never met.
const schemaDepth = 64

// saidOf follows path through the schema. A nil schema says nothing.
func saidOf(schema any, path []string) said {
	at := said{}
	at.take(schema, schema, 0)
	for _, token := range path {
		at = at.step(schema, token)
	}
	return at
}

// take adds a schema with every schema that applies in its place.
func (s *said) take(root, schema any, depth int) {
	if depth > schemaDepth {
		return
	}
	m, ok := schema.(map[string]any)
	if !ok {
		s.free = s.free || schema == true
		return
	}
	if len(m) == 0 {
		s.free = true
		return
	}
	s.schemas = append(s.schemas, m)
	if ref, ok := m["$ref"].(string); ok {
		s.take(root, referred(root, ref), depth+1)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[word].([]any)
		for _, sub := range list {
			s.take(root, sub, depth+1)
		}
	}
	for _, word := range []string{"then", "else"} {
		if sub, ok := m[word]; ok {
			s.take(root, sub, depth+1)
		}
	}
	deps, _ := m["dependentSchemas"].(map[string]any)
	for _, sub := range deps {
		s.take(root, sub, depth+1)
	}
}

func referred(root any, ref string) any {
	v := root
	for _, token := range split(strings.TrimPrefix(ref, "#")) {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[token]
	}
	return v
}

// step goes to a member or an element.
func (s said) step(root any, token string) said {
	out := said{}
	named := false
	index, err := strconv.Atoi(token)
	for _, m := range s.schemas {
		props, _ := m["properties"].(map[string]any)
		if sub, ok := props[token]; ok {
			out.take(root, sub, 0)
			named = true
		}
		patterns, _ := m["patternProperties"].(map[string]any)
		for p, sub := range patterns {
			if re, err := regexp.Compile(p); err == nil && re.MatchString(token) {
				out.take(root, sub, 0)
				named = true
			}
		}
		if err != nil {
			continue
		}
		if list, ok := m["prefixItems"].([]any); ok && index < len(list) {
			out.take(root, list[index], 0)
			named = true
		} else if sub, ok := m["items"]; ok {
			out.take(root, sub, 0)
			named = true
		}
	}
	if named {
		return out
	}
	return s.beyond(root, out)
}

// beyond is the place of a member that no schema names.
func (s said) beyond(root any, out said) said {
	out.open = s.open && len(s.schemas) == 0 || s.free
	for _, m := range s.schemas {
		for _, word := range []string{"additionalProperties", "unevaluatedProperties"} {
			sub, written := m[word]
			if !written || sub == false {
				continue
			}
			out.open = true
			if sub != true {
				out.take(root, sub, 0)
			}
		}
	}
	return out
}

// takesMore says that the object at this place was opened in so many words.
func (s said) takesMore() bool {
	if s.free || s.open && len(s.schemas) == 0 {
		return true
	}
	for _, m := range s.schemas {
		for _, word := range []string{"additionalProperties", "unevaluatedProperties"} {
			if sub, ok := m[word]; ok && sub != false {
				return true
			}
		}
		if _, ok := m["patternProperties"]; ok {
			return true
		}
	}
	return false
}

// takes says that some schema allows a value of the type in so many words.
func (s said) takes(v any) bool {
	if s.free {
		return true
	}
	name := typeName(v)
	for _, m := range s.schemas {
		if slices.Contains(typesOf(m), name) || name == "number" && slices.Contains(typesOf(m), "integer") {
			return true
		}
		if s.lists(v) {
			return true
		}
	}
	return false
}

// lists says that const or enum holds a value of the type of v, or v itself
// where it is text.
func (s said) lists(v any) bool {
	for _, m := range s.schemas {
		list, _ := m["enum"].([]any)
		if c, ok := m["const"]; ok {
			list = append(slices.Clone(list), c)
		}
		for _, e := range list {
			if text, ok := v.(string); ok {
				if e == text {
					return true
				}
			} else if typeName(e) == typeName(v) {
				return true
			}
		}
	}
	return false
}

// enum returns the values that the place may have, nil where they are not
// listed.
func (s said) enum() []any {
	for _, m := range s.schemas {
		if list, ok := m["enum"].([]any); ok {
			return list
		}
	}
	return nil
}

// number returns a keyword's whole number, the least where several say one.
func (s said) number(word string) (int, bool) {
	least, found := 0, false
	for _, m := range s.schemas {
		text, ok := m[word]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(numberText(text))
		if err == nil && (!found || n < least) {
			least, found = n, true
		}
	}
	return least, found
}

func typesOf(m map[string]any) []string {
	switch t := m["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, e := range t {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
