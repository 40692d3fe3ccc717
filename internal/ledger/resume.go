package ledger

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/fault"
)

// A poll outlives the request that it asks about, and the run of the daemon. So
// before the first poll the entry gets what the request's answer gave and when
// the poll is over. On the disk it stays open, as an armed one does: a crash
// leaves it to the next run, which polls on (Resume) or, where it may not, makes
// it unresolved (GiveUp). A reconcile writes nothing of its own: after a crash in
// it the disk still says armed or polling, and the next run looks again.

// Poll writes down, before the first poll is sent, what the request's answer
// gave and when the poll is over. It needs no open vault: what was sent goes on.
// Errors: AUDIT_UNAVAILABLE when the disk refuses, ErrTransition.
func (c *Call) Poll(p Polled) error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.prepared != nil {
		return fmt.Errorf("%w: its outcome is written", ErrTransition)
	}
	c.l.mu.Lock()
	to, err := next(c.state, EventPoll)
	if err == nil && c.over {
		err = ErrTransition
	}
	if err != nil {
		c.l.mu.Unlock()
		return err
	}
	e := c.e
	e.State, e.Captured, e.Deadline, e.IntentSeq = to, slices.Clone(p.Captured), wallOrZero(p.Deadline), p.IntentSeq
	value, aliases, err := c.sealLocked(&e, time.Time{})
	c.l.mu.Unlock()
	if err != nil {
		return fault.New(fault.Internal, err)
	}
	if err := c.put(step{value: value, open: true, aliases: aliases}); err != nil {
		return fault.New(fault.AuditUnavailable, fmt.Errorf("write down the poll: %w", err))
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.state, c.e = to, e
	return nil
}

// Told notes that a reconcile said how the request ended: the doubt of an earlier
// attempt is over, and any code may end the call. Error: ErrTransition unless the
// call is being reconciled.
func (c *Call) Told() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.state != Reconciling || c.over {
		return fmt.Errorf("%w: %s", ErrTransition, c.state)
	}
	c.e.Doubted = false
	return nil
}

// Left is a call that an earlier run left armed or polling.
type Left struct {
	Info
	// IsPolling says that its request was answered and its poll had begun.
	IsPolling bool
	key       recordKey
}

// Left returns what an earlier run left armed or polling, the oldest first. It
// runs after Unlock; what this run armed is not among it. An entry that cannot be
// read does not keep the others from being returned: it is counted by Damaged.
// Error: VAULT_LOCKED.
func (l *Ledger) Left() ([]Left, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return nil, err
	}
	var out []Left
	l.damaged = nil
	for key := range l.open {
		if l.live[key] != nil {
			continue
		}
		f, e, _, err := l.leftLocked(key)
		switch {
		case err != nil:
			d := Damage{Entry: hex.EncodeToString(key[:damageShown]), Cause: err}
			if f.rec != nil {
				d.Claimed = f.rec.claimed
			}
			l.damaged = append(l.damaged, d)
		case e != nil:
			out = append(out, Left{Info: e.info(f.rec, StateUnresolved), IsPolling: e.State == Polling, key: key})
		}
	}
	slices.SortFunc(out, func(a, b Left) int { return a.ClaimedAt.Compare(b.ClaimedAt) })
	return out, nil
}

// Damage is an open entry that cannot be read. It may be of a call that has
// happened: whoever asks its id again, or the same change, gets INTERNAL, and
// nothing is sent.
type Damage struct {
	Entry   string    // names it in status and log: the start of its key, a keyed digest
	Claimed time.Time // as the damaged entry has it in clear; zero where it has none
	Cause   error     // holds nothing of the entry
}

// damageShown is how many bytes of its key name a damaged entry: enough to tell it
// from others.
const damageShown = 6

// Damaged are the open entries that the last Left could not read, by name.
func (l *Ledger) Damaged() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.damaged)
	slices.SortFunc(out, func(a, b Damage) int { return strings.Compare(a.Entry, b.Entry) })
	return out
}

// leftLocked reads an open entry; e is nil where it has ended as unresolved.
func (l *Ledger) leftLocked(key recordKey) (f found, e *entry, entryKey []byte, err error) {
	f, err = l.readLocked(key)
	if err != nil {
		return f, nil, nil, err
	}
	if f.rec == nil {
		return f, nil, nil, fault.Newf(fault.Internal, "%w: an armed call is missing", errRecord)
	}
	e, entryKey, err = l.entryLocked(f)
	if err != nil || e.State == StateArmed || e.State == Polling {
		return f, e, entryKey, err
	}
	return f, nil, nil, nil
}

// Resume makes a call that was left behind live again, so that it can be polled
// or, where its poll had not begun, reconciled. It is never sent again. Errors:
// VAULT_LOCKED, ErrTransition where it is live or has ended meanwhile.
func (l *Ledger) Resume(x Left) (*Call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return nil, err
	}
	f, e, entryKey, err := l.stillLeftLocked(x)
	if err != nil {
		return nil, err
	}
	event := EventReconcile
	if e.State == Polling {
		event = EventPoll
	}
	to, err := next(StateUnresolved, event)
	if err != nil {
		return nil, err
	}
	c := &Call{
		l: l, key: x.key, input: f.rec.input, entryKey: entryKey, wrapped: slices.Clone(f.rec.wrapped), epoch: l.epoch,
		idsKey: append(l.operatorKeyLocked(e.RequestID), x.key[:]...), done: make(chan struct{}),
		state: to, claimed: f.rec.claimed, e: *e, onDisk: true,
	}
	l.live[c.key] = c
	if e.Change {
		l.byInput[c.input] = c
		if u := l.unresolved[c.input]; u != nil && u.key == c.key {
			delete(l.unresolved, c.input)
		}
	}
	return c.fix(), nil
}

// stillLeftLocked reads x again: a person may have resolved it meanwhile.
func (l *Ledger) stillLeftLocked(x Left) (found, *entry, []byte, error) {
	if _, open := l.open[x.key]; !open || l.live[x.key] != nil {
		return found{}, nil, nil, fmt.Errorf("%w: it is not left behind any more", ErrTransition)
	}
	f, e, entryKey, err := l.leftLocked(x.key)
	if err == nil && e == nil {
		err = fmt.Errorf("%w: it has ended", ErrTransition)
	}
	return f, e, entryKey, err
}

// GiveUp writes down as unresolved what was left behind. Errors: VAULT_LOCKED,
// ErrTransition, AUDIT_UNAVAILABLE.
func (l *Ledger) GiveUp(x Left) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return err
	}
	f, e, entryKey, err := l.stillLeftLocked(x)
	if err != nil {
		return err
	}
	e.State, e.Code = StateUnresolved, string(fault.OutcomeUnknown)
	return l.rewriteLocked(x.key, f.rec, e, entryKey, true)
}
