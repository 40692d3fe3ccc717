package actions

import (
	"slices"
	"strings"
	"testing"
)

// smuggled is a contract that tries to get something past the loader.
type smuggled struct {
	input, lookup, request, reconcile string
	want                              string // the rule that refuses it; "" where it is good
}

const (
	smuggledInput = `{type: object, additionalProperties: false, required: [id, name, thing], properties: {
    id: {type: string, pattern: '^r[0-9]{1,8}$', maxLength: 9},
    name: {type: string, pattern: '^[a-z]{1,20}$', maxLength: 20},
    thing: {type: object, additionalProperties: false, required: [app], properties: {app: {type: string, pattern: '^[a-z]{1,9}$', maxLength: 9}}}}}`
	smuggledEnd = "\n  outcomes:\n    - status: 201\n      media: none\n      success: {}\n"
)

func (s smuggled) text() string {
	once := "at_most_once: the service has no key\n"
	if s.reconcile != "" {
		once = "reconcile:\n  method: GET\n" + s.reconcile
	}
	if s.input == "" {
		s.input = smuggledInput
	}
	return `contract: v1
action: roll_out
version: 1.0.0
summary: Roll a version out.
owner: release team
effect: change
input: ` + s.input + `
route: {target: releases, with: {app: shop}}
approval: {sentence: "Roll it out"}
` + s.lookup + "request:\n  method: POST\n" + s.request + smuggledEnd +
		"result: {type: object, additionalProperties: false, properties: {id: {type: string, pattern: '^r[0-9]{1,9}$', maxLength: 10}}}\n" + once
}

func (s smuggled) holds(t *testing.T, name string) {
	t.Helper()
	_, ps := LoadSet(write(t, stepsSite, s.text()))
	var got []string
	for _, p := range ps {
		got = append(got, p.Rule)
	}
	if s.want == "" && len(ps) > 0 || s.want != "" && (len(got) == 0 || slices.ContainsFunc(got, func(r string) bool { return r != s.want })) {
		t.Errorf("%s: refused by %v, want %q:\n%s", name, got, s.want, strings.Join(told(ps), "\n"))
	}
}

// Members that a place in the body refuses stay out, wherever a schema hides them.
func TestHiddenMembers(t *testing.T) {
	body := func(thing string) smuggled {
		return smuggled{
			input: `{type: object, additionalProperties: false, required: [thing], $defs: {
    base: {type: object, properties: {a: {type: string, maxLength: 5}}},
    middle: {$ref: '#/$defs/base', properties: {webhook: {type: string, maxLength: 99}}}}, properties: {thing: ` + thing + `}}`,
			request: "  path: /v1/x\n  json: {thing: {from: input.thing}}", want: "input-member",
		}
	}
	for name, c := range map[string]smuggled{
		"beside a reference":        body("{type: object, additionalProperties: false, properties: {in: {type: object, $ref: '#/$defs/base', properties: {webhook: {type: string, maxLength: 99}}, unevaluatedProperties: false}}}"),
		"behind two references":     body("{type: object, $ref: '#/$defs/middle', unevaluatedProperties: false}"),
		"in allOf":                  body("{type: object, allOf: [{$ref: '#/$defs/middle'}], unevaluatedProperties: false}"),
		"under if":                  body("{type: object, unevaluatedProperties: false, properties: {k: {type: string, enum: [a]}}, if: {properties: {webhook: {type: string, maxLength: 99}}}}"),
		"under dependentSchemas":    body("{type: object, unevaluatedProperties: false, properties: {a: {type: string, maxLength: 5}}, dependentSchemas: {a: {properties: {webhook: {type: string, maxLength: 99}}}}}"),
		"named by the caller":       body("{type: object, additionalProperties: false, maxProperties: 3, patternProperties: {'^[a-z]{1,20}$': {type: string, maxLength: 99}}}"),
		"a bracket in a query key":  {request: "  path: /v1/x\n  query: {'filter[script]': {from: input.name}}", want: "input-member"},
		"a dot in a query key":      {request: "  path: /v1/x\n  query: {filter.sql: {from: input.name}}", want: "input-member"},
		"a long s":                  {request: "  path: /v1/x\n  json: {\u017fql: {from: input.name}}", want: "input-member"},
		"the sign of Kelvin":        {request: "  path: /v1/x\n  json: {webhoo\u212a: {from: input.name}}", want: "input-member"},
		"a method behind a space":   {request: "  path: /v1/x\n  query: {' _method': PUT}", want: "refused-member"},
		"a method before a bracket": {request: "  path: /v1/x\n  query: {'_method[]': PUT}", want: "refused-member"},
		"a bracket of ours":         {request: "  path: /v1/x\n  query: {'filter[name]': {from: input.name}}"},
	} {
		c.holds(t, name)
	}
	good := body("{type: object, additionalProperties: false, maxProperties: 3, patternProperties: {'^label-[a-z]{1,20}$': {type: string, maxLength: 99}}}")
	good.want = ""
	good.holds(t, "names that begin with a word of the author's")
}

