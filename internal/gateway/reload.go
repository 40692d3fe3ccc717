package gateway

import (
	"context"
	"encoding/hex"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
	"chatelaine/internal/sessions"
)

// Replace puts a whole new set of contracts and targets in force, in this order:
// the record has it durably, keep seals it as accepted, the set is swapped. Where
// one of them refuses nothing changes. Calls keep the contract they began with;
// cards whose contract or target changed are withdrawn as PLAN_STALE, nothing
// sent.
func (g *Gateway) Replace(ctx context.Context, s *actions.Set, by string, keep func() error) error {
	from, to := g.Set().Digest(), s.Digest()
	detail := map[string]any{"from": hex.EncodeToString(from[:]), "to": hex.EncodeToString(to[:]), "contracts": len(s.Contracts())}
	if err := g.Record(ctx, "reload", "", by, detail); err != nil {
		g.metrics.reloads.WithLabelValues("refused").Inc()
		return err
	}
	if err := keep(); err != nil {
		g.metrics.reloads.WithLabelValues("refused").Inc()
		g.Note("reload failed: the old set stays", "", by)
		return err
	}
	g.set.Store(s)
	g.Hold(nil)
	g.metrics.reloads.WithLabelValues("ok").Inc()
	g.logger.Info("contracts and targets replaced", "contracts", len(s.Contracts()), "by", by)
	g.withdrawStale()
	return nil
}

// Change is what a set would change if it were put in force now.
type Change struct {
	From, To [32]byte // digests of the set in force and of the new one
	Pins     []ActionPin
	// Changed are actions of the new set that are not served as they are there:
	// new, changed, or held until an operator accepts them. Gone are those that
	// it no longer has.
	Changed, Gone []string
}

// ActionPin is an action of a set with the digest of its contract, its targets
// and their identities.
type ActionPin struct{ Action, Pin string }

// Compare says what s would change.
func (g *Gateway) Compare(s *actions.Set) Change {
	old := g.Set()
	ch := Change{From: old.Digest(), To: s.Digest()}
	was, is := PinsOf(old), PinsOf(s)
	for _, c := range s.Contracts() {
		name := c.Action()
		ch.Pins = append(ch.Pins, ActionPin{name, is[name]})
		if pin, known := was[name]; !known || pin != is[name] || g.isHeld(name) {
			ch.Changed = append(ch.Changed, name)
		}
	}
	for _, c := range old.Contracts() {
		if _, kept := is[c.Action()]; !kept {
			ch.Gone = append(ch.Gone, c.Action())
		}
	}
	return ch
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

// PinsOf are the digests of every action of a set: its contract, its targets and
// their identities. An operator accepts them with a proof.
func PinsOf(set *actions.Set) map[string]string {
	out := map[string]string{}
	for _, c := range set.Contracts() {
		out[c.Action()], _ = pinOf(set, c)
	}
	return out
}

// Pins are those of the set in force.
func (g *Gateway) Pins() map[string]string { return PinsOf(g.Set()) }

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
		if p != nil && fault.CodeOf(g.fresh(g.base, p.claimed, p.identity)) == fault.PlanStale {
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
// VAULT_LOCKED and are not consumed. What was sent goes on to its own end; what
// polls waits for the unlock.
func (g *Gateway) Locked(reason string) {
	g.desk.WithdrawAll(fault.VaultLocked)
	g.gate.turn()
	e := g.event("lock")
	e.Rule = reason
	g.log.Append(e)
	g.logger.Info("vault locked", "reason", reason)
	g.events.publish("vault", "locked")
}

// Unlocked notes that the vault is open; what polls goes on.
func (g *Gateway) Unlocked() {
	g.gate.turn()
	e := g.event("config")
	e.Decision = "unlock"
	g.log.Append(e)
	g.logger.Info("vault unlocked")
	g.events.publish("vault", "open")
}

// SessionEnded withdraws the cards of a session that was revoked or ended:
// nothing of it is sent any more. The end of a session that nobody authorised is
// no event of the record: anybody can ask for one and drop it.
func (g *Gateway) SessionEnded(s sessions.Session, reason string) {
	g.desk.WithdrawSession(s.ID, fault.SessionRevoked)
	g.events.publish("session", s.ID)
	if s.Authorised.IsZero() {
		return
	}
	e := g.event("session.close")
	e.SessionID, e.Actor, e.Status = s.ID, s.Name, reason
	g.log.Append(e)
}

// LateDecision records what a second operator said of a card that was decided
// before; it changes nothing.
func (g *Gateway) LateDecision(card, decision, by string) {
	e := g.event("config")
	e.Actor, e.Decision, e.Target = by, "late: "+decision, card
	g.log.Append(e)
}
