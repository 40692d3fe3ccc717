package gateway

import (
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
)

// Refused answers count by action and rule, the most frequent first; what else
// ended a call does not count.
func TestCountRejections(t *testing.T) {
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	refused := func(id, action, rule, version string, code fault.Code) auditlog.Event {
		at = at.Add(time.Second)
		return auditlog.Event{Type: auditlog.TypeOutcome, CallID: id, Action: action, Rule: rule, Status: string(code), Wall: at,
			Detail: map[string]any{"rejection": map[string]any{"contract_version": version}}}
	}
	got := countRejections([]auditlog.Event{
		refused("call-1", "get_job", "schema/required", "1.0.0", fault.InvalidResponse),
		refused("call-2", "deploy", "outcome/no-row", "3.0.0", fault.InvalidResponse),
		refused("call-3", "deploy", "schema/type", "3.0.0", fault.InvalidResponse),
		refused("call-4", "deploy", "schema/type", "3.1.0", fault.InvalidResponse),
		refused("call-5", "deploy", "schema/type", "3.1.0", fault.OutcomeUnknown), // the call's end, not another answer
		{Type: auditlog.TypeDeny, Action: "deploy", Status: string(fault.InvalidResponse)},
	})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	want := RejectionCount{Action: "deploy", Rule: "schema/type", Count: 2, Last: time.Date(2026, 1, 5, 10, 0, 4, 0, time.UTC), Version: "3.1.0", RequestID: "call-4"}
	if got[0] != want {
		t.Errorf("the first is %+v, want %+v", got[0], want)
	}
	if got[1].Rule != "outcome/no-row" || got[2].Action != "get_job" {
		t.Errorf("the order is %+v", got)
	}
	if none := countRejections(nil); none == nil || len(none) != 0 {
		t.Errorf("of nothing: %v", none)
	}
}
