package gateway

import (
	"bytes"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/validate"
)

// Answer is one finished envelope and its HTTP status. Nothing in it was made
// from the caller's words or from unchecked bytes.
type Answer struct {
	Status int
	Body   []byte
	// RetryAfter is for the HTTP header of the same name; zero where unknown.
	RetryAfter time.Duration
}

type okEnvelope struct {
	OK        bool                   `json:"ok"`
	Action    string                 `json:"action"`
	RequestID string                 `json:"request_id"`
	Data      map[string]any         `json:"data"`
	Display   map[string]displayText `json:"display,omitempty"`
}

type displayText struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
}

func displayOf(p *validate.Proved) map[string]displayText {
	out := map[string]displayText{}
	for name, t := range p.Display() {
		out[name] = displayText(t)
	}
	return out
}

type errorEnvelope struct {
	OK        bool      `json:"ok"`
	Action    string    `json:"action"`
	RequestID string    `json:"request_id"`
	Error     errorBody `json:"error"`
}

type errorBody struct {
	Code       fault.Code    `json:"code"`
	Message    string        `json:"message"`
	Retryable  bool          `json:"retryable"`
	RequestID  string        `json:"request_id"`
	RetryAfter int           `json:"retry_after_seconds,omitempty"`
	Fields     []fault.Field `json:"fields,omitempty"`
}

// encode writes v as compact JSON. Nothing of HTML is escaped: the answer is
// JSON for a program.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// envelopeOK builds a success and checks it against the schema that the action
// publishes, before it can leave.
func (g *Gateway) envelopeOK(c *actions.Contract, id string, p *validate.Proved) ([]byte, error) {
	body, err := encode(okEnvelope{OK: true, Action: c.Action(), RequestID: id, Data: p.Data(), Display: displayOf(p)})
	if err != nil {
		return nil, err
	}
	return body, conforms(c.EnvelopeSchema(), body)
}

// envelopeError builds a refusal. If it does not fit the published schema, that
// is our fault and the plainest INTERNAL leaves instead.
func (g *Gateway) envelopeError(c *actions.Contract, id string, f *fault.Error) []byte {
	action, schema := "", actions.BaseEnvelope()
	if c != nil {
		action, schema = c.Action(), c.EnvelopeSchema()
	}
	body, err := encode(errorEnvelope{Action: action, RequestID: id, Error: bodyOf(id, f)})
	if err == nil {
		err = conforms(schema, body)
	}
	if err == nil {
		return body
	}
	g.logger.Error("an error envelope does not fit its own schema", "code", f.Code(), "cause", err.Error())
	// The code alone, so that the envelope still agrees with its HTTP status; a
	// contract's own code, which has no sentence here, becomes INTERNAL.
	plain, _ := encode(errorEnvelope{Action: action, RequestID: id, Error: bodyOf(id, fault.New(f.Code(), nil))})
	return plain
}

func bodyOf(id string, f *fault.Error) errorBody {
	return errorBody{
		Code: f.Code(), Message: f.Message(), Retryable: f.Retryable(), RequestID: id,
		RetryAfter: seconds(f.RetryAfter()), Fields: f.Fields(),
	}
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// envelopeLimits bound our own answers when they are read back for the check.
func envelopeLimits() validate.Limits { return validate.AnswerLimits() }

func conforms(s *validate.Schema, body []byte) error {
	v, err := validate.Parse(body, envelopeLimits())
	if err != nil {
		return err
	}
	if bad := s.Validate(v); bad != nil {
		return envelopeFault{bad}
	}
	return nil
}

type envelopeFault struct{ v *validate.Violation }

func (e envelopeFault) Error() string {
	return "the answer does not fit the published envelope: " + e.v.Rule + " at " + e.v.SchemaPath
}

// answer pairs an envelope with its status.
func answer(body []byte, f *fault.Error) Answer {
	if f == nil {
		return Answer{Status: http.StatusOK, Body: body}
	}
	return Answer{Status: f.Status(), Body: body, RetryAfter: f.RetryAfter()}
}

// replay gives the recorded outcome of a call, however often it is asked.
func (g *Gateway) replay(c *ledger.Call) Answer {
	out, ok := c.Outcome()
	if !ok {
		return g.pending(c)
	}
	if out.Code == "" {
		return Answer{Status: http.StatusOK, Body: out.Envelope}
	}
	code := fault.Code(out.Code)
	if !fault.Known(code) {
		return Answer{Status: http.StatusConflict, Body: out.Envelope} // a contract's own code
	}
	f := fault.New(code, nil)
	if len(out.Envelope) == 0 { // ended by the ledger itself: cancelled, or restored without an answer
		contract, _ := g.Set().Contract(c.Action())
		out.Envelope = g.envelopeError(contract, c.RequestID(), f)
	}
	return Answer{Status: f.Status(), Body: out.Envelope}
}

// pollAfter is how soon an agent should ask again for a call that waits or runs.
const pollAfter = 5 * time.Second

// pending is APPROVAL_REQUIRED while a person is asked, IN_PROGRESS otherwise.
// A call whose card has just been decided is given the moment it needs to end
// or to be armed: an agent that asks right after a denial hears of it.
func (g *Gateway) pending(c *ledger.Call) Answer {
	l := g.lives.get(c)
	if l != nil && l.isDecided() && g.settles(c) {
		return g.replay(c)
	}
	code, after := fault.InProgress, pollAfter
	switch {
	case l == nil:
	case l.isWaiting():
		code = fault.ApprovalRequired
	default:
		after = l.askAgain()
	}
	f := fault.New(code, nil).After(after)
	contract, _ := g.Set().Contract(c.Action())
	return answer(g.envelopeError(contract, c.RequestID(), f), f)
}

// settleLimit bounds that moment; it holds one write of the ledger.
const settleLimit = 2 * time.Second

// settles waits until a decided call has ended, which it reports, or is armed.
func (g *Gateway) settles(c *ledger.Call) bool {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	look := time.NewTicker(joinLook)
	defer look.Stop()
	for c.State() == ledger.Waiting {
		select {
		case <-c.Done():
			return true
		case <-look.C:
		case <-limit.C:
			return false
		}
	}
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func joinHostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}
