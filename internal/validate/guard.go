package validate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// keywordShape is the form that a keyword's value must have.
type keywordShape uint8

const (
	shapeSchema keywordShape = iota + 1
	shapeInPlace
	shapeInPlaceList
	shapeSchemaList
	shapeSchemaMap
	shapeInPlaceMap
	shapePatternMap
	shapeOnlyFalse
	shapeText
	shapeCount
	shapeNumber
	shapeBool
	shapeNames
	shapeNamesMap
	shapeType
	shapeEnum
	shapeAny
	shapeRef
	shapePattern
	shapeFormat
	shapeDialect
)

// keywords is the allow-list. What is missing is missing on purpose: $id and
// anchors move references, $dynamicRef and content* are read differently by the
// engines, default and nullable promise what no validator does.
var keywords = map[string]keywordShape{
	"$schema": shapeDialect, "$ref": shapeRef, "$defs": shapeSchemaMap, "$comment": shapeText,
	"title": shapeText, "description": shapeText, "examples": shapeAny, "deprecated": shapeBool,
	"type": shapeType, "enum": shapeEnum, "const": shapeAny, "format": shapeFormat,
	"allOf": shapeInPlaceList, "anyOf": shapeInPlaceList, "oneOf": shapeInPlaceList,
	"not": shapeInPlace, "if": shapeInPlace, "then": shapeInPlace, "else": shapeInPlace, "dependentSchemas": shapeInPlaceMap,
	"properties": shapeSchemaMap, "patternProperties": shapePatternMap, "additionalProperties": shapeSchema,
	"unevaluatedProperties": shapeSchema, "propertyNames": shapeSchema,
	"required": shapeNames, "dependentRequired": shapeNamesMap, "minProperties": shapeCount, "maxProperties": shapeCount,
	"prefixItems": shapeSchemaList, "items": shapeSchema, "contains": shapeSchema, "unevaluatedItems": shapeOnlyFalse,
	"minItems": shapeCount, "maxItems": shapeCount, "uniqueItems": shapeBool, "minContains": shapeCount, "maxContains": shapeCount,
	"minLength": shapeCount, "maxLength": shapeCount, "pattern": shapePattern,
	"minimum": shapeNumber, "maximum": shapeNumber, "exclusiveMinimum": shapeNumber, "exclusiveMaximum": shapeNumber, "multipleOf": shapeNumber,
}

// besideType names the types of which one must stand beside a bound.
var besideType = map[string][]string{
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"}, "exclusiveMinimum": {"integer", "number"},
	"exclusiveMaximum": {"integer", "number"}, "multipleOf": {"integer", "number"},
	"minLength": {"string"}, "maxLength": {"string"}, "pattern": {"string"}, "format": {"string"},
	"minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"},
	"minProperties": {"object"}, "maxProperties": {"object"},
}

const dialect = "https://json-schema.org/draft/2020-12/schema"

// guard walks the raw document: compilation drops unknown keywords, unknown
// formats and the like without a word.
type guard struct {
	found   []SchemaFinding
	schemas map[string]any      // every place where a schema stands
	refs    map[string]string   // place → place referred to
	below   map[string][]string // place → places of its subschemas
	inPlace map[string]bool     // places whose schema applies to the same value as its parent
}

// guardSchema finds what makes an engine's weak corner reachable, and what
// would be dropped silently.
func guardSchema(doc any) []SchemaFinding {
	g := &guard{schemas: map[string]any{}, refs: map[string]string{}, below: map[string][]string{}, inPlace: map[string]bool{}}
	if !isParsed(doc, 0) {
		g.add(ruleValue, "", "use numbers of at most 64 digits, and values that the parser makes", "the document holds what the parser does not make")
		return g.found
	}
	g.schema("", doc)
	g.references()
	if len(g.found) == 0 {
		g.shape()
	}
	return g.found
}

