package contracttest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/redact"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/validate"
)

// Recording is one real call as the record holds it.
type Recording struct {
	Action  string
	Input   map[string]any
	Sent    time.Time // when its request was first sent
	Ended   time.Time // when its last answer was read
	Answers []RecordedAnswer
	Code    string   // how the call ended, "" for success
	Keep    []string // names of members whose values a person says may stay
}

// RecordedAnswer is one answer of a call, in the order in which they came.
type RecordedAnswer struct {
	Step   string
	Status int // 0: no answer came
	Header http.Header
	Body   []byte
}

// Recorded is a fixture that was made of a recording. It has been played.
type Recorded struct {
	Kind     string         // accepted, failure or near-miss: how its name begins
	Text     []byte         // the file
	Got      string         // what the contract makes of it
	Reason   string         // the operator's words for a refusal
	Same     bool           // that is what the real call ended with
	Replaced map[string]int // how many texts of each kind have a stand-in
	Dropped  []string       // headers that the contract does not read, by name
}

// Record makes a fixture of a real call: secrets and persons get stand-ins, the
// headers that no row reads are dropped, and what the contract makes of it is
// what it wants. The error is for what kept it from being made.
func Record(ctx context.Context, o Options, rec Recording) (Recorded, error) {
	set, problems := actions.LoadDrafts(o.Site, o.Contracts)
	if len(problems) > 0 {
		return Recorded{}, problems
	}
	c, ok := set.Contract(rec.Action)
	if !ok {
		return Recorded{}, fmt.Errorf("there is no contract %q in %s", rec.Action, o.Contracts)
	}
	p, err := newPlayer(set, []*actions.Contract{c})
	if err != nil {
		return Recorded{}, err
	}
	return p.record(ctx, c, rec)
}

// record makes the fixture of one call.
func (p player) record(ctx context.Context, c *actions.Contract, rec Recording) (Recorded, error) {
	// The record's numbers are of its own reader's kind.
	input, _, err := plain(rec.Input)
	if err != nil {
		return Recorded{}, fmt.Errorf("the input of the call: %w", err)
	}
	rec.Input, _ = input.(map[string]any)
	s := scribe{outline: p.outlines[c.Action()], contract: c, rec: rec, dropped: map[string]bool{}}
	s.redactor = redact.New(redact.Options{Known: s.known(), Keep: s.isWord})
	fx := s.fixture()
	g, err := s.play(ctx, p, &fx)
	if err != nil {
		return Recorded{}, err
	}
	text, err := s.write(fx, g)
	if err != nil {
		return Recorded{}, err
	}
	made := Recorded{
		Kind: kindOfEnd(g), Text: text, Got: outcomeOf(g.ok, g.code(), g.layer()), Reason: reason(g), Same: g.code() == rec.Code,
		Replaced: s.redactor.Counts(), Dropped: slices.Sorted(maps.Keys(s.dropped)),
	}
	if made.Same {
		err = p.proveFile(ctx, c, text)
	}
	return made, err
}

// proveFile reads the file that was made as any other fixture, and plays it: what
// it wants is what comes.
func (p player) proveFile(ctx context.Context, c *actions.Contract, text []byte) error {
	fx, problems := fixtureFrom("accepted-recorded.yaml", text, c, map[string]bool{})
	if len(problems) > 0 {
		return fmt.Errorf("the fixture that was made cannot be read: %w", problems)
	}
	fx.action = c.Action()
	made, _, err := p.run(ctx, fx)
	switch {
	case err != nil:
		return err
	case !made.OK:
		return fmt.Errorf("the fixture that was made does not play as it says: %v", made.Diffs)
	}
	return nil
}

func kindOfEnd(g got) string {
	switch {
	case g.ok:
		return "accepted"
	case g.rejection != nil:
		return "near-miss"
	}
	return "failure"
}

// known are the texts of the call and the operator's constants of its route.
func (s *scribe) known() []string {
	var out []string
	add := func(t string) { out = append(out, t) }
	walkTexts(map[string]any(s.rec.Input), add)
	for _, k := range s.contract.RouteCases() {
		walkTexts(k.With, add)
	}
	return out
}

// scribe makes the fixture of one recording.
type scribe struct {
	outline  *outline
	contract *actions.Contract
	rec      Recording
	redactor *redact.Redactor
	dropped  map[string]bool
}

// isWord says that a value stays: a person said so of its member, or a row's
// expect lists it at its place, so that it is a word of the contract.
func (s *scribe) isWord(path []string, v any) bool {
	if typeName(v) == "object" || typeName(v) == "array" {
		return false
	}
	if len(path) > 0 && slices.Contains(s.rec.Keep, path[len(path)-1]) {
		return true
	}
	for _, name := range s.outline.order {
		place := saidOf(s.outline.rows[name].expect, path)
		for _, m := range place.schemas {
			list, _ := m["enum"].([]any)
			if c, ok := m["const"]; ok {
				list = append(slices.Clone(list), c)
			}
			if slices.ContainsFunc(list, func(e any) bool { return validate.Equal(e, v) }) {
				return true
			}
		}
	}
	return false
}

