package ledger

import (
	"fmt"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// Finish ends the call with an outcome whose fate is Final or Unresolved: it is
// on the disk, then those who joined are woken. An Unresolved one ends in this
// run even when the disk refuses it; the error says so, and the disk, which
// still holds the call as armed or its outcome beyond the record's end, says
// unresolved at the next start. Errors:
// ErrTransition, ErrDoubted, or the store's.
func (c *Call) Finish(out Outcome) error {
	err := c.Prepare(out)
	if err == nil {
		c.Publish()
		return nil
	}
	if out.Fate == fault.Unresolved {
		c.lose(out)
	}
	return err
}

// Prepare is the first half of Finish: the outcome is on the disk, nobody is
// told yet. It runs beside the record's own write, with the sequence that the
// outcome will have there: a crash that keeps the one and not the other leaves
// the call unresolved (SetRecordFloor). Publish tells; another Prepare or Finish
// replaces an outcome that was not published.
func (c *Call) Prepare(out Outcome) error {
	c.write.Lock()
	defer c.write.Unlock()
	event := EventFinish
	switch out.Fate {
	case fault.Final:
	case fault.Unresolved:
		event = EventDoubt
	default:
		return fmt.Errorf("%w: an outcome of this fate is not kept", ErrTransition)
	}
	c.l.mu.Lock()
	to, err := next(c.state, event)
	if err == nil && c.e.Doubted && out.Code != "" && out.Fate == fault.Final {
		err = ErrDoubted
	}
	c.l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.writeEnd(to, out); err != nil {
		return err
	}
	c.prepared = &out
	return nil
}

// writeEnd puts an ended entry on the disk; the call itself does not change.
func (c *Call) writeEnd(to State, out Outcome) error {
	s := step{open: to == StateUnresolved}
	if to == Finished {
		s.seq = out.RecordSeq
	}
	c.l.mu.Lock()
	e := c.e
	e.State, e.Code, e.Sentence, e.NotBefore = to, out.Code, out.Sentence, out.NotBefore
	e.Envelope, e.Detail, e.RecordSeq = out.Envelope, out.Detail, out.RecordSeq
	var err error
	s.value, s.aliases, err = c.sealLocked(&e, wallTime(c.l.now()))
	if err == nil && s.seq != 0 && !c.l.floored {
		err = errFloor
	}
	c.l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.put(s); err != nil {
		return fmt.Errorf("finish the call: %w", err)
	}
	return nil
}

// Publish ends the call with what Prepare wrote and wakes those who joined. It
// does nothing where nothing is prepared.
func (c *Call) Publish() {
	c.write.Lock()
	defer c.write.Unlock()
	if c.prepared == nil {
		return
	}
	out := *c.prepared
	c.prepared = nil
	to := Finished
	if out.Fate == fault.Unresolved {
		to = StateUnresolved
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.endLocked(to, out, false)
}

// lose ends a call as unresolved although the disk could not be told.
func (c *Call) lose(out Outcome) {
	c.write.Lock()
	defer c.write.Unlock()
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if _, err := next(c.state, EventDoubt); err != nil {
		return
	}
	c.prepared = nil
	c.endLocked(StateUnresolved, out, true)
}

// Rearm ends the call as one that did not happen: those who joined get out, and
// the same id, asked again after the wait, is sent again with the same
// idempotency key. Errors: ErrTransition before the call was armed, ErrDoubted,
// or the store's; the call then goes on and must be ended otherwise.
func (c *Call) Rearm(out Outcome, after time.Duration) error {
	c.write.Lock()
	defer c.write.Unlock()
	c.l.mu.Lock()
	to, err := next(c.state, EventRearm)
	if err == nil && c.e.Doubted {
		err = ErrDoubted
	}
	out.Fate = fault.Rearmed
	out.NotBefore = wallTime(c.l.now()).Add(max(0, after))
	c.l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.writeEnd(to, out); err != nil {
		return err
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.prepared = nil
	c.endLocked(to, out, false)
	return nil
}

// Cancel withdraws a call that is not armed: CANCELLED, final. Later it answers
// ErrArmed. envelope is what the id answers from then on.
func (c *Call) Cancel(envelope []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	c.l.mu.Lock()
	to, err := next(c.state, EventCancel)
	c.l.mu.Unlock()
	if err != nil || c.prepared != nil {
		return ErrArmed
	}
	out := Outcome{Envelope: envelope, Code: string(fault.Cancelled), Fate: fault.Final}
	if err := c.writeEnd(to, out); err != nil {
		return fault.New(fault.AuditUnavailable, err)
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.endLocked(to, out, false)
	return nil
}

// Release ends a call of which nothing was sent: those who joined get the
// envelope, and the id is free, or, where it had been re-armed, as it was. It
// does nothing to a call that has ended. A change that may have been sent is
// not released: it ends unresolved and the error is ErrTransition.
//
// Where the disk refuses to forget an armed entry, this run remembers that
// nothing was sent; the error is for the operator, since a crash would leave
// the entry unresolved.
func (c *Call) Release(envelope []byte, code string) error {
	c.write.Lock()
	defer c.write.Unlock()
	c.l.mu.Lock()
	if c.over {
		c.l.mu.Unlock()
		return nil
	}
	_, refused := next(c.state, EventRelease)
	if c.e.Change && (refused != nil || c.e.Doubted) {
		c.prepared = nil
		c.endLocked(StateUnresolved, Outcome{Envelope: envelope, Code: code, Fate: fault.Unresolved}, true)
		c.l.mu.Unlock()
		return fmt.Errorf("%w: it may have been sent", ErrTransition)
	}
	onDisk, aliases := c.onDisk, append([]recordKey(nil), c.aliases...)
	c.l.mu.Unlock()
	var err error
	if onDisk {
		err = c.l.store.Update(c.forget(aliases))
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if onDisk {
		c.l.noteLocked(c.key, false)
	}
	if err != nil {
		c.l.stale[c.key] = c.priorRaw()
		for _, a := range aliases {
			c.l.stale[a] = nil
		}
	}
	s := Forgotten
	if c.prior != nil {
		s = StateRearmed
	}
	c.prepared = nil
	c.endLocked(s, Outcome{Envelope: envelope, Code: code, Fate: fault.NotConsumed}, false)
	if err != nil {
		return fmt.Errorf("forget a call that was not sent: %w", err)
	}
	return nil
}

func (c *Call) priorRaw() []byte {
	if c.prior == nil {
		return nil
	}
	return c.prior.raw
}

// forget takes this round off the disk.
func (c *Call) forget(aliases []recordKey) func(durable.Tx) error {
	return func(tx durable.Tx) error {
		for _, a := range aliases {
			if err := tx.Delete(bucketCalls, a[:]); err != nil {
				return err
			}
		}
		if err := tx.Delete(bucketOpen, c.key[:]); err != nil {
			return err
		}
		if err := tx.Delete(bucketMarks, c.key[:]); err != nil {
			return err
		}
		if c.prior != nil {
			return tx.Put(bucketCalls, c.key[:], c.prior.raw)
		}
		if err := tx.Delete(bucketIDs, c.idsKey); err != nil {
			return err
		}
		return tx.Delete(bucketCalls, c.key[:])
	}
}
