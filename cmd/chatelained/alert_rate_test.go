package main

import (
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/gateway"
)

// One alert a minute for each action and rule; what came in between is counted
// and told with the next one, also when the program found no place.
func TestAlertRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []alertLine
		full := false
		a := newAlerter([]string{"/no/such/program"}, nil, slog.New(slog.DiscardHandler))
		a.tell = func(line string) bool {
			if full {
				return false
			}
			var l alertLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			told = append(told, l)
			return true
		}
		one := gateway.Rejected{Action: "deploy_release", Version: "1.2.0", Owner: "release team", Layer: "schema", Rule: "required", SchemaPath: "/required", RequestID: "call-0001"}
		other := one
		other.Rule = "type"
		elsewhere := one
		elsewhere.Action = "get_job_run"
		expect := func(what string, n, count int) {
			t.Helper()
			if len(told) != n || told[n-1].Count != count {
				t.Fatalf("%s: told %+v, want %d alerts, the last with count %d", what, told, n, count)
			}
		}
		a.rejected(one)
		expect("the first", 1, 1)
		if w := (alertLine{"deploy_release", "1.2.0", "release team", "schema", "required", "/required", "call-0001", 1}); told[0] != w {
			t.Errorf("told %+v, want %+v", told[0], w)
		}
		for range 5 {
			a.rejected(one)
			time.Sleep(11 * time.Second)
		}
		expect("within a minute", 1, 1)
		a.rejected(other)
		expect("another rule", 2, 1)
		a.rejected(elsewhere)
		expect("another action", 3, 1)
		time.Sleep(4 * time.Second)
		a.rejected(one)
		expect("just under a minute", 3, 1)
		time.Sleep(time.Second)
		a.rejected(one)
		expect("after a minute", 4, 7)
		time.Sleep(alertEvery)
		full = true
		a.rejected(one)
		full = false
		a.rejected(one)
		expect("after one found no place", 5, 2)

		newAlerter(nil, nil, slog.New(slog.DiscardHandler)).rejected(one) // no program, nothing to do
	})
}
