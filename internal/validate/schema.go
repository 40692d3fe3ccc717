package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	second "github.com/kaptinlin/jsonschema"
	first "github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL is the made-up place of every schema; nothing is ever loaded by it.
const schemaURL = "mem://contract/schema.json"

// Schema is a compiled JSON Schema of draft 2020-12, held by two independent
// engines that must both accept. It is safe for concurrent use. A nil Schema
// and the zero Schema refuse everything.
type Schema struct {
	name   string
	doc    any
	first  *first.Schema
	second *second.Schema

	patterned bool // has patternProperties

	later func() *Schema // gives the schema that holds the engines; nil where this one does
}

// SchemaError says why a schema was not compiled.
type SchemaError struct {
	Name     string
	Findings []SchemaFinding
}

// Error gives every finding, one after the other.
func (e *SchemaError) Error() string {
	parts := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		parts[i] = fmt.Sprintf("#%s: %s (%s)", f.Pointer, f.Message, f.Rule)
	}
	return e.Name + ": " + strings.Join(parts, "; ")
}

// CompileSchema compiles a document that Parse (or the contract loader) made.
// Formats are asserted, references are local, nothing is loaded from anywhere.
// What makes an engine's weak corner reachable is refused here, not only in
// LintSchema. An error is a *SchemaError. name is for the operator.
func CompileSchema(name string, doc any) (*Schema, error) {
	key, parsed := schemaKey(doc)
	if s := keptSchema(key); parsed && s != nil {
		own := s.doc // nobody changes it
		if !identical(own, doc) {
			own = clone(doc)
		}
		return &Schema{name: name, doc: own, first: s.first, second: s.second, patterned: s.patterned}, nil
	}
	doc = clone(doc)
	if found := guardSchema(doc); len(found) > 0 {
		return nil, &SchemaError{name, found}
	}
	s, err := compileBoth(name, doc)
	if err != nil {
		return nil, &SchemaError{name, []SchemaFinding{{
			Rule: ruleCompile, Message: "does not compile: " + err.Error(),
			Hint: "write it in JSON Schema draft 2020-12",
		}}}
	}
	keepSchema(key, s)
	return s, nil
}

// DeferSchema is CompileSchema for a document that the program makes itself out
// of parts that compiled: the guard looks at it now, the engines take it when it
// is first used, or when Usable is asked. Until then it costs little. Where they
// do not take it, it refuses everything. doc is the schema's from then on: nobody
// changes it.
func DeferSchema(name string, doc any) (*Schema, error) {
	if found := guardSchema(doc); len(found) > 0 {
		return nil, &SchemaError{name, found}
	}
	return &Schema{name: name, doc: doc, later: sync.OnceValue(func() *Schema {
		s, err := compileBoth(name, doc)
		if err != nil {
			return nil
		}
		return s
	})}, nil
}

// Usable says whether both engines have taken the schema, which it lets them do
// where that was deferred. Who sends something whose answer it must check asks
// before sending.
func (s *Schema) Usable() bool { return s.engines() != nil }

// engines returns the schema that holds both engines, nil where there is none.
func (s *Schema) engines() *Schema {
	if s != nil && s.later != nil {
		s = s.later()
	}
	if s == nil || s.first == nil || s.second == nil {
		return nil
	}
	return s
}

func compileBoth(name string, doc any) (s *Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, errors.New("an engine panicked over this schema")
		}
	}()
	a, err := compileFirst(doc)
	if err != nil {
		return nil, err
	}
	b, err := compileSecond(doc)
	if err != nil {
		return nil, err
	}
	return &Schema{name: name, doc: doc, first: a, second: b, patterned: hasPatterns(doc)}, nil
}

type denyLoader struct{}

func (denyLoader) Load(string) (any, error) { return nil, errors.New("nothing is loaded") }

