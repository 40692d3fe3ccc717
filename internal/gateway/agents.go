package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
	"chatelaine/internal/sessions"
	"chatelaine/internal/validate"
)

// Peer is who stands at the other end of a connection, as the kernel says.
type Peer struct {
	UID      uint32
	Listener string // "socket" or "tcp"
	PID      int    // 0 where unknown
	Exe      string // "" where unknown
}

func (p Peer) caller() sessions.Caller {
	return sessions.Caller{UID: p.UID, Listener: p.Listener, PID: p.PID, Exe: p.Exe}
}

// Refusal is the envelope of a refusal outside any action: malformed requests,
// sessions, unknown routes.
func (g *Gateway) Refusal(p Peer, err error) Answer { return g.refusalOf(p, "", err) }

// refusalOf is Refusal about the call of a request id.
func (g *Gateway) refusalOf(p Peer, id string, err error) Answer {
	return g.refuse(Ask{Peer: p, RequestID: id}, claimed{}, err)
}

// ParseCaller reads a caller's JSON strictly, under the caller's limits.
func (g *Gateway) ParseCaller(b []byte) (any, error) {
	v, err := validate.Parse(b, validate.CallerLimits())
	if err != nil {
		return nil, fault.Invalid(err, fault.Field{Pointer: "", Reason: "the body is not strict JSON"})
	}
	return v, nil
}

