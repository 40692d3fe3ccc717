package actions

import (
	"slices"
	"strings"
	"testing"
)

// tieContract sends a body and asks a list, or one thing, what became of it.
func tieContract(body, when, expect, success string) smuggled {
	if when != "" {
		when = "      when: " + when + "\n"
	}
	return smuggled{
		request:   "  path: /v1/x\n  json: " + body,
		reconcile: "  path: /v1/last\n  outcomes:\n    - status: 200\n" + when + "      expect: " + expect + "\n      took_effect: true\n      success: " + success + "\n",
	}
}

const (
	tieItem = "{type: object, additionalProperties: false, required: [id, name], properties: {id: {type: string}, name: {type: string}, tags: {type: array, maxItems: 9, items: {type: object, additionalProperties: false, required: [id, name], properties: {id: {type: string}, name: {type: string}}}}}}"
	tieList = "{type: array, maxItems: 5, items: " + tieItem + "}"
	tieOne  = "{type: array, maxItems: 1, items: " + tieItem + "}"
	tieName = "equals: [/name, {from: input.name}]"
	tieTag  = "some: [/tags, {equals: [/name, {from: input.name}]}]"
)

// What is compared with one element of a list says nothing about another.
func TestTiesOfLists(t *testing.T) {
	const (
		some  = "some: ['', {" + tieName + "}]"
		each  = "each: ['', {" + tieName + "}]"
		find  = "{id: {find: {in: '', where: {" + tieName + "}}, at: /id}}"
		both  = "some: ['', {all_of: [{" + tieName + "}, {equals: [/id, r1]}]}]"
		first = "{id: /0/id}"
	)
	for name, c := range map[string]struct {
		when, expect, success, want string
	}{
		"some, and the first":                    {"{" + some + "}", tieList, first, "reconcile"},
		"some, and find":                         {"{" + some + "}", tieList, find, ""},
		"find alone":                             {"", tieList, find, ""},
		"some of two, and find by the other":     {"{" + both + "}", tieList, "{id: {find: {in: '', where: {equals: [/id, r1]}}, at: /id}}", ""},
		"some, and find by something else":       {"{" + some + "}", tieList, "{id: {find: {in: '', where: {equals: [/id, r1]}}, at: /id}}", "reconcile"},
		"some, a count of one, and the first":    {"{all_of: [{count: ['', '==', 1]}, {" + some + "}]}", tieList, first, ""},
		"some, a count of two, and the first":    {"{all_of: [{count: ['', '==', 2]}, {" + some + "}]}", tieList, first, "reconcile"},
		"some, a count of one in another branch": {"{any_of: [{count: ['', '==', 1]}, {" + some + "}]}", tieList, first, "reconcile"},
		"some of a list of at most one":          {"{" + some + "}", tieOne, first, ""},
		"some, and nothing picked":               {"{" + some + "}", tieList, "{}", ""},
		"the first, and the first":               {"{equals: [/0/name, {from: input.name}]}", tieList, first, ""},
		"the first, and the second":              {"{equals: [/0/name, {from: input.name}]}", tieList, "{id: /1/id}", "reconcile"},
		"the first, and whichever is found":      {"{equals: [/0/name, {from: input.name}]}", tieList, "{id: {find: {in: '', where: {equals: [/id, r1]}}, at: /id}}", "reconcile"},
		"the first of one, and the one found":    {"{all_of: [{count: ['', '==', 1]}, {equals: [/0/name, {from: input.name}]}]}", tieList, "{id: {find: {in: '', where: {equals: [/id, r1]}}, at: /id}}", ""},
		"each, and the first":                    {"{" + each + "}", tieList, first, ""},
		"each, and one that may be left out":     {"{" + each + "}", tieList, "{id: {at: /0/id, optional: true}}", "reconcile"},
		"each of one element":                    {"{all_of: [{count: ['', '==', 1]}, {" + each + "}]}", tieList, "{id: {at: /0/id, optional: true}}", ""},
		"find by what belongs to the element":    {"", tieList, "{id: {find: {in: '', where: {" + tieTag + "}}, at: /id}}", ""},
		"find, and another part's first":         {"", tieList, "{id: {find: {in: '', where: {" + tieTag + "}}, at: /tags/0/id}}", "reconcile"},
		"the one element's own part":             {"{all_of: [{count: ['', '==', 1]}, {each: ['', {" + tieTag + "}]}]}", tieList, first, ""},
		"the one element's other part":           {"{all_of: [{count: ['', '==', 1]}, {each: ['', {" + tieTag + "}]}]}", tieList, "{id: /0/tags/0/id}", "reconcile"},
	} {
		x := tieContract("{n: {from: input.name}}", c.when, c.expect, c.success)
		x.want = c.want
		x.holds(t, name)
	}
}

