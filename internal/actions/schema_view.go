package actions

import (
	"encoding/json"
	"slices"
	"strings"
)

// kind is what the loader knows about a value before any call.
type kind uint8

const (
	kindAny kind = iota // not known, or anything will do
	kindText
	kindNumber
	kindBool
	kindList
	kindObject
	kindNull
	kindScalar // wanted only: text, number or true/false
)

func (k kind) String() string {
	return [...]string{"a value", "text", "a number", "true or false", "a list", "an object", "null", "one plain value"}[k]
}

// fits says whether a value of kind k may stand where want is wanted.
func (k kind) fits(want kind) bool {
	switch {
	case k == kindAny || want == kindAny || k == want:
		return true
	case want == kindScalar:
		return k == kindText || k == kindNumber || k == kindBool
	}
	return false
}

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return kindNull
	case string:
		return kindText
	case json.Number:
		return kindNumber
	case bool:
		return kindBool
	case []any:
		return kindList
	case map[string]any:
		return kindObject
	}
	return kindAny
}

// schemaKind reads a schema's type; several types, or none, are kindAny.
func schemaKind(s map[string]any) kind {
	if t, ok := s["type"].(string); ok {
		return map[string]kind{
			"string": kindText, "integer": kindNumber, "number": kindNumber, "boolean": kindBool,
			"array": kindList, "object": kindObject, "null": kindNull,
		}[t]
	}
	if v, ok := s["const"]; ok {
		return kindOf(v)
	}
	if vs, ok := s["enum"].([]any); ok && len(vs) > 0 {
		k := kindOf(vs[0])
		for _, v := range vs {
			if kindOf(v) != k {
				return kindAny
			}
		}
		return k
	}
	return kindAny
}

// schemaView looks into an input schema without validating anything.
type schemaView struct{ root map[string]any }

// refDepth bounds following $ref; the schema lint refuses recursion anyway.
const refDepth = 16

// resolve follows local references.
func (v schemaView) resolve(s map[string]any) map[string]any {
	for range refDepth {
		ref, ok := s["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#/") {
			return s
		}
		var at any = v.root
		for _, tok := range strings.Split(ref[2:], "/") {
			m, ok := at.(map[string]any)
			if !ok {
				return s
			}
			at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)]
		}
		next, ok := at.(map[string]any)
		if !ok {
			return s
		}
		s = next
	}
	return s
}

// property follows a dotted path from a schema. required says that a valid
// input always has the value; names are the properties known where it failed.
func (v schemaView) property(from map[string]any, path string) (s map[string]any, required bool, names []string) {
	s, required = v.resolve(from), true
	for _, name := range strings.Split(path, ".") {
		props, _ := s["properties"].(map[string]any)
		next, ok := props[name].(map[string]any)
		if !ok {
			for k := range props {
				names = append(names, k)
			}
			slices.Sort(names)
			return nil, false, names
		}
		req, _ := s["required"].([]any)
		required = required && slices.Contains(req, any(name))
		s = v.resolve(next)
	}
	return s, required, nil
}

// items returns the schema of a list's elements.
func (v schemaView) items(s map[string]any) map[string]any {
	it, _ := s["items"].(map[string]any)
	return v.resolve(it)
}

// members collects the property names that a value of the schema may have, at
// any depth.
func (v schemaView) members(s map[string]any, depth int) []string {
	if s == nil || depth == 0 {
		return nil
	}
	s = v.resolve(s)
	var out []string
	props, _ := s["properties"].(map[string]any)
	for _, name := range sortedKeys(props) {
		out = append(out, name)
		sub, _ := props[name].(map[string]any)
		out = append(out, v.members(sub, depth-1)...)
	}
	for _, key := range []string{"items", "if", "then", "else"} {
		sub, _ := s[key].(map[string]any)
		out = append(out, v.members(sub, depth-1)...)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		subs, _ := s[key].([]any)
		for _, sub := range subs {
			m, _ := sub.(map[string]any)
			out = append(out, v.members(m, depth-1)...)
		}
	}
	return out
}

// names collects every property name of the schema, at any depth, with its
// pointer.
func (v schemaView) names() map[string]string {
	out := map[string]string{}
	var walk func(x any, ptr string)
	walk = func(x any, ptr string) {
		switch x := x.(type) {
		case map[string]any:
			for k, sub := range x {
				at := ptr + "/" + escapePointer(k)
				if props, ok := sub.(map[string]any); ok && k == "properties" {
					for name := range props {
						out[at+"/"+escapePointer(name)] = name
					}
				}
				if k != "enum" && k != "const" && k != "examples" {
					walk(sub, at)
				}
			}
		case []any:
			for i, sub := range x {
				walk(sub, ptr+"/"+itoa(i))
			}
		}
	}
	walk(v.root, "")
	return out
}

func escapePointer(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

// walkPath follows a dotted path through nested maps.
func walkPath(m map[string]any, path string) (any, bool) {
	var at any = m
	for _, name := range strings.Split(path, ".") {
		o, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = o[name]; !ok {
			return nil, false
		}
	}
	return at, true
}
