package compare

import (
	"encoding/json"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// direction says how what a schema lets through has moved.
type direction uint8

const (
	unmoved direction = iota
	narrower
	wider
	different // in both directions, or it cannot be told
)

// and joins the directions of two rules that must both hold.
func (a direction) and(b direction) direction {
	switch {
	case a == unmoved || a == b:
		return b
	case b == unmoved:
		return a
	}
	return different
}

// finding is one place where two schemas differ.
type finding struct {
	what     string // narrower, wider, changed, described, added, required-added, removed, required-removed, now-required, now-optional, opened, closed
	at       string // JSON pointer in the schema
	path     string // dotted path of the member, "" for the top
	old, new string
}

// schemas compares two schemas after resolving their references.
type schemas struct {
	found []finding
}

// compareSchemas finds the differences of two schemas.
func compareSchemas(old, new *strictyaml.Node) []finding {
	s := &schemas{}
	a, okA := expand(old)
	b, okB := expand(new)
	if !okA || !okB {
		return []finding{{what: "changed"}}
	}
	s.compare(a, b, "", "")
	return s.found
}

func (s *schemas) say(what, at, path, old, new string) {
	s.found = append(s.found, finding{what, at, path, old, new})
}

// annotations say nothing about what is let through.
var annotations = []string{"$schema", "$comment", "title", "description", "examples", "deprecated"}

// nested are the keywords that have findings of their own.
var nested = []string{"properties", "required", "additionalProperties", "items"}

func (s *schemas) compare(old, new any, at, path string) {
	a, okA := old.(map[string]any)
	b, okB := new.(map[string]any)
	if !okA || !okB {
		if !validate.Equal(old, new) {
			s.say("changed", at, path, shortValue(old), shortValue(new))
		}
		return
	}
	if validate.Equal(a, b) {
		return
	}
	move, oldWords, newWords := unmoved, []string{}, []string{}
	described := false
	for _, key := range union(a, b) {
		x, hasX := a[key]
		y, hasY := b[key]
		if hasX == hasY && validate.Equal(x, y) || slices.Contains(nested, key) {
			continue
		}
		if slices.Contains(annotations, key) {
			described = true
			continue
		}
		one := keyword(key, a, b)
		if one == unmoved {
			continue
		}
		move = move.and(one)
		oldWords, newWords = append(oldWords, keyWords(key, x, hasX)), append(newWords, keyWords(key, y, hasY))
	}
	if what := map[direction]string{narrower: "narrower", wider: "wider", different: "changed"}[move]; what != "" {
		s.say(what, at, path, strings.Join(oldWords, ", "), strings.Join(newWords, ", "))
	} else if described {
		s.say("described", at, path, "", "")
	}
	s.objects(a, b, at, path)
	s.elements(a, b, at, path)
}

func keyWords(key string, v any, there bool) string {
	if !there {
		return "no " + key
	}
	return key + " " + shortValue(v)
}

// raising are bounds that narrow when they grow, lowering those that narrow
// when they shrink.
var (
	raising  = []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
	lowering = []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
	// lone are keywords that only narrow by being there.
	lone = []string{"pattern", "format", "multipleOf", "propertyNames", "not", "dependentRequired"}
)

// keyword says how one keyword has moved. The keywords told apart here hold
// independently of each other; whatever else changed is different.
func keyword(key string, a, b map[string]any) direction {
	x, hasX := a[key]
	y, hasY := b[key]
	switch {
	case key == "enum" || key == "const":
		return sets(values(a), values(b))
	case key == "type":
		return sets(types(x, hasX), types(y, hasY))
	case key == "uniqueItems":
		return presence(x == true, y == true)
	case slices.Contains(raising, key) || slices.Contains(lowering, key):
		return bound(key, x, y, hasX, hasY)
	case slices.Contains(lone, key) && hasX != hasY:
		return presence(hasX, hasY)
	}
	return different
}

func presence(old, new bool) direction {
	switch {
	case old == new:
		return unmoved
	case new:
		return narrower
	}
	return wider
}

func bound(key string, x, y any, hasX, hasY bool) direction {
	if hasX != hasY {
		return presence(hasX, hasY)
	}
	m, okM := x.(json.Number)
	n, okN := y.(json.Number)
	if !okM || !okN {
		return different
	}
	by := validate.Compare(n, m)
	if slices.Contains(lowering, key) {
		by = -by
	}
	switch {
	case by > 0:
		return narrower
	case by < 0:
		return wider
	}
	return unmoved
}

// values is the set that enum and const leave; nil where anything is left.
func values(s map[string]any) []any {
	set, is := s["enum"].([]any)
	one, fixed := s["const"]
	switch {
	case fixed && is:
		if slices.ContainsFunc(set, func(v any) bool { return validate.Equal(v, one) }) {
			return []any{one}
		}
		return []any{}
	case fixed:
		return []any{one}
	case is:
		return set
	}
	return nil
}

// types is the set of type names; nil where any is taken. Every integer is a
// number, which is so written as both.
func types(v any, there bool) []any {
	if !there {
		return nil
	}
	set, many := v.([]any)
	if !many {
		set = []any{v}
	}
	out := slices.Clone(set)
	if slices.Contains(out, any("number")) && !slices.Contains(out, any("integer")) {
		out = append(out, "integer")
	}
	return out
}

// sets compares two sets of which nil is the whole.
func sets(a, b []any) direction {
	if a == nil || b == nil {
		return presence(a != nil, b != nil)
	}
	gone, come := lacks(a, b), lacks(b, a)
	switch {
	case gone && come:
		return different
	case gone:
		return narrower
	case come:
		return wider
	}
	return unmoved
}

// lacks says whether b lacks an element of a.
func lacks(a, b []any) bool {
	return slices.ContainsFunc(a, func(x any) bool {
		return !slices.ContainsFunc(b, func(y any) bool { return validate.Equal(x, y) })
	})
}

func member(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// elements compares what lists hold.
func (s *schemas) elements(a, b map[string]any, at, path string) {
	x, hasX := a["items"]
	y, hasY := b["items"]
	switch {
	case hasX && hasY:
		if tangled(a, b, "prefixItems", "unevaluatedItems", "contains") && !validate.Equal(x, y) {
			s.say("changed", at+"/items", path+"[]", shortValue(x), shortValue(y))
			return
		}
		s.compare(x, y, at+"/items", path+"[]")
	case hasX != hasY && tangled(a, b, "prefixItems", "unevaluatedItems", "contains"):
		s.say("changed", at+"/items", path+"[]", keyWords("items", x, hasX), keyWords("items", y, hasY))
	case hasX:
		s.say("wider", at, path+"[]", keyWords("items", x, hasX), "no items")
	case hasY:
		s.say("narrower", at+"/items", path+"[]", "no items", keyWords("items", y, hasY))
	}
}

// tangled says whether a schema has a keyword whose meaning depends on others.
func tangled(a, b map[string]any, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		_, inA := a[k]
		_, inB := b[k]
		return inA || inB
	})
}