// Picks from one list are tied to what all of them are found by.
func TestTiesOfSeveralPicks(t *testing.T) {
	const byName = "{find: {in: '', where: {" + tieName + "}}, at: /id}"
	result := func(c smuggled, success string) smuggled {
		c.reconcile = strings.Replace(c.reconcile, "success: {}", "success: "+success, 1)
		return c
	}
	for success, bound := range map[string]bool{
		"{id: " + byName + ", more: " + byName + "}":                                  true,
		"{id: " + byName + ", more: {const: r1}}":                                     true,
		"{id: " + byName + ", more: /0/id}":                                           false,
		"{id: " + byName + ", more: {find: {in: '', where: {exists: /id}}, at: /id}}": false,
	} {
		c := result(tieContract("{n: {from: input.name}}", "", tieList, "{}"), success)
		text := strings.Replace(c.text(), "properties: {id: {type: string, pattern: '^r[0-9]{1,9}$', maxLength: 10}}}\n", "properties: {id: {type: string, pattern: '^r[0-9]{1,9}$', maxLength: 10}, more: {type: string, pattern: '^r[0-9]{1,9}$', maxLength: 10}}}\n", 1)
		_, ps := LoadSet(write(t, stepsSite, text))
		if (len(ps) == 0) != bound || len(ps) > 0 && ps[0].Rule != "reconcile" {
			t.Errorf("%s: %v", success, told(ps))
		}
	}
}

// Numbers, enums, uuids and free text in a body name nothing by themselves; a row
// that compares none of them, nor anything else of the call, is about any call.
func TestTookEffectOfNothingAtAll(t *testing.T) {
	const thing = "{type: object, additionalProperties: false, required: [id, name], properties: {id: {type: string}, name: {type: string}, number: {type: integer}}}"
	for name, field := range map[string]string{
		"a number":  "{type: integer, minimum: 1, maximum: 99}",
		"an enum":   "{type: string, enum: [small, large]}",
		"a uuid":    "{type: string, format: uuid, maxLength: 36}",
		"free text": "{type: string, maxLength: 200}",
	} {
		for when, want := range map[string]string{
			"":                                      "reconcile",
			"{equals: [/name, done]}":               "reconcile",
			"{equals: [/name, {from: target.app}]}": "reconcile",
			"{equals: [/name, {from: call.now}]}":   "reconcile",
			"{not: {equals: [/name, {from: input.n}]}}": "reconcile",
			"{equals: [/name, {from: input.n}]}":        "",
			"{equals: [/name, {from: call.id}]}":        "",
		} {
			c := tieContract("{n: {from: input.n}, mark: {from: call.id}}", when, thing, "{id: /id}")
			c.input = "{type: object, additionalProperties: false, required: [n], properties: {n: " + field + "}}"
			c.want = want
			c.holds(t, name+" "+when)
		}
	}
}

