package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// The last of the line, from raw bytes to the envelope that an agent reads, over
// every contract that ships.

// check holds an envelope to the published schema, read strictly.
func (s shippedAnswers) check(t testing.TB, envelope []byte) map[string]any {
	t.Helper()
	doc, err := validate.Parse(envelope, validate.AnswerLimits())
	if err != nil {
		t.Fatalf("%s: the answer is not strict JSON: %v\n%s", s.contract.Action(), err, envelope)
	}
	if v := s.contract.EnvelopeSchema().Validate(doc); v != nil {
		t.Fatalf("%s: %s at %s: %s\n%s", s.contract.Action(), v.Rule, v.InstancePath, v.Message, envelope)
	}
	return doc.(map[string]any)
}

// selected gives the parts of a body that a pick reads. It is written after the
// page of the format, not after the code.
func selected(pick, body any) (out []any) {
	m, object := pick.(map[string]any)
	if !object {
		return pointed(pick, body)
	}
	if f, ok := m["find"].(map[string]any); ok {
		for _, list := range pointed(f["in"], body) {
			elements, _ := list.([]any)
			for _, e := range elements {
				at := m["at"]
				if at == nil {
					at = ""
				}
				out = append(out, pointed(at, e)...)
			}
		}
		return out
	}
	if e, ok := m["each"].(map[string]any); ok {
		for _, list := range pointed(e["in"], body) {
			elements, _ := list.([]any)
			for _, element := range elements {
				for _, inner := range e["pick"].(map[string]any) {
					out = append(out, selected(inner, element)...)
				}
			}
		}
		return out
	}
	return pointed(m["at"], body)
}

func pointed(at, body any) []any {
	text, ok := at.(string)
	if !ok {
		return nil // header, from, const
	}
	p, err := validate.ParsePointer(text)
	if err != nil {
		return nil
	}
	if v, ok := p.Get(body); ok {
		return []any{v}
	}
	return nil
}

var stain = regexp.MustCompile(`stain[0-9]{5}x|81[0-9]{5}`)

// stains lists the marks in a value's texts, numbers and names, also as base64
// reads them.
func stains(v any, out map[string]bool) map[string]bool {
	switch v := v.(type) {
	case string:
		raw, _ := base64.StdEncoding.DecodeString(v)
		for _, m := range stain.FindAllString(v+" "+string(raw), -1) {
			out[m] = true
		}
	case json.Number:
		stains(string(v), out)
	case []any:
		for _, e := range v {
			stains(e, out)
		}
	case map[string]any:
		for name, e := range v {
			stains(name, out)
			stains(e, out)
		}
	}
	return out
}

// stainer puts a mark of its own into leaves of a body.
type stainer struct{ next int }

func (s *stainer) mark() string { s.next++; return fmt.Sprintf("stain%05dx", s.next) }

// variants gives bodies that differ from one: each leaf marked alone, every leaf
// that keep does not want marked at once, a member that nobody named in each
// object.
func (s *stainer) variants(body any, keep func(any) bool) []any {
	var out []any
	out = append(out, s.rewrite(body, -1, -1, keep))
	leaves, objects := count(body)
	for i := range leaves {
		out = append(out, s.rewrite(body, i, -1, nil))
	}
	for i := range objects {
		out = append(out, s.rewrite(body, -1, i, nil))
	}
	return out
}

func count(v any) (leaves, objects int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			l, o := count(e)
			leaves, objects = leaves+l, objects+o
		}
		return leaves, objects
	case map[string]any:
		for _, e := range v {
			l, o := count(e)
			leaves, objects = leaves+l, objects+o
		}
		return leaves, objects + 1
	}
	return 1, 0
}

// rewrite copies v. The leaf of number leaf, or with keep every leaf it does not
// want, becomes a mark; the object of number object gets a member more.
func (s *stainer) rewrite(v any, leaf, object int, keep func(any) bool) any {
	l, o := 0, 0
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case []any:
			out := make([]any, len(v))
			for i, e := range v {
				out[i] = walk(e)
			}
			return out
		case map[string]any:
			out := map[string]any{}
			here := o
			o++
			for _, name := range slices.Sorted(maps.Keys(v)) {
				out[name] = walk(v[name])
			}
			if here == object {
				out[s.mark()] = s.mark()
			}
			return out
		}
		here := l
		l++
		if here != leaf && (keep == nil || keep(v)) {
			return v
		}
		switch v.(type) {
		case string:
			return s.mark()
		case json.Number:
			s.next++
			return json.Number(fmt.Sprintf("81%05d", s.next))
		}
		return v
	}
	return walk(v)
}

