package actions

import (
	"slices"
	"strings"
	"testing"
)

// Every part of the input is seen, wherever the schema says it.
func TestInputsBehindReferencesAndAllOf(t *testing.T) {
	text := edit(t, goodContract,
		"    note: {type: string, maxLength: 300}\n", "    note: {$ref: '#/$defs/line'}\n    part: {$ref: '#/$defs/part'}\n",
		"  properties:\n    service:", "  $defs:\n    line: {type: string, maxLength: 300}\n    part: {allOf: [{type: string}, {enum: [a, b]}]}\n  properties:\n    service:",
		"/releases/{input.version}", "/releases/{input.version}/{input.part}", "required: [service, environment, version, reason]", "required: [service, environment, version, reason, part]")
	set, c := mustLoad(t, goodSite, text)
	p := mustFreeze(t, set, c, strings.Replace(goodInput, "{", `{"part":"b",`, 1))
	if r, err := p.Request(testNow); err != nil || !strings.HasSuffix(r.WirePath(), "/2.14/b") {
		t.Error(err)
	}
	all := edit(t, goodContract,
		"  additionalProperties: false\n  required: [service, environment, version, reason]\n", "  unevaluatedProperties: false\n  required: [service, environment, version, reason]\n  allOf: [{required: [extra], properties: {extra: {type: string, enum: [x, y]}}}]\n",
		"/releases/{input.version}", "/releases/{input.version}/{input.extra}")
	set, c = mustLoad(t, goodSite, all)
	p = mustFreeze(t, set, c, strings.Replace(goodInput, "{", `{"extra":"y",`, 1))
	if r, err := p.Request(testNow); err != nil || !strings.HasSuffix(r.WirePath(), "/2.14/y") {
		t.Error(err)
	}
	if !slices.Contains(sortedKeys(c.places.inputs), "extra") {
		t.Error("the lint does not see an input under allOf")
	}
	for _, bad := range []string{"{type: string, maxLength: 9}", "{type: string, pattern: '^[a-z/]{1,9}$'}"} {
		_, ps := load(t, goodSite, edit(t, all, "{type: string, enum: [x, y]}", bad))
		if len(ps) != 1 || ps[0].Rule != "path-input" {
			t.Errorf("%s: %v", bad, told(ps))
		}
	}
}

// A target with a mistake hides neither what it takes nor who may go there.
func TestMistakesOfATargetHideNothing(t *testing.T) {
	site := edit(t, goodSite, "https://deploy.prod.example:8443", "http://deploy.prod.example:8443", "effects: [change]", "effects: [read]")
	_, ps := load(t, site, goodContract)
	var rules []string
	for _, p := range ps {
		rules = append(rules, p.Rule)
	}
	if !slices.Contains(rules, "url") || !slices.Contains(rules, "effect-ceiling") || len(rules) != 2 {
		t.Errorf("%v", told(ps))
	}
}

// The lint names each target of a case that does not list the action.
func TestUnlistedTargetIsTold(t *testing.T) {
	site := edit(t, goodSite, "    actions: [start_release]\n    effects: [change]", "    actions: [another_action]\n    effects: [change]")
	set, c := mustLoad(t, site, goodContract)
	var said []string
	for _, f := range Lint(c, set) {
		if f.Rule == "target-not-listed" {
			said = append(said, f.Message)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], `"deploy-prod"`) {
		t.Errorf("%v", said)
	}
}
