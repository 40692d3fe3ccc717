package ledger

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// listMax bounds List: the newest calls, what a person can look through.
const listMax = 500

// Recover gives up everything that an earlier run left armed or polling, and says
// how many calls those are. It runs after Unlock at the start. An entry that cannot be
// read stays as it is (Damaged).
func (l *Ledger) Recover() (unresolved int, err error) {
	left, err := l.Left()
	errs := []error{err}
	for _, x := range left {
		errs = append(errs, l.GiveUp(x))
	}
	return len(left), errors.Join(errs...)
}

// rewriteLocked puts a changed entry in place of r, ended now. The ledger's
// lock is held over the sync: a person's decision and a start are rare.
func (l *Ledger) rewriteLocked(key recordKey, r *record, e *entry, entryKey []byte, open bool) error {
	h := head(r.claimed, wallTime(l.now()), r.input)
	value, err := e.seal(entryKey, r.wrapped, key, h)
	if err != nil {
		return fault.New(fault.Internal, err)
	}
	err = l.store.Update(func(tx durable.Tx) error {
		if !open {
			if err := tx.Delete(bucketOpen, key[:]); err != nil {
				return err
			}
		}
		if err := tx.Delete(bucketMarks, key[:]); err != nil {
			return err
		}
		return tx.Put(bucketCalls, key[:], value)
	})
	if err != nil {
		return fault.New(fault.AuditUnavailable, err)
	}
	l.noteLocked(key, open)
	r.head, r.ended = h, wallTime(l.now())
	return nil
}

// Resolve ends an unresolved call, also one that is being reconciled, with what a
// person found out; a reconcile that comes later changes nothing. requestID is an
// id, ID@AGENT or ID@AGENT:UID. envelope is what the id answers from then on;
// where it did not happen and the envelope's code re-arms (UPSTREAM_UNAVAILABLE)
// the id is sent again when it is asked again, with the same idempotency key.
// Errors: VAULT_LOCKED, ErrNotFound, ErrAmbiguous, ErrNotUnresolved,
// AUDIT_UNAVAILABLE.
func (l *Ledger) Resolve(requestID string, happened bool, envelope []byte) error {
	looked, err := l.reconciling(requestID)
	if err != nil {
		return err
	}
	if looked != nil {
		looked.write.Lock() // before the ledger's own lock
		defer looked.write.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return err
	}
	f, e, entryKey, err := l.findLocked(requestID, true)
	if err != nil {
		return err
	}
	c := l.live[f.key]
	if !l.resolvableLocked(f.key, c, looked) {
		return ErrNotUnresolved
	}
	e.Envelope, e.Code, e.NotBefore, e.RecordSeq = envelope, codeIn(envelope, happened), time.Time{}, 0
	event := EventResolve
	if !happened && fault.New(fault.Code(e.Code), nil).Fate(e.Change, true) == fault.Rearmed {
		event = EventFree
	}
	if e.State, err = next(StateUnresolved, event); err != nil {
		return err
	}
	if err := l.rewriteLocked(f.key, f.rec, e, entryKey, false); err != nil {
		return err
	}
	if c != nil && !c.over {
		c.endLocked(e.State, e.outcome(e.State), false)
		return nil
	}
	l.settledLocked(f)
	return nil
}

// reconciling finds a live call that is being reconciled, nil for any other.
func (l *Ledger) reconciling(requestID string) (*Call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return nil, err
	}
	f, _, _, err := l.findLocked(requestID, true)
	if err != nil {
		return nil, err
	}
	if c := l.live[f.key]; c != nil && c.state == Reconciling {
		return c, nil
	}
	return nil, nil
}

// resolvableLocked says whether a person may end the call of key. One that is
// being reconciled may be ended as long as what the reconcile found is not
// written; looked is that call, whose writes are held back.
func (l *Ledger) resolvableLocked(key recordKey, c, looked *Call) bool {
	_, open := l.open[key]
	switch {
	case c == nil:
		return open
	case c.over:
		return true
	}
	return c == looked && c.state == Reconciling && c.prepared == nil
}

// codeIn reads the code out of an envelope of ours. What did not happen always
// has one.
func codeIn(envelope []byte, happened bool) string {
	var e struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(envelope, &e); err != nil || e.Error.Code == "" {
		if happened {
			return ""
		}
		return string(fault.Cancelled)
	}
	return e.Error.Code
}

