package validate

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	first "github.com/santhosh-tekuri/jsonschema/v6"
)

// A conjunction is a list of schemas that all hold for one value. References
// and allOf are unfolded into it; of oneOf, anyOf and if one choice was made.
type conjunction []*first.Schema

// alternativeCap bounds the choices that one value's proof looks at. It grows
// as a product, so a contract that reaches it cannot be reviewed either.
const alternativeCap = 2048

// prover shows, value by value, that every conjunction which can hold is closed
// and bounded. What it cannot show it reports; it never assumes.
type prover struct {
	use     SchemaUse
	found   []SchemaFinding
	visited map[string]bool
}

// proveSchema proves a document that guardSchema found nothing in, on the
// graph that the first engine compiled, with every reference resolved.
// s is the document compiled, nil where nobody has done that yet.
func proveSchema(doc any, use SchemaUse, key [sha256.Size]byte, s *Schema) []SchemaFinding {
	var err error
	if s == nil {
		if s, err = compileBoth("schema", clone(doc)); err == nil {
			keepSchema(key, s)
		}
	}
	if err != nil {
		return []SchemaFinding{{Rule: ruleCompile, Message: "does not compile: " + err.Error(), Hint: "write it in JSON Schema draft 2020-12"}}
	}
	p := &prover{use: use, visited: map[string]bool{}}
	p.value(conjunction{s.first})
	return p.found
}

func (p *prover) isResult() bool {
	return p.use != UseInput && p.use != UseExpect && p.use != UseEnvelope
}

func (p *prover) add(rule string, at *first.Schema, message, hint string) {
	p.found = append(p.found, SchemaFinding{Rule: rule, Pointer: fragment(at.Location), Message: message, Hint: hint})
}

// value proves everything that may hold for a value under all of the schemas.
func (p *prover) value(all conjunction) {
	choices := []conjunction{{}}
	for _, s := range all {
		choices = product(choices, unfold(s))
		if len(choices) > alternativeCap {
			p.add(ruleTooLarge, all[0], fmt.Sprintf("more than %d combinations of branches hold here", alternativeCap), "use fewer oneOf, anyOf and if in one place")
			return
		}
	}
	for _, c := range choices {
		key := c.key()
		if !p.visited[key] {
			p.visited[key] = true
			p.choice(all[0], c)
		}
	}
}

func (c conjunction) key() string {
	places := make([]string, len(c))
	for i, s := range c {
		places[i] = s.Location
	}
	slices.Sort(places)
	return strings.Join(slices.Compact(places), "\n")
}

// unfold lists the conjunctions of which one holds wherever s holds.
func unfold(s *first.Schema) []conjunction {
	if isFalse(s) {
		return nil
	}
	out := []conjunction{{s}}
	if s.Ref != nil {
		out = product(out, unfold(s.Ref))
	}
	for _, sub := range s.AllOf {
		out = product(out, unfold(sub))
	}
	for _, branches := range [][]*first.Schema{s.AnyOf, s.OneOf} {
		if len(branches) == 0 {
			continue
		}
		var either []conjunction
		for _, b := range branches {
			either = append(either, unfold(b)...)
		}
		out = product(out, either)
	}
	if s.If != nil {
		yes, no := unfold(s.If), []conjunction{{}}
		if s.Then != nil {
			yes = product(yes, unfold(s.Then))
		}
		if s.Else != nil {
			no = unfold(s.Else)
		}
		out = product(out, append(yes, no...))
	}
	return out
}

// product joins each with each. It stops growing just beyond the cap, where
// value gives up.
func product(a, b []conjunction) []conjunction {
	var out []conjunction
	for _, x := range a {
		for _, y := range b {
			out = append(out, slices.Concat(x, y))
			if len(out) > alternativeCap {
				return out
			}
		}
	}
	return out
}

func isFalse(s *first.Schema) bool { return s != nil && s.Bool != nil && !*s.Bool }

// choice proves one conjunction; at is where its value is described.
func (p *prover) choice(at *first.Schema, c conjunction) {
	allowed := map[string]bool{}
	for _, t := range []string{"object", "array", "string", "number"} {
		allowed[t] = true
	}
	typed := false
	for _, s := range c {
		if s.Const != nil || s.Enum != nil {
			return // nothing but the author's own values
		}
		if s.Types == nil {
			continue
		}
		typed = true
		names := s.Types.ToStrings()
		for t := range allowed {
			if !slices.Contains(names, t) && !(t == "number" && slices.Contains(names, "integer")) {
				delete(allowed, t)
			}
		}
	}
	if !typed {
		p.add(ruleUntyped, at, "says no type, so anything passes", "write type; for an object of no interest {type: object, additionalProperties: true} in expect")
		return
	}
	if allowed["object"] {
		p.object(at, c)
	}
	if allowed["array"] {
		p.array(at, c)
	}
	if allowed["string"] {
		p.text(at, c)
	}
	if allowed["number"] {
		p.number(at, c)
	}
}

