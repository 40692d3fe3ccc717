package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func rulesOf(found []SchemaFinding) []string {
	var out []string
	for _, f := range found {
		if !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	slices.Sort(out)
	return out
}

const (
	word = `{"type":"string","pattern":"^[a-z]{1,9}$","maxLength":9}`
	num  = `{"type":"integer","minimum":0,"maximum":9}`
)

func TestLintGuard(t *testing.T) {
	cases := []struct{ in, rule, at string }{
		{`{"type":"object","additionalproperties":false}`, ruleKeyword, "/additionalproperties"},
		{`{"type":"object","additionalProperties":false,"properties":{"a/b":{"type":"string","maxlength":3}}}`, ruleKeyword, "/properties/a~1b/maxlength"},
		{`{"$dynamicRef":"#x"}`, ruleKeyword, "/$dynamicRef"}, {`{"$anchor":"x","type":"null"}`, ruleKeyword, "/$anchor"},
		{`{"type":"string","contentMediaType":"application/json"}`, ruleKeyword, "/contentMediaType"}, {`{"type":"null","default":1}`, ruleKeyword, "/default"},
		{`{"type":"string","nullable":true}`, ruleKeyword, "/nullable"}, {`{"dependencies":{}}`, ruleKeyword, "/dependencies"}, {`{"$id":"https://x.test/"}`, ruleKeyword, "/$id"},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema"}`, ruleDialect, "/$schema"}, {`{"properties":{"a":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, ruleDialect, "/properties/a/$schema"},
		{`{"$ref":"other.json"}`, ruleRef, "/$ref"}, {`{"$ref":"#anchor"}`, ruleRef, "/$ref"}, {`{"$ref":"#/$defs/x"}`, ruleRef, "/$ref"}, {`{"$ref":"#/%24defs/x","$defs":{"x":false}}`, ruleRef, "/$ref"}, {`{"$ref":7}`, ruleRef, "/$ref"},
		{`{"const":{"type":"null"},"allOf":[{"$ref":"#/const"}]}`, ruleRef, "/allOf/0/$ref"}, {`{"examples":[{}],"allOf":[{"$ref":"#/examples/0"}]}`, ruleRef, "/allOf/0/$ref"},
		{`{"$ref":"#/$defs/t","$defs":{"t":true}}`, ruleTrue, "/$ref"},
		{`{"properties":{"a":{"$ref":"#"}}}`, ruleRecursion, ""}, {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"items":{"$ref":"#/$defs/a"},"type":"array","maxItems":1}}}`, ruleRecursion, "/$defs/a"},
		{`{"oneOf":[true]}`, ruleTrue, "/oneOf/0"}, {`{"if":true,"then":true,"else":false}`, ruleTrue, "/if"}, {`{"not":true}`, ruleTrue, "/not"}, {`{"dependentSchemas":{"x":true}}`, ruleTrue, "/dependentSchemas/x"}, {`{"allOf":[{"anyOf":[true,false]}]}`, ruleTrue, "/allOf/0/anyOf/0"},
		{`{"enum":[]}`, ruleEmpty, "/enum"}, {`{"type":[]}`, ruleEmpty, "/type"}, {`{"oneOf":[]}`, ruleEmpty, "/oneOf"}, {`{"anyOf":[]}`, ruleEmpty, "/anyOf"}, {`{"allOf":{}}`, ruleEmpty, "/allOf"}, {`{"enum":7}`, ruleEmpty, "/enum"}, {`{"prefixItems":[]}`, ruleEmpty, "/prefixItems"},
		{`{"additionalProperties":null}`, ruleNull, "/additionalProperties"}, {`{"properties":{"a":null}}`, ruleNull, "/properties/a"}, {`{"items":null}`, ruleNull, "/items"}, {`{"anyOf":[null]}`, ruleNull, "/anyOf/0"},
		{`{"type":"string","format":"datetime"}`, ruleFormat, "/format"}, {`{"type":"string","format":"regex"}`, ruleFormat, "/format"}, {`{"type":"string","format":7}`, ruleFormat, "/format"},
		{`{"maximum":5}`, ruleBeside, "/maximum"}, {`{"type":"string","minimum":5}`, ruleBeside, "/minimum"}, {`{"maxLength":5}`, ruleBeside, "/maxLength"}, {`{"format":"uuid"}`, ruleBeside, "/format"}, {`{"pattern":"^a$"}`, ruleBeside, "/pattern"}, {`{"maxItems":5}`, ruleBeside, "/maxItems"}, {`{"type":"array","maxProperties":5}`, ruleBeside, "/maxProperties"},
		{`{"type":"string","minLength":1e30}`, ruleValue, "/minLength"}, {`{"type":"string","maxLength":-1}`, ruleValue, "/maxLength"}, {`{"type":"string","maxLength":"3"}`, ruleValue, "/maxLength"}, {`{"type":"string","maxLength":1.5}`, ruleValue, "/maxLength"}, {`{"type":"number","maximum":"5"}`, ruleValue, "/maximum"}, {`{"type":"number","multipleOf":0}`, ruleValue, "/multipleOf"},
		{`{"type":"text"}`, ruleValue, "/type"}, {`{"type":["string","string"]}`, ruleValue, "/type"}, {`{"type":[7]}`, ruleValue, "/type"}, {`{"required":"a"}`, ruleValue, "/required"}, {`{"required":["a","a"]}`, ruleValue, "/required"}, {`{"required":[1]}`, ruleValue, "/required"}, {`{"enum":[1,1.0]}`, ruleValue, "/enum"}, {`{"properties":[]}`, ruleValue, "/properties"}, {`{"items":[]}`, ruleValue, "/items"}, {`{"dependentRequired":{"a":"b"}}`, ruleValue, "/dependentRequired"}, {`{"uniqueItems":1,"type":"array"}`, ruleValue, "/uniqueItems"}, {`{"title":7}`, ruleValue, "/title"},
		{`{"unevaluatedItems":{"type":"null"}}`, ruleUnevaluated, "/unevaluatedItems"}, {`{"unevaluatedItems":true}`, ruleUnevaluated, "/unevaluatedItems"},
		{`{"type":"string","pattern":"[a-z]+"}`, rulePattern, "/pattern"}, {`{"patternProperties":{"x":{}}}`, rulePattern, "/patternProperties/x"},
	}
	for _, c := range cases {
		for _, use := range []SchemaUse{UseInput, UseResult, UseExpect, UseEnvelope} {
			found := LintSchema(mustParse(t, c.in), use)
			i := slices.IndexFunc(found, func(f SchemaFinding) bool { return f.Rule == c.rule && f.Pointer == c.at })
			if i < 0 || found[i].Message == "" || found[i].Hint == "" {
				t.Errorf("use %d, %s: %+v, want %s at %q", use, c.in, found, c.rule, c.at)
			}
		}
	}
}

func TestLintOfWhatTheParserDoesNotMake(t *testing.T) {
	for _, doc := range []any{map[string]any{"const": 7}, map[string]any{"enum": []string{"a"}}, map[string]any{"maximum": 5.0, "type": "number"}, struct{}{}} {
		if got := rulesOf(LintSchema(doc, UseInput)); !slices.Equal(got, []string{ruleValue}) {
			t.Errorf("%v: %v", doc, got)
		}
		if _, err := CompileSchema("x", doc); err == nil {
			t.Errorf("%v compiled", doc)
		}
	}
}

func TestLintKeywordHints(t *testing.T) {
	for name, want := range map[string]string{
		"additionalproperties": "did you mean additionalProperties?", "maxLenght": "did you mean maxLength?", "requird": "did you mean required?",
		"default": bannedKeywords["default"], "x-vendor-thing": "use only keywords of draft 2020-12 that both engines check",
	} {
		if got := keywordHint(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLintReferenceBomb(t *testing.T) {
	defs := `"d0":{"type":"null"}`
	for i := 1; i < 30; i++ {
		defs += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	found := LintSchema(mustParse(t, `{"$ref":"#/$defs/d29","$defs":{`+defs+`}}`), UseInput)
	if got := rulesOf(found); !slices.Equal(got, []string{ruleTooLarge}) {
		t.Errorf("%v", found)
	}
	branches := strings.Repeat(`{"anyOf":[{"type":"null"},{"type":"boolean"}]},`, 20)
	found = LintSchema(mustParse(t, `{"allOf":[`+branches+`{"type":"null"}]}`), UseInput)
	if got := rulesOf(found); !slices.Equal(got, []string{ruleTooLarge}) {
		t.Errorf("%v", found)
	}
}

func object(members string) string {
	return `{"type":"object","additionalProperties":false,"properties":{` + members + `}}`
}

func TestLintProof(t *testing.T) {
	open := `{"type":"object","properties":{"a":` + word + `}}`
	cases := []struct {
		in                    string
		input, result, expect string // the rules found, joined by a space
	}{
		{object(``), "", "", ""}, {`false`, "", "", ""},
		{object(`"a":` + word + `,"b":` + num), "", "", ""},
		{open, ruleOpen, ruleOpen, ruleOpen}, {`{"type":"object"}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"type":"object","additionalProperties":true}`, ruleOpen, ruleOpen, ""},
		{`{"type":"object","additionalProperties":` + word + `}`, ruleOpen, ruleResultMap, ""},
		{`{"type":"object","additionalProperties":` + open + `}`, ruleOpen, ruleResultMap, ruleOpen},
		{`{}`, ruleUntyped, ruleUntyped, ruleUntyped}, {`true`, ruleUntyped, ruleUntyped, ruleUntyped}, {object(`"a":true`), ruleUntyped, ruleUntyped, ruleUntyped}, {object(`"a":{}`), ruleUntyped, ruleUntyped, ruleUntyped},
		{object(`"a":` + open), ruleOpen, ruleOpen, ruleOpen}, {object(`"a":{"type":["null","object"]}`), ruleOpen, ruleOpen, ruleOpen},
		{object(`"a":{"type":"string"}`), ruleFreeString, ruleFreeText, ""}, {object(`"a":{"type":"string","maxLength":64}`), "", ruleFreeText, ""},
		{object(`"a":{"type":"string","format":"uri","maxLength":64}`), "", ruleFreeText, ""}, {object(`"a":{"type":"string","format":"uri"}`), ruleFreeString, ruleFreeText, ""}, {object(`"a":{"type":"string","format":"email","maxLength":64}`), "", ruleFreeText, ""},
		{object(`"a":{"type":"string","format":"date-time","maxLength":35}`), "", "", ""}, {object(`"a":{"type":"string","format":"uuid","maxLength":36}`), "", "", ""}, {object(`"a":{"type":"string","format":"date"}`), "", ruleFreeText, ""},
		{object(`"a":{"type":"string","format":"date","maxLength":129}`), "", ruleFreeText, ""},
		{object(`"a":{"type":"string","pattern":"^[a-z]+$"}`), ruleFreeString, ruleFreeText, ""}, {object(`"a":{"type":"string","pattern":"^[a-z]+$","maxLength":9}`), "", ruleFreeText, ""},
		{object(`"a":{"type":"string","pattern":"^[a-z ]{1,9}$","maxLength":9}`), "", ruleFreeText, ""}, {object(`"a":{"type":"string","pattern":"^[!-￿]{1,9}$","maxLength":9}`), "", ruleFreeText, ""},
		{object(`"a":{"type":"string","pattern":"^run_[A-Za-z0-9]{12,48}$","maxLength":64}`), "", "", ""}, {object(`"a":{"type":"string","pattern":"^run_[A-Za-z0-9]{12,48}$"}`), "", ruleFreeText, ""},
		{object(`"a":{"const":"x y"},"b":{"enum":["a b",null,{"k":1}]}`), "", "", ""}, {object(`"a":{"type":["boolean","null"]}`), "", "", ""},
		{object(`"a":{"type":"number"}`), ruleFreeNumber, ruleFreeNumber, ""}, {object(`"a":{"type":"integer","minimum":0}`), ruleFreeNumber, ruleFreeNumber, ""}, {object(`"a":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`), "", "", ""},
		{object(`"a":{"type":"array"}`), ruleFreeArray, ruleFreeArray, ruleFreeArray}, {object(`"a":{"type":"array","maxItems":3}`), ruleFreeArray, ruleFreeArray, ruleFreeArray}, {object(`"a":{"type":"array","items":` + word + `}`), ruleFreeArray, ruleFreeArray, ""},
		{object(`"a":{"type":"array","maxItems":3,"items":` + word + `}`), "", "", ""}, {object(`"a":{"type":"array","maxItems":3,"items":` + open + `}`), ruleOpen, ruleOpen, ruleOpen},
		{object(`"a":{"type":"array","prefixItems":[` + num + `],"items":false}`), "", "", ""}, {object(`"a":{"type":"array","prefixItems":[` + num + `],"maxItems":1}`), "", "", ""}, {object(`"a":{"type":"array","prefixItems":[` + num + `],"maxItems":2}`), ruleFreeArray, ruleFreeArray, ruleFreeArray}, {object(`"a":{"type":"array","prefixItems":[` + open + `],"items":false}`), ruleOpen, ruleOpen, ruleOpen},
		{object(`"a":{"type":"array","prefixItems":[` + num + `],"unevaluatedItems":false}`), "", "", ""}, {object(`"a":{"type":"array","contains":` + num + `,"unevaluatedItems":false,"maxItems":3}`), ruleFreeArray, ruleFreeArray, ruleFreeArray},
		{object(`"a":{"type":"array","anyOf":[{"prefixItems":[` + open + `]},{"prefixItems":[` + num + `]}],"unevaluatedItems":false}`), ruleOpen, ruleOpen, ruleOpen},
		// composition
		{`{"$ref":"#/$defs/a","$defs":{"a":` + object(`"a":`+num) + `}}`, "", "", ""}, {`{"$ref":"#/$defs/a","$defs":{"a":` + open + `}}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"allOf":[` + open + `,{"type":"object","properties":{"b":` + num + `}}],"unevaluatedProperties":false}`, "", "", ""},
		{`{"allOf":[` + open + `,{"type":"object","additionalProperties":true}],"unevaluatedProperties":false}`, ruleOpen, ruleOpen, ""},
		{`{"allOf":[{"type":"object","properties":{"b":` + open + `}}],"unevaluatedProperties":false}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"allOf":[{"allOf":[{"$ref":"#/$defs/o"}]}],"unevaluatedProperties":false,"$defs":{"o":{"type":"object","unevaluatedProperties":true}}}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"type":"object","unevaluatedProperties":false,"allOf":[{"properties":{"a":{"properties":{"x":` + num + `}}}},{"properties":{"a":` + object(`"x":{"type":"integer"},"y":`+num) + `}}]}`, "", "", ""},
		{`{"oneOf":[` + object(`"a":`+num) + `,` + object(`"b":`+word) + `]}`, "", "", ""}, {`{"oneOf":[` + object(`"a":`+num) + `,` + open + `]}`, ruleOpen, ruleOpen, ruleOpen}, {`{"anyOf":[` + object(``) + `,{"type":"object"}]}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"type":"object","unevaluatedProperties":false,"anyOf":[{"properties":{"a":` + num + `}},{"properties":{"a":` + open + `}}]}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"type":"object","unevaluatedProperties":false,"if":{"properties":{"a":` + num + `}},"then":{"properties":{"b":` + num + `}},"else":{"properties":{"c":` + open + `}}}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"type":"object","unevaluatedProperties":false,"if":{"properties":{"k":{"const":1}}},"then":{"properties":{"b":` + num + `}}}`, "", "", ""},
		{`{"if":{"type":"null"},"then":{"type":"null"},"else":` + object(``) + `}`, "", "", ""}, {`{"type":["null","object"],"if":{"type":"null"}}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"type":"object","unevaluatedProperties":false,"dependentSchemas":{"a":{"properties":{"b":` + open + `}}},"properties":{"a":` + num + `}}`, ruleOpen, ruleOpen, ruleOpen},
		{`{"not":` + object(``) + `}`, ruleUntyped, ruleUntyped, ruleUntyped}, {`{"allOf":[false]}`, "", "", ""}, {`{"oneOf":[false,` + object(``) + `]}`, "", "", ""},
		{`{"type":"object","additionalProperties":false,"maxProperties":3,"patternProperties":{"^[a-z]{1,3}$":` + num + `}}`, "", ruleResultMap, ""},
		{`{"type":"object","additionalProperties":false,"patternProperties":{"^[a-z]{1,3}$":` + num + `}}`, ruleOpen, ruleResultMap, ""}, {`{"type":"object","additionalProperties":false,"maxProperties":3,"patternProperties":{"^[a-z]+$":` + num + `}}`, ruleOpen, ruleResultMap, ""},
		{`{"type":"object","additionalProperties":false,"propertyNames":{"const":"a"},"properties":{"a":` + num + `}}`, "", ruleResultMap, ""},
	}
	for _, c := range cases {
		for use, want := range map[SchemaUse]string{UseInput: c.input, UseResult: c.result, UseExpect: c.expect, UseEnvelope: c.input} {
			found := LintSchema(mustParse(t, c.in), use)
			if got := strings.Join(rulesOf(found), " "); got != want {
				t.Errorf("use %d, %s\n got %v\nwant %q", use, c.in, found, want)
			}
		}
	}
}

func TestLintUnknownUseIsTheStrictest(t *testing.T) {
	if got := rulesOf(LintSchema(mustParse(t, object(`"a":{"type":"string","maxLength":5}`)), 0)); !slices.Equal(got, []string{ruleFreeText}) {
		t.Error(got)
	}
}

func TestLintPattern(t *testing.T) {
	good := []string{`^[a-z0-9][a-z0-9-]{2,62}$`, `^CR-[0-9]{1,10}$`, `^(a|b)c?$`, `^(?:a|b){1,3}$`, `^\d{4}$`, `^[\w.-]{1,8}$`, `^a\.b\/c\\$`, `^[\]\[\-]$`, `^é$`, `^a{2,}$`, `^[a-]$`}
	for _, p := range good {
		if found := LintPattern(p); len(found) > 0 {
			t.Errorf("%s: %v", p, found)
		}
	}
	bad := []string{``, `a`, `^a`, `a$`, `^a|b$`, `^(a|b$)`, `^a.b$`, `^\s$`, `^\S+$`, `^\W$`, `^\D$`, `^[^a]$`, `(?i)^a$`, `^(?P<n>a)$`, `^(?<n>a)$`, `^(?i:a)$`, `\Aa\z`, `^\Qa\E$`, `^\x41$`, `^\x{41}$`, `^\p{Greek}$`, `^\pL$`, `^[[:alpha:]]$`, `^[a-z&&[aeiou]]$`, `^[a--b]$`,
		`^a\b$`, `^\u0041$`, `^(?=a)a$`, `^(a)\1$`, `^a{b$`, `^a}$`, `^a]$`, `^[]a]$`, `^[\d-z]$`, `^[a-\d]$`, "^a\n$", "^[\t]$", `^\-$`, `^\n$`, `^\_$`, `^a++$`, `^a{2000}$`, strings.Repeat("a", 2000), `^(^a)$`, `^a$$`, `^[[a]$`, `^((a{30}){30}){30}$`}
	for _, p := range bad {
		if len(LintPattern(p)) == 0 {
			t.Errorf("%s was accepted", p)
		}
	}
	for p, want := range map[string]int{`^[0-9a-f]{40}$`: 40, `^[a-z]+$`: unbounded, `[0-9a-f]{40}`: unbounded, `^(ab|c){1,3}d?$`: 7, `^a*$`: unbounded, `^a{2,}$`: unbounded, `^(a*){3}$`: unbounded} {
		if got := longestMatch(p); got != want {
			t.Errorf("longestMatch(%s) = %d, want %d", p, got, want)
		}
	}
	for p, want := range map[string]bool{`^[a-z]{1,3}$`: true, `^a b$`: false, `^[a-z ]$`: false, `^[!-~]{3}$`: true, "^[\u00a0-\u00b0]$": false, "^[a\u2028]$": false, "^[a\u200b]$": false, "^[a\u3164]$": false, "^[à-ÿ]$": true} {
		if got := isWordPattern(p); got != want {
			t.Errorf("isWordPattern(%s) = %v", p, got)
		}
	}
}

// An open object hides no other mistake, and text of a good form that lacks its
// bound is told to lack it.
func TestLintTellsEveryMistakeAtOnce(t *testing.T) {
	open := mustParse(t, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}}`)
	if got := rulesOf(LintSchema(open, UseInput)); !slices.Equal(got, []string{ruleOpen, ruleFreeArray, ruleFreeNumber, ruleFreeString}) {
		t.Error(got)
	}
	for _, in := range []string{`{"type":"string","format":"date-time"}`, `{"type":"string","pattern":"^[a-z]{1,200}$","maxLength":200}`} {
		found := LintSchema(mustParse(t, in), UseResult)
		if len(found) != 1 || !strings.Contains(found[0].Message, "without a maxLength of at most 128") {
			t.Errorf("%s: %+v", in, found)
		}
	}
}
