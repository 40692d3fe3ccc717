// Package agentapi is the agent listener: the routes of docs/http-api.md under
// /v1 for agents, and nothing of the operator's. It decodes strictly, hands the
// call to internal/gateway and writes back the finished envelope. It must never
// decide anything, echo the caller's words or reach an operator route. Only
// cmd/chatelained imports it.
package agentapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/loopback"
)

// WaitMax is the longest long poll, in seconds: under the minute after which
// agents' clients drop a call.
const WaitMax = 50

// API serves agents.
type API struct {
	g   *gateway.Gateway
	mcp http.Handler
}

// MCP mounts the Model Context Protocol under /mcp; call it before Handler.
func (a *API) MCP(h http.Handler) { a.mcp = h }

// New returns the agent routes over a gateway.
func New(g *gateway.Gateway) *API { return &API{g: g} }

// Handler routes the agent listener. It stands behind the guard of
// internal/loopback.
func (a *API) Handler() http.Handler {
	r := chi.NewRouter()
	r.Get("/v1/health", a.health)
	r.Get("/v1/actions", a.actions)
	r.Get("/v1/actions/{action}", a.action)
	r.Post("/v1/actions/{action}", a.perform)
	r.Post("/v1/actions/{action}/plan", a.planned)
	r.Post("/v1/plans/{plan}/confirm", a.planned)
	r.Get("/v1/calls/{id}", a.call)
	r.Delete("/v1/calls/{id}", a.cancel)
	r.Post("/v1/sessions", a.openSession)
	r.Get("/v1/sessions/current", a.session)
	r.Delete("/v1/sessions/current", a.endSession)
	r.Get("/openapi.json", a.openAPI)
	if a.mcp != nil {
		r.Handle("/mcp", a.mcp)
	}
	r.NotFound(a.nowhere)
	r.MethodNotAllowed(a.nowhere)
	return r
}

// Refuse writes a refusal of the guard as an envelope. The guard's own status
// gives way to the code's: on this listener each code has one status, so that a
// client may go by either.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, _ int, why string) {
	write(w, a.g.Refusal(peer(r), fault.Invalid(doorError(why), fault.Field{Pointer: "", Reason: why})))
}

type doorError string

func (e doorError) Error() string { return "refused at the door: " + string(e) }

func (a *API) nowhere(w http.ResponseWriter, r *http.Request) {
	a.refuse(w, r, fault.NoRoute())
}

// planned answers the routes of plans: this release takes no contract that goes
// through one, so there is none to prepare or confirm.
func (a *API) planned(w http.ResponseWriter, r *http.Request) {
	a.refuse(w, r, fault.NoRoute())
}

func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, http.StatusOK, a.g.Health())
}

func (a *API) actions(w http.ResponseWriter, r *http.Request) {
	list, err := a.g.Actions(token(r), peer(r))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	writeValue(w, http.StatusOK, map[string]any{"actions": list})
}

func (a *API) action(w http.ResponseWriter, r *http.Request) {
	v, err := a.g.ActionNamed(token(r), peer(r), chi.URLParam(r, "action"))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	writeValue(w, http.StatusOK, v)
}

func (a *API) openAPI(w http.ResponseWriter, r *http.Request) {
	doc, err := a.g.OpenAPI(token(r), peer(r))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	loopback.WriteJSON(w, http.StatusOK, doc)
}

func (a *API) perform(w http.ResponseWriter, r *http.Request) {
	ask := gateway.Ask{Token: token(r), Peer: peer(r), Action: chi.URLParam(r, "action")}
	body, err := loopback.ReadBody(w, r)
	if err == nil {
		err = a.decodeCall(body, &ask)
	}
	if err != nil {
		write(w, a.g.RefuseMalformed(ask, err))
		return
	}
	write(w, a.g.Perform(r.Context(), ask))
}

func (a *API) call(w http.ResponseWriter, r *http.Request) {
	wait, err := waitQuery(r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	write(w, a.g.CallState(r.Context(), token(r), peer(r), chi.URLParam(r, "id"), wait))
}

func (a *API) cancel(w http.ResponseWriter, r *http.Request) {
	write(w, a.g.CancelCall(token(r), peer(r), chi.URLParam(r, "id")))
}

func (a *API) openSession(w http.ResponseWriter, r *http.Request) {
	name, anchor, err := a.decodeSession(w, r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	s, err := a.g.OpenSession(peer(r), name, anchor)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	writeValue(w, http.StatusCreated, s)
}

func (a *API) session(w http.ResponseWriter, r *http.Request) {
	s, err := a.g.CurrentSession(token(r), peer(r))
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	writeValue(w, http.StatusOK, s)
}

func (a *API) endSession(w http.ResponseWriter, r *http.Request) {
	if err := a.g.EndSession(token(r), peer(r)); err != nil {
		a.refuse(w, r, err)
		return
	}
	writeValue(w, http.StatusOK, map[string]any{"ended": true})
}

func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	write(w, a.g.Refusal(peer(r), err))
}

func write(w http.ResponseWriter, ans gateway.Answer) {
	if ans.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((ans.RetryAfter+time.Second-1)/time.Second)))
	}
	loopback.WriteJSON(w, ans.Status, ans.Body)
}

func writeValue(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal", http.StatusInternalServerError)
		return
	}
	loopback.WriteJSON(w, status, b)
}

func token(r *http.Request) string { return gateway.BearerToken(r.Header) }

// peer is who the kernel says is calling; a request without one is nobody's
// and matches no session.
func peer(r *http.Request) gateway.Peer {
	p, ok := loopback.PeerOf(r.Context())
	if !ok {
		return gateway.Peer{UID: noUID}
	}
	return gateway.Peer{UID: p.UID, Listener: p.Listener, PID: p.PID, Exe: p.Exe}
}

// noUID is a uid that no session has: (uid_t)-1, which the kernel reserves.
const noUID = ^uint32(0)
