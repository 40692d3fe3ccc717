// Package gateway is the straight line of a call: from an agent's words to one
// recorded, approved, proved answer. It owns the order of the steps and nothing
// else; each room below does its own work. It must never touch a secret, open a
// socket outward, or let an upstream byte past internal/validate. Only
// internal/agentapi, internal/operatorapi and cmd/chatelained import it.
package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/approvals"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/executor"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
)

// Limits bounds what the line takes at once. The zero value of a field means
// its default.
type Limits struct {
	// Calls is how many calls may be between arming and answer at once.
	Calls int
	// CallsPerTarget is the same for one target, so that one slow upstream
	// cannot take every place.
	CallsPerTarget int
	// Live is how many claimed calls (also those that wait for a person) the
	// daemon holds in memory.
	Live int
	// Answer is the largest body of an answer in bytes; each intent books room
	// for it in the record.
	Answer int64
}

// Defaults of Limits (docs/configuration.md).
const (
	DefaultCalls          = 64
	DefaultCallsPerTarget = 8
	// DefaultLive bounds memory, not work: a waiting call costs a few kilobytes.
	DefaultLive = 1024
	// DefaultAnswer is the executor's own limit.
	DefaultAnswer = 1 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Calls == 0 {
		l.Calls = DefaultCalls
	}
	if l.CallsPerTarget == 0 {
		l.CallsPerTarget = DefaultCallsPerTarget
	}
	if l.Live == 0 {
		l.Live = DefaultLive
	}
	if l.Answer == 0 {
		l.Answer = DefaultAnswer
	}
	return l
}

// Deps are the rooms that the line passes through. All but Logger are needed.
type Deps struct {
	Set      *actions.Set
	Vault    Vault
	Executor *executor.Executor
	Ledger   *ledger.Ledger
	Sessions *sessions.Registry
	Desk     *approvals.Desk
	Log      *auditlog.Log
	Metrics  *Metrics
	Logger   *slog.Logger
	Limits   Limits
	// OnRejected hears of every refused answer; nil means nobody does. It must
	// not block.
	OnRejected func(Rejected)
	// OnUsed hears of every send with an identity's secret, and of each that could
	// not be made for want of it; nil means nobody does. It must not block.
	OnUsed func(Used)
}

// Gateway runs calls. It is safe for concurrent use.
type Gateway struct {
	set      atomic.Pointer[actions.Set]
	held     atomic.Pointer[map[string]bool]
	vault    Vault
	exec     *executor.Executor
	ledger   *ledger.Ledger
	sessions *sessions.Registry
	desk     *approvals.Desk
	log      *auditlog.Log
	metrics  *Metrics
	logger   *slog.Logger
	limits   Limits
	rejected func(Rejected)
	used     func(Used)
	started  time.Time

	lives    lives
	places   places
	words    lastWords
	refusals refusals
	// How often one user may ask for a session, and one session for a person.
	sessionRate, cardRate rates
	events                Hub

	running  running
	gate     gate // turns when the vault is locked or unlocked
	draining atomic.Bool
	drained  chan struct{} // closed when the daemon begins to stop
	drain    sync.Once
	// base outlives every request: a call that was armed goes on when its
	// caller hangs up.
	base context.Context
	stop context.CancelFunc
}

// New joins the rooms. The gateway serves no call before the vault is open.
func New(d Deps) *Gateway {
	g := &Gateway{
		vault: d.Vault, exec: d.Executor, ledger: d.Ledger, sessions: d.Sessions,
		desk: d.Desk, log: d.Log, metrics: d.Metrics, logger: d.Logger,
		limits: d.Limits.withDefaults(), rejected: d.OnRejected, used: d.OnUsed, started: time.Now(),
	}
	if g.logger == nil {
		g.logger = slog.New(slog.DiscardHandler)
	}
	g.set.Store(d.Set)
	g.lives.init(g.limits.Live)
	g.places.init(g.limits)
	g.sessionRate.init(sessionEvery, sessionBurst, "requests for a session by this user")
	g.cardRate.init(cardEvery, cardBurst, "cards of this session")
	g.drained = make(chan struct{})
	g.base, g.stop = context.WithCancel(context.Background())
	return g
}

// Set returns the contracts and targets now in force.
func (g *Gateway) Set() *actions.Set { return g.set.Load() }

// Drain refuses new calls, withdraws those that wait for a person and lets sent
// ones end within their own time-outs, at most until ctx ends. What polls or waits
// to be reconciled stops at its next turn; the next run takes it up.
func (g *Gateway) Drain(ctx context.Context) error {
	g.draining.Store(true)
	g.drain.Do(func() { close(g.drained) })
	g.withdrawWaiting()
	select {
	case <-g.running.close():
		return nil
	case <-ctx.Done():
		g.stop()
		return ctx.Err()
	}
}