// likeAnswers is how many answers of one row are varied leaf by leaf: more of them
// show nothing new.
const likeAnswers = 2

// Every leaf of answers that ship, some of each row, marked: what an agent reads fits the
// published envelope and holds no mark that no pick of the matched row selected.
func TestAgentsReadOnlyWhatWasPicked(t *testing.T) {
	g, s := New(Deps{}), &stainer{}
	tried, succeeded, dropped := 0, 0, 0
	for _, c := range loadAnswers(t) {
		fine, met := 0, map[string]int{}
		for _, x := range c.answers {
			body, err := validate.Parse(x.Body, validate.AnswerLimits())
			j, _ := c.answer(t, g, x)
			row := x.step.Name() + j.proved.Row()
			if met[row]++; err != nil || met[row] > likeAnswers {
				if ok, _ := c.judgeBytes(t, g, x); ok {
					fine++ // also an answer that is no JSON: text, or headers alone
				}
				continue
			}
			picked := map[string]bool{}
			for _, row := range c.rows {
				for _, pick := range row {
					for _, v := range selected(pick, body) {
						picked[string(validate.Canonical(v))] = true
					}
				}
			}
			keep := func(v any) bool { return picked[string(validate.Canonical(v))] }
			for _, v := range append(s.variants(body, keep), body) {
				x.Body = validate.Canonical(v)
				x.Header, x.Trailer = x.Header.Clone(), http.Header{"X-Late": {s.mark()}}
				x.Header.Set("X-Extra", s.mark())
				ok, marks := c.judgeBytes(t, g, x)
				tried++
				if ok {
					fine++
					dropped += len(stains(v, map[string]bool{})) - marks
				}
			}
		}
		if fine == 0 {
			t.Errorf("%s: not one answer was a success", c.contract.Action())
		}
		succeeded += fine
	}
	t.Logf("%d answers, %d successes, %d marks that nothing selected", tried, succeeded, dropped)
	// The shipped contracts are closed: few places take a text that no pick reads.
	if succeeded < 50 || dropped < 2 {
		t.Error("too few successes: the property is hardly tried")
	}
}

// judgeBytes lets one answer through and compares. It says whether it was a
// success and how many marks came out.
func (c shippedAnswers) judgeBytes(t testing.TB, g *Gateway, x shippedAnswer) (success bool, marks int) {
	t.Helper()
	j, envelope := c.answer(t, g, x)
	if envelope == nil {
		return false, 0 // the call goes on
	}
	doc := c.check(t, envelope)
	out := stains(doc, map[string]bool{})
	allowed := map[string]bool{}
	if j.fault == nil {
		body, _ := validate.Parse(x.Body, validate.AnswerLimits())
		row := c.row(t, j.proved)
		for name, pick := range row {
			parts := selected(pick, body)
			for _, v := range parts {
				stains(v, allowed)
			}
			if got, there := j.proved.Data()[name]; there && plainPick(pick) && (len(parts) != 1 || !validate.Equal(got, parts[0])) {
				t.Fatalf("%s: %s is not what stands at its pointer", c.contract.Action(), name)
			}
		}
		for name := range j.proved.Data() {
			if _, ok := row[name]; !ok {
				t.Fatalf("%s: the member %s is picked nowhere", c.contract.Action(), name)
			}
		}
	}
	for m := range out {
		if !allowed[m] {
			t.Fatalf("%s: %s came out and no pick selected it\n%s\n%s", c.contract.Action(), m, x.Body, envelope)
		}
	}
	return j.fault == nil, len(out)
}

// plainPick says that a pick is a pointer and nothing else.
func plainPick(pick any) bool {
	m, object := pick.(map[string]any)
	_, at := m["at"]
	return !object || len(m) == 1 && at
}

func (c shippedAnswers) row(t testing.TB, p *validate.Proved) map[string]any {
	t.Helper()
	picks, ok := c.rows[p.Row()]
	if !ok {
		t.Fatalf("%s: the row %q", c.contract.Action(), p.Row())
	}
	return picks
}

