package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"chatelaine/internal/auditlog"
)

// reviewEvents are a real call of review_status as the daemon records it, with a
// person and a secret in the answer. The first attempt met a closed door.
func reviewEvents(id, reviewer string) []auditlog.Event {
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	of := func(kind string, detail map[string]any) auditlog.Event {
		at = at.Add(time.Second)
		detail["step"] = "request"
		return auditlog.Event{EventID: "evt_" + id + kind + at.Format("05"), Type: kind, CallID: id, Actor: "cli-test", Action: "review_status", Target: "review", Wall: at, Detail: detail}
	}
	asked := func(attempt int) auditlog.Event {
		return of("intent", map[string]any{"input": map[string]any{"change_id": "CR-1042"}, "attempt": attempt})
	}
	ended := func(attempt int, status string) auditlog.Event {
		e := of("outcome", map[string]any{"attempt": attempt})
		e.Status = status
		return e
	}
	lost := []auditlog.Event{asked(1), of("answer", map[string]any{"upstream_status": 0, "answered": false, "attempt": 1}), ended(1, "UPSTREAM_UNAVAILABLE")}
	again := asked(2)
	answer := of("answer", map[string]any{"upstream_status": 200, "answered": true, "attempt": 2})
	answer.Body = []byte("OK\nContent-Type: application/json\nSet-Cookie: sid=8842aa\n\n\n" +
		`{"change_id":"CR-1042","decision":"approved","reviewed_by":"` + reviewer + `","comment":"Asked ann.lee@corp.test\u001b[2J; the key ghp_abcdefghij0123456789abcd is gone."}`)
	return append(lost, again, answer, ended(2, "OK"))
}

// cmdAnswered writes a record of real calls and its recovery key: answered DIR
func cmdAnswered(ts *testscript.TestScript, _ bool, args []string) {
	key, err := auditlog.GenerateIdentity()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("recovery"), []byte(key.Reveal()+"\n"), 0o600))
	other, err := auditlog.GenerateIdentity()
	ts.Check(err)
	dir, to := ts.MkAbs(args[0]), []auditlog.Recipient{key.Recipient(), other.Recipient()}
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(auditlog.Create(dir, to))
	l, err := auditlog.Open(auditlog.Options{Dir: dir, Recipients: to, SegmentBytes: 64 << 10})
	ts.Check(err)
	denied := auditlog.Event{EventID: "evt_denied", Type: "deny", CallID: "act_denied01", Action: "review_status", Status: "APPROVAL_DENIED"}
	// The second reviewer is called by an address, which the contract does not
	// take.
	events := append(reviewEvents("act_review01", "annlee"), reviewEvents("act_review02", "ann.lee@corp.test")...)
	// The daemon was killed before the answer.
	killed := auditlog.Event{EventID: "evt_killed", Type: "intent", CallID: "act_killed01", Action: "review_status", Target: "review", Detail: map[string]any{"step": "request", "attempt": 1}}
	for _, e := range append(events, denied, killed) {
		_, err := l.Append(e).Wait(context.Background())
		ts.Check(err)
	}
	ts.Check(l.Close())
}

// An answer's event is taken apart as it was put together.
func TestAnswerOf(t *testing.T) {
	event := func(status any, answered bool, body string) auditlog.Event {
		return auditlog.Event{Body: []byte(body), Detail: map[string]any{"step": "poll", "upstream_status": status, "answered": answered}}
	}
	got := answerOf(event(200, true, "OK\nA: 1\nA: 2\nB: c: d\n\nTrailing: x\n\nbody\n\nmore"))
	if got.Step != "poll" || got.Status != 200 || string(got.Body) != "body\n\nmore" || len(got.Header["A"]) != 2 || got.Header.Get("B") != "c: d" || got.Header.Get("Trailing") != "" {
		t.Errorf("%+v %q", got, got.Body)
	}
	for name, e := range map[string]auditlog.Event{
		"no answer":        event(0, false, ""),
		"a cut one":        event(200, true, "OK\nA: 1"),
		"no body":          event(204, true, "No Content\n\n\n"),
		"an unknown word":  event(299, true, "\nA: 1\n\n\nx"),
		"no detail at all": {Body: []byte("x")},
	} {
		got := answerOf(e)
		if name == "an unknown word" && (got.Status != 299 || string(got.Body) != "x" || got.Header.Get("A") != "1") || name != "an unknown word" && len(got.Body) != 0 && name != "no detail at all" {
			t.Errorf("%s: %+v %q", name, got, got.Body)
		}
	}
}

// A call whose attempts and steps follow each other becomes one recording.
func TestRecordingOf(t *testing.T) {
	rec, err := recordingOf(reviewEvents("act_review01", "annlee"), "review_status")
	if err != nil || len(rec.Answers) != 2 || rec.Answers[0].Status != 0 || rec.Answers[1].Status != http.StatusOK || rec.Code != "" || rec.Input["change_id"] != "CR-1042" {
		t.Errorf("%v %+v", err, rec)
	}
	if !rec.Sent.Before(rec.Ended) {
		t.Errorf("sent %s, ended %s", rec.Sent, rec.Ended)
	}
	if _, err := recordingOf(reviewEvents("act_review01", "annlee"), "read_stock"); err == nil || !strings.Contains(err.Error(), "is one of review_status") {
		t.Errorf("%v", err)
	}
	own := reviewEvents("act_review01", "annlee")
	own[len(own)-1].Status = "OKTA_REFUSED" // a code of the author's own
	if rec, err := recordingOf(own, "review_status"); err != nil || rec.Code != "OKTA_REFUSED" {
		t.Errorf("%v %q", err, rec.Code)
	}
	// The exchange of an identity's secret is no step of the contract, whatever it says.
	before := []auditlog.Event{}
	for _, kind := range []string{"intent", "answer", "outcome"} {
		before = append(before, auditlog.Event{Type: kind, Action: "review_status", Status: "IN_PROGRESS",
			Detail: map[string]any{"step": "token", "kind": "exchange", "upstream_status": 200, "answered": true}, Body: []byte("Content-Type\n")})
	}
	if rec, err := recordingOf(append(before, reviewEvents("act_review01", "annlee")...), "review_status"); err != nil || len(rec.Answers) != 2 || rec.Code != "" || rec.Sent.IsZero() {
		t.Errorf("%v %+v", err, rec)
	}
	if _, err := recordingOf(before, "review_status"); err == nil || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("%v", err)
	}
	if _, err := recordingOf(nil, "read_stock"); err == nil || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("%v", err)
	}
}