// text proves a string bounded; in a result, that it is no free text.
func (p *prover) text(at *first.Schema, c conjunction) {
	switch {
	case p.use == UseExpect:
	case p.isResult():
		evidence, short := slices.ContainsFunc(c, isEvidence), slices.ContainsFunc(c, shortText)
		if evidence && !short {
			p.add(ruleFreeText, at, fmt.Sprintf("text without a maxLength of at most %d", evidenceLength), "write maxLength beside the format or the pattern")
		} else if !evidence {
			p.add(ruleFreeText, at, "text that a sentence could stand in",
				fmt.Sprintf("use const, enum, format date-time, date or uuid, or an anchored pattern of bounded repetitions of listed characters without space; beside format and pattern write maxLength, at most %d; text for people belongs in display", evidenceLength))
		}
	default:
		if !slices.ContainsFunc(c, isBoundedText) {
			p.add(ruleFreeString, at, "a string of any length", "write maxLength, or enum, or an anchored pattern without * and +")
		}
	}
}

func isBoundedText(s *first.Schema) bool {
	return s.MaxLength != nil || s.Format != nil && finiteFormats[s.Format.Name] ||
		s.Pattern != nil && longestMatch(s.Pattern.String()) >= 0
}

// evidenceLength bounds a string of a result: longer than any id of the
// services that contracts were cut from, too short for a page.
const evidenceLength = 128

func shortText(s *first.Schema) bool { return s.MaxLength != nil && *s.MaxLength <= evidenceLength }

func isEvidence(s *first.Schema) bool {
	if s.Format != nil {
		switch s.Format.Name {
		case "date-time", "date", "uuid":
			return true
		}
	}
	return s.Pattern != nil && longestMatch(s.Pattern.String()) >= 0 && isWordPattern(s.Pattern.String())
}

func (p *prover) number(at *first.Schema, c conjunction) {
	if p.use == UseExpect {
		return
	}
	has := func(get func(*first.Schema) *big.Rat) bool {
		return slices.ContainsFunc(c, func(s *first.Schema) bool { return get(s) != nil })
	}
	low := has(func(s *first.Schema) *big.Rat { return s.Minimum }) || has(func(s *first.Schema) *big.Rat { return s.ExclusiveMinimum })
	high := has(func(s *first.Schema) *big.Rat { return s.Maximum }) || has(func(s *first.Schema) *big.Rat { return s.ExclusiveMaximum })
	if !low || !high {
		p.add(ruleFreeNumber, at, "a number of any size", "write minimum and maximum")
	}
}

// array proves the length bounded and every element described.
func (p *prover) array(at *first.Schema, c conjunction) {
	prefix, most, bounded := 0, 0, false
	var rest conjunction
	for _, s := range c {
		prefix = max(prefix, len(s.PrefixItems))
		if s.Items2020 != nil {
			rest = append(rest, s.Items2020)
		}
		if s.MaxItems != nil && (!bounded || *s.MaxItems < most) {
			most, bounded = *s.MaxItems, true
		}
	}
	for i := range prefix {
		var here conjunction
		for _, s := range c {
			if i < len(s.PrefixItems) {
				here = append(here, s.PrefixItems[i])
			} else if s.Items2020 != nil {
				here = append(here, s.Items2020)
			}
		}
		p.value(here)
	}
	if slices.ContainsFunc(rest, isFalse) || bounded && most <= prefix {
		return // only the prefix
	}
	covered := len(rest) > 0
	if covered {
		p.value(rest)
	} else if p.unevaluatedItems(c, prefix) {
		return // the prefixes of all branches, and nothing beyond them
	}
	switch {
	case !covered:
		p.add(ruleFreeArray, at, "elements that no schema describes", "write items")
	case !bounded && p.use != UseExpect:
		p.add(ruleFreeArray, at, "an array of any length", "write maxItems")
	}
}

// unevaluatedItems proves the elements after the prefix where only
// unevaluatedItems: false speaks of them. Whatever else could count as having
// evaluated one (items, contains) makes it give up.
func (p *prover) unevaluatedItems(c conjunction, prefix int) bool {
	for _, u := range c {
		if !isFalse(u.UnevaluatedItems) {
			continue
		}
		parts := inPlace(u)
		if slices.ContainsFunc(parts, func(s *first.Schema) bool { return s.Contains != nil || s.Items2020 != nil }) {
			continue
		}
		for _, s := range parts {
			for i := prefix; i < len(s.PrefixItems); i++ {
				p.value(conjunction{s.PrefixItems[i]})
			}
		}
		return true
	}
	return false
}

// inPlace lists s and every schema below it that may speak of the same value,
// in all branches.
func inPlace(s *first.Schema) []*first.Schema {
	out := []*first.Schema{s}
	for _, sub := range slices.Concat([]*first.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas))) {
		if sub != nil {
			out = append(out, inPlace(sub)...)
		}
	}
	return out
}
