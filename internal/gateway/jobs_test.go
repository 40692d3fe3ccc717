package gateway

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// start_job is a change with a lookup before its card, a poll and a reconcile.
const startJob = `contract: v1
action: start_job
version: 1.0.0
summary: Start one job.
owner: tests
effect: change
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: jobs}
approval: {sentence: 'Start {input.key}', show: {Revision: {from: head.rev}}ASK}
lookups:
  head:
    method: GET
    path: /heads/{input.key}
    outcomes:
      - status: 200
        expect: {type: object, additionalProperties: false, required: [rev], properties: {rev: {type: string, pattern: '^[a-f0-9]{4,8}$', maxLength: 8}}}
        capture: {rev: /rev}
request:
  method: POST
  path: /jobs
  json: {key: {from: input.key}, rev: {from: head.rev}}
  outcomes:
    - status: 202
      expect: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      capture: {run: /run}
    - {status: 409, media: none, failure: BUSY}
poll:
  every: 5s
  within: 1m
  method: GET
  path: /runs/{request.run}
  outcomes:
    - status: 200
      when: {equals: [/state, done]}
      expect: {type: object, additionalProperties: false, required: [state, run], properties: {state: {enum: [done, failed, waits]}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {run: /run}
    - {status: 200, when: {equals: [/state, failed]}, failure: JOB_FAILED}
    - {status: 200, when: {equals: [/state, waits]}, pending: true}
    - {status: 410, media: none, failure: UPSTREAM_UNAVAILABLE}
    - {status: 423, media: none, failure: REMOTE_FORBIDDEN}
RECONCILEresult: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
failures:
  BUSY: {message: Another job of this key runs., retryable: true}
  JOB_FAILED: {message: The job failed., retryable: false}
  NEVER_STARTED: {message: The job was never started., retryable: true}
ONCE`

const jobReconcile = `reconcile:
  method: GET
  path: /jobs/{input.key}
  outcomes:
    - status: 200
      when: {equals: [/key, {from: input.key}]}
      expect: {type: object, additionalProperties: false, required: [key, run], properties: {key: {type: string, maxLength: 8}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      took_effect: true
      success: {run: /run}
    - {status: 404, media: none, took_effect: false}
    - {status: 410, media: none, took_effect: false, failure: NEVER_STARTED}
    - {status: 423, media: none, failure: OUTCOME_UNKNOWN}
`

// job fills the text in.
func job(reconciles, everyCall bool) string {
	reconcile, once, ask := jobReconcile, "", ""
	if !reconciles {
		reconcile, once = "", "at_most_once: each call starts one\n"
	}
	if everyCall {
		ask = ", ask: every_call"
	}
	return strings.NewReplacer("RECONCILE", reconcile, "ONCE", once, "ASK", ask).Replace(startJob)
}

const getJob = `contract: v1
action: get_job
version: 1.0.0
summary: Read one job, once it has ended.
owner: tests
effect: read
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: jobs}
lookups:
  head:
    method: GET
    path: /heads/{input.key}
    outcomes:
      - status: 200
        expect: {type: object, additionalProperties: false, required: [rev], properties: {rev: {type: string, pattern: '^[a-f0-9]{4,8}$', maxLength: 8}}}
        capture: {rev: /rev}
request:
  method: GET
  path: /jobs/{input.key}
  query: {rev: {from: head.rev}}
  outcomes:
    - status: 202
      expect: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      capture: {run: /run}
poll:
  every: 5s
  within: 1m
  method: GET
  path: /runs/{request.run}
  outcomes:
    - status: 200
      when: {equals: [/state, done]}
      expect: {type: object, additionalProperties: false, required: [state, run], properties: {state: {enum: [done]}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {run: /run}
    - {status: 200, when: {equals: [/state, waits]}, pending: true}
result: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
retry: {attempts: 2, within: 30s, codes: [UPSTREAM_UNAVAILABLE]}
`

const jobInput = `{"key":"build"}`

// said answers each step in its own way, its replies one after the other, the last
// one again and again.
type said struct {
	head, post, run, job []reply
	mu                   sync.Mutex
}

func (s *said) script() func(method, path, body string) reply {
	next := func(all *[]reply) reply {
		if len(*all) == 0 {
			return reply{status: 500, body: `{}`}
		}
		a := (*all)[0]
		if len(*all) > 1 {
			*all = (*all)[1:]
		}
		return a
	}
	return func(method, path, _ string) reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case strings.HasPrefix(path, "/heads/"):
			return next(&s.head)
		case strings.HasPrefix(path, "/runs/"):
			return next(&s.run)
		case method == http.MethodPost:
			return next(&s.post)
		}
		return next(&s.job)
	}
}

func ok(body string) reply { return reply{status: 200, body: body} }

var (
	headIs   = []reply{ok(`{"rev":"abcd"}`)}
	taken    = []reply{{status: 202, body: `{"run":"r1"}`}}
	waits    = ok(`{"state":"waits","run":"r1"}`)
	done     = ok(`{"state":"done","run":"r1"}`)
	failed   = ok(`{"state":"failed","run":"r1"}`)
	invalid  = ok(`{"state":"what"}`)
	lostIt   = reply{}
	started  = ok(`{"key":"build","run":"r1"}`)
	noSuch   = reply{status: 404}
	isGone   = reply{status: 410}
	isLocked = reply{status: 423}
)

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
