package client

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"time"
)

// AgentOptions say how to reach the agent listener.
type AgentOptions struct {
	Socket    string // the Unix socket, or
	URL       string // http://127.0.0.1:PORT or http://[::1]:PORT
	Token     string // "" before there is a session
	Owners    Owners // whom the listener may belong to
	UserAgent string // program and version
}

// Agent calls actions. Its calls may run at the same time; SetToken may not.
type Agent struct{ w *wire }

// NewAgent makes an agent client; it does not connect yet.
func NewAgent(o AgentOptions) (*Agent, error) {
	if (o.Socket == "") == (o.URL == "") {
		return nil, errors.New("give the agent socket or the agent address, one of them")
	}
	var w *wire
	if o.Socket != "" {
		w = newWire("http://localhost", o.Socket, o.UserAgent, fewConnections, func(ctx context.Context) (net.Conn, error) {
			return dialSocket(ctx, o.Socket, o.Owners)
		})
	} else {
		addr, err := parseLoopback(o.URL)
		if err != nil {
			return nil, err
		}
		w = newWire("http://"+addr.String(), addr.String(), o.UserAgent, fewConnections, func(ctx context.Context) (net.Conn, error) {
			return dialLoopback(ctx, addr, o.Owners)
		})
	}
	w.token = o.Token
	return &Agent{w: w}, nil
}

// SetToken uses the token of a session from now on.
func (a *Agent) SetToken(token string) { a.w.token = token }

// Close drops the connection.
func (a *Agent) Close() { a.w.close() }

// Health asks whether the daemon is up; it needs no session.
func (a *Agent) Health(ctx context.Context) (Health, error) {
	var out Health
	err := a.get(ctx, "/v1/health", &out)
	return out, err
}

// Actions lists what this caller may ask for.
func (a *Agent) Actions(ctx context.Context) ([]Action, error) {
	var out struct {
		Actions []Action `json:"actions"`
	}
	err := a.get(ctx, "/v1/actions", &out)
	return out.Actions, err
}

// Action returns one action.
func (a *Agent) Action(ctx context.Context, name string) (Action, error) {
	var out Action
	err := a.get(ctx, "/v1/actions/"+url.PathEscape(name), &out)
	return out, err
}

// OpenSession asks for a session. anchor is "self" or "parent": whose end ends
// the session.
func (a *Agent) OpenSession(ctx context.Context, name, anchor string) (NewSession, error) {
	var out NewSession
	body := struct {
		Name   string `json:"name"`
		Anchor string `json:"anchor"`
	}{name, anchor}
	r, err := a.w.send(ctx, replyTimeout, "POST", "/v1/sessions", body)
	if err != nil {
		return out, err
	}
	if err := a.read(r, &out); err != nil {
		return out, err
	}
	if out.Token == "" || out.ID == "" {
		return out, &ReplyError{r.call, r.status, errors.New("it holds no token")}
	}
	return out, nil
}

// Session returns the caller's own session.
func (a *Agent) Session(ctx context.Context) (SessionState, error) {
	var out SessionState
	err := a.get(ctx, "/v1/sessions/current", &out)
	return out, err
}

// EndSession ends the caller's own session.
func (a *Agent) EndSession(ctx context.Context) error {
	r, err := a.w.send(ctx, replyTimeout, "DELETE", "/v1/sessions/current", nil)
	if err != nil {
		return err
	}
	var ignored map[string]any
	return a.read(r, &ignored)
}

// Call performs an action. A refusal comes back in the envelope; an error means
// that there is none.
func (a *Agent) Call(ctx context.Context, action string, req CallRequest) (Envelope, error) {
	limit := callTimeout + time.Duration(req.Wait)*time.Second
	return a.envelope(ctx, limit, "POST", "/v1/actions/"+url.PathEscape(action), req)
}

// Result asks for a call's envelope, waiting up to wait for its end.
func (a *Agent) Result(ctx context.Context, requestID string, wait time.Duration) (Envelope, error) {
	path := "/v1/calls/" + url.PathEscape(requestID)
	if s := int(min(wait, MaxWait) / time.Second); s > 0 {
		path += "?wait=" + strconv.Itoa(s)
	}
	return a.envelope(ctx, wait+callTimeout, "GET", path, nil)
}

// Withdraw cancels a call that was not sent yet.
func (a *Agent) Withdraw(ctx context.Context, requestID string) (Envelope, error) {
	return a.envelope(ctx, replyTimeout, "DELETE", "/v1/calls/"+url.PathEscape(requestID), nil)
}

func (a *Agent) envelope(ctx context.Context, limit time.Duration, method, path string, body any) (Envelope, error) {
	r, err := a.w.send(ctx, limit, method, path, body)
	if err != nil {
		return Envelope{}, err
	}
	e, err := parseEnvelope(r.body, r.status)
	if err != nil {
		return Envelope{}, &ReplyError{r.call, r.status, err}
	}
	return e, nil
}

func (a *Agent) get(ctx context.Context, path string, out any) error {
	r, err := a.w.send(ctx, replyTimeout, "GET", path, nil)
	if err != nil {
		return err
	}
	return a.read(r, out)
}

// read takes a success of a route that is no call; its refusals are envelopes.
func (a *Agent) read(r reply, out any) error {
	if r.status/100 == 2 && r.status != 202 {
		if err := decode(r.body, out, false); err != nil {
			return &ReplyError{r.call, r.status, err}
		}
		return nil
	}
	e, err := parseEnvelope(r.body, r.status)
	if err != nil {
		return &ReplyError{r.call, r.status, err}
	}
	if e.Err == nil {
		return &ReplyError{r.call, r.status, errors.New("the status is a refusal and the body is not")}
	}
	return e.Err
}
