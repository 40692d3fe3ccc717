package gateway

import (
	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
)

// StepDetail is one step of a call: how often it was sent, and how the newest send
// ended. Polls are many, so that each step has one line.
type StepDetail struct {
	Step           string `json:"step"` // request, poll, reconcile, a lookup's name, or token and challenge of an exchange
	Sends          int    `json:"sends"`
	Endpoint       string `json:"endpoint"`
	UpstreamStatus any    `json:"upstream_status,omitempty"`
	Status         string `json:"status"` // IN_PROGRESS where the call went on; "" while it is under way
	Rule           string `json:"rule,omitempty"`
}

// CallDetail is what the record of this run tells of one call: what was asked,
// where it went, why an answer was refused. It is for a read session.
func (g *Gateway) CallDetail(i CallInfo) map[string]any {
	var events []auditlog.Event
	for _, e := range g.log.Recent() {
		if e.CallID == i.RequestID && e.Actor == i.Agent {
			events = append(events, e)
		}
	}
	return detailOf(events)
}

func detailOf(events []auditlog.Event) map[string]any {
	out := map[string]any{}
	for _, e := range events {
		if isExchange(e) {
			continue // one of its steps, no more
		}
		if e.Target != "" {
			out["target"] = e.Target
		}
		if e.Rule != "" {
			out["rule"] = e.Rule
		}
		if e.Type != auditlog.TypeOutcome && asksAfterwards(e) {
			continue // where a poll went does not stand for where the request did
		}
		for _, k := range detailKeys[e.Type] {
			if v, ok := e.Detail[k]; ok {
				out[k] = v
			}
		}
	}
	if steps := stepsOf(events); len(steps) > 0 {
		out["steps"] = steps
	}
	return out
}

// detailKeys are the members of an event that a read session is shown.
var detailKeys = map[string][]string{
	auditlog.TypeIntent:  {"input", "sentence", "identity", "plan_digest", "contract_version", "endpoint"},
	auditlog.TypeAnswer:  {"upstream_status", "body_sha256", "body_bytes", "echoes"},
	auditlog.TypeOutcome: {"rejection", "row", "cause", "upstream_ms", "total_ms"},
}

// isExchange says whether an event is of an exchange that the call needed.
func isExchange(e auditlog.Event) bool { return e.Detail["kind"] == kindExchange }

func asksAfterwards(e auditlog.Event) bool {
	step := e.Detail["step"]
	return step == actions.StepPoll.String() || step == actions.StepReconcile.String()
}

// stepsOf folds the events of one call by step, in the order of the first sends.
func stepsOf(events []auditlog.Event) []StepDetail {
	var out []StepDetail
	at := map[string]int{}
	for _, e := range events {
		name, ok := e.Detail["step"].(string)
		if !ok {
			continue
		}
		key := name
		if isExchange(e) {
			key = kindExchange + " " + name // a lookup may have the same name
		}
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, StepDetail{Step: name})
		}
		s := &out[i]
		switch e.Type {
		case auditlog.TypeIntent:
			s.Sends++
			s.Endpoint, _ = e.Detail["endpoint"].(string)
			s.Status, s.Rule, s.UpstreamStatus = "", "", nil
		case auditlog.TypeAnswer:
			if e.Detail["answered"] == true {
				s.UpstreamStatus = e.Detail["upstream_status"]
			}
		case auditlog.TypeOutcome:
			s.Status, s.Rule = e.Status, e.Rule
		}
	}
	return out
}
