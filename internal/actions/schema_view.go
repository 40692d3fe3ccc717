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
		return oneKind(vs, kindOf)
	}
	if subs, ok := s["anyOf"].([]any); ok && len(subs) > 0 {
		return oneKind(subs, func(v any) kind { m, _ := v.(map[string]any); return schemaKind(m) })
	}
	return kindAny
}

// oneKind returns the kind that all values have, kindAny where they differ.
func oneKind(vs []any, of func(any) kind) kind {
	k := of(vs[0])
	for _, v := range vs {
		if of(v) != k {
			return kindAny
		}
	}
	return k
}

// schemaView looks into an input schema without validating anything.
type schemaView struct{ root map[string]any }

// refDepth bounds following $ref; the schema lint refuses recursion anyway.
const refDepth = 16

// resolve follows local references. What stands beside a reference is left out.
func (v schemaView) resolve(s map[string]any) map[string]any {
	for range refDepth {
		next := v.referred(s)
		if next == nil {
			return s
		}
		s = next
	}
	return s
}

// referred returns the schema that the reference of s leads to, nil where it has
// none.
func (v schemaView) referred(s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok || !strings.HasPrefix(ref, "#/") {
		return nil
	}
	return schemaAt(v.root, ref[1:])
}

// flat joins a schema with everything that holds beside it by $ref and allOf,
// as far as the loader looks at schemas: the first word about a key stands, but
// properties and required are joined. Branches of which one holds are listed
// under anyOf. The result is not to be changed: a schema with nothing to join is
// its own.
func (v schemaView) flat(s map[string]any) map[string]any {
	if s == nil || isFlat(s) {
		return s
	}
	out := map[string]any{}
	props := map[string]any{}
	var required, branches []any
	for _, part := range v.conjunction(s, refDepth) {
		for k, x := range part {
			switch k {
			case "$ref", "allOf", "properties", "required", "anyOf", "oneOf", "then", "else", "if", "dependentSchemas", "$defs":
			default:
				if _, said := out[k]; !said {
					out[k] = x
				}
			}
		}
		named, _ := part["properties"].(map[string]any)
		for name, sub := range named {
			if other, twice := props[name]; twice {
				sub = map[string]any{"allOf": []any{other, sub}}
			}
			props[name] = sub
		}
		req, _ := part["required"].([]any)
		required = append(required, req...)
		branches = append(branches, branchesOf(part)...)
	}
	if len(props) > 0 {
		out["properties"] = props
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if len(branches) > 0 {
		out["anyOf"] = branches
	}
	return out
}

// joining are the keywords that put other schemas beside the one they stand in.
var joining = []string{"$ref", "allOf", "anyOf", "oneOf", "then", "else", "if", "dependentSchemas", "$defs"}

// isFlat says whether nothing is joined to a schema; most are such.
func isFlat(s map[string]any) bool {
	return !slices.ContainsFunc(joining, func(key string) bool { _, there := s[key]; return there })
}

// branchesOf lists the schemas of which one may hold beside a schema; the empty one
// stands for none of them. What stands under if holds wherever it is true, and lets
// in the members that it names.
func branchesOf(s map[string]any) []any {
	var out []any
	for _, key := range []string{"anyOf", "oneOf"} {
		subs, _ := s[key].([]any)
		out = append(out, subs...)
	}
	for _, key := range []string{"if", "then", "else"} {
		if sub, ok := s[key]; ok {
			out = append(out, sub)
		}
	}
	dependent, _ := s["dependentSchemas"].(map[string]any)
	for _, name := range sortedKeys(dependent) {
		out = append(out, dependent[name])
	}
	if s["if"] != nil && s["else"] == nil || len(dependent) > 0 {
		out = append(out, map[string]any{})
	}
	return out
}

// conjunction lists the schemas that all hold where s holds.
func (v schemaView) conjunction(s map[string]any, depth int) []map[string]any {
	out := []map[string]any{s}
	if depth == 0 {
		return out
	}
	if next := v.referred(s); next != nil {
		out = append(out, v.conjunction(next, depth-1)...)
	}
	subs, _ := s["allOf"].([]any)
	for _, sub := range subs {
		if m, ok := sub.(map[string]any); ok {
			out = append(out, v.conjunction(m, depth-1)...)
		}
	}
	return out
}

// property follows a dotted path from a schema, through $ref, allOf and the
// branches of which one holds. The schema found is flat. required says that a
// valid value always has it; names are the properties known where it failed.
func (v schemaView) property(from map[string]any, path string) (s map[string]any, required bool, names []string) {
	s, required = v.flat(from), true
	for _, name := range strings.Split(path, ".") {
		next, always := v.member(s, name)
		if next == nil {
			return nil, false, v.propertyNames(s, refDepth)
		}
		required = required && always
		s = next
	}
	return s, required, nil
}

// member returns the schema of one property of a flat schema, nil where it has
// none.
func (v schemaView) member(s map[string]any, name string) (sub map[string]any, required bool) {
	req, _ := s["required"].([]any)
	required = slices.Contains(req, any(name))
	props, _ := s["properties"].(map[string]any)
	if m, ok := props[name].(map[string]any); ok {
		return v.flat(m), required
	}
	var either []any
	branches, _ := s["anyOf"].([]any)
	for _, b := range branches {
		m, _ := b.(map[string]any)
		if m == nil {
			continue
		}
		if found, _ := v.member(v.flat(m), name); found != nil {
			either = append(either, found)
		}
	}
	switch len(either) {
	case 0:
		return nil, false
	case 1:
		only, _ := either[0].(map[string]any)
		return only, required
	}
	return map[string]any{"anyOf": either}, required
}

// propertyNames lists the properties that one of a value's schemas names.
func (v schemaView) propertyNames(s map[string]any, depth int) []string {
	props, _ := s["properties"].(map[string]any)
	out := sortedKeys(props)
	branches, _ := s["anyOf"].([]any)
	for _, b := range branches {
		if m, ok := b.(map[string]any); ok && depth > 0 {
			out = append(out, v.propertyNames(v.flat(m), depth-1)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// written returns the schema of a top-level property as it stands in the
// document, nil where it stands in none or in several places.
func (v schemaView) written(name string) map[string]any {
	var found []map[string]any
	for _, part := range v.conjunction(v.root, refDepth) {
		props, _ := part["properties"].(map[string]any)
		if m, ok := props[name].(map[string]any); ok {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// items returns the schema of a list's elements, one of several where the first
// ones have their own; nil where there is none.
func (v schemaView) items(s map[string]any) map[string]any {
	s = v.flat(s)
	it, ok := s["items"].(map[string]any)
	if !ok {
		return nil
	}
	first, _ := s["prefixItems"].([]any)
	if len(first) == 0 {
		return v.flat(it)
	}
	return map[string]any{"anyOf": append([]any{it}, first...)}
}

// members collects the property names that a value of the schema may have, at
// any depth.
func (v schemaView) members(s map[string]any, depth int) []string {
	var out []string
	v.eachObject(s, depth, func(part map[string]any) {
		props, _ := part["properties"].(map[string]any)
		out = append(out, sortedKeys(props)...)
	})
	return out
}

// namePatterns collects the patterns of the names that a value of the schema may
// choose for its members, at any depth.
func (v schemaView) namePatterns(s map[string]any, depth int) []string {
	var out []string
	v.eachObject(s, depth, func(part map[string]any) {
		named, _ := part["patternProperties"].(map[string]any)
		out = append(out, sortedKeys(named)...)
	})
	return out
}

// eachObject calls f with every schema that a value of s, or a part of it, may
// have to fit. What stands beside a reference counts as well as what it leads to.
func (v schemaView) eachObject(s map[string]any, depth int, f func(part map[string]any)) {
	if s == nil || depth == 0 {
		return
	}
	f(s)
	into := func(x any) {
		sub, _ := x.(map[string]any)
		v.eachObject(sub, depth-1, f)
	}
	into(v.referred(s))
	for _, key := range []string{"properties", "patternProperties", "dependentSchemas"} {
		subs, _ := s[key].(map[string]any)
		for _, name := range sortedKeys(subs) {
			into(subs[name])
		}
	}
	for _, key := range []string{"items", "if", "then", "else", "additionalProperties", "unevaluatedProperties"} {
		into(s[key])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		subs, _ := s[key].([]any)
		for _, sub := range subs {
			into(sub)
		}
	}
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

// The two directions of RFC 6901, section 3; a Replacer is costly to make.
var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

func escapePointer(s string) string {
	return pointerEscape.Replace(s)
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
