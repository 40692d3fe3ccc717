package contracttest

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// starts is a contract of every kind of step: a lookup, the request of a change
// that captures, a poll and a reconcile.
const starts = `
contract: v1
action: set_thing
version: 1.0.0
summary: Start one job of a thing.
owner: tests
effect: change
input:
  type: object
  additionalProperties: false
  required: [id]
  properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}
route: {target: things}
approval: {sentence: "Start a job of {input.id}", show: {Revision: {from: head.rev}}}
lookups:
  head:
    method: GET
    path: /heads/{input.id}
    outcomes:
      - status: 200
        expect: {type: object, additionalProperties: false, required: [rev], properties: {rev: {type: string, pattern: '^[a-f0-9]{4,8}$', maxLength: 8}}}
        capture: {rev: /rev}
request:
  method: POST
  path: /jobs
  json: {id: {from: input.id}, rev: {from: head.rev}}
  timeout: 5s
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
      expect: &CLOSED
      success: {run: /run}
    - {status: 200, when: {equals: [/state, failed]}, expect: &CLOSED, failure: JOB_FAILED}
    - {status: 200, when: {in: [/state, [waits]]}, expect: &CLOSED, pending: true}
reconcile:
  method: GET
  path: /jobs/{input.id}
  outcomes:
    - status: 200
      when: {equals: [/id, {from: input.id}]}
      expect: {type: object, additionalProperties: false, required: [id, run], properties: {id: {type: string, maxLength: 8}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      took_effect: true
      success: {run: /run}
    - {status: 404, media: none, took_effect: false}
    - {status: 410, media: none, took_effect: false, failure: NEVER_STARTED}
result: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
failures:
  JOB_FAILED: {message: The job failed., retryable: false}
  NEVER_STARTED: {message: The job was never started., retryable: true}
`

const closedRun = `{type: object, additionalProperties: false, required: [state, run], properties: {state: {type: string, enum: [done, failed, waits], maxLength: 6}, run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}`

// playSteps plays fixtures of the contract above, by name.
func playSteps(t *testing.T, fixtures map[string]string, o Options) (map[string]Case, Report) {
	t.Helper()
	files := map[string]string{}
	for name, text := range fixtures {
		files["set_thing/accepted-"+strings.ReplaceAll(name, " ", "-")+".yaml"] = "name: " + name + "\ninput: {id: a7}\n" + text
	}
	w := writeWith(t, map[string]string{"set_thing": strings.ReplaceAll(starts, "&CLOSED", closedRun)}, files)
	o.Site, o.Contracts, o.Actions = w.Site, w.Contracts, []string{"set_thing"}
	rep, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Case{}
	for _, c := range rep.Cases {
		out[c.Fixture] = c
	}
	return out, rep
}

const (
	headAnswer = "  - {step: head, status: 200, headers: {Content-Type: application/json}, body: '{\"rev\":\"abcd\"}'}\n"
	jobAnswer  = "  - {step: request, status: 202, headers: {Content-Type: application/json}, body: '{\"run\":\"r1\"}'}\n"
	headSent   = "    - {step: head, method: GET, path: /api/heads/a7}\n"
	jobSent    = "    - {step: request, method: POST, path: /api/jobs, json: {id: a7, rev: abcd}}\n"
	runSent    = "    - {step: poll, method: GET, path: /api/runs/r1}\n"
	backSent   = "    - {step: reconcile, method: GET, path: /api/jobs/a7}\n"
)

func runAnswer(state, more string) string {
	return "  - {step: poll, status: 200, headers: {Content-Type: application/json}, body: '{\"state\":\"" + state + "\",\"run\":\"r1\"}'" + more + "}\n"
}

const found = "  - {step: reconcile, status: 200, headers: {Content-Type: application/json}, body: '{\"id\":\"a7\",\"run\":\"r1\"}'}\n"

