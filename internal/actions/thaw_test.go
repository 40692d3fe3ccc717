package actions

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// A plan comes back from its bytes, and only to the same contract, target and
// identity.
func TestThaw(t *testing.T) {
	text := stepsContract(t)
	set, c := mustLoad(t, stepsSite, text)
	p := frozen(t, set, c)
	again, err := Thaw(set, p.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest() != p.Digest() || again.Identity() != p.Identity() || !reflect.DeepEqual(again.Looked(), p.Looked()) || again.Sentence() != p.Sentence() {
		t.Error("another plan came back")
	}
	a, errA := again.Step(StepPoll, testNow, idAnswer)
	b, errB := p.Step(StepPoll, testNow, idAnswer)
	if errA != nil || errB != nil || line(a.Request()) != line(b.Request()) {
		t.Error("another poll", errA, errB)
	}
	for name, s := range map[string]func() (site, contract string){
		"the address": func() (string, string) {
			return edit(t, stepsSite, "releases.example/api", "releases2.example/api"), text
		},
		"the identity": func() (string, string) {
			return edit(t, stepsSite, "{kind: bearer}", "{kind: basic, username: a}"), text
		},
		"the contract": func() (string, string) { return stepsSite, edit(t, text, "within: 10m", "within: 11m") },
		"a constant":   func() (string, string) { return stepsSite, edit(t, text, "app: shop", "app: shop2") },
		"the actions":  func() (string, string) { return edit(t, stepsSite, "[roll_out]", "[another_one]"), text },
		"the action": func() (string, string) {
			return edit(t, stepsSite, "[roll_out]", "[roll_over]"), edit(t, text, "action: roll_out", "action: roll_over")
		},
		"the input": func() (string, string) { return stepsSite, edit(t, text, "[0-9][0-9.]{0,8}", "[3-9][0-9.]{0,8}") },
	} {
		other, ps := load(t, first(s()), second(s()))
		if len(ps) > 0 {
			t.Fatal(name, ps)
		}
		if _, err := Thaw(other, p.Canonical()); fault.CodeOf(err) != fault.PlanStale {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func decimal(s string) json.Number { return json.Number(s) }

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

func TestThawOfNoPlan(t *testing.T) {
	set, c := mustLoad(t, stepsSite, stepsContract(t))
	whole := string(frozen(t, set, c).Canonical())
	for _, text := range []string{"", "{}", "null", "[]", `{"plan":"v1"}`, whole[1:], whole + " x", strings.Replace(whole, `"generation":"3"`, `"generation":"x"`, 1)} {
		if _, err := Thaw(set, []byte(text)); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := Thaw(nil, []byte(whole)); fault.CodeOf(err) != fault.Internal {
		t.Error(err)
	}
	for _, pair := range [][2]string{
		{`"generation":"3"`, `"generation":"03"`}, {`"sha":"0a1b2c3d"`, `"sha":"0a1b2c3f"`}, {`"version":"2.14"`, `"version":"2.15"`}, {`"head":{`, `"hear":{`},
		{`"id":"act_01J0000000"`, `"id":"act_01J0000001"`}, {`"plan":"v1"`, `"plan":"v2"`}, {`"looked":{`, `"looked":{"more":{},`}, {`{"call"`, `{ "call"`},
	} {
		text := strings.Replace(whole, pair[0], pair[1], 1)
		if text == whole {
			t.Fatal(pair)
		}
		if p, err := Thaw(set, []byte(text)); err == nil && string(p.Canonical()) != text {
			t.Errorf("%s: another plan than its bytes", pair[1])
		} else if err != nil && fault.CodeOf(err) != fault.PlanStale {
			t.Errorf("%s: %v", pair[1], err)
		}
	}
}

// A plan with the largest answers comes back too.
func TestThawOfALargePlan(t *testing.T) {
	deep := any("x")
	for range validate.AnswerLimits().Depth - 1 {
		deep = []any{deep}
	}
	wide := make([]any, validate.AnswerLimits().Nodes-10)
	for i := range wide {
		wide[i] = "\x01"
	}
	set, c := mustLoad(t, stepsSite, stepsContract(t))
	app, head := copied(appAnswer), copied(headAnswer)
	app["wide"], app["deep"], head["wide"] = wide, deep, wide
	head["long"] = strings.Repeat("\x01", 900<<10)
	p, err := begin(t, set, c, stepsInput).With(app).With(head).Freeze()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Thaw(set, p.Canonical()); err != nil || again.Digest() != p.Digest() {
		t.Error(err)
	}
}
