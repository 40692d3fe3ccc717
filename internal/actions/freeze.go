package actions

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// Freeze makes the plan of one call. Its digest covers the contract, the
// target's address, trust and base path, the identity's name and generation and
// every value to be sent; call.now, which is set at the first send, is a fixed
// marker in it. INVALID_ARGUMENT says that an input cannot be part of the path.
func Freeze(c *Contract, r Route, in Input, id IdentityFact, call CallFacts) (Plan, error) {
	l, err := Begin(c, r, in, id, call)
	if err != nil {
		return Plan{}, err
	}
	return l.Freeze()
}

// freeze finishes a plan of its own: what it is called on stays as it was.
func (p *plan) freeze() (Plan, error) {
	q := *p
	built, err := q.build(&q.contract.request, q.env(time.Time{}, true))
	if err != nil {
		return Plan{}, buildFault(err)
	}
	q.sentence, q.lines = q.contract.sentence(q.input, q.env(time.Time{}, true))
	q.daemonLine = q.contract.daemonLine(q.route.target, q.id.Name)
	q.canonical = validate.Canonical(q.facts(built))
	q.digest = planDigest(q.canonical)
	return Plan{&q}, nil
}

func planDigest(canonical []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("chatelaine/v1 plan\x00"))
	h.Write(canonical)
	return [32]byte(h.Sum(nil))
}

// buildFault says whether a request could not be built because of the caller's
// input, because of an answer, or because of us.
func buildFault(err error) error {
	var pe *pathError
	switch is := errors.As(err, &pe); {
	case is && pe.input != "":
		return fault.Invalid(err, pathField(pe.input))
	case is && pe.captured:
		return fault.New(fault.InvalidResponse, err)
	}
	return fault.New(fault.Internal, err)
}

// facts is everything under the digest.
func (p *plan) facts(b built) map[string]any {
	t := p.route.target
	pins := make([]any, 0, len(t.pins))
	for _, pin := range t.pins {
		pins = append(pins, pin)
	}
	headers := map[string]any{}
	for k, v := range b.header {
		headers[k] = strings.Join(v, "\n")
	}
	lines := make([]any, 0, len(p.lines))
	for _, l := range p.lines {
		lines = append(lines, []any{l.Label, l.Value})
	}
	looked := map[string]any{}
	for name, captured := range p.looked {
		looked[name] = captured
	}
	return map[string]any{
		"plan":     "v1",
		"contract": map[string]any{"action": p.contract.action, "version": p.contract.version, "digest": hexDigest(p.contract.digest)},
		"target": map[string]any{
			"name": t.name, "digest": hexDigest(t.digest), "scheme": t.scheme, "host": t.host, "port": strconv.Itoa(t.port),
			"base_path": t.basePath, "ca": t.caDigest, "pins": pins,
		},
		"identity": map[string]any{"name": p.id.Name, "generation": strconv.FormatUint(p.id.Generation, 10)},
		"call":     map[string]any{"id": p.call.CallID, "idempotency_key": p.call.IdempotencyKey},
		"input":    p.input.value,
		"looked":   looked,
		"send": map[string]any{
			"step": stepRequest, "method": p.contract.request.method, "path": b.path, "query": b.query,
			"headers": headers, "content_type": b.mime, "body": string(b.body),
		},
		"shown": map[string]any{"sentence": p.sentence, "lines": lines, "daemon_line": p.daemonLine},
	}
}

func (p *plan) env(now time.Time, frozen bool) env {
	call := p.call
	call.Now = now
	return env{input: p.input.value, consts: p.route.With, call: call, looked: p.looked, frozen: frozen}
}

// Canonical returns the bytes under the digest.
func (p Plan) Canonical() []byte {
	if p.p == nil {
		return nil
	}
	return slices.Clone(p.p.canonical)
}

// Contract returns the plan's contract, nil for the zero value.
func (p Plan) Contract() *Contract {
	if p.p == nil {
		return nil
	}
	return p.p.contract
}

// Route returns the plan's route.
func (p Plan) Route() Route {
	if p.p == nil {
		return Route{}
	}
	return p.p.route
}

// Input returns the plan's input.
func (p Plan) Input() Input {
	if p.p == nil {
		return Input{}
	}
	return p.p.input
}

// Identity returns what the plan was made for.
func (p Plan) Identity() IdentityFact {
	if p.p == nil {
		return IdentityFact{}
	}
	return p.p.id
}

// Sentence returns the card's sentence.
func (p Plan) Sentence() string {
	if p.p == nil {
		return ""
	}
	return p.p.sentence
}

// Lines returns the card's lines under the sentence.
func (p Plan) Lines() []CardLine {
	if p.p == nil {
		return nil
	}
	return slices.Clone(p.p.lines)
}

// DaemonLine returns the daemon's own line: effect, target, identity, contract
// and version.
func (p Plan) DaemonLine() string {
	if p.p == nil {
		return ""
	}
	return p.p.daemonLine
}

// Exceptions returns the lint rules that the author set aside, each with the
// reason, for the card.
func (p Plan) Exceptions() []string {
	if p.p == nil {
		return nil
	}
	return p.p.contract.Exceptions()
}

// Ask returns when a person is asked: the strictest of contract, identity and
// target. For a read only every_call asks more than the session itself does.
// The zero plan asks at every call.
func (p Plan) Ask() Ask {
	if p.p == nil {
		return AskEveryCall
	}
	return askFor(p.p.contract, p.p.route.target)
}

// AskAt returns when a person is asked about this action at one target.
func (c *Contract) AskAt(t *Target) Ask { return askFor(c, t) }

func askFor(c *Contract, t *Target) Ask {
	others := Stricter(t.ask, t.identityAsk)
	if c.effect == Read && others < AskEveryCall {
		return c.approval.ask
	}
	return Stricter(c.approval.ask, others)
}

// Reader returns what reads the request's answer, nil (which refuses) for the
// zero plan.
func (p Plan) Reader() *validate.Reader {
	if p.p == nil {
		return nil
	}
	return p.p.reader(&p.p.contract.request)
}

func (p *plan) reader(s *stepSpec) *validate.Reader {
	return s.reader.WithHost(p.route.target.authority())
}

// authority is the host, with its port unless that is the scheme's own.
func (t *Target) authority() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.scheme == "https" && t.port == 443 || t.scheme == "http" && t.port == 80 {
		return host
	}
	return host + ":" + strconv.Itoa(t.port)
}

// Request builds the request. now is the time of the first send: every attempt
// of one call gets the same.
func (p Plan) Request(now time.Time) (Request, error) {
	s, err := p.Step(StepRequest, now, nil)
	return s.Request(), err
}

// send builds the request of any step.
func (p *plan) send(s *stepSpec, e env) (Request, error) {
	b, err := p.build(s, e)
	if err != nil {
		return Request{}, buildFault(err)
	}
	change := s.kind == StepRequest && p.contract.effect != Read
	return Request{
		step: s.name, target: p.route.target, method: s.method, path: b.path, query: b.query,
		header: b.header, body: b.body, mime: b.mime, timeout: s.timeout,
		change: change, reusable: !change || p.contract.Idempotent(), hole: b.hole, holed: b.holed,
	}, nil
}

// built is one request's parts.
type built struct {
	path, query string
	header      http.Header
	body        []byte
	mime        string
	hole        Hole
	holed       bool
}
