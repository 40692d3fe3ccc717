package validate

import (
	"slices"

	first "github.com/santhosh-tekuri/jsonschema/v6"
)

// object proves that a value has no member that the schemas do not name, and
// proves each named member.
func (p *prover) object(at *first.Schema, c conjunction) {
	if i := slices.IndexFunc(c, closesByAdditional); i >= 0 {
		p.members(at, c, c[i:i+1])
		return
	}
	if i := slices.IndexFunc(c, closesByUnevaluated); i >= 0 {
		p.members(at, c, inPlace(c[i]))
		return
	}
	if p.use == UseExpect && slices.ContainsFunc(c, writtenOpen) {
		p.members(at, c, c)
		for _, s := range c {
			if more, ok := s.AdditionalProperties.(*first.Schema); ok && more.Bool == nil {
				p.value(conjunction{more})
			}
		}
		return
	}
	hint := "write additionalProperties: false; across allOf, oneOf, anyOf and if, unevaluatedProperties: false"
	if p.use == UseExpect {
		hint += "; where more members are expected, additionalProperties: true"
	}
	p.add(ruleOpen, at, "an object that may hold members nobody named", hint)
	p.members(at, c, c) // so that every mistake is told at once
}

func closesByAdditional(s *first.Schema) bool {
	switch v := s.AdditionalProperties.(type) {
	case bool:
		return !v
	case *first.Schema:
		return isFalse(v)
	}
	return false
}

// writtenOpen says that the author wrote additionalProperties and did not close.
func writtenOpen(s *first.Schema) bool {
	return s.AdditionalProperties != nil && !closesByAdditional(s)
}

// closesByUnevaluated holds where unevaluatedProperties is false and nothing
// below, in any branch, evaluates members that it does not name.
func closesByUnevaluated(s *first.Schema) bool {
	if !isFalse(s.UnevaluatedProperties) {
		return false
	}
	return !slices.ContainsFunc(inPlace(s), func(sub *first.Schema) bool {
		return writtenOpen(sub) || sub.UnevaluatedProperties != nil && !isFalse(sub.UnevaluatedProperties)
	})
}

// members proves each member that one of the naming schemas lets in. Its value
// obeys the schema that names it and every schema of the conjunction for it.
func (p *prover) members(at *first.Schema, c conjunction, naming []*first.Schema) {
	for _, s := range naming {
		for _, name := range sortedNames(s.Properties) {
			all := conjunction{s.Properties[name]}
			for _, other := range c {
				if sub := other.Properties[name]; sub != nil && sub != all[0] {
					all = append(all, sub)
				}
			}
			p.value(all)
		}
		for pattern, sub := range s.PatternProperties {
			p.value(conjunction{sub})
			if p.use != UseExpect && longestMatch(pattern.String()) < 0 {
				p.add(ruleOpen, at, "member names of any length", "bound the repetitions in patternProperties")
			}
		}
		if p.use != UseExpect && len(s.PatternProperties) > 0 && !slices.ContainsFunc(c, func(o *first.Schema) bool { return o.MaxProperties != nil }) {
			p.add(ruleOpen, at, "any number of members", "write maxProperties beside patternProperties")
		}
	}
}

// lintResultMaps refuses the keywords that let data name its own members. A
// name is text of the answer, and a map is a place for free text.
func lintResultMaps(doc any) []SchemaFinding {
	g := &guard{schemas: map[string]any{}, refs: map[string]string{}, below: map[string][]string{}, inPlace: map[string]bool{}}
	g.schema("", doc)
	g.found = nil
	for _, at := range sortedNames(g.schemas) {
		m, _ := g.schemas[at].(map[string]any)
		for _, name := range []string{"patternProperties", "propertyNames", "additionalProperties", "unevaluatedProperties"} {
			v, ok := m[name]
			if _, isBool := v.(bool); !ok || isBool && name != "patternProperties" && name != "propertyNames" {
				continue
			}
			g.add(ruleResultMap, at+"/"+name, "name every member under properties, or make a list of objects with each", "a result has named members only")
		}
	}
	return g.found
}