// Where only the operator names the thing, that it is gone is enough for what was to
// take it away, and for nothing else.
func TestTookEffectOfTheOperatorsThing(t *testing.T) {
	for name, c := range map[string]struct {
		effect, method, path, status string
		good                         bool
	}{
		"gone":              {"destroy", "DELETE", "/v1/x/{target.app}", "[404, 410]", true},
		"another's absence": {"destroy", "DELETE", "/v1/y/{target.app}", "404", false},
		"still there":       {"destroy", "DELETE", "/v1/x/{target.app}", "204", false},
		"gone by a change":  {"change", "POST", "/v1/x/{target.app}", "404", false},
	} {
		x := smuggled{
			input:     "{type: object, additionalProperties: false, properties: {}}",
			request:   "  path: /v1/x/{target.app}",
			reconcile: "  path: " + c.path + "\n  outcomes:\n    - {status: " + c.status + ", media: none, took_effect: true, success: {}}\n",
		}
		text := strings.NewReplacer("effect: change", "effect: "+c.effect, "method: POST", "method: "+c.method).Replace(x.text())
		_, ps := LoadSet(write(t, strings.ReplaceAll(stepsSite, "effects: [read, change]", "effects: [read, change, destroy]"), text))
		refused := slices.ContainsFunc(ps, func(p Problem) bool { return p.Rule == "reconcile" })
		if refused == c.good || len(ps) > 0 && c.good {
			t.Errorf("%s: %v", name, told(ps))
		}
	}
}

// The end of a poll of a change is this call's.
func TestPollNotBound(t *testing.T) {
	const lookup = "lookups:\n  one:\n    method: GET\n    path: /v1/find\n    outcomes:\n      - status: 200\n        expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z]{1,9}$', maxLength: 9}}}\n        capture: {id: /id}\n"
	for name, c := range map[string]struct {
		path, query, when, success, checks string
		bound                              bool
	}{
		"nothing":                     {path: "/v1/status"},
		"a constant":                  {path: "/v1/status", when: "{equals: [/name, done]}"},
		"the operator's":              {path: "/v1/status/{target.app}", when: "{equals: [/name, {from: target.app}]}"},
		"an input that names nothing": {path: "/v1/status", query: "{v: {from: input.loud}}"},
		"not the request's":           {path: "/v1/status", when: "{not: {equals: [/id, {from: request.id}]}}"},
		"some, and another":           {path: "/v1/status", when: "{some: [/list, {equals: [/id, {from: request.id}]}]}", success: "{id: /list/0/id}"},
		"in the path":                 {path: "/v1/status/{request.id}", bound: true},
		"a lookup's in the path":      {path: "/v1/status/{one.id}", bound: true},
		"in the query":                {path: "/v1/status", query: "{id: {from: request.id}}", bound: true},
		"a naming input in the query": {path: "/v1/status", query: "{id: {from: input.name}}", bound: true},
		"the call's own time":         {path: "/v1/status", query: "{since: {from: call.now}}", bound: true},
		"in when":                     {path: "/v1/status", when: "{equals: [/id, {from: request.id}]}", bound: true},
		"the call's id in when":       {path: "/v1/status", when: "{equals: [/name, {from: call.id}]}", bound: true},
		"some, and find":              {path: "/v1/status", success: "{id: {find: {in: /list, where: {equals: [/id, {from: request.id}]}}, at: /id}}", bound: true},
		"a check":                     {path: "/v1/status", checks: "checks: [{same: [result.id, request.id]}]\n", bound: true},
		"a check beside the picks":    {path: "/v1/status", success: "{}", checks: "checks: [{same: [result.id, request.id]}]\n"},
	} {
		if c.success == "" {
			c.success = "{id: /id}"
		}
		poll := "poll:\n  every: 5s\n  within: 1m\n  method: GET\n  path: " + c.path + "\n"
		if c.query != "" {
			poll += "  query: " + c.query + "\n"
		}
		poll += "  outcomes:\n    - status: 200\n"
		if c.when != "" {
			poll += "      when: " + c.when + "\n"
		}
		poll += "      expect: {type: object, additionalProperties: false, required: [id, name, list], properties: {id: {type: string}, name: {type: string}, list: " + tieList + "}}\n      success: " + c.success + "\n    - {status: 204, media: none, pending: true}\n"
		x := smuggled{
			input:   "{type: object, additionalProperties: false, required: [name, loud], properties: {name: {type: string, pattern: '^[a-z]{1,20}$', maxLength: 20}, loud: {type: string, enum: [yes-please, no-thanks]}}}",
			lookup:  lookup,
			request: "  path: /v1/x\n  json: {n: {from: input.name}, loud: {from: input.loud}}",
		}
		text := strings.Replace(x.text(), smuggledEnd, "\n  outcomes:\n    - status: 201\n      expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^r[0-9]{1,9}$', maxLength: 10}}}\n      capture: {id: /id}\n"+poll, 1) + c.checks
		set, ps := LoadSet(write(t, stepsSite, text))
		if len(ps) > 0 {
			t.Errorf("%s: %v", name, told(ps))
			continue
		}
		found := slices.ContainsFunc(Lint(set.Contracts()[0], set), func(f Finding) bool { return f.Rule == "poll-not-bound" })
		if found == c.bound {
			t.Errorf("%s: remarked on: %v", name, found)
		}
	}
}

