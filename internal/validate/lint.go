package validate

import (
	"cmp"
	"slices"
)

// SchemaUse says what a schema guards, and so how strict its lint is.
type SchemaUse uint8

// The uses of a schema. The zero value is none of them; it is linted as the
// strictest, a result.
const (
	UseInput    SchemaUse = iota + 1 // what an agent may say: closed and bounded
	UseResult                        // evidence: closed, bounded and without free text
	UseExpect                        // an upstream body: closed unless additionalProperties: true is written out
	UseEnvelope                      // what leaves on a listener: closed and bounded
)

// The rules of LintSchema. Their ids are stable.
const (
	ruleKeyword     = "schema-keyword"
	ruleDialect     = "schema-dialect"
	ruleRef         = "schema-ref"
	ruleRecursion   = "schema-recursion"
	ruleTrue        = "schema-true"
	ruleEmpty       = "schema-empty"
	ruleNull        = "schema-null"
	ruleFormat      = "schema-format"
	rulePattern     = "schema-pattern"
	ruleCost        = "schema-pattern-cost"
	ruleBeside      = "schema-type-beside-bound"
	ruleValue       = "schema-value"
	ruleTooLarge    = "schema-too-large"
	ruleCompile     = "schema-compile"
	ruleOpen        = "schema-open-object"
	ruleUntyped     = "schema-untyped"
	ruleFreeString  = "schema-unbounded-string"
	ruleFreeArray   = "schema-unbounded-array"
	ruleFreeNumber  = "schema-unbounded-number"
	ruleFreeText    = "result-free-text"
	ruleResultMap   = "result-map"
	ruleUnevaluated = "schema-unevaluated-items"
)

// SchemaFinding is one thing that a schema may not do here.
type SchemaFinding struct {
	Rule    string // a stable id
	Pointer string // where, a JSON pointer into the schema document
	Message string
	Hint    string // the way out
}

// LintSchema returns everything that is wrong with a schema for its use; none
// means that it is proved closed and, but for UseExpect, bounded. The proof
// covers what the schema can say, not what an engine does with it: two engines
// must still accept each value. doc is a value that Parse makes.
func LintSchema(doc any, use SchemaUse) []SchemaFinding {
	var found []SchemaFinding
	key, parsed := schemaKey(doc)
	s := keptSchema(key)
	if !parsed || s == nil { // a kept one has passed the guard
		found = guardSchema(doc)
	}
	if use != UseInput && use != UseExpect && use != UseEnvelope {
		found = append(found, lintResultMaps(doc)...)
	}
	if len(found) == 0 {
		found = proveSchema(doc, use, key, s)
	}
	slices.SortStableFunc(found, func(a, b SchemaFinding) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(found)
}
