package auditlog

import "encoding/json"

// Step is what a call sent under one name, polls and tries taken together: how
// often, and how the newest one ended.
type Step struct {
	Step     string `json:"step"`
	Kind     string `json:"kind,omitzero"` // KindExchange: for the identity's token, no step of the contract
	Sends    int    `json:"sends"`
	Endpoint string `json:"endpoint,omitzero"`
	Upstream int    `json:"upstream_status,omitzero"`
	Status   string `json:"status,omitzero"` // of the newest send; empty while it is under way
	Rule     string `json:"rule,omitzero"`
}

// maxSteps bounds the steps of one call that are told apart: a contract has far
// fewer, a planted record could have any number.
const maxSteps = 64

// foldStep adds an event to the step that it names. Only what was sent, what came
// and how that ended are of a step.
func (a *Activity) foldStep(ev *Event) {
	switch ev.Type {
	case TypeIntent, TypeAnswer, TypeOutcome:
	default:
		return
	}
	name := textOf(ev.Detail["step"])
	if name == "" {
		name = "request" // records of releases with one step do not say it
	}
	s := a.step(name, ev)
	if s == nil {
		return
	}
	switch ev.Type {
	case TypeIntent:
		s.Sends++
		s.Upstream, s.Status, s.Rule = 0, "", ""
		set(&s.Endpoint, textOf(ev.Detail["endpoint"]))
	case TypeAnswer:
		s.Upstream = intOf(ev.Detail["upstream_status"])
	case TypeOutcome:
		s.Status, s.Rule = ev.Status, ev.Rule
	}
}

// step finds or begins a step; nil where there are too many.
func (a *Activity) step(name string, ev *Event) *Step {
	exchange := ev.ofExchange()
	for i := range a.Steps {
		if s := &a.Steps[i]; s.Step == name && (s.Kind == KindExchange) == exchange {
			return s
		}
	}
	if len(a.Steps) == maxSteps {
		return nil
	}
	a.Steps = append(a.Steps, Step{Step: name, Kind: textOf(ev.Detail["kind"])})
	return &a.Steps[len(a.Steps)-1]
}

// textOf is a member of a detail that is text, else "".
func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// intOf is a member of a detail that is a whole number, else 0: of this run it is
// an int, out of the record a json.Number.
func intOf(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case json.Number:
		i, err := n.Int64()
		if err == nil && int64(int(i)) == i {
			return int(i)
		}
	}
	return 0
}