// Names that only look another way are read as what they stand for.
func TestMembersThatLookLikeOthers(t *testing.T) {
	for name, want := range map[string]bool{
		"ｕｒｌ": true, "ＵＲＬ": true, "ｑｕｅｒｙ": true, "image＿url": true, "ｃａｌｌｂａｃｋ": true, "𝐬𝐜𝐫𝐢𝐩𝐭": true, "ⓗⓞⓢⓣ": true, "u\u200brl": true, "que\u00adry": true, "ur\u3164l": true,
		"ｓｕｄｏ": true, "＿ｍｅｔｈｏｄ": true, "ｎａｍｅ": false, "größe": false, "名前": false, "ﬁle": false,
	} {
		if ForbiddenMember(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	for key, want := range map[string]bool{"a［url］": true, "a．host": true, "a[ｕｒｌ]": true, "a［名前］": false} {
		if slices.ContainsFunc(keyPieces(key), forbiddenMember) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
	if suspectMember("ｒｏｌｅ") == "" {
		t.Error("a wide word of authority is none")
	}
	for name, c := range map[string]smuggled{
		"a wide member":            {request: "  path: /v1/x\n  json: {ｕｒｌ: {from: input.name}}", want: "input-member"},
		"a wide query key":         {request: "  path: /v1/x\n  query: {ｓｑｌ: {from: input.name}}", want: "input-member"},
		"a wide form key":          {request: "  path: /v1/x\n  form: {ｓｕｄｏ: root}", want: "refused-member"},
		"wide brackets":            {request: "  path: /v1/x\n  form: {a［b］: x}", want: "form"},
		"a constant under one":     {request: "  path: /v1/x\n  json: {ｕｒｌ: none}"},
		"a word of another tongue": {request: "  path: /v1/x\n  json: {größe: {from: input.name}}"},
	} {
		c.holds(t, name)
	}
}

// Names that the caller chooses by a pattern are plain letters.
func TestNamePatternsAreASCII(t *testing.T) {
	for pattern, want := range map[string]string{
		"^label-[a-z]{1,9}$": "", "^label [0-9]{1,3}$": "", "^(team|app)-[a-z]{1,9}$": "",
		"^[ａ-ｚ]{1,9}$": "input-member", "^ｕ(rl|ri)$": "input-member", "^[𝐚-𝐳]{3}$": "input-member", "^label-[a-zé]{1,9}$": "input-member",
	} {
		c := smuggled{
			input:   "{type: object, additionalProperties: false, required: [map], properties: {map: {type: object, additionalProperties: false, maxProperties: 3, patternProperties: {'" + pattern + "': {type: string, maxLength: 9}}}}}",
			request: "  path: /v1/x\n  json: {map: {from: input.map}}", want: want,
		}
		c.holds(t, pattern)
	}
}
