package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
)

// operatorName owns the calls that an operator makes to prove an identity. No
// session can have it: parentheses are not in their names.
const operatorName = "(operator)"

// provingLimit is how long a proof of an identity may take: a step has 30 s, and
// a read may look something up first and try again.
const provingLimit = 100 * time.Second

// Proving asks for one read action that shows that an identity works.
type Proving struct {
	Identity, Action string
	By               string // who asks, for the record
	// Trial is a secret that is not stored yet, in place of the stored one; nil
	// takes the stored one. It stays the caller's, who may close it afterwards:
	// nothing that it is needed for is under way then.
	Trial Lease
}

// ProvedIdentity is how such a read ended. Data is the contract's closed result.
type ProvedIdentity struct {
	RequestID string         `json:"request_id"`
	Action    string         `json:"action"`
	Target    string         `json:"target"`
	OK        bool           `json:"ok"`
	Code      fault.Code     `json:"code,omitempty"`
	Message   string         `json:"message,omitempty"`
	Cause     string         `json:"cause,omitempty"` // for the operator
	Data      map[string]any `json:"data,omitempty"`
	// Display is untrusted text of the remote system, for a person: scopes are
	// often told so.
	Display map[string]displayText `json:"display,omitempty"`
}

// CanProve says whether an action can prove an identity: it reads, takes no
// input that must be given, and goes to a target of this identity. It fails with
// INVALID_ARGUMENT or UNKNOWN_ACTION. Nothing is sent.
func (g *Gateway) CanProve(identity, action string) error {
	_, err := g.provable(identified{ask: Ask{Action: action, Input: map[string]any{}}}, identity)
	return err
}

func (g *Gateway) provable(i identified, identity string) (routed, error) {
	no := func(format string, args ...any) (routed, error) {
		err := fmt.Errorf(format, args...)
		return routed{}, fault.Invalid(err, fault.Field{Pointer: "/action", Reason: err.Error()})
	}
	n, err := g.whichContract(opened{i})
	if err != nil {
		return routed{}, err
	}
	if n.contract.Effect() != actions.Read {
		return no("%s changes something; only an action that reads can prove an identity", n.ask.Action)
	}
	v, err := g.validInput(n)
	if err != nil {
		return no("%s needs an input; an action that proves an identity takes none", n.ask.Action)
	}
	r, err := g.resolve(v)
	if err != nil {
		return no("%s goes nowhere without an input: %v", n.ask.Action, err)
	}
	if t := r.route.Target(); t.Identity() != identity {
		return no("%s goes to target %s, which uses identity %s", n.ask.Action, t.Name(), t.Identity())
	}
	return r, nil
}

// ProveIdentity performs the read as the operator: no session asks for it and no
// person is asked again, but it takes every other step of the line, and the
// record has it like any call. An error means that nothing was begun.
func (g *Gateway) ProveIdentity(ctx context.Context, p Proving) (ProvedIdentity, error) {
	out := ProvedIdentity{Action: p.Action}
	if g.draining.Load() {
		return out, errDraining()
	}
	if err := g.vault.Open(); err != nil {
		return out, err
	}
	i := identified{ask: Ask{Action: p.Action, Input: map[string]any{}}, session: sessions.Session{Name: operatorName}, operator: p.By}
	if p.Trial != nil {
		i.trial = &heldLease{Lease: p.Trial}
		defer i.trial.finish()
	}
	r, err := g.provable(i, p.Identity)
	if err != nil {
		return out, err
	}
	out.Target = r.route.Target().Name()
	detail := map[string]any{"action": p.Action, "target": out.Target, "new_secret": p.Trial != nil}
	if err := g.Record(ctx, "identity.check", p.Identity, p.By, detail); err != nil {
		return out, err
	}
	c, verdict, err := g.claim(r)
	if err != nil {
		return out, err
	}
	if verdict != ledger.Fresh { // the id is new, and a read joins no other
		return out, fault.Newf(fault.Internal, "a new id was not fresh")
	}
	g.start(c)
	out.RequestID = c.call.RequestID()
	return g.provedBy(out, g.await(ctx, c.call, provingLimit, true))
}

