package validate

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"

	first "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// The rules of a violation that are no keyword. Their ids are stable.
const (
	ruleDiffer      = "engines-differ"
	rulePlainFalse  = "false-schema"
	ruleEnginePanic = "engine-panic"
	ruleEngineError = "engine-error"
	ruleNotCompiled = "not-compiled"
	ruleValueType   = "value-type"
)

// Violation says where and how a value breaks a schema. Its words are ours,
// made from the kind of violation and its places; no engine's text is used,
// because engines quote the value.
type Violation struct {
	Rule          string // the keyword, or false-schema, engines-differ, engine-panic, engine-error, not-compiled, value-type
	SchemaPath    string // a pointer into the schema document
	InstancePath  string // a pointer into the value; member names are escaped and cut
	Message       string // for the operator; may name members, escaped and cut
	Reason        string // for the one who sent the value; holds nothing of it
	EnginesDiffer bool
}

const violationCap = 64 // violations rendered for one value; the rest is more of the same

// collect walks to the violations that say something. A failed choice (oneOf,
// anyOf, not, contains) is reported as itself: its branches would each complain.
func collect(e *first.ValidationError, out []Violation) []Violation {
	if len(out) >= violationCap {
		return out
	}
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, c := range e.Causes {
			out = collect(c, out)
		}
		if len(e.Causes) > 0 {
			return out
		}
	}
	return append(out, render(e))
}

func render(e *first.ValidationError) Violation {
	v := Violation{SchemaPath: fragment(e.SchemaURL), InstancePath: renderPath(e.InstanceLocation)}
	path := e.ErrorKind.KeywordPath()
	if len(path) > 0 {
		v.Rule = path[0]
		for _, p := range path {
			v.SchemaPath += "/" + escapeToken(p)
		}
	} else {
		v.Rule = falseRule(v.SchemaPath)
	}
	if _, isNot := e.ErrorKind.(*kind.Not); isNot {
		v.Rule = "not"
	}
	v.Message, v.Reason = sentences(e.ErrorKind)
	if n := len(e.InstanceLocation); n > 0 && v.Rule == "unevaluatedProperties" {
		// The engine points at the member itself; point at its object, as for
		// additionalProperties.
		v.InstancePath = renderPath(e.InstanceLocation[:n-1])
		v.Message, v.Reason = sentences(&kind.AdditionalProperties{Properties: e.InstanceLocation[n-1:]})
	}
	return v
}

// falseRule names the keyword whose schema is false; a member may bear the name
// of a keyword.
func falseRule(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	switch last {
	case "unevaluatedProperties", "unevaluatedItems", "items":
		if len(parts) < 2 || parts[len(parts)-2] != "properties" {
			return last
		}
	}
	return rulePlainFalse
}

// fragment is the pointer within the schema document; only its author writes it.
func fragment(location string) string {
	_, frag, _ := strings.Cut(location, "#")
	if plain, err := url.PathUnescape(frag); err == nil {
		return plain
	}
	return frag
}

// sentences gives the operator's sentence and, where that would show something
// of the value, another for its sender.
func sentences(k first.ErrorKind) (message, reason string) {
	switch k := k.(type) {
	case *kind.AdditionalProperties:
		return "holds members that the schema does not name: " + showNames(k.Properties), "holds a member that is not declared"
	case *kind.PropertyNames:
		return "holds a member whose name is not allowed: " + showName(k.Property), "holds a member whose name is not allowed"
	case *kind.FalseSchema:
		return "is not allowed here", "is not allowed"
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			return fmt.Sprintf("fits shapes %d and %d at once, must fit exactly one", k.Subschemas[0], k.Subschemas[1]), "fits more than one of the shapes"
		}
		return same("fits none of the shapes")
	case *kind.AnyOf:
		return same("fits none of the shapes")
	case *kind.Not:
		return same("has a form that is not allowed")
	case *kind.Type:
		return fmt.Sprintf("is %s, must be %s", k.Got, strings.Join(k.Want, " or ")), "must be " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return same("lacks " + strings.Join(k.Missing, ", "))
	case *kind.DependentRequired:
		return same("lacks " + strings.Join(k.Missing, ", ") + ", which must stand beside " + k.Prop)
	case *kind.Enum:
		return same("is none of the listed values")
	case *kind.Const:
		return same("is not the one value allowed")
	case *kind.Format:
		return same("is not of the format " + k.Want)
	case *kind.Pattern:
		return same("does not match the pattern")
	}
	return same(bounds(k))
}

func same(s string) (string, string) { return s, s }

// bounds gives the sentence of a broken bound. It tells the bound and for
// counts what came; the value itself is never shown.
func bounds(k first.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, must have at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, may have at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d elements, must have at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d elements, may have at most %d", k.Got, k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("has %d members, must have at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d members, may have at most %d", k.Got, k.Want)
	case *kind.UniqueItems:
		return "has the same element twice"
	case *kind.Contains, *kind.MinContains:
		return "has too few elements of the wanted form"
	case *kind.MaxContains:
		return "has too many elements of the wanted form"
	case *kind.Minimum:
		return "must not be below " + ratText(k.Want)
	case *kind.Maximum:
		return "must not be above " + ratText(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be above " + ratText(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be below " + ratText(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + ratText(k.Want)
	}
	return "does not fit"
}

// ratText writes a bound of the schema. Bounds come from decimals of at most 64
// digits; those that are no short decimal are written as fractions.
func ratText(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if n, exact := r.FloatPrec(); exact {
		return r.FloatString(n)
	}
	return r.String()
}

const shownNames = 3 // foreign member names that one message shows

func showNames(names []string) string {
	names = slices.Sorted(slices.Values(names))
	out := make([]string, 0, shownNames+1)
	for i, n := range names {
		if i == shownNames {
			out = append(out, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		out = append(out, showName(n))
	}
	return strings.Join(out, ", ")
}

// sortViolations gives a fixed order; the engine walks maps.
func sortViolations(found []Violation) {
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.InstancePath, b.InstancePath), cmp.Compare(a.SchemaPath, b.SchemaPath), cmp.Compare(a.Message, b.Message))
	})
}
