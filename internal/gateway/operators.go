package gateway

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// Record appends an operator's decision to the record and waits until it is
// durable: a widening that cannot be recorded does not happen.
func (g *Gateway) Record(ctx context.Context, decision, subject, by string, detail map[string]any) error {
	e := g.decisionEvent(decision, subject, by)
	e.Detail = detail
	if _, err := g.log.Append(e).Wait(ctx); err != nil {
		return fault.New(fault.AuditUnavailable, err)
	}
	g.logger.Info("operator decision", "decision", decision, "subject", subject, "by", by)
	return nil
}

// Note appends an operator's narrowing act without waiting: a denial or a lock
// must work even where the record does not.
func (g *Gateway) Note(decision, subject, by string) {
	g.log.Append(g.decisionEvent(decision, subject, by))
	g.logger.Info("operator decision", "decision", decision, "subject", subject, "by", by)
}

// decisionEvent says who decided what. What is about a session belongs to that
// session's journal.
func (g *Gateway) decisionEvent(decision, subject, by string) auditlog.Event {
	e := g.event("config")
	e.Actor, e.Decision, e.Target = by, decision, subject
	if strings.HasPrefix(decision, aboutSession) {
		e.SessionID = subject
	}
	return e
}

// aboutSession begins the decisions whose subject is a session.
const aboutSession = "session."

// CallInfo is one call as the ledger knows it.
type CallInfo = ledger.Info

// Errors that an operator's listener tells apart.
var (
	ErrNoCall        = ledger.ErrNotFound
	ErrNotUnresolved = ledger.ErrNotUnresolved
)

// Calls lists the calls that the ledger knows.
func (g *Gateway) Calls(unresolvedOnly bool) ([]CallInfo, error) {
	if err := g.vault.Open(); err != nil {
		return nil, err
	}
	return g.ledger.List(unresolvedOnly)
}

// Call is one call of the ledger.
func (g *Gateway) Call(id string) (CallInfo, error) {
	if err := g.vault.Open(); err != nil {
		return CallInfo{}, err
	}
	info, ok, err := g.ledger.Get(id)
	if err == nil && !ok {
		err = ErrNoCall
	}
	return info, err
}

// Unresolved is one call that nobody has resolved, also while it is reconciled.
func (g *Gateway) Unresolved(id string) (CallInfo, error) {
	info, err := g.Call(id)
	if err == nil && info.State != ledger.StateUnresolved && info.State != ledger.Reconciling {
		err = fmt.Errorf("call %s is %s: %w", id, info.State, ErrNotUnresolved)
	}
	return info, err
}

// Resolve ends an unresolved call by what a person found out. The decision is
// durable in the record before the ledger changes. Where the ledger refuses it, for
// a reconcile or another person was faster, the record says that too, and what
// stands.
func (g *Gateway) Resolve(ctx context.Context, id string, happened bool, by string) error {
	info, err := g.Unresolved(id)
	if err != nil {
		return err
	}
	return g.resolveSeen(ctx, id, info, happened, by)
}

// resolveSeen resolves a call that was unresolved when it was looked at.
func (g *Gateway) resolveSeen(ctx context.Context, id string, info CallInfo, happened bool, by string) error {
	f := resolvedFault(happened)
	contract, _ := g.Set().Contract(info.Action)
	envelope := g.envelopeError(contract, info.RequestID, f)
	if err := g.Record(ctx, "call.resolve", id, by, map[string]any{"happened": happened}); err != nil {
		return err
	}
	err := g.ledger.Resolve(id, happened, envelope)
	if err != nil {
		g.notResolved(ctx, id, happened, by, err)
	}
	return err
}

// decisionNotResolved closes a call.resolve that the ledger refused.
const decisionNotResolved = "call.resolve-refused"

// notResolved says in the record that a decision in it did not come to pass. A
// record that refuses this is told in the log: the caller hears of the refusal
// itself.
func (g *Gateway) notResolved(ctx context.Context, id string, happened bool, by string, cause error) {
	e := g.decisionEvent(decisionNotResolved, id, by)
	e.Rule = "it does not count: " + cause.Error()
	e.Detail = map[string]any{"happened": happened}
	if info, ok, err := g.ledger.Get(id); err == nil && ok {
		e.Status = okOr(fault.Code(info.Code))
		e.Detail["state"] = info.State.String()
	}
	if _, err := g.log.Append(e).Wait(ctx); err != nil {
		g.logger.Error("the record does not say that a decision was refused", "request_id", id, "by", by, "cause", err.Error())
	}
}

// resolvedFault is what the agent hears of a call that a person resolved. It
// cannot be a success: nobody has proved an answer. Happened stays "do not
// repeat it"; did-not frees the id.
func resolvedFault(happened bool) *fault.Error {
	return fault.Resolved(happened)
}

// ActivityJournal is what every call of this run did, from the one record.
func (g *Gateway) ActivityJournal() []auditlog.Activity {
	return auditlog.ActivityJournal(g.log.Recent())
}

// SessionJournal is what every agent run tried, from the same record.
func (g *Gateway) SessionJournal() []auditlog.SessionEntry {
	return auditlog.SessionJournal(g.log.Recent())
}

// RecordState says how the record is.
func (g *Gateway) RecordState() auditlog.State { return g.log.State() }

// Running is the number of calls between arming and answer.
func (g *Gateway) Running() int { return g.places.count() }

// Counts are the calls that run and those that nobody has resolved.
func (g *Gateway) Counts() (running, unresolved int) { return g.ledger.Counts() }

// Damaged names the ledger's open entries that the last unlock could not read.
func (g *Gateway) Damaged() []string {
	out := []string{}
	for _, d := range g.ledger.Damaged() {
		out = append(out, d.Entry)
	}
	return out
}

// OpenCards is how many cards wait for a person.
func (g *Gateway) OpenCards() int {
	n := 0
	for _, c := range g.desk.Cards() {
		if c.State == "open" {
			n++
		}
	}
	return n
}

// ContractView is one loaded contract for the operator.
type ContractView struct {
	Action  string   `json:"action"`
	Version string   `json:"version"`
	Effect  string   `json:"effect"`
	Owner   string   `json:"owner"`
	Summary string   `json:"summary"`
	Targets []string `json:"targets"`
	Digest  string   `json:"digest"`
}

// Contracts lists what is in force, and the digest of the whole set.
func (g *Gateway) Contracts() (string, []ContractView) {
	set := g.Set()
	out := make([]ContractView, 0, len(set.Contracts()))
	for _, c := range set.Contracts() {
		out = append(out, ContractView{
			Action: c.Action(), Version: c.Version(), Effect: c.Effect().String(), Owner: c.Owner(),
			Summary: c.Summary(), Targets: c.Targets(), Digest: pinHex(c.Digest()),
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Action < out[j].Action })
	return pinHex(set.Digest()), out
}

// askedFor is the strictest answer of contract, target and identity.
func askedFor(s *actions.Set, c *actions.Contract, t *actions.Target) actions.Ask {
	ask := actions.Stricter(c.Ask(), t.Ask())
	if id, ok := s.Identity(t.Identity()); ok {
		ask = actions.Stricter(ask, id.Ask())
	}
	return ask
}

// Uptime is how long this daemon runs.
func (g *Gateway) Uptime() time.Duration { return time.Since(g.started) }

// Started is when this daemon began.
func (g *Gateway) Started() time.Time { return g.started }
