package ledger

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// Call is one call, live or ended. It is safe for concurrent use.
type Call struct {
	l        *Ledger
	key      recordKey
	input    inputKey
	idsKey   []byte
	wrapped  []byte
	epoch    uint64
	fixed    fixed
	prior    *record // what the disk holds of an earlier, re-armed round
	done     chan struct{}
	claimed  time.Time
	write    sync.Mutex // one durable step at a time; taken before l.mu
	prepared *Outcome   // guarded by write

	// guarded by l.mu
	entryKey []byte // held until the end, so that a lock does not stop what was sent
	state    State
	e        entry
	aliases  []recordKey
	onDisk   bool // the disk holds this round
	ended    time.Time
	over     bool
	outcome  Outcome
}

// fixed is what of an entry never changes: it is read without a lock while the entry
// is replaced.
type fixed struct{ id, action, idempotency string }

// fix is the last step of making a call.
func (c *Call) fix() *Call {
	c.fixed = fixed{c.e.RequestID, c.e.Action, c.e.Idempotency}
	return c
}

// RequestID returns the id of the call: for one that joined, the first call's.
func (c *Call) RequestID() string { return c.fixed.id }

// Action returns the action's name.
func (c *Call) Action() string { return c.fixed.action }

// IdempotencyKey returns the random UUID that every attempt of this id sends,
// also after it was re-armed.
func (c *Call) IdempotencyKey() string { return c.fixed.idempotency }

// Done is closed when the call has ended.
func (c *Call) Done() <-chan struct{} { return c.done }

// State returns where the call stands.
func (c *Call) State() State {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.state
}

// Outcome returns how the call ended, false while it goes on. An unresolved
// call of a run that was killed has a code but no envelope.
func (c *Call) Outcome() (Outcome, bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.outcome, c.over
}

// Doubt notes that an attempt of a change may have happened. From then on only
// success or OUTCOME_UNKNOWN ends the call, whatever a later attempt says.
func (c *Call) Doubt() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.e.Doubted = c.e.Change
}

// Doubted says whether Doubt was called for a change.
func (c *Call) Doubted() bool {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.e.Doubted
}