// SessionOpened is what a new session hands to its agent, once.
type SessionOpened struct {
	SessionID   string    `json:"session_id"`
	Token       string    `json:"token"`
	PairingCode string    `json:"pairing_code"`
	State       string    `json:"state"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// OpenSession asks for a session; the operator decides about it.
func (g *Gateway) OpenSession(p Peer, name, anchor string) (SessionOpened, error) {
	if err := g.sessionRate.take(strconv.FormatUint(uint64(p.UID), 10)); err != nil {
		return SessionOpened{}, err
	}
	s, err := g.sessions.Request(p.caller(), name, anchor)
	if err != nil {
		return SessionOpened{}, err
	}
	e := g.event("session.open")
	e.SessionID, e.Actor, e.Status = s.ID, name, "pending"
	e.Detail = map[string]any{"uid": p.UID, "listener": p.Listener, "pid": p.PID, "executable": p.Exe}
	g.log.Append(e)
	g.events.publish("session", s.ID)
	return SessionOpened{SessionID: s.ID, Token: s.Token, PairingCode: s.PairingCode, State: "pending", ExpiresAt: s.Expires.UTC()}, nil
}

// SessionView is what an agent may know of its own session.
type SessionView struct {
	SessionID string    `json:"session_id"`
	Name      string    `json:"name"`
	State     string    `json:"state"`
	ExpiresAt time.Time `json:"expires_at"`
}

// CurrentSession is the state of the caller's session.
func (g *Gateway) CurrentSession(token string, p Peer) (SessionView, error) {
	s, err := g.sessions.Authenticate(token, p.caller())
	if err != nil {
		return SessionView{}, err
	}
	return SessionView{SessionID: s.ID, Name: s.Name, State: string(s.State), ExpiresAt: s.Expires.UTC()}, nil
}

// EndSession ends the caller's session.
func (g *Gateway) EndSession(token string, p Peer) error {
	return g.sessions.End(token, p.caller())
}

// ActionView is what discovery says of an action.
type ActionView struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Summary      string          `json:"summary"`
	Effect       string          `json:"effect"`
	InputSchema  json.RawMessage `json:"input_schema"`
	ResultSchema json.RawMessage `json:"result_schema"`
	AsksPerson   bool            `json:"asks_person"`
}

// Actions lists what an authorised caller may ask for.
func (g *Gateway) Actions(token string, p Peer) ([]ActionView, error) {
	set, err := g.setFor(token, p)
	if err != nil {
		return nil, err
	}
	out := make([]ActionView, 0, len(set.Contracts()))
	for _, c := range set.Contracts() {
		if !g.isHeld(c.Action()) {
			out = append(out, viewOf(set, c))
		}
	}
	return out, nil
}

// ActionNamed is one of them.
func (g *Gateway) ActionNamed(token string, p Peer, name string) (ActionView, error) {
	set, err := g.setFor(token, p)
	if err != nil {
		return ActionView{}, err
	}
	c, err := g.serving(set, name)
	if err != nil {
		return ActionView{}, err
	}
	return viewOf(set, c), nil
}

func (g *Gateway) setFor(token string, p Peer) (*actions.Set, error) {
	s, err := g.sessions.Authenticate(token, p.caller())
	if err != nil {
		return nil, err
	}
	return g.Set(), s.RequireAuthorised()
}

func viewOf(set *actions.Set, c *actions.Contract) ActionView {
	asks := false
	for _, name := range c.Targets() {
		if t, ok := set.Target(name); ok {
			asks = asks || askedFor(set, c, t) == actions.AskEveryCall
		}
	}
	return ActionView{
		Name: c.Action(), Version: c.Version(), Summary: c.Summary(), Effect: c.Effect().String(),
		InputSchema:  validate.Canonical(c.InputSchema().Doc()),
		ResultSchema: validate.Canonical(c.ResultSchema().Doc()),
		AsksPerson:   asks,
	}
}

// CallState answers GET /v1/calls/{id}: the envelope of a call of this agent,
// now or after at most wait.
func (g *Gateway) CallState(ctx context.Context, token string, p Peer, id string, wait time.Duration) Answer {
	s, err := g.authorised(token, p)
	if err != nil {
		return g.refusalOf(p, id, err)
	}
	c, ok, err := g.ledger.Lookup(ownerOf(s), id)
	if err != nil {
		return g.refusalOf(p, id, err)
	}
	if !ok {
		return g.notHeld(p, s, id)
	}
	select {
	case <-c.Done():
		return g.replay(c)
	default:
	}
	if wait <= 0 {
		return g.replay(c)
	}
	return g.await(ctx, c, wait, false)
}

// notHeld answers for an id that the ledger does not hold: how it ended a while
// ago without being consumed, or that there is none.
func (g *Gateway) notHeld(p Peer, s sessions.Session, id string) Answer {
	if ans, ok := g.words.of(ownerOf(s), id); ok {
		return ans
	}
	return g.refusalOf(p, id, fault.NoCall())
}

// CancelCall withdraws a call that is not armed yet.
func (g *Gateway) CancelCall(token string, p Peer, id string) Answer {
	s, err := g.authorised(token, p)
	if err != nil {
		return g.refusalOf(p, id, err)
	}
	c, ok, err := g.ledger.Lookup(ownerOf(s), id)
	if err != nil {
		return g.refusalOf(p, id, err)
	}
	if !ok {
		return g.notHeld(p, s, id)
	}
	contract, _ := g.Set().Contract(c.Action())
	if err := c.Cancel(g.envelopeError(contract, c.RequestID(), fault.New(fault.Cancelled, nil))); err != nil {
		if f := new(fault.Error); errors.As(err, &f) {
			return g.refusalOf(p, id, f)
		}
		return g.replay(c) // too late: it is armed, or has ended
	}
	if l := g.lives.get(c); l != nil {
		l.withdraw(fault.Cancelled)
		g.untilOver(l)
	}
	return g.replay(c)
}

// untilOver waits until the daemon has recorded how a withdrawn call ended.
func (g *Gateway) untilOver(l *live) {
	limit := time.NewTimer(recordLimit)
	defer limit.Stop()
	select {
	case <-l.over:
	case <-limit.C:
	}
}

func (g *Gateway) authorised(token string, p Peer) (sessions.Session, error) {
	s, err := g.sessions.Authenticate(token, p.caller())
	if err != nil {
		return s, err
	}
	if err := s.RequireAuthorised(); err != nil {
		return s, err
	}
	return s, g.vault.Open()
}

// Health needs no session.
type Health struct {
	OK        bool   `json:"ok"`
	Vault     string `json:"vault"`
	Contracts int    `json:"contracts"`
}

// Health says that the daemon is up and whether the vault is open.
func (g *Gateway) Health() Health {
	h := Health{OK: true, Vault: "locked", Contracts: len(g.Set().Contracts())}
	if g.vault.Open() == nil {
		h.Vault = "open"
	}
	return h
}

// bearerPrefix is the scheme of RFC 6750, compared without regard to case.
const bearerPrefix = "bearer "

// BearerToken takes the token out of an Authorization header, "" if there is
// not exactly that.
func BearerToken(h http.Header) string {
	v := h.Values("Authorization")
	if len(v) != 1 || len(v[0]) < len(bearerPrefix) || !strings.EqualFold(v[0][:len(bearerPrefix)], bearerPrefix) {
		return ""
	}
	return v[0][len(bearerPrefix):]
}