// FuzzShippedAnswers: for any bytes at all the agent's answer fits the published
// envelope, and the data holds what stands at the pointers of the matched row.
func FuzzShippedAnswers(f *testing.F) {
	all := loadAnswers(f)
	for i, c := range all {
		for _, x := range c.answers {
			if len(x.Body) < 8<<10 {
				f.Add(uint8(i), uint16(x.Status), x.Header.Get("Content-Type"), x.Body)
			}
		}
	}
	f.Add(uint8(0), uint16(200), "application/json", []byte(`{"a":1,"a":2}`))
	f.Add(uint8(1), uint16(503), "text/html", []byte("<html>"))
	g := New(Deps{})
	f.Fuzz(func(t *testing.T, which uint8, status uint16, mime string, body []byte) {
		x := executor.Exchange{Answered: true, Wrote: true, Status: int(status), Header: http.Header{"Content-Type": {mime}}, Body: body}
		c := all[int(which)%len(all)]
		a := c.answers[int(status)%len(c.answers)]
		a.Exchange = x
		c.judgeBytes(t, g, a)
	})
}

const missingContract = `
contract: v1
action: start_job
version: 1.0.0
summary: Start one job.
owner: tests
effect: EFFECT
input: {type: object, additionalProperties: false, required: [key], properties: {key: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: jobs}
request:
  method: METHOD
  path: /jobs/{input.key}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [jobs], properties: {jobs: {type: array, maxItems: 9, items: {type: object, additionalProperties: false, required: [key, id], properties: {key: {type: string, maxLength: 8}, id: {type: string, maxLength: 8}}}}}}
      success: {id: {find: {in: /jobs, where: {equals: [/key, {from: input.key}]}}, at: /id}}
result: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
`

// A find that meets nothing in the accepted answer of a change is NOT_FOUND, as
// the page says, and no invitation: it is final, not retryable, never sent again
// by a retry, and its sentence says that the change may have been done.
func TestAMissingObjectAfterAChangeIsNotRepeated(t *testing.T) {
	for effect, c := range map[string]struct{ method, more, want string }{
		"change": {"POST", "approval: {sentence: 'Start {input.key}'}\nat_most_once: each call starts one\n", "do not repeat it"},
		"read":   {"GET", "", "The remote object is not there."},
	} {
		dir := t.TempDir()
		text := strings.NewReplacer("EFFECT", effect, "METHOD", c.method).Replace(missingContract) + c.more
		site := "targets: {jobs: {url: 'https://jobs.example', identity: bot, actions: [start_job], effects: [read, change], ask: session}}\nidentities: {bot: {kind: bearer}}\n"
		if err := os.MkdirAll(filepath.Join(dir, "contracts", "start_job"), 0o700); err != nil {
			t.Fatal(err)
		}
		for path, b := range map[string]string{"targets.yaml": site, "contracts/start_job/contract.yaml": text} {
			if err := os.WriteFile(filepath.Join(dir, path), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		set, problems := actions.LoadSet(filepath.Join(dir, "targets.yaml"), filepath.Join(dir, "contracts"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		var s shippedAnswers
		s.contract = set.Contracts()[0]
		s.call = claimOne(t, waiter(t, set), "missing-0001")
		in, err := s.contract.ParseInput(map[string]any{"key": "build"})
		if err != nil {
			t.Fatal(err)
		}
		route, err := set.Resolve(s.contract, in)
		if err != nil {
			t.Fatal(err)
		}
		if s.plan, err = actions.Freeze(s.contract, route, in, actions.IdentityFact{Name: "bot"}, actions.CallFacts{CallID: "act_boundary0001", Now: s.now}); err != nil {
			t.Fatal(err)
		}
		step, err := s.plan.Step(actions.StepRequest, s.now, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := shippedAnswer{step, s.now, executor.Exchange{Answered: true, Wrote: true, Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"jobs":[{"key":"test","id":"j1"}]}`)}}
		j, envelope := s.answer(t, New(Deps{}), x)
		s.check(t, envelope)
		if j.fault == nil || j.fault.Code() != fault.NotFound || j.fault.Retryable() || j.fault.Fate(effect == "change", true) != fault.Final || !strings.Contains(j.fault.Message(), c.want) {
			t.Errorf("%s: %+v %s", effect, j.fault, envelope)
		}
		if s.contract.Retry().Codes[fault.NotFound] {
			t.Errorf("%s: would be sent again", effect)
		}
		// A 404 says that nothing was done, in a change too.
		x.Status, x.Body = 404, nil
		if j, _ := s.answer(t, New(Deps{}), x); j.fault.Message() != "The remote object is not there." {
			t.Errorf("%s: a 404 says %q", effect, j.fault.Message())
		}
	}
}