func (g *guard) add(rule, at, hint, format string, args ...any) {
	g.found = append(g.found, SchemaFinding{Rule: rule, Pointer: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (g *guard) schema(at string, v any) {
	g.schemas[at] = v
	switch v := v.(type) {
	case bool:
	case map[string]any:
		for _, name := range sortedNames(v) {
			g.keyword(at, name, v)
		}
	case nil:
		g.add(ruleNull, at, "leave the keyword out, or write a schema", "null stands where a schema belongs")
	default:
		g.add(ruleValue, at, "write a schema: an object, or false", "this is no schema")
	}
}

func (g *guard) child(parent, at string, v any) {
	g.below[parent] = append(g.below[parent], at)
	g.schema(at, v)
}

func (g *guard) inPlaceChild(parent, at string, v any) {
	g.inPlace[at] = true
	g.child(parent, at, v)
	if v == true {
		g.add(ruleTrue, at, "write the schema out, or drop this branch", "true accepts anything where it applies to the same value")
	}
}

func (g *guard) keyword(at, name string, schema map[string]any) {
	here, v := at+"/"+escapeToken(name), schema[name]
	shape, known := keywords[name]
	if !known {
		g.add(ruleKeyword, here, keywordHint(name), "the keyword %q is not allowed in a contract", name)
		return
	}
	g.beside(at, name, schema)
	switch shape {
	case shapeSchema:
		g.child(at, here, v)
	case shapeInPlace:
		g.inPlaceChild(at, here, v)
	case shapeInPlaceList, shapeSchemaList:
		g.list(at, here, v, shape == shapeInPlaceList)
	case shapeSchemaMap, shapeInPlaceMap, shapePatternMap:
		g.byName(at, here, v, shape)
	case shapeOnlyFalse:
		g.schemas[here] = v
		if v != false {
			g.add(ruleUnevaluated, here, "use items, or unevaluatedItems: false", "unevaluatedItems may only be false")
		}
	case shapeRef:
		g.ref(at, here, v)
	default:
		g.plain(here, name, shape, v)
	}
}

func (g *guard) list(at, here string, v any, inPlace bool) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		g.add(ruleEmpty, here, "list at least one schema, or drop the keyword", "this is not a list of one or more schemas")
		return
	}
	for i, s := range list {
		place := here + "/" + strconv.Itoa(i)
		if inPlace {
			g.inPlaceChild(at, place, s)
		} else {
			g.child(at, place, s)
		}
	}
}

func (g *guard) byName(at, here string, v any, shape keywordShape) {
	m, ok := v.(map[string]any)
	if !ok {
		g.add(ruleValue, here, "write a map of schemas", "this is not a map of schemas")
		return
	}
	for _, name := range sortedNames(m) {
		place := here + "/" + escapeToken(name)
		if shape == shapePatternMap {
			g.pattern(place, name)
		}
		if shape == shapeInPlaceMap {
			g.inPlaceChild(at, place, m[name])
		} else if strings.HasSuffix(here, "/$defs") {
			g.schema(place, m[name]) // applies only through a reference
		} else {
			g.child(at, place, m[name])
		}
	}
}

func (g *guard) beside(at, name string, schema map[string]any) {
	wanted := besideType[name]
	if wanted == nil {
		return
	}
	types, _ := schema["type"].([]any)
	if t, ok := schema["type"].(string); ok {
		types = []any{t}
	}
	for _, w := range wanted {
		if slices.Contains(types, any(w)) {
			return
		}
	}
	g.add(ruleBeside, at+"/"+name, "write type: "+wanted[0]+" in the same schema", "%s binds nothing unless type says %s", name, strings.Join(wanted, " or "))
}

func (g *guard) pattern(at, p string) {
	for _, why := range LintPattern(p) {
		if why == costComplaint {
			g.add(ruleCost, at, "repeat single classes, and put a character between two repetitions that neither of them takes", "%s", why)
			continue
		}
		g.add(rulePattern, at, "spell out what may stand there, as in ^[a-z0-9][a-z0-9-]{2,62}$", "%s", why)
	}
}

// ref takes a reference within the document; references decides whether a
// schema stands there.
func (g *guard) ref(at, here string, v any) {
	s, ok := v.(string)
	target, local := strings.CutPrefix(s, "#")
	if _, err := ParsePointer(target); !ok || !local || err != nil || strings.ContainsAny(s, "%") {
		g.add(ruleRef, here, "put the schema under $defs and write #/$defs/NAME", "only references within the document are followed")
		return
	}
	g.refs[at] = target
}

func (g *guard) references() {
	for _, at := range sortedNames(g.refs) {
		target, here := g.refs[at], at+"/$ref"
		v, ok := g.schemas[target]
		switch {
		case !ok:
			g.add(ruleRef, here, "check the spelling under $defs", "no schema stands at #%s", target)
		case v == true:
			g.add(ruleTrue, here, "write the schema out", "refers to true, which accepts anything")
		}
	}
}

// expandedSize bounds the work of one validation: references make a graph whose
// paths can be exponentially many even without recursion.
const expandedSize = 20_000

// shape refuses recursion and graphs that unfold too far.
func (g *guard) shape() {
	const open = -1
	size := map[string]int{}
	var visit func(at string) int
	visit = func(at string) int {
		if n, seen := size[at]; seen {
			if n == open {
				g.add(ruleRecursion, at, "write out the levels that you need", "the schema refers to itself")
				size[at] = 1
			}
			return size[at]
		}
		size[at] = open
		n := 1
		for _, b := range g.below[at] {
			n += visit(b)
		}
		if target, ok := g.refs[at]; ok {
			n += visit(target)
		}
		size[at] = min(n, expandedSize+1)
		return size[at]
	}
	for _, at := range sortedNames(g.schemas) {
		visit(at)
	}
	if size[""] > expandedSize && len(g.found) == 0 {
		g.add(ruleTooLarge, "", "use fewer references to large schemas", "with its references followed the schema has more than %d parts", expandedSize)
	}
}

// plain checks a keyword whose value is no schema.
func (g *guard) plain(here, name string, shape keywordShape, v any) {
	bad := ""
	switch shape {
	case shapeText:
		if _, ok := v.(string); !ok {
			bad = "must be text"
		}
	case shapeBool:
		if _, ok := v.(bool); !ok {
			bad = "must be true or false"
		}
	case shapeCount:
		if !isCount(v) {
			bad = "must be a whole number from 0 to 1000000000"
		}
	case shapeNumber:
		n, ok := v.(json.Number)
		if !ok || name == "multipleOf" && Compare(n, "0") <= 0 {
			bad = "must be a number (multipleOf: above 0)"
		}
	case shapeNames:
		bad = namesTrouble(v)
	case shapeNamesMap:
		m, ok := v.(map[string]any)
		if !ok {
			bad = "must be a map of lists of names"
		}
		for _, list := range m {
			bad += namesTrouble(list)
		}
	case shapeType:
		g.types(here, v)
	case shapeEnum:
		g.enum(here, v)
	case shapePattern:
		if s, ok := v.(string); ok {
			g.pattern(here, s)
		} else {
			bad = "must be text"
		}
	case shapeFormat:
		g.format(here, v)
	case shapeDialect:
		if v != dialect || here != "/$schema" {
			g.add(ruleDialect, here, "leave it out, or write "+dialect+" at the top", "only draft 2020-12, said once at the top")
		}
	}
	if bad != "" {
		g.add(ruleValue, here, "see JSON Schema draft 2020-12, "+name, "%s %s", name, bad)
	}
}

func (g *guard) format(here string, v any) {
	s, _ := v.(string)
	if _, ok := formats[s]; !ok {
		known := strings.Join(sortedNames(formats), ", ")
		g.add(ruleFormat, here, "use one of "+known+", or a pattern", "this format is not checked here")
	}
}

var typeNames = []any{"null", "boolean", "object", "array", "number", "string", "integer"}

func (g *guard) types(here string, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		g.add(ruleEmpty, here, "name at least one type", "an empty list of types")
	}
	for i, t := range list {
		if _, text := t.(string); !text || !slices.Contains(typeNames, t) || slices.Contains(list[:i], t) {
			g.add(ruleValue, here, "use each of null, boolean, object, array, number, string, integer at most once", "not a type of JSON Schema, or the same one twice")
			return
		}
	}
}

func (g *guard) enum(here string, v any) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		g.add(ruleEmpty, here, "list at least one value", "this is not a list of one or more values")
		return
	}
	texts := make(map[string]bool, len(list)) // enums of texts may be long
	for i, a := range list {
		text, isText := a.(string)
		twice := isText && texts[text] || !isText && slices.ContainsFunc(list[:i], func(b any) bool { return Equal(a, b) })
		if texts[text] = isText || texts[text]; twice {
			g.add(ruleValue, here, "list each value once", "the same value twice")
			return
		}
	}
}

// countCeiling keeps counts within an int of 32 bits; one engine overflows
// beyond that and then accepts anything.
const countCeiling = "1000000000"

func isCount(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	d, ok := parseDecimal(n)
	return ok && d.isInteger() && d.sign() >= 0 && Compare(n, countCeiling) <= 0
}

func namesTrouble(v any) string {
	list, ok := v.([]any)
	if !ok {
		return "must be a list of names"
	}
	for i, e := range list {
		if _, text := e.(string); !text || slices.Contains(list[:i], e) {
			return "must list different names"
		}
	}
	return ""
}
