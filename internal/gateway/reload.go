package gateway

import (
	"encoding/hex"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

// Replace puts a whole new set of contracts and targets in force. Calls keep
// the contract they began with; cards whose contract or target changed are
// withdrawn as PLAN_STALE, nothing sent.
func (g *Gateway) Replace(s *actions.Set, by string) {
	old := g.set.Swap(s)
	g.Hold(nil)
	g.metrics.reloads.WithLabelValues("ok").Inc()
	from, to := old.Digest(), s.Digest()
	e := g.event("config")
	e.Actor, e.Decision = by, "reload"
	e.Detail = map[string]any{"from": hex.EncodeToString(from[:]), "to": hex.EncodeToString(to[:]), "contracts": len(s.Contracts())}
	g.log.Append(e)
	g.logger.Info("contracts and targets replaced", "contracts", len(s.Contracts()), "by", by)
	g.withdrawStale()
}

// ReloadFailed counts a set that did not load; the old one stays in force.
func (g *Gateway) ReloadFailed(problems []string) {
	g.metrics.reloads.WithLabelValues("refused").Inc()
	g.logger.Error("contracts and targets not replaced; the old set stays", "problems", len(problems))
	for _, p := range problems[:min(len(problems), problemsLogged)] {
		g.logger.Error("mistake in contracts or targets", "mistake", p)
	}
}

// problemsLogged bounds what one broken file writes into the log; `status` has
// all of them.
const problemsLogged = 20

// Pins are the digests of every action in force: its contract, its targets and
// their identities. An operator accepts them with a proof.
func (g *Gateway) Pins() map[string]string {
	set := g.Set()
	out := map[string]string{}
	for _, c := range set.Contracts() {
		out[c.Action()], _ = pinOf(set, c)
	}
	return out
}

// Hold takes actions out of service until an operator accepts them as they are
// now (Replace): their files changed while the daemon was not there to ask. The
// other actions are served.
func (g *Gateway) Hold(held map[string]bool) { g.held.Store(&held) }

func (g *Gateway) isHeld(action string) bool {
	held := g.held.Load()
	return held != nil && (*held)[action]
}

// serving finds an action that is loaded and not held.
func (g *Gateway) serving(set *actions.Set, name string) (*actions.Contract, error) {
	c, ok := set.Contract(name)
	if !ok {
		return nil, fault.Newf(fault.UnknownAction, "no contract of that name is loaded")
	}
	if g.isHeld(name) {
		return nil, fault.Newf(fault.UnknownAction, "%s, its target or its identity changed since an operator accepted them; look at them, then `chatelaine reload`", name)
	}
	return c, nil
}

func (g *Gateway) withdrawStale() {
	for _, l := range g.lives.all() {
		l.mu.Lock()
		p := l.plan
		l.mu.Unlock()
		if p != nil && fault.CodeOf(g.fresh(g.base, p)) == fault.PlanStale {
			l.withdraw(fault.PlanStale)
		}
	}
}

// withdrawWaiting ends every card when the daemon stops: nothing was sent, the
// same id starts afresh.
func (g *Gateway) withdrawWaiting() {
	for _, l := range g.lives.all() {
		l.withdraw(fault.ApprovalExpired)
	}
}

// Locked ends what needs an open vault: cards are withdrawn, their calls end as
// VAULT_LOCKED and are not consumed. What was sent goes on to its own end.
func (g *Gateway) Locked(reason string) {
	g.desk.WithdrawAll(fault.VaultLocked)
	e := g.event("lock")
	e.Rule = reason
	g.log.Append(e)
	g.logger.Info("vault locked", "reason", reason)
	g.events.publish("vault", "locked")
}

// Unlocked notes that the vault is open, and returns the calls that were armed
// when the daemon last stopped without an outcome.
func (g *Gateway) Unlocked() {
	e := g.event("config")
	e.Decision = "unlock"
	g.log.Append(e)
	g.logger.Info("vault unlocked")
	g.events.publish("vault", "open")
}

// Lost is a call that was armed when an earlier run ended, without an outcome.
type Lost struct {
	RequestID, Agent, Action string
	IntentSeq                uint64
}

// RecoveredUnresolved records that calls of an earlier run may have happened.
func (g *Gateway) RecoveredUnresolved(calls []Lost) {
	for _, c := range calls {
		e := g.event("reconcile")
		e.CallID, e.Actor, e.Action, e.IntentSeq = c.RequestID, c.Agent, c.Action, c.IntentSeq
		e.Status = string(fault.OutcomeUnknown)
		e.Rule = "armed before a stop, no outcome recorded; not sent again"
		g.log.Append(e)
	}
	if len(calls) > 0 {
		g.logger.Warn("calls of an earlier run may have happened; see `chatelaine calls list --unresolved`", "count", len(calls))
	}
}

// SessionEnded withdraws the cards of a session that was revoked or ended:
// nothing of it is sent any more.
func (g *Gateway) SessionEnded(id, name, reason string) {
	g.desk.WithdrawSession(id, fault.SessionRevoked)
	e := g.event("session.close")
	e.SessionID, e.Actor, e.Status = id, name, reason
	g.log.Append(e)
	g.events.publish("session", id)
}