// provedBy reads the envelope that an agent would have got, and adds the cause.
func (g *Gateway) provedBy(out ProvedIdentity, a Answer) (ProvedIdentity, error) {
	var e struct {
		OK      bool                   `json:"ok"`
		Data    map[string]any         `json:"data"`
		Display map[string]displayText `json:"display"`
		Error   struct {
			Code    fault.Code `json:"code"`
			Message string     `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.Body, &e); err != nil {
		return out, fault.New(fault.Internal, err)
	}
	out.OK, out.Data, out.Display, out.Code, out.Message = e.OK, e.Data, e.Display, e.Error.Code, e.Error.Message
	if out.OK {
		return out, nil
	}
	for _, ev := range g.log.Recent() {
		if ev.CallID != out.RequestID {
			continue
		}
		switch cause, _ := ev.Detail["cause"].(string); {
		case cause != "":
			out.Cause = cause
		case ev.Type == auditlog.TypeDeny:
			out.Cause = ev.Rule
		}
	}
	return out, nil
}

// heldLease is a trial's lease within the line: who made it closes it, once no
// answer is to be searched for it any more. The call itself may go on longer than
// the operator waits; it sends nothing then.
type heldLease struct {
	Lease
	mu    sync.Mutex
	over  bool           // guarded by mu; no send begins any more
	sends sync.WaitGroup // each from before it until its answer was searched
}

// Close leaves the lease to its maker.
func (*heldLease) Close() {}

// begin is before a send, and end after it. It fails once the proof is over.
func (h *heldLease) begin() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return fault.Newf(fault.IdentityUnavailable, "the proof of the new secret is over")
	}
	h.sends.Add(1)
	return nil
}

func (h *heldLease) end() { h.sends.Done() }

// finish waits for a send that is under way, as long as that may take, and lets
// none begin afterwards.
func (h *heldLease) finish() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.sends.Wait()
}

// ProveExchange proves a secret that is not stored yet by exchanging it for a
// token, where no action proves its identity. It fails as ProveIdentity does.
func (g *Gateway) ProveExchange(ctx context.Context, p Proving) (ProvedIdentity, error) {
	out := ProvedIdentity{}
	if err := g.mayExchange(); err != nil {
		return out, err
	}
	detail := map[string]any{"exchange": true, "new_secret": true}
	if err := g.Record(ctx, "identity.check", p.Identity, p.By, detail); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, provingLimit)
	defer cancel()
	err := p.Trial.Ready(ctx, actions.Narrow{}, func(ctx context.Context, s TokenSend, cred TokenCredential, read func(TokenAnswer) error) error {
		return g.exchange(ctx, nil, s, cred, read)
	})
	if err != nil {
		f := fault.From(err)
		out.Code, out.Message, out.Cause = f.Code(), f.Message(), causeText(f)
		return out, nil
	}
	out.OK = true
	return out, nil
}

// byOperator says whether an operator makes the call, to prove an identity.
func (i identified) byOperator() bool { return i.operator != "" }

// Used is one send with an identity's secret, or that it could not be sent.
type Used struct {
	Identity   string
	Generation uint64
	At         time.Time
	Sent       bool       // at least a byte of the request left
	Code       fault.Code // "" unless the end says something about the identity
}

// aboutIdentity are the codes that tell something about an identity or its
// destination. The others are about what was asked for.
var aboutIdentity = map[fault.Code]bool{
	fault.RemoteUnauthenticated: true, fault.RemoteForbidden: true, fault.RemoteRateLimited: true,
	fault.IdentityUnavailable: true, fault.TargetNotAllowed: true,
	fault.UpstreamUnavailable: true, fault.OutcomeUnknown: true, fault.InvalidResponse: true,
}

// echoed counts an answer that held the secret it was asked with.
func (g *Gateway) echoed(t turn) {
	g.echoedBy(t.trial != nil, t.identity.Name)
}

// echoedBy counts it for the identity, unless the secret was only tried.
func (g *Gateway) echoedBy(trial bool, identity string) {
	g.metrics.echoes.Inc()
	if !trial {
		g.vault.Suspect(identity)
	}
}

// noteUse tells whoever listens how a send with an identity ended. A secret that
// is only tried is not the identity's yet.
func (g *Gateway) noteUse(j judged) {
	if g.used == nil || j.trial != nil || j.identity.Generation == 0 {
		return
	}
	u := Used{Identity: j.identity.Name, Generation: j.identity.Generation, At: time.Now(), Sent: j.exchange.Wrote}
	if code := codeOf(j); aboutIdentity[code] {
		u.Code = code
	}
	g.used(u)
}

// onTrial is the least generation of a secret that is only tried; stored ones
// have lower ones.
const onTrial = 1 << 63

// noteUnusable tells whoever listens that an identity could not be taken at all.
func (g *Gateway) noteUnusable(id actions.IdentityFact, err error) {
	if code := fault.CodeOf(err); g.used != nil && aboutIdentity[code] && id.Generation < onTrial {
		g.used(Used{Identity: id.Name, Generation: id.Generation, At: time.Now(), Code: code})
	}
}