// settledLocked forgets in memory what was unresolved.
func (l *Ledger) settledLocked(f found) {
	if u := l.unresolved[f.rec.input]; u != nil && u.key == f.key {
		delete(l.unresolved, f.rec.input)
	}
	c := l.live[f.key]
	if c == nil {
		return
	}
	delete(l.live, f.key)
	if l.byInput[c.input] == c {
		delete(l.byInput, c.input)
	}
	for _, a := range c.aliases {
		delete(l.names, a)
	}
	clear(c.entryKey)
}

// Get returns one call by its id, ID@AGENT or ID@AGENT:UID; false when there is
// none. Errors: VAULT_LOCKED, ErrAmbiguous, INTERNAL.
func (l *Ledger) Get(requestID string) (Info, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return Info{}, false, err
	}
	want := parseOperatorID(requestID)
	var hits []Info
	for _, c := range l.live {
		if want.matches(&c.e) {
			hits = append(hits, c.infoLocked())
		}
	}
	if len(hits) == 0 {
		f, e, _, err := l.findLocked(requestID, false)
		if errors.Is(err, ErrNotFound) {
			return Info{}, false, nil
		}
		if err != nil {
			return Info{}, false, err
		}
		return e.info(f.rec, e.ended()), true, nil
	}
	if len(hits) > 1 {
		return Info{}, false, ErrAmbiguous
	}
	return hits[0], true, nil
}

// List returns the newest calls first, at most 500 ended ones; with
// unresolvedOnly every unresolved one and those that are being reconciled. What
// cannot be read is left out. Errors: VAULT_LOCKED, INTERNAL.
func (l *Ledger) List(unresolvedOnly bool) ([]Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return nil, err
	}
	var out []Info
	for _, c := range l.live {
		if !unresolvedOnly || c.state == StateUnresolved || c.state == Reconciling {
			out = append(out, c.infoLocked())
		}
	}
	stored, err := l.storedLocked(unresolvedOnly)
	if err != nil {
		return nil, err
	}
	for _, f := range stored {
		if e, _, err := l.entryLocked(f); err == nil {
			out = append(out, e.info(f.rec, e.ended()))
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return b.ClaimedAt.Compare(a.ClaimedAt) })
	return out, nil
}

// storedLocked finds the records that List shows, by their clear times.
func (l *Ledger) storedLocked(unresolvedOnly bool) ([]found, error) {
	var all []found
	err := l.store.View(func(tx durable.Tx) error {
		return tx.ForEach(bucketCalls, func(k, v []byte) error {
			if len(k) != len(recordKey{}) {
				return errRecord
			}
			key := recordKey(k)
			if raw, ok := l.stale[key]; ok {
				v = raw
			}
			_, open := l.open[key]
			if len(v) == 0 || v[0] != kindRecord || l.live[key] != nil || (unresolvedOnly && !open) {
				return nil
			}
			if rec, err := parseRecord(v); err == nil {
				all = append(all, found{key: key, rec: rec})
			}
			return nil
		})
	})
	if err != nil {
		return nil, fault.New(fault.Internal, err)
	}
	slices.SortFunc(all, func(a, b found) int { return b.rec.claimed.Compare(a.rec.claimed) })
	if !unresolvedOnly && len(all) > listMax {
		all = all[:listMax]
	}
	return all, nil
}

// ended is the state of an entry that is not live in this run.
func (e *entry) ended() State {
	if e.State.live() {
		return StateUnresolved
	}
	return e.State
}

func (e *entry) info(r *record, s State) Info {
	i := Info{
		Owner: Owner{Agent: e.Agent, UID: e.UID}, RequestID: e.RequestID, Action: e.Action, State: s, Change: e.Change,
		Code: e.Code, Sentence: e.Sentence, ClaimedAt: r.claimed, FinishedAt: r.ended, Attempt: e.Attempt,
		IdempotencyKey: e.Idempotency, Plan: e.Plan, IntentSeq: e.IntentSeq, RecordSeq: e.RecordSeq,
		ArmedDetail: e.ArmedDetail, Detail: e.Detail, Envelope: e.Envelope,
		Session: e.Session, Now: e.Now, Polled: Polled{Captured: e.Captured, Deadline: e.Deadline, IntentSeq: e.IntentSeq},
	}
	copy(i.PlanDigest[:], e.PlanDigest)
	if s == StateUnresolved && i.Code == "" {
		i.Code = string(fault.OutcomeUnknown)
	}
	return i
}

func (c *Call) infoLocked() Info {
	return c.e.info(&record{claimed: c.claimed, ended: c.ended}, c.state)
}