// compileFirst uses a compiler of its own: Compile is not safe for concurrent
// use, and the default loader reads file URLs.
func compileFirst(doc any) (*first.Schema, error) {
	c := first.NewCompiler()
	c.DefaultDraft(first.Draft2020)
	c.UseLoader(denyLoader{})
	c.AssertFormat()
	c.UseRegexpEngine(compileKept)
	for name, ok := range formats {
		c.RegisterFormat(&first.Format{Name: name, Validate: func(v any) error {
			if s, is := v.(string); is && !ok(s) {
				return errFormat
			}
			return nil
		}})
	}
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// compileSecond uses a compiler of its own, because one that has seen an $id
// answers with the schema it saw first. Its loaders, decoders and media types
// are taken away: they read the network, XML and YAML.
func compileSecond(doc any) (*second.Schema, error) {
	c := second.NewCompiler()
	clear(c.Loaders)
	clear(c.Decoders)
	clear(c.MediaTypes)
	c.SetAssertFormat(true)
	for name, ok := range formats {
		c.RegisterFormat(name, func(v any) bool {
			s, is := v.(string)
			return !is || ok(s)
		})
	}
	s, err := c.Compile(Canonical(doc))
	if err != nil {
		return nil, err
	}
	if open := s.UnresolvedReferenceURIs(); len(open) > 0 {
		return nil, fmt.Errorf("%d references lead nowhere", len(open))
	}
	return s, nil
}

// Doc returns a copy of the document that the schema was compiled from.
func (s *Schema) Doc() any {
	if s == nil {
		return nil
	}
	return clone(s.doc)
}

// Validate returns nil when both engines accept v, which must be a value that
// Parse makes; otherwise the violation to report.
func (s *Schema) Validate(v any) *Violation {
	found := s.Violations(v, 1)
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// Violations returns at most max violations, in a fixed order; none means that
// both engines accept v. When the engines disagree the first one says so.
func (s *Schema) Violations(v any, max int) []Violation {
	if s = s.engines(); s == nil {
		return []Violation{{Rule: ruleNotCompiled, Message: "there is no compiled schema", Reason: "cannot be checked"}}
	}
	if !isParsed(v, 0) {
		return []Violation{{Rule: ruleValueType, Message: "holds a Go value that the parser does not make", Reason: "cannot be checked"}}
	}
	return s.ask(v, max)
}

// validateParsed is Validate for a value that this package has just parsed, so
// that a large body is not walked once more.
func (s *Schema) validateParsed(v any) *Violation {
	e := s.engines()
	if e == nil {
		return s.Validate(v)
	}
	found := e.ask(v, 1)
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// ask puts v to both engines.
func (s *Schema) ask(v any, max int) []Violation {
	if s.patterned && isWide(v) {
		return []Violation{{
			Rule: ruleWide, Message: fmt.Sprintf("an object has more than %d members, under a schema with patternProperties", patternMembers),
			Reason: "has too many members",
		}}
	}
	found, firstOK := runFirst(s.first, v)
	secondOK := runSecond(s.second, v)
	if firstOK && secondOK {
		return nil
	}
	sortViolations(found)
	if firstOK != secondOK {
		return []Violation{differ(found, firstOK)}
	}
	return found[:min(len(found), maxOf(max))]
}

func maxOf(n int) int { return max(n, 1) }

// differ reports a disagreement. Where the first engine refused, its place is
// told; the second has no complete places.
func differ(found []Violation, firstOK bool) Violation {
	v := Violation{Message: "santhosh-tekuri accepts and kaptinlin refuses"}
	if !firstOK {
		v = found[0]
		v.Message = "kaptinlin accepts and santhosh-tekuri refuses (" + v.Rule + "): " + v.Message
	}
	v.Rule, v.EnginesDiffer, v.Reason = ruleDiffer, true, "cannot be checked"
	return v
}

// runFirst asks santhosh-tekuri. A panic is a refusal.
func runFirst(s *first.Schema, v any) (found []Violation, ok bool) {
	defer func() {
		if recover() != nil {
			found, ok = []Violation{{Rule: ruleEnginePanic, Message: "the first engine panicked", Reason: "cannot be checked"}}, false
		}
	}()
	err := s.Validate(v)
	if err == nil {
		return nil, true
	}
	var ve *first.ValidationError
	if errors.As(err, &ve) {
		found = collect(ve, nil)
	}
	if len(found) == 0 {
		found = []Violation{{Rule: ruleEngineError, Message: "the first engine gave no reason", Reason: "does not fit"}}
	}
	return found, false
}

// runSecond asks kaptinlin. A panic is a refusal.
func runSecond(s *second.Schema, v any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return s.Validate(v).IsValid()
}

// parsedDepth is far beyond what Parse lets through; it stops a cyclic value.
const parsedDepth = 1000

// isParsed says whether v holds only the types that Parse makes. Both engines
// skip checks on other Go types.
func isParsed(v any, depth int) bool {
	if depth > parsedDepth {
		return false
	}
	switch v := v.(type) {
	case nil, bool, string:
		return true
	case json.Number:
		_, ok := parseDecimal(v)
		return ok && numberRule(string(v), AnswerLimits()) == ""
	case []any:
		for _, e := range v {
			if !isParsed(e, depth+1) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range v {
			if !isParsed(e, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