// fixture makes the answers and the input; what it wants is seen when it is
// played.
func (s *scribe) fixture() fixture {
	fx := fixture{
		action: s.rec.Action, now: s.rec.Sent.UTC(),
		name: "recorded on " + s.rec.Sent.UTC().Format(time.DateOnly),
	}
	for i, r := range s.rec.Answers {
		fx.answers = append(fx.answers, s.answer(i, r))
	}
	// Names are known once every answer was looked through.
	for i := range fx.answers {
		s.sweep(&fx.answers[i])
	}
	fx.input = s.redactor.Sweep(s.redactor.Input(map[string]any(s.rec.Input)))
	return fx
}

func (s *scribe) answer(n int, r RecordedAnswer) answer {
	a := answer{step: r.Step, status: r.Status}
	if r.Status == 0 {
		a.status, a.close = http.StatusOK, "before_answer"
		return a
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			switch {
			case name == "Content-Type":
				a.headers = append(a.headers, upstream.Header{Name: name, Value: v})
			case s.reads(name):
				a.headers = append(a.headers, upstream.Header{Name: name, Value: s.redactor.Text(v)})
			default:
				s.dropped[name] = true
			}
		}
	}
	a.body, a.hasBody = s.body(n, r, &a), true
	return a
}

// sweep looks for the names of persons in what is left.
func (s *scribe) sweep(a *answer) {
	for i, h := range a.headers {
		a.headers[i].Value, _ = s.redactor.Sweep(h.Value).(string)
	}
	for name, t := range a.tokens {
		t.claims = s.redactor.Sweep(t.claims)
		a.tokens[name] = t
	}
	if doc, err := validate.Parse(a.body, validate.AnswerLimits()); err == nil {
		a.body = encode(s.redactor.Sweep(doc))
		return
	}
	text, _ := s.redactor.Sweep(string(a.body)).(string)
	a.body = []byte(text)
}

// reads says whether the contract looks at a header.
func (s *scribe) reads(name string) bool {
	if name == "Retry-After" || name == textproto.CanonicalMIMEHeaderKey(s.contract.Retry().RateLimitHeader) {
		return true
	}
	for _, row := range s.outline.rows {
		for _, part := range []string{"success", "display", "capture"} {
			for _, p := range row.picks(part) {
				if h := p.Value.Get("header"); h != nil && textproto.CanonicalMIMEHeaderKey(h.Text) == name {
					return true
				}
			}
		}
	}
	return false
}

// body replaces what must not stay. A document is written anew; what is none is
// read as text.
func (s *scribe) body(n int, r RecordedAnswer, a *answer) []byte {
	doc, err := validate.Parse(r.Body, validate.AnswerLimits())
	if err != nil {
		return []byte(s.redactor.Text(string(r.Body)))
	}
	doc = s.signed(n, doc, a)
	clean := s.redactor.Value(doc)
	return encode(clean)
}

// signed puts a place for a signed text where the real one stood: its signer's
// key is not here, and is not needed.
func (s *scribe) signed(n int, doc any, a *answer) any {
	for _, c := range s.outline.checks {
		ptr, keys := c.node.Get("jws"), c.node.Get("keys")
		if c.kind != "signed" || ptr == nil || keys == nil {
			continue
		}
		text, _ := at(doc, split(ptr.Text))
		jws, ok := text.(string)
		if !ok {
			continue
		}
		t, ok := s.tokenOf(jws, keys.Text)
		if !ok {
			continue
		}
		name := fmt.Sprintf("evidence%d", n)
		if a.tokens == nil {
			a.tokens = map[string]token{}
		}
		a.tokens[name] = t
		doc = edit(doc, split(ptr.Text), "${jws."+name+"}")
	}
	return doc
}

// tokenOf reads the claims of a compact serialisation (RFC 7515, section 7.1).
func (s *scribe) tokenOf(jws, keys string) (token, bool) {
	parts := strings.Split(jws, ".")
	if len(parts) != 3 {
		return token{}, false
	}
	part := func(i int) map[string]any {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil
		}
		v, err := validate.Parse(b, validate.AnswerLimits())
		if err != nil {
			return nil
		}
		m, _ := v.(map[string]any)
		return m
	}
	header, claims := part(0), part(1)
	if header == nil || claims == nil {
		return token{}, false
	}
	t := token{keys: keys, claims: s.redactor.Value(claims)}
	t.kid, _ = header["kid"].(string)
	return t, true
}

// play plays the fixture at the moment at which its request was sent, and at
// that of its last answer where it then ends as the real call did: an answer may
// tell a time of the seconds between.
func (s *scribe) play(ctx context.Context, p player, fx *fixture) (got, error) {
	g, err := p.play(ctx, *fx)
	if err != nil || g.code() == s.rec.Code || s.rec.Ended.IsZero() {
		return g, err
	}
	late := *fx
	late.now = s.rec.Ended.UTC()
	again, err := p.play(ctx, late)
	if err != nil || again.code() != s.rec.Code {
		return g, err
	}
	*fx = late
	return again, nil
}
