// Package operatorapi is the operator listener: cards, sessions, calls, the
// vault's switches and the write-only identities. Narrowing needs only the
// socket; widening needs a proof over a fresh challenge; reading what agents
// asked needs a read session. It must never return a secret, serve an agent or
// decide without a proof. Only cmd/chatelained imports it.
package operatorapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"chatelaine/internal/approvals"
	"chatelaine/internal/gateway"
	"chatelaine/internal/sessions"
)

// Vault is what an operator may do with the vault: switch it and write to it.
// There is no way to read a secret through it.
type Vault interface {
	State() VaultState
	Unlock(ctx context.Context, passphrase []byte) error
	Lock(reason string)
	ProofParams() (ProofParams, error)
	// SetOperatorPassphrase replaces what decisions are proved with.
	SetOperatorPassphrase(pass []byte) error
	Identities
	Slots
	Sources
}

// VaultState says how the vault is, and why.
type VaultState struct {
	State      string    `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	Since      time.Time `json:"since"`
	Backend    string    `json:"backend"`
	Rollback   string    `json:"rollback"`
	Identities int       `json:"identities"`
	// AutoLock says when it locks by itself; Unattended is what opens it without
	// a person.
	AutoLock   string     `json:"auto_lock,omitempty"`
	Unattended []SlotView `json:"unattended"`
	// Sources are the places outside the vault where secrets lie.
	Sources []SourceView `json:"sources"`
}

// ProofParams tell a client how to make the proof of the operator passphrase
// (argon2id, RFC 9106). MemoryKiB is in kibibytes.
type ProofParams struct {
	Salt            []byte
	Time, MemoryKiB uint32
	Threads         uint8
}

// Listener is one listener for `status`.
type Listener struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	State   string `json:"state"`
}

// Daemon is what only the whole daemon knows.
type Daemon interface {
	Version() string
	ID() string
	Mode() string
	Listeners() []Listener
	Problems() []string
	// IdentityProblems says which identities a person should look at.
	IdentityProblems() []string
	Process() Process
	// Load reads contracts and targets from the files, whole or not at all, and
	// puts nothing in force.
	Load() (Loaded, error)
}

// Loaded is a set that was read and is not in force. Accept records it, seals it
// as accepted and puts it in force, or changes nothing.
type Loaded struct {
	Change gateway.Change
	Accept func(ctx context.Context, by string) error
}

// Deps are the rooms behind the listener. All but Logger are needed.
type Deps struct {
	Gateway  *gateway.Gateway
	Sessions *sessions.Registry
	Desk     *approvals.Desk
	Vault    Vault
	Daemon   Daemon
	Logger   *slog.Logger
}

// API serves operators.
type API struct {
	g        *gateway.Gateway
	sessions *sessions.Registry
	desk     *approvals.Desk
	vault    Vault
	daemon   Daemon
	logger   *slog.Logger
}

// New returns the operator routes.
func New(d Deps) *API {
	a := &API{g: d.Gateway, sessions: d.Sessions, desk: d.Desk, vault: d.Vault, daemon: d.Daemon, logger: d.Logger}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	return a
}

// permission is a column of the route table, so that no handler can forget it.
type permission uint8

const (
	needsProof  permission = iota // a proof over a challenge, in the body; the zero value
	needsSocket                   // reading states, or narrowing
	needsReads                    // a read session of this connection
	ownProof                      // unlocking proves itself
)

type route struct {
	method, path string
	needs        permission
	serve        func(*API, *call) (any, error)
	widens       *widening // needsProof, instead of serve
}

func idParam(c *call) string   { return chi.URLParam(c.r, "id") }
func nameParam(c *call) string { return chi.URLParam(c.r, "name") }

// routes is the whole listener.
func routes() []route {
	proved := func(method, path string, w widening) route { return route{method: method, path: path, widens: &w} }
	return append(slices.Concat(slotRoutes(), identityRoutes(), sourceRoutes(), operatorRoutes()), []route{
		{http.MethodGet, "/v1/status", needsSocket, (*API).status, nil},
		{http.MethodPost, "/v1/challenges", needsSocket, (*API).challenge, nil},
		proved(http.MethodPost, "/v1/reads", widening{operation: opRead, plan: (*API).planReads}),

		{http.MethodGet, "/v1/approvals", needsSocket, (*API).cards, nil},
		{http.MethodGet, "/v1/approvals/{id}", needsSocket, (*API).card, nil},
		{http.MethodPost, "/v1/approvals/{id}/challenge", needsSocket, (*API).cardChallenge, nil},
		{http.MethodPost, "/v1/approvals/{id}/approve", ownProof, (*API).approve, nil},
		{http.MethodPost, "/v1/approvals/{id}/deny", needsSocket, (*API).deny, nil},

		{http.MethodGet, "/v1/sessions", needsSocket, (*API).listSessions, nil},
		proved(http.MethodPost, "/v1/sessions/{id}/authorize", widening{operation: opAuthorize, subject: idParam, plan: (*API).planAuthorize}),
		{http.MethodPost, "/v1/sessions/{id}/revoke", needsSocket, (*API).revoke, nil},

		{http.MethodGet, "/v1/calls", needsSocket, (*API).calls, nil},
		{http.MethodGet, "/v1/calls/{id}", needsSocket, (*API).call, nil},
		proved(http.MethodPost, "/v1/calls/{id}/resolve", widening{operation: opResolve, subject: idParam, plan: (*API).planResolve}),

		{http.MethodGet, "/v1/vault", needsSocket, (*API).vaultState, nil},
		{http.MethodPost, "/v1/vault/unlock", ownProof, (*API).unlock, nil},
		{http.MethodPost, "/v1/vault/lock", needsSocket, (*API).lock, nil},

		{http.MethodGet, "/v1/contracts", needsSocket, (*API).contracts, nil},
		proved(http.MethodPost, "/v1/reload", widening{operation: opReload, plan: (*API).planReload}),
		{http.MethodPost, "/v1/explain", needsSocket, (*API).explain, nil},

		{http.MethodGet, "/v1/journal/activity", needsReads, (*API).activity, nil},
		{http.MethodGet, "/v1/journal/sessions", needsReads, (*API).sessionJournal, nil},
		{http.MethodGet, "/v1/rejections", needsReads, (*API).rejections, nil},
	}...)
}

// The operations that a proof can be asked for.
const (
	opApprove   = "approve"
	opAuthorize = "session.authorize"
	opResolve   = "call.resolve"
	opReload    = "reload"
	opRead      = "read"
)

// Handler routes the operator listener. It stands behind the guard of
// internal/loopback.
func (a *API) Handler() http.Handler {
	r := chi.NewRouter()
	for _, rt := range routes() {
		r.Method(rt.method, rt.path, a.handle(rt))
	}
	r.Get("/v1/events", a.events)
	nowhere := func(w http.ResponseWriter, _ *http.Request) { writeError(w, notFound("no such route")) }
	r.NotFound(nowhere)
	r.MethodNotAllowed(nowhere)
	return r
}