// Every course of a call of several steps, as the daemon takes it; not one of
// them takes the time that its waits would.
func TestCoursesOfSeveralSteps(t *testing.T) {
	fixtures := map[string]string{
		"done at once":        "answers:\n" + headAnswer + jobAnswer + runAnswer("done", "") + "want:\n  ok: true\n  data: {run: r1}\n  sent:\n" + headSent + jobSent + runSent,
		"done later":          "answers:\n" + headAnswer + jobAnswer + runAnswer("waits", "") + "  - {step: poll, status: 503}\n  - {step: poll, close: before_answer}\n" + runAnswer("done", "") + "want:\n  ok: true\n  data: {run: r1}\n  sent:\n" + headSent + jobSent + runSent + runSent + runSent + runSent,
		"fails":               "answers:\n" + headAnswer + jobAnswer + runAnswer("failed", "") + "want: {ok: false, code: JOB_FAILED}\n",
		"never ends":          "answers:\n" + headAnswer + jobAnswer + runAnswer("waits", ", repeat: true") + "  - {step: reconcile, status: 503}\nwant: {ok: false, code: OUTCOME_UNKNOWN}\n",
		"never ends but did":  "answers:\n" + headAnswer + jobAnswer + runAnswer("waits", ", repeat: true") + found + "want:\n  ok: true\n  data: {run: r1}\n",
		"no head":             "answers:\n  - {step: head, status: 404}\nwant:\n  ok: false\n  code: NOT_FOUND\n  sent:\n" + headSent,
		"a head of another":   "answers:\n  - {step: head, status: 200, headers: {Content-Type: application/json}, body: '{\"rev\":\"xyz\"}'}\nwant: {ok: false, code: INVALID_RESPONSE, layer: schema}\n",
		"lost and did":        "answers:\n" + headAnswer + "  - {step: request, close: before_answer}\n" + found + "want:\n  ok: true\n  data: {run: r1}\n  sent:\n" + headSent + jobSent + backSent,
		"lost and did not":    "answers:\n" + headAnswer + "  - {step: request, close: before_answer}\n  - {step: reconcile, status: 404}\n  - {step: reconcile, status: 404}\nwant:\n  ok: false\n  code: UPSTREAM_UNAVAILABLE\n  sent:\n" + headSent + jobSent + backSent + backSent,
		"lost and not sure":   "answers:\n" + headAnswer + "  - {step: request, close: before_answer}\n  - {step: reconcile, status: 404}\n  - {step: reconcile, status: 503}\nwant: {ok: false, code: OUTCOME_UNKNOWN}\n",
		"lost then seen":      "answers:\n" + headAnswer + "  - {step: request, close: before_answer}\n  - {step: reconcile, status: 404}\n" + found + "want:\n  ok: true\n  data: {run: r1}\n",
		"lost never started":  "answers:\n" + headAnswer + "  - {step: request, close: after_headers, status: 202}\n  - {step: reconcile, status: 410, repeat: true}\nwant: {ok: false, code: NEVER_STARTED}\n",
		"read but not known":  "answers:\n" + headAnswer + "  - {step: request, status: 200}\n  - {step: reconcile, status: 410}\nwant: {ok: false, code: NEVER_STARTED}\n",
		"not known at all":    "answers:\n" + headAnswer + "  - {step: request, status: 200}\n  - {step: reconcile, status: 500}\nwant: {ok: false, code: INVALID_RESPONSE, layer: outcome}\n",
		"lost, one answer":    "answers:\n" + headAnswer + "  - {step: request, close: before_answer}\n  - {step: reconcile, status: 404}\nwant:\n  ok: false\n  code: UPSTREAM_UNAVAILABLE\n  sent:\n" + headSent + jobSent + backSent,
		"behind a gateway":    "answers:\n" + headAnswer + "  - {step: request, status: 502}\n  - {step: reconcile, status: 404}\n" + found + "want:\n  ok: true\n  data: {run: r1}\n  sent:\n" + headSent + jobSent + backSent + backSent,
		"timed out, no media": "answers:\n" + headAnswer + "  - {step: request, status: 504}\n  - {step: reconcile, status: 404}\n  - {step: reconcile, status: 503}\nwant: {ok: false, code: OUTCOME_UNKNOWN}\n",
		"its own 503":         "answers:\n" + headAnswer + "  - {step: request, status: 503}\n  - {step: reconcile, status: 404}\nwant:\n  ok: false\n  code: UPSTREAM_UNAVAILABLE\n  sent:\n" + headSent + jobSent + backSent,
		"accepted, then no":   "answers:\n" + headAnswer + jobAnswer + runAnswer("over", "") + "  - {step: reconcile, status: 410}\nwant:\n  ok: false\n  code: NEVER_STARTED\n  sent:\n" + headSent + jobSent + runSent + backSent,
		"accepted, then seen": "answers:\n" + headAnswer + jobAnswer + runAnswer("over", "") + "  - {step: reconcile, status: 410}\n" + found + "want:\n  ok: true\n  data: {run: r1}\n  sent:\n" + headSent + jobSent + runSent + backSent + backSent,
		"a run that is wrong": "answers:\n" + headAnswer + jobAnswer + runAnswer("over", "") + found + "want:\n  ok: true\n  data: {run: r1}\n",
	}
	cases, _ := playSteps(t, fixtures, Options{})
	for name := range fixtures {
		if c := cases[name]; !c.OK {
			t.Errorf("%s: want %s, got %s: %s %v", name, c.Want, c.Got, c.Reason, c.Diffs)
		}
	}
}

