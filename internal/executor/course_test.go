package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

const courseContract = `contract: v1
action: start_job
version: 1.0.0
summary: Start one job.
owner: tests
effect: EFFECT
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: jobs}
APPROVALrequest:
  method: METHOD
  path: /jobs/{input.key}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      END
POLLRECONCILEresult: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
failures:
  BUSY: {message: Another job runs., retryable: true}
retry: {attempts: 3, within: 30s, codes: [UPSTREAM_UNAVAILABLE, REMOTE_RATE_LIMITED CODES]}
ONCE`

const coursePoll = `poll:
  every: 5s
  within: 1m
  method: GET
  path: /runs/{request.id}
  outcomes:
    - status: 200
      when: {equals: [/state, done]}
      expect: {type: object, additionalProperties: false, required: [state, id], properties: {state: {const: done}, id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {id: /id}
    - {status: 200, when: {equals: [/state, failed]}, failure: BUSY}
    - {status: 200, when: {equals: [/state, waits]}, pending: true}
`

const courseReconcile = `reconcile:
  method: GET
  path: /jobs/{input.key}
  outcomes:
    - status: 200
      when: {equals: [/key, {from: input.key}]}
      expect: {type: object, additionalProperties: false, required: [key, id], properties: {key: {type: string, maxLength: 8}, id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      took_effect: true
      success: {id: /id}
    - {status: 404, media: none, took_effect: false}
    - {status: 409, media: none, took_effect: false, failure: BUSY}
`

