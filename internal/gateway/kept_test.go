package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/validate"
)

// An attempt whose answer was lost is remembered over a restart in the poll of a
// later one: a reconcile that says no is asked a second time.
func TestALostAttemptOutlivesARestartInThePoll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false)+"idempotency: {header: Idempotency-Key}\nretry: {attempts: 2, within: 30s, codes: [OUTCOME_UNKNOWN]}\n")
		s := said{head: headIs, post: append([]reply{lostIt}, taken...), run: []reply{waits}, job: []reply{noSuch, started}}
		r.remote.answer(s.script())
		r.want(r.call("start_job", "twice-0001", jobInput), "IN_PROGRESS")
		time.Sleep(12 * time.Second)
		r.crash()
		synctest.Wait()
		time.Sleep(3 * time.Minute)
		r.want(r.look("twice-0001", 0), "OK")
		sent := strings.Join(r.remote.requests(), " ")
		if strings.Count(sent, "POST") != 2 || strings.Count(sent, "GET /jobs/build") != 2 {
			t.Errorf("sent %s", sent)
		}
	})
}

// What the request's answer gave is read again, also where it was all of the
// largest answer, several times.
func TestCapturedValuesOfTheLargestAnswerAreReadAgain(t *testing.T) {
	limits := validate.AnswerLimits()
	deep := any("end")
	for range limits.Depth - 2 {
		deep = []any{deep}
	}
	wide := make([]any, limits.Nodes-2*limits.Depth)
	for i := range wide {
		wide[i] = json.Number("1")
	}
	body := []any{deep, wide}
	if _, err := validate.Parse(validate.Canonical(body), limits); err != nil {
		t.Fatal(err)
	}
	captured := map[string]any{"a": body, "b": body, "c": strings.Repeat("x", limits.StringBytes-2)}
	again, err := capturedIn(canonicalOf(captured))
	if err != nil || !validate.Equal(again, captured) {
		t.Error(err)
	}
}

// A call that polls does not hold the bytes of its newest answer.
func TestAHeldCallLetsGoOfTheRawAnswer(t *testing.T) {
	var j judged
	j.exchange = executor.Exchange{Status: 200, Body: []byte("{}"), Wrote: true}
	j.event = auditlog.Event{EventID: "evt_1", Body: []byte("{}")}
	if l := j.light(); l.exchange.Body != nil || l.event.Body != nil || l.exchange.Status != 200 || !l.exchange.Wrote || l.event.EventID != "evt_1" {
		t.Errorf("%+v", l.exchange)
	}
}

// A call that a person resolved while an unlock looked at it does not keep the vault
// from opening, nor the other calls from being taken up.
func TestACallResolvedMeanwhileStopsNoUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		if err := r.g.takeUpAll([]ledger.Left{{}, {}}); err != nil {
			t.Error(err)
		}
		if got := r.events("reconcile"); len(got) > 0 {
			t.Errorf("the record tells of %d calls", len(got))
		}
	})
}

// An entry of the ledger that cannot be read keeps no vault shut: the other calls
// are taken up, and status and log name it.
func TestADamagedEntryStopsNoUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		s := said{head: headIs, post: []reply{{after: time.Minute}}, job: []reply{started}}
		r.remote.answer(s.script())
		go r.g.Perform(r.t.Context(), Ask{Token: r.token, Peer: r.peer, Action: "start_job", Input: map[string]any{"key": "build"}, RequestID: "whole-0001"})
		time.Sleep(time.Second)
		key := []byte(strings.Repeat("k", 32))
		r.must(r.store.Put("ledger.open", key, key))
		r.must(r.store.Put("ledger.calls", key, []byte("no entry")))
		r.crash()
		time.Sleep(time.Second)
		r.want(r.look("whole-0001", 0), "OK")
		if got := r.g.Damaged(); len(got) != 1 || got[0] != "6b6b6b6b6b6b" || !strings.Contains(r.told.String(), got[0]) {
			t.Errorf("damaged: %v; the log: %s", got, r.told)
		}
	})
}

// A change that was looked up and did not take effect is not told as one whose
// service could not be reached.
func TestWhatALookFoundIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, job(true, false))
		s := said{head: headIs, post: []reply{{status: 202, body: `{"run":7}`}}, job: []reply{noSuch}}
		r.remote.answer(s.script())
		e := r.call("start_job", "told-00001", jobInput)
		r.want(e, "UPSTREAM_UNAVAILABLE")
		if want := fault.DidNotHappen(nil).Message(); e.Error.Message != want {
			t.Errorf("it says %q, want %q", e.Error.Message, want)
		}
	})
}

// A captured value that holds the credential once it is decoded is shown to nobody
// and sent nowhere.
func TestNoCredentialIsCaptured(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		text := job(true, false)
		for old, with := range map[string]string{
			"rev: {type: string, pattern: '^[a-f0-9]{4,8}$', maxLength: 8}": "rev: {type: string, maxLength: 40}",
			"capture: {rev: /rev}": "capture: {rev: {at: /rev, base64: true}}",
		} {
			text = strings.Replace(text, old, with, 1)
		}
		r := newRig(t, text)
		r.vault.secret = "planted-credential"
		s := said{head: []reply{ok(`{"rev":"cGxhbnRlZC1jcmVkZW50aWFs"}`)}, post: taken}
		r.remote.answer(s.script())
		r.want(r.call("start_job", "echo-00001", jobInput), "INVALID_RESPONSE")
		r.sent("GET /heads/build")
	})
}