// An answer for a step that is not the one sent is told as that, and what is
// left over is, too.
func TestStepsOutOfOrder(t *testing.T) {
	cases, _ := playSteps(t, map[string]string{
		"wrong step": "answers:\n" + jobAnswer + headAnswer + "want: {ok: true, data: {run: r1}}\n",
		"left over":  "answers:\n" + headAnswer + jobAnswer + runAnswer("done", "") + runAnswer("done", ", repeat: true") + "want: {ok: true, data: {run: r1}}\n",
		"wrong sent": "answers:\n" + headAnswer + jobAnswer + runAnswer("done", "") + "want:\n  ok: true\n  data: {run: r1}\n  sent:\n" + headSent + strings.Replace(jobSent, "step: request", "step: poll", 1) + runSent,
		"too few":    "answers:\n" + headAnswer + jobAnswer + runAnswer("waits", "") + "want: {ok: true, data: {run: r1}}\n",
	}, Options{})
	for name, want := range map[string]Diff{
		"wrong step": {"answers", "each for the step that is sent", "answers[0] is for the step request, and head was sent"},
		"left over":  {"answers", "each asked for", "1 that nobody asked for"},
		"wrong sent": {"sent[1].step", "poll", "request"},
		"too few":    {"outcome", "ok", "OUTCOME_UNKNOWN"},
	} {
		told := false
		for _, d := range cases[name].Diffs {
			told = told || d == want
		}
		if cases[name].OK || !told {
			t.Errorf("%s: %v", name, cases[name].Diffs)
		}
	}
}

// Every step's answers have their near-misses, and those of this contract have
// no hole.
func TestNearMissesOfSeveralSteps(t *testing.T) {
	_, rep := playSteps(t, map[string]string{
		"done": "answers:\n" + headAnswer + jobAnswer + runAnswer("waits", "") + runAnswer("done", "") + "want: {ok: true, data: {run: r1}}\n",
		"lost": "answers:\n" + headAnswer + "  - {step: request, close: before_answer}\n" + found + "want: {ok: true, data: {run: r1}}\n",
	}, Options{Mutate: true})
	m := rep.Mutations[0]
	if m.Answers != 5 || m.Made < 150 || rep.Holes() != 0 {
		t.Errorf("%+v", m)
	}
	if c := rep.Coverage[0]; len(c.Missing) != 3 || c.Missing[0].Name != "poll.outcomes[1]" || c.Places != 12 {
		t.Errorf("%+v", c)
	}
}

// A poll that answers about another run than the request began is a hole, until
// a check or `when` compares them.
func TestPollOfAnotherThing(t *testing.T) {
	fixture := map[string]string{"done": `
answers:
  - {step: head, status: 200, headers: {Content-Type: application/json}, body: '{"rev":"abcd"}'}
  - {step: request, status: 202, headers: {Content-Type: application/json}, body: '{"run":"run7x"}'}
  - {step: poll, status: 200, headers: {Content-Type: application/json}, body: '{"state":"done","run":"run7x"}'}
want: {ok: true, data: {run: run7x}}
`}
	_, rep := playSteps(t, fixture, Options{Mutate: true})
	var met []string
	for _, m := range rep.Mutations {
		for _, h := range m.Holes {
			met = append(met, h.Row+" "+h.Kind+" "+h.Place)
		}
	}
	if !slices.Contains(met, "poll.outcomes[0] other subject /run") {
		t.Errorf("holes %q", met)
	}
}
