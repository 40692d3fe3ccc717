package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"chatelaine/internal/auditlog"
)

// The boot's clock is the record's to tell: one that began with the daemon would
// run backwards over a restart, under the same boot id.
func TestEventsLeaveTheBootClockToTheRecord(t *testing.T) {
	e := New(Deps{}).event("config")
	if e.BootID != "" || e.Mono != 0 {
		t.Errorf("boot %q, mono %d", e.BootID, e.Mono)
	}
}

// Who authorised and who revoked a session stands in that session's journal.
func TestDecisionsAboutSessions(t *testing.T) {
	g := New(Deps{})
	j := auditlog.SessionJournal([]auditlog.Event{
		g.decisionEvent("session.authorize", "ses_1", "uid 7"),
		g.decisionEvent("session.revoke", "ses_1", "uid 8"),
		g.decisionEvent("identity.put", "bot", "uid 7"),
	})
	if len(j) != 1 || j[0].SessionID != "ses_1" || len(j[0].Decisions) != 2 || j[0].Decisions[1].By != "uid 8" {
		t.Fatalf("%+v", j)
	}
}

// The journals are for programs: names as elsewhere, lists never null.
func TestJournalsAsJSON(t *testing.T) {
	open := auditlog.Event{Type: auditlog.TypeSessionOpen, SessionID: "ses_1", CallID: "call-0001"}
	for name, v := range map[string]any{
		"no sessions": auditlog.SessionJournal(nil), "no calls": auditlog.ActivityJournal(nil),
		"a session": auditlog.SessionJournal([]auditlog.Event{open}), "a call": auditlog.ActivityJournal([]auditlog.Event{open}),
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"null", `"closed":"0001`, `"ended":"0001`, "SessionID", "CallID"} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s holds %q: %s", name, bad, b)
			}
		}
	}
}
