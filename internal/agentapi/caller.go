package agentapi

import (
	"context"
	"net/http"
	"time"

	"chatelaine/internal/gateway"
)

// Action is what discovery says of one action.
type Action = gateway.ActionView

// Answer is one finished envelope and its HTTP status.
type Answer = gateway.Answer

// Caller is the agent behind one request, for the other front door of the
// agent's side (internal/mcpserver). It can do what the routes can, no more.
type Caller struct {
	g     *gateway.Gateway
	token string
	peer  gateway.Peer
}

// Caller names the agent behind r. Whether it has a session is asked by every
// method.
func (a *API) Caller(r *http.Request) Caller {
	return Caller{g: a.g, token: token(r), peer: peer(r)}
}

// Actions lists what the caller may ask for.
func (c Caller) Actions() ([]Action, error) { return c.g.Actions(c.token, c.peer) }

// Action is one of them; UNKNOWN_ACTION where the caller has none of that name.
func (c Caller) Action(name string) (Action, error) { return c.g.ActionNamed(c.token, c.peer, name) }

// Perform is POST /v1/actions/{action}. input is strict JSON.
func (c Caller) Perform(ctx context.Context, action string, input []byte, requestID string) Answer {
	ask := gateway.Ask{Token: c.token, Peer: c.peer, Action: action, RequestID: requestID}
	v, err := c.g.ParseCaller(input)
	if err != nil {
		return c.g.RefuseMalformed(ask, err)
	}
	ask.Input = v
	return c.g.Perform(ctx, ask)
}

// Result is GET /v1/calls/{id}.
func (c Caller) Result(ctx context.Context, id string, wait time.Duration) Answer {
	return c.g.CallState(ctx, c.token, c.peer, id, wait)
}

// Strict says whether b is strict JSON within the caller's limits.
func (a *API) Strict(b []byte) error {
	_, err := a.g.ParseCaller(b)
	return err
}

// WriteRefusal answers a request that has no session, or a malformed one.
func (a *API) WriteRefusal(w http.ResponseWriter, r *http.Request, err error) { a.refuse(w, r, err) }
