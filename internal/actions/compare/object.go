package compare

import (
	"slices"

	"chatelaine/internal/validate"
)

// openness says what an object does with a member that it has no property for.
type openness uint8

const (
	closed openness = iota + 1
	open
	tied // it depends on other keywords
)

func opennessOf(s map[string]any) openness {
	extra, written := s["additionalProperties"]
	if written && extra == false {
		return closed
	}
	for _, key := range []string{"unevaluatedProperties", "patternProperties"} {
		if _, ok := s[key]; ok {
			return tied
		}
	}
	if !written || extra == true {
		return open
	}
	return tied
}

// objects compares members, required and what is open.
func (s *schemas) objects(a, b map[string]any, at, path string) {
	props := func(m map[string]any) map[string]any { p, _ := m["properties"].(map[string]any); return p }
	x, y := props(a), props(b)
	before, after := opennessOf(a), opennessOf(b)
	if before == tied || after == tied {
		s.tied(a, b, at, path)
	} else if before != after {
		what := "opened"
		if after == closed {
			what = "closed"
		}
		s.say(what, at+"/additionalProperties", path, "", "")
	}
	for _, name := range union(x, y) {
		p, inX := x[name]
		q, inY := y[name]
		there := at + "/properties/" + escape(name)
		needA, needB := requires(a, name), requires(b, name)
		switch {
		case inX && inY:
			s.compare(p, q, there, member(path, name))
			s.required(needA, needB, there, member(path, name))
		case before == open && after == open:
			s.free(p, q, inY, needA || needB, there, member(path, name))
		case before == tied || after == tied || before != after:
			s.say("changed", there, member(path, name), keyWords(name, p, inX), keyWords(name, q, inY))
		case inY:
			s.say(requiredMark(needB)+"added", there, member(path, name), "", shortValue(q))
		default:
			s.say(requiredMark(needA)+"removed", there, member(path, name), shortValue(p), "")
		}
	}
	// A required name without a property of that name.
	for _, name := range requiredNames(a, b) {
		_, inX := x[name]
		_, inY := y[name]
		if !inX && !inY {
			s.required(requires(a, name), requires(b, name), at, member(path, name))
		}
	}
}

// free is a property that comes to, or goes from, an object that takes any
// member: it only binds what was free.
func (s *schemas) free(p, q any, comes, needed bool, at, path string) {
	switch {
	case needed:
		s.say("changed", at, path, shortValue(p), shortValue(q))
	case comes:
		s.say("narrower", at, path, "anything", shortValue(q))
	default:
		s.say("wider", at, path, shortValue(p), "anything")
	}
}

// tied compares the keywords of an object whose openness depends on others.
func (s *schemas) tied(a, b map[string]any, at, path string) {
	x, hasX := a["additionalProperties"]
	y, hasY := b["additionalProperties"]
	if hasX != hasY || !validate.Equal(x, y) {
		s.say("changed", at, path, keyWords("additionalProperties", x, hasX), keyWords("additionalProperties", y, hasY))
	}
}

func (s *schemas) required(before, after bool, at, path string) {
	switch {
	case after && !before:
		s.say("now-required", at, path, "", "")
	case before && !after:
		s.say("now-optional", at, path, "", "")
	}
}

func requiredMark(required bool) string {
	if required {
		return "required-"
	}
	return ""
}

func requires(s map[string]any, name string) bool {
	names, _ := s["required"].([]any)
	return slices.Contains(names, any(name))
}

func requiredNames(a, b map[string]any) []string {
	var out []string
	for _, s := range []map[string]any{a, b} {
		names, _ := s["required"].([]any)
		for _, n := range names {
			if name, ok := n.(string); ok && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}