// courseOf loads a contract with the parts given.
func courseOf(t *testing.T, change, polls, reconciles bool) *actions.Contract {
	t.Helper()
	parts := []string{"EFFECT", "read", "METHOD", "GET", "APPROVAL", "", "POLL", "", "RECONCILE", "", "END", "success: {id: /id}", " CODES", "", "ONCE", ""}
	set := func(name, value string) {
		for i := 0; i < len(parts); i += 2 {
			if parts[i] == name {
				parts[i+1] = value
			}
		}
	}
	if change {
		set("EFFECT", "change")
		set("METHOD", "PUT")
		set("APPROVAL", "approval: {sentence: 'Start {input.key}'}\n")
		set(" CODES", ", OUTCOME_UNKNOWN")
		set("ONCE", "idempotency: {natural: true}\n")
	}
	if polls {
		set("POLL", coursePoll)
		set("END", "capture: {id: /id}")
	}
	if reconciles {
		set("RECONCILE", courseReconcile)
	}
	dir := t.TempDir()
	site := "targets: {jobs: {url: 'https://jobs.example', identity: bot, actions: [start_job], effects: [read, change], ask: session}}\nidentities: {bot: {kind: bearer}}\n"
	for name, text := range map[string]string{"targets.yaml": site, "contracts/start_job/contract.yaml": strings.NewReplacer(parts...).Replace(courseContract)} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, problems := actions.LoadSet(filepath.Join(dir, "targets.yaml"), filepath.Join(dir, "contracts"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return loaded.Contracts()[0]
}

const (
	noCode  = fault.Code("")
	unknown = fault.OutcomeUnknown
	down    = fault.UpstreamUnavailable
	bad     = fault.InvalidResponse
)

func TestAfterRequest(t *testing.T) {
	for name, c := range map[string]struct {
		change, polls, reconciles bool
		end                       End
		next                      Next
		code                      fault.Code
	}{
		"success":                        {true, false, true, End{}, Done, noCode},
		"own failure":                    {true, false, true, End{Code: "BUSY"}, Done, "BUSY"},
		"captured":                       {true, true, true, End{Captured: true}, GoPoll, fault.InProgress},
		"captured, no poll":              {true, false, false, End{Captured: true}, Done, fault.Internal},
		"a row ends it before the poll":  {true, true, true, End{Code: "BUSY"}, Done, "BUSY"},
		"unknown":                        {true, false, true, End{Code: unknown}, GoReconcile, unknown},
		"unknown, no reconcile":          {true, false, false, End{Code: unknown}, Done, unknown},
		"invalid":                        {true, false, true, End{Code: bad}, GoReconcile, bad},
		"invalid read":                   {false, false, false, End{Code: bad}, Done, bad},
		"nothing was written":            {true, false, true, End{Code: down, Lost: true}, Done, down},
		"in doubt, then a failure":       {true, false, false, End{Code: "BUSY", Doubted: true}, Done, unknown},
		"in doubt, then invalid":         {true, false, true, End{Code: bad, Doubted: true}, GoReconcile, unknown},
		"in doubt, then success":         {true, false, true, End{Doubted: true}, Done, noCode},
		"in doubt, then captured":        {true, true, true, End{Captured: true, Doubted: true}, GoPoll, fault.InProgress},
		"refused, and it may be retried": {true, false, true, End{Code: fault.RemoteRateLimited}, Done, fault.RemoteRateLimited},
	} {
		if next, code := AfterRequest(courseOf(t, c.change, c.polls, c.reconciles), c.end); next != c.next || code != c.code {
			t.Errorf("%s: %d %q, want %d %q", name, next, code, c.next, c.code)
		}
	}
}

func TestAfterPoll(t *testing.T) {
	for name, c := range map[string]struct {
		change, reconciles bool
		end                End
		over               bool
		next               Next
		code               fault.Code
	}{
		"done":                       {true, true, End{}, false, Done, noCode},
		"done at the end":            {true, true, End{}, true, Done, noCode},
		"failed":                     {true, true, End{Code: "BUSY"}, false, Done, "BUSY"},
		"pending":                    {true, true, End{Pending: true}, false, PollAgain, fault.InProgress},
		"lost":                       {true, true, End{Code: down, Lost: true}, false, PollAgain, fault.InProgress},
		"not sent":                   {true, true, End{Lost: true}, false, PollAgain, fault.InProgress},
		"over":                       {true, false, End{Pending: true}, true, Done, unknown},
		"over, and can be looked up": {true, true, End{Code: down, Lost: true}, true, GoReconcile, unknown},
		"a read is over":             {false, false, End{Pending: true}, true, Done, down},
		"a read fails":               {false, false, End{Code: fault.RemoteForbidden}, false, Done, fault.RemoteForbidden},
		"invalid":                    {true, true, End{Code: bad}, false, GoReconcile, bad},
		"invalid read":               {false, false, End{Code: bad}, false, Done, bad},
		"a row that frees":           {true, false, End{Code: down}, false, Done, unknown},
		"slow down frees too":        {true, true, End{Code: fault.RemoteRateLimited}, false, GoReconcile, unknown},
		"of a read it may":           {false, false, End{Code: down}, false, Done, down},
		"in doubt, then failed":      {true, true, End{Code: "BUSY", Doubted: true}, false, GoReconcile, unknown},
		"in doubt, then done":        {true, true, End{Doubted: true}, false, Done, noCode},
	} {
		if next, code := AfterPoll(courseOf(t, c.change, true, c.reconciles), c.end, c.over); next != c.next || code != c.code {
			t.Errorf("%s: %d %q, want %d %q", name, next, code, c.next, c.code)
		}
	}
}

func TestAfterReconcile(t *testing.T) {
	did := End{Effect: true, EffectSaid: true}
	not, busy := End{EffectSaid: true}, End{EffectSaid: true, Code: "BUSY"}
	for name, c := range map[string]struct {
		lost  bool
		first *End
		end   End
		next  Next
		code  fault.Code
	}{
		"it did":                           {false, nil, did, Done, noCode},
		"it did, lost":                     {true, nil, did, Done, noCode},
		"it did, the check failed":         {true, nil, End{Effect: true, EffectSaid: true, Code: bad}, Done, unknown},
		"it did, the find met nothing":     {true, nil, End{Effect: true, EffectSaid: true, Code: fault.NotFound}, Done, unknown},
		"it did not":                       {false, nil, not, Done, down},
		"it did not, by its own code":      {false, nil, busy, Done, "BUSY"},
		"it did not, once, lost":           {true, nil, not, LookAgain, unknown},
		"it did not, twice, lost":          {true, &not, not, Done, down},
		"another reason the second time":   {true, &not, busy, Done, unknown},
		"it did the second time":           {true, &not, did, Done, noCode},
		"the second look cannot tell":      {true, &not, End{Code: unknown}, Done, unknown},
		"no answer":                        {false, nil, End{Code: down, Lost: true}, Done, unknown},
		"not sent":                         {true, nil, End{Lost: true}, Done, unknown},
		"no row":                           {false, nil, End{Code: bad}, Done, unknown},
		"a row that cannot tell":           {false, nil, End{Code: unknown}, Done, unknown},
		"a status that says nothing of it": {false, nil, End{Code: fault.NotFound}, Done, unknown},
		"it did not, but unknown":          {false, nil, End{EffectSaid: true, Code: unknown}, Done, unknown},
	} {
		if next, code := AfterReconcile(Unknown{Code: unknown, Lost: c.lost}, c.first, c.end); next != c.next || code != c.code {
			t.Errorf("%s: %d %q, want %d %q", name, next, code, c.next, c.code)
		}
	}
}

// Where the poll had begun, "it did not" needs a second look too; what the first
// look is sure of does not.
func TestAfterReconcileOfWhatWasAccepted(t *testing.T) {
	did, not := End{Effect: true, EffectSaid: true}, End{EffectSaid: true}
	u := Unknown{Code: unknown, Accepted: true}
	for name, c := range map[string]struct {
		first *End
		end   End
		next  Next
		code  fault.Code
	}{
		"it did":                 {nil, did, Done, noCode},
		"it did not, once":       {nil, not, LookAgain, unknown},
		"it did not, twice":      {&not, not, Done, down},
		"it did the second time": {&not, did, Done, noCode},
		"it cannot tell":         {nil, End{Code: unknown}, Done, unknown},
	} {
		if next, code := AfterReconcile(u, c.first, c.end); next != c.next || code != c.code {
			t.Errorf("%s: %d %q, want %d %q", name, next, code, c.next, c.code)
		}
	}
}

// Only the word of somebody in between is a lost answer.
func TestAnswerLost(t *testing.T) {
	for status := range 600 {
		if got, want := AnswerLost(status), status == 408 || status == 502 || status == 504; got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}

func TestAfterLookup(t *testing.T) {
	for code, c := range map[fault.Code]End{
		noCode: {Captured: true}, fault.Internal: {}, down: {Code: unknown}, bad: {Code: bad}, fault.NotFound: {Code: fault.NotFound}, "BUSY": {Code: "BUSY"},
	} {
		if got := AfterLookup(c); got != code {
			t.Errorf("%+v: %q, want %q", c, got, code)
		}
	}
}

// A lookup is repeated for the codes of the contract's retry that a read can end
// with; the contract's own policy stays as it is.
func TestLookupRetry(t *testing.T) {
	c := courseOf(t, true, false, false)
	if p := LookupRetry(c); p.Attempts != 3 || !p.Codes[down] || !p.Codes[fault.RemoteRateLimited] || p.Codes[unknown] {
		t.Errorf("%+v", p)
	}
	if !c.Retry().Codes[unknown] {
		t.Error("the request's own policy lost a code")
	}
}

func TestPollWait(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		every, asked, left, wait time.Duration
		last, send               bool
	}{
		"in time":                    {5 * s, 0, 60 * s, 5 * s, false, true},
		"asked to wait":              {5 * s, 20 * s, 60 * s, 20 * s, false, true},
		"asked for less":             {5 * s, 1 * s, 60 * s, 5 * s, false, true},
		"the last at the end":        {5 * s, 0, 3 * s, 3 * s, true, true},
		"exactly at the end":         {5 * s, 0, 5 * s, 5 * s, true, true},
		"asked to wait to the end":   {5 * s, 9 * s, 9 * s, 9 * s, true, true},
		"asked to wait beyond it":    {5 * s, 90 * s, 60 * s, 60 * s, true, false},
		"left behind, asked at once": {0, 0, 60 * s, 0, false, true},
		"over":                       {5 * s, 0, -s, 0, true, false},
	} {
		if wait, last, send := PollWait(c.every, c.asked, c.left); wait != c.wait || last != c.last || send != c.send {
			t.Errorf("%s: %s %v %v", name, wait, last, send)
		}
	}
}