// What only one branch of a schema says about a value is not all that it may be.
func TestValuesOfOneBranch(t *testing.T) {
	hidden := "{type: object, unevaluatedProperties: false, required: [id], if: {properties: {id: {type: string, maxLength: 500}}}, else: {properties: {id: {type: string, enum: [b1]}}}}"
	captured := func(expect, want string) smuggled {
		return smuggled{
			lookup:  "lookups:\n  one:\n    method: GET\n    path: /v1/find\n    outcomes:\n      - status: 200\n        expect: " + expect + "\n        capture: {id: /id}\n",
			request: "  path: /v1/x\n  json: {id: {from: one.id}}", want: want,
		}
	}
	for name, c := range map[string]smuggled{
		"an input under if, in a path":     {input: hidden, request: "  path: /v1/{input.id}", want: "path-input"},
		"an input under if, in XML":        {input: hidden, request: "  path: /v1/x\n  text: {concat: ['<a>', {from: input.id}, '</a>']}\n  content_type: application/xml", want: "text-body"},
		"an open object, another branch":   captured("{type: object, additionalProperties: true, required: [id], anyOf: [{properties: {id: {type: string, enum: [a]}}}, {required: [k], properties: {k: {type: string, enum: [a]}}}]}", "capture"),
		"an open object, if is false":      captured("{type: object, additionalProperties: true, required: [id], if: {required: [k]}, then: {properties: {id: {type: string, enum: [a]}}}}", "capture"),
		"an open object, no dependency":    captured("{type: object, additionalProperties: true, required: [id], dependentSchemas: {k: {properties: {id: {type: string, enum: [a]}}}}}", "capture"),
		"branches that are open":           captured("{type: object, unevaluatedProperties: false, required: [id], anyOf: [{additionalProperties: true, properties: {id: {type: string, enum: [a]}}}, {required: [k], additionalProperties: true, properties: {k: {type: string, enum: [a]}}}]}", "capture"),
		"branches that are all closed":     captured("{type: object, required: [id], oneOf: [{additionalProperties: false, properties: {id: {type: string, enum: [a]}}}, {required: [k], additionalProperties: false, properties: {id: {type: string, enum: [b]}, k: {type: string, enum: [a]}}}]}", ""),
		"an open object that describes it": captured("{type: object, additionalProperties: true, required: [id], properties: {id: {type: string, enum: [a]}}}", ""),
	} {
		c.holds(t, name)
	}
	free := smuggled{
		input:   "{type: object, additionalProperties: false, required: [name], properties: {name: {type: array, maxItems: 3, prefixItems: [{type: string, maxLength: 900}], items: {type: integer, minimum: 1, maximum: 3}}}}",
		lookup:  "lookups:\n  one:\n    method: GET\n    path: /v1/find\n    query: {q: {from: input.name}}\n    outcomes:\n      - status: 200\n        expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, enum: [a]}}}\n        capture: {id: /id}\n",
		request: "  path: /v1/x\n  headers: {If-Match: {from: one.id}}", want: "header-value",
	}
	free.holds(t, "a sentence as the first element")
}

// took_effect: true about another thing.
func TestTookEffectOfAnotherThing(t *testing.T) {
	const items = "      expect: {type: array, maxItems: 5, items: {type: object, additionalProperties: false, required: [id, name], properties: {id: {type: string}, name: {type: string}}}}\n      took_effect: true\n      success: "
	last := func(more, success string) string {
		return "  path: /v1/last\n" + more + "  outcomes:\n    - status: 200\n" + items + success + "\n"
	}
	const (
		first  = "{id: /0/id}"
		byName = "{id: {find: {in: '', where: {equals: [/name, {from: input.name}]}}, at: /id"
		lookup = "lookups:\n  one:\n    method: GET\n    path: /v1/find\n    query: {q: {from: input.name}}\n    outcomes:\n      - status: 200\n        expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z]{1,9}$', maxLength: 9}}}\n        capture: {id: /id}\n"
		named  = "  path: /v1/x\n  json: {n: {from: input.name}}"
		own    = "  headers: {User-Agent: {from: call.id}}"
		looked = "  path: /v1/x/{one.id}"
	)
	for name, c := range map[string]smuggled{
		"a find that may find nothing":      {request: named, reconcile: last("", byName+", optional: true}}"), want: "reconcile"},
		"a find that must":                  {request: named, reconcile: last("", byName+"}}")},
		"an own mark in headers":            {request: named + "\n" + own, reconcile: last(own+"\n", first), want: "reconcile"},
		"a word inside an object":           {request: "  path: /v1/x\n  json: {n: {from: input.thing}}", reconcile: last("", first), want: "reconcile"},
		"that object's word in the query":   {request: "  path: /v1/x\n  json: {n: {from: input.thing}}", reconcile: last("  query: {app: {from: input.thing.app}}\n", first)},
		"what a lookup found, not asked":    {lookup: lookup, request: looked, reconcile: last("", first), want: "reconcile"},
		"what a lookup found, asked":        {lookup: lookup, request: looked, reconcile: last("  query: {of: {from: one.id}}\n", first)},
		"what the lookup itself asked with": {lookup: lookup, request: looked, reconcile: last("  query: {q: {from: input.name}}\n", first)},
	} {
		c.holds(t, name)
	}
}

// A path whose first segment an answer chooses is remarked on like an input's.
func TestPathsThatAnAnswerChooses(t *testing.T) {
	for shape, want := range map[string]bool{
		"{type: string, pattern: '^[a-z]{1,9}$', maxLength: 9}": true,
		"{type: integer, minimum: 1, maximum: 9}":               true,
		"{type: string, enum: [jobs, runs]}":                    false,
	} {
		for path, free := range map[string]bool{"/{one.id}": want, "/v1/{one.id}": false} {
			c := smuggled{
				lookup:  "lookups:\n  one:\n    method: GET\n    path: /v1/find\n    outcomes:\n      - status: 200\n        expect: {type: object, additionalProperties: false, required: [id], properties: {id: " + shape + "}}\n        capture: {id: /id}\n",
				request: "  path: " + path,
			}
			set, ps := LoadSet(write(t, stepsSite, c.text()))
			if len(ps) > 0 {
				t.Fatal(ps)
			}
			got := slices.ContainsFunc(Lint(set.Contracts()[0], set), func(f Finding) bool { return f.Rule == "path-free" })
			if got != free {
				t.Errorf("%s of %s: remarked on: %v", path, shape, got)
			}
		}
	}
}
