package approvals

import (
	"context"

	"chatelaine/internal/fault"
)

// Ticket is the waiting call's end of a card.
type Ticket struct {
	d *Desk
	c *card
}

// Card returns the card as it is now.
func (t *Ticket) Card() Card {
	var out Card
	_ = t.d.do(func() error {
		out = t.c.clone()
		return nil
	})
	return out
}

// Decided says whether the card is no longer open. It takes no lock.
func (t *Ticket) Decided() bool {
	select {
	case <-t.c.decided:
		return true
	default:
		return false
	}
}

// Wait returns when the card is decided: nil only for an approval, which must
// then be spent. Otherwise the code says how the call ends: APPROVAL_DENIED,
// APPROVAL_EXPIRED, or what the card was withdrawn for. When ctx ends nobody
// waits any more: the card is withdrawn, as OVERLOADED.
func (t *Ticket) Wait(ctx context.Context) (Decision, error) {
	select {
	case <-t.c.decided:
	case <-ctx.Done():
		t.Withdraw(fault.Overloaded)
	}
	var by Decision
	err := t.d.do(func() error {
		by.By = t.c.DecidedBy
		return t.c.endedLocked()
	})
	if err != nil {
		return Decision{}, err
	}
	return by, nil
}

// endedLocked is nil for an approved card, else the code that ends the call.
func (c *card) endedLocked() error {
	switch c.State {
	case StateApproved:
		return nil
	case StateSpent:
		return fault.Newf(fault.ApprovalExpired, "the approval was spent already")
	case StateDenied:
		return fault.Newf(fault.ApprovalDenied, "denied by %s", c.DecidedBy)
	case StateExpired:
		return fault.Newf(fault.ApprovalExpired, "nobody decided in time")
	case StateWithdrawn:
		return fault.Newf(c.Code, "the card was withdrawn")
	}
	return fault.Newf(fault.Internal, "the card is still %s", c.State)
}

// Spend uses the approval for the plan of this digest, once, within ten seconds
// of the decision. It is the last step before arming: a denial that came
// meanwhile has won. A digest that was not shown is PLAN_STALE and ends the card.
func (t *Ticket) Spend(digest [32]byte) error {
	return t.d.do(func() error {
		if err := t.c.endedLocked(); err != nil {
			return err
		}
		if digest != t.c.PlanDigest {
			_ = t.d.moveLocked(t.c, EventWithdraw, fault.PlanStale) // the table allows it: it is approved
			return fault.Newf(fault.PlanStale, "another plan than the one that was shown")
		}
		return t.d.moveLocked(t.c, EventSpend, "")
	})
}

// Withdraw takes the card away; the call ends with reason. It does nothing to a
// card that was denied, expired or spent.
func (t *Ticket) Withdraw(reason fault.Code) {
	_ = t.d.do(func() error { return t.d.moveLocked(t.c, EventWithdraw, reason) })
}