// SetState notes a step that nothing is written for: looking, waiting, sent,
// proving, reconciling. The error is ErrTransition.
func (c *Call) SetState(s State) error {
	e, ok := steps[s]
	if !ok {
		return fmt.Errorf("%w: %s is reached by its own method", ErrTransition, s)
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	to, err := next(c.state, e)
	if err != nil {
		return err
	}
	c.state = to
	return nil
}

// Arm writes down, before a byte may leave, that this attempt will be sent. If
// it fails nothing may be sent. Errors: VAULT_LOCKED when the vault was locked
// since the claim, AUDIT_UNAVAILABLE when the disk refuses, ErrTransition.
//
// On the disk after it: the entry as armed, and its key among the open ones. A
// crash from here on leaves the call unresolved.
func (c *Call) Arm(a Armed) error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.prepared != nil {
		return fmt.Errorf("%w: its outcome is written", ErrTransition)
	}
	c.l.mu.Lock()
	to, err := next(c.state, EventArm)
	if err == nil {
		err = c.mayArmLocked(a)
	}
	if err != nil {
		c.l.mu.Unlock()
		return err
	}
	e := c.e
	e.State, e.Attempt, e.Plan, e.PlanDigest = StateArmed, a.Attempt, bytes.Clone(a.Plan), a.PlanDigest[:]
	e.IntentSeq, e.ArmedDetail = a.IntentSeq, bytes.Clone(a.Detail)
	e.Session, e.Now = a.Session, wallOrZero(a.Now)
	e.Captured, e.Deadline = nil, time.Time{} // of an earlier round
	value, aliases, err := c.sealLocked(&e, time.Time{})
	c.l.mu.Unlock()
	if err != nil {
		return fault.New(fault.Internal, err)
	}
	if err := c.put(step{value: value, open: true, aliases: aliases}); err != nil {
		return fault.New(fault.AuditUnavailable, fmt.Errorf("arm the call: %w", err))
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.state, c.e = to, e
	return nil
}

func (c *Call) mayArmLocked(a Armed) error {
	if c.l.index == nil || c.l.epoch != c.epoch {
		return fault.Newf(fault.VaultLocked, "the vault was locked since the call was claimed")
	}
	if a.IdempotencyKey != "" && a.IdempotencyKey != c.e.Idempotency {
		return fmt.Errorf("%w: another idempotency key than the call's", ErrTransition)
	}
	return nil
}

func (c *Call) sealLocked(e *entry, ended time.Time) (value []byte, aliases []recordKey, err error) {
	h := head(c.claimed, ended, c.input)
	value, err = e.seal(c.entryKey, c.wrapped, c.key, h)
	return value, append([]recordKey(nil), c.aliases...), err
}

// put writes one durable step and keeps the ledger's picture of the disk true.
// After an error the disk is asked what it holds: a commit can be done and yet
// reported as failed.
func (c *Call) put(s step) error {
	err := c.l.store.Update(c.batch(s))
	holds := err == nil
	if err != nil {
		_ = c.l.store.View(func(tx durable.Tx) error {
			holds = bytes.Equal(tx.Get(bucketCalls, c.key[:]), s.value)
			return nil
		})
	}
	if holds {
		c.l.mu.Lock()
		c.onDisk = true
		c.l.noteLocked(c.key, s.open)
		for _, a := range s.aliases {
			delete(c.l.stale, a)
		}
		c.l.mu.Unlock()
	}
	return err
}

func (l *Ledger) noteLocked(key recordKey, open bool) {
	delete(l.stale, key)
	if open {
		l.open[key] = struct{}{}
	} else {
		delete(l.open, key)
	}
}

// verdictLocked says what a claim that meets this call is told.
func (c *Call) verdictLocked() Verdict {
	switch {
	case c.state == StateUnresolved:
		return Unresolved
	case c.over:
		return Recorded
	default:
		return Joined
	}
}

// endLocked ends the call in this run and wakes who waits. A call that the disk
// may hold otherwise than it ended (keep) stays in memory, so that this run
// answers as it did the first time.
func (c *Call) endLocked(s State, out Outcome, keep bool) {
	c.state, c.outcome, c.over = s, out, true
	c.ended = wallTime(c.l.now())
	c.e.Code, c.e.Sentence, c.e.Envelope, c.e.Detail, c.e.RecordSeq = out.Code, out.Sentence, out.Envelope, out.Detail, out.RecordSeq
	if !keep {
		delete(c.l.live, c.key)
		if c.l.byInput[c.input] == c {
			delete(c.l.byInput, c.input)
		}
		for _, a := range c.aliases {
			delete(c.l.names, a)
		}
		if s == StateUnresolved && c.e.Change {
			c.l.unresolved[c.input] = &unresolved{key: c.key, aliases: len(c.aliases)}
		}
		clear(c.entryKey)
	}
	close(c.done)
}

func (e *entry) outcome(s State) Outcome {
	fate := map[State]fault.Fate{Finished: fault.Final, StateUnresolved: fault.Unresolved, StateRearmed: fault.Rearmed}[s]
	return Outcome{Envelope: e.Envelope, Code: e.Code, Fate: fate, Sentence: e.Sentence, Detail: e.Detail, NotBefore: e.NotBefore, RecordSeq: e.RecordSeq}
}

// step is what one durable step of a call leaves on the disk.
type step struct {
	value   []byte
	open    bool   // armed or unresolved
	seq     uint64 // of the outcome in the record, for the entry's mark; 0: none
	aliases []recordKey
}

// batch writes a step.
func (c *Call) batch(s step) func(durable.Tx) error {
	return func(tx durable.Tx) error {
		if err := tx.Put(bucketCalls, c.key[:], s.value); err != nil {
			return err
		}
		if err := tx.Put(bucketIDs, c.idsKey, nil); err != nil {
			return err
		}
		for _, a := range s.aliases {
			if err := tx.Put(bucketCalls, a[:], aliasValue(c.key)); err != nil {
				return err
			}
		}
		if err := c.putMark(tx, s.seq); err != nil {
			return err
		}
		if s.open {
			return tx.Put(bucketOpen, c.key[:], c.openValue())
		}
		return tx.Delete(bucketOpen, c.key[:])
	}
}

func (c *Call) putMark(tx durable.Tx, seq uint64) error {
	if seq == 0 {
		return tx.Delete(bucketMarks, c.key[:])
	}
	return tx.Put(bucketMarks, c.key[:], mark{seq: seq, input: c.openValue()}.value())
}

// openValue is the input of a change; a read needs none, another read of the
// same input may always be sent.
func (c *Call) openValue() []byte {
	if c.e.Change {
		return c.input[:]
	}
	return nil
}
