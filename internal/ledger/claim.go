package ledger

import (
	"fmt"

	"chatelaine/internal/fault"
)

// ask is one claim, with its digests.
type ask struct {
	Owner
	id     string // "" until the daemon makes one
	action string
	change bool
	key    recordKey
	input  inputKey
}

// Claim takes a request id for one run of an action. requestID is the caller's,
// or "" for one of the daemon's. inputDigest covers action and canonical input.
//
// Fresh: the caller runs the call and must end it. Joined: it runs already,
// under this id or, for a change, under another id of the same owner with the
// same input. Recorded: it has ended. Unresolved: it may have happened.
//
// An id that joined another's call stays bound to it: asked again, it answers
// with that call, so that a retry under a new id never becomes a second send.
//
// Errors: INVALID_ARGUMENT (the id's form), VAULT_LOCKED, DUPLICATE_REQUEST (the
// id was used for another input, or is too old to answer), OVERLOADED (too many
// ids on one call), AUDIT_UNAVAILABLE (the disk refused), INTERNAL (an entry is
// damaged).
func (l *Ledger) Claim(o Owner, requestID, action string, inputDigest [32]byte, change bool) (*Call, Verdict, error) {
	if requestID != "" {
		if err := l.checkID(requestID); err != nil {
			return nil, 0, err
		}
	}
	for {
		c, v, adopt, err := l.claimOnce(ask{Owner: o, id: requestID, action: action, change: change}, inputDigest)
		if err != nil || adopt == nil {
			return c, v, err
		}
		ok, err := adopt()
		if err != nil {
			return nil, 0, err
		}
		if ok {
			return c, v, nil
		}
		// The call ended while the id was being bound to it: look again.
	}
}

// claimOnce decides a claim. adopt, when not nil, binds the id to the call that
// it joins and must be run without the ledger's lock.
func (l *Ledger) claimOnce(a ask, inputDigest [32]byte) (c *Call, v Verdict, adopt func() (bool, error), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return nil, 0, nil, err
	}
	a.input = l.inputKeyLocked(a.Owner, a.action, inputDigest)
	var prior *record
	if a.id != "" {
		a.key = l.recordKeyLocked(a.Owner, a.id)
		c, v, again, err := l.sameIDLocked(&a)
		if err != nil || c != nil {
			return c, v, nil, err
		}
		prior = again
	}
	if a.change {
		c, v, adopt, err := l.sameInputLocked(a)
		if err != nil || c != nil {
			return c, v, adopt, err
		}
	}
	c, err = l.freshLocked(a, prior)
	return c, Fresh, nil, err
}

// sameIDLocked answers an id that is known. A re-armed one that may be sent
// again comes back as prior, and a.key, a.id are then those of its first claim.
func (l *Ledger) sameIDLocked(a *ask) (c *Call, v Verdict, prior *record, err error) {
	if c := l.liveLocked(a.key); c != nil {
		if c.input != a.input {
			return nil, 0, nil, duplicate("the id is in use for another input")
		}
		return c, c.verdictLocked(), nil, nil
	}
	f, err := l.readLocked(a.key)
	switch {
	case err != nil:
		return nil, 0, nil, err
	case f.tomb:
		return nil, 0, nil, duplicate("the id is too old to answer")
	case f.rec == nil:
		return nil, 0, nil, nil
	}
	c, err = l.callLocked(f, a.Owner)
	if err != nil {
		return nil, 0, nil, err
	}
	if c.input != a.input {
		return nil, 0, nil, duplicate("the id was used for another input")
	}
	if c.state == StateRearmed && l.mayGoLocked(c) {
		a.key, a.id = f.key, c.e.RequestID
		return nil, 0, f.rec, nil
	}
	return c, c.verdictLocked(), nil, nil
}

// mayGoLocked says whether a re-armed id may be sent again. A clock that went
// back behind the recorded time does not lengthen the wait.
func (l *Ledger) mayGoLocked(c *Call) bool {
	now := l.now()
	return now.Before(c.ended) || !now.Before(c.e.NotBefore)
}

// sameInputLocked finds the first call of this change that waits, runs or is
// unresolved.
func (l *Ledger) sameInputLocked(a ask) (*Call, Verdict, func() (bool, error), error) {
	if c := l.byInput[a.input]; c != nil {
		return c, c.verdictLocked(), l.adoptLive(c, a), nil
	}
	u := l.unresolved[a.input]
	if u == nil {
		return nil, 0, nil, nil
	}
	f, err := l.readLocked(u.key)
	if err != nil {
		return nil, 0, nil, err
	}
	if f.rec == nil {
		return nil, 0, nil, fault.New(fault.Internal, fmt.Errorf("%w: an unresolved call is missing", errRecord))
	}
	c, err := l.callLocked(f, a.Owner)
	if err != nil {
		return nil, 0, nil, err
	}
	if c.input != a.input {
		return nil, 0, nil, fault.New(fault.Internal, fmt.Errorf("%w: an unresolved call has another input", errRecord))
	}
	return c, Unresolved, l.adoptUnresolved(u, a), nil
}

// adoptLive binds a's id to a live call, on the disk too once the call is.
func (l *Ledger) adoptLive(c *Call, a ask) func() (bool, error) {
	if a.id == "" {
		return nil
	}
	return func() (bool, error) {
		c.write.Lock()
		defer c.write.Unlock()
		l.mu.Lock()
		gone := l.live[c.key] != c
		full := len(c.aliases) >= maxAliases
		onDisk := c.onDisk
		if !gone && !full && l.names[a.key] != c {
			c.aliases = append(c.aliases, a.key)
			l.names[a.key] = c
		}
		l.mu.Unlock()
		if gone || full {
			return false, errIf(full, fault.Newf(fault.Overloaded, "more than %d ids joined one call", maxAliases))
		}
		if !onDisk {
			return true, nil
		}
		return true, l.putAlias(a.key, c.key)
	}
}

func (l *Ledger) adoptUnresolved(u *unresolved, a ask) func() (bool, error) {
	if a.id == "" {
		return nil
	}
	return func() (bool, error) {
		l.mu.Lock()
		gone := l.unresolved[a.input] != u
		u.aliases++
		full := u.aliases > maxAliases
		l.mu.Unlock()
		if gone || full {
			return false, errIf(full, fault.Newf(fault.Overloaded, "more than %d ids joined one call", maxAliases))
		}
		return true, l.putAlias(a.key, u.key)
	}
}

func errIf(cond bool, err error) error {
	if cond {
		return err
	}
	return nil
}

func (l *Ledger) putAlias(alias, to recordKey) error {
	l.mu.Lock()
	before, wasStale := l.stale[alias]
	delete(l.stale, alias) // first, so that a sweep cannot take away what is being written
	l.mu.Unlock()
	if err := l.store.Put(bucketCalls, alias[:], aliasValue(to)); err != nil {
		l.mu.Lock()
		if wasStale {
			l.stale[alias] = before
		}
		l.mu.Unlock()
		return fault.New(fault.AuditUnavailable, fmt.Errorf("bind an id to the call it joined: %w", err))
	}
	return nil
}

func aliasValue(to recordKey) []byte { return append([]byte{kindAlias}, to[:]...) }

func duplicate(why string) error { return fault.Newf(fault.DuplicateRequest, "%s", why) }

// freshLocked makes the call that its caller will run.
func (l *Ledger) freshLocked(a ask, prior *record) (*Call, error) {
	if a.id == "" {
		a.id = l.NewID()
		a.key = l.recordKeyLocked(a.Owner, a.id)
	}
	entryKey, wrapped, err := newEntryKey(l.wrap, a.key)
	if err != nil {
		return nil, fault.New(fault.Internal, err)
	}
	c := &Call{
		l: l, key: a.key, input: a.input, entryKey: entryKey, wrapped: wrapped, epoch: l.epoch,
		idsKey: append(l.operatorKeyLocked(a.id), a.key[:]...), done: make(chan struct{}),
		state: Claimed, claimed: wallTime(l.now()), prior: prior,
		e: entry{RequestID: a.id, Agent: a.Agent, UID: a.UID, Action: a.action, Change: a.change, Idempotency: newIdempotencyKey()},
	}
	if prior != nil {
		e, _, err := prior.open(l.wrap, a.key)
		if err != nil {
			return nil, fault.New(fault.Internal, err)
		}
		c.e.Idempotency, c.claimed = e.Idempotency, prior.claimed
	}
	l.live[c.key] = c
	if a.change {
		l.byInput[c.input] = c
	}
	return c.fix(), nil
}

// Lookup finds a call of this owner, live or ended. It claims nothing.
func (l *Ledger) Lookup(o Owner, requestID string) (*Call, bool, error) {
	if !idForm.MatchString(requestID) {
		return nil, false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unlockedLocked(); err != nil {
		return nil, false, err
	}
	key := l.recordKeyLocked(o, requestID)
	if c := l.liveLocked(key); c != nil {
		return c, true, nil
	}
	f, err := l.readLocked(key)
	if err != nil {
		return nil, false, err
	}
	if f.tomb {
		return nil, false, duplicate("the id is too old to answer")
	}
	if f.rec == nil {
		return nil, false, nil
	}
	c, err := l.callLocked(f, o)
	return c, err == nil, err
}

func (l *Ledger) liveLocked(key recordKey) *Call {
	if c := l.live[key]; c != nil {
		return c
	}
	return l.names[key]
}

// entryLocked opens the entry of a record. One that says finished while the
// record does not hold its outcome comes back as armed.
func (l *Ledger) entryLocked(f found) (e *entry, entryKey []byte, err error) {
	e, entryKey, err = f.rec.open(l.wrap, f.key)
	if err != nil {
		return nil, nil, fault.New(fault.Internal, err)
	}
	if !l.recordedLocked(f.key, e) {
		e.unfinish()
	}
	return e, entryKey, nil
}

// callLocked gives the call of what the disk holds, where it is this owner's. A
// name and the list of what is open stand in clear, so whoever can write the
// file could lead one owner to another's call; that is damage, and answers
// nothing.
func (l *Ledger) callLocked(f found, o Owner) (*Call, error) {
	c := l.liveLocked(f.key)
	if c == nil {
		var err error
		if c, err = l.loadLocked(f); err != nil {
			return nil, err
		}
	}
	if (Owner{Agent: c.e.Agent, UID: c.e.UID}) != o {
		return nil, fault.New(fault.Internal, fmt.Errorf("%w: it belongs to another owner", errRecord))
	}
	return c, nil
}

// loadLocked makes a call out of what the disk holds. It has ended: an entry
// that is armed but not live belongs to a run that is gone.
func (l *Ledger) loadLocked(f found) (*Call, error) {
	e, _, err := l.entryLocked(f)
	if err != nil {
		return nil, err
	}
	c := &Call{l: l, key: f.key, input: f.rec.input, e: *e, state: e.State, claimed: f.rec.claimed, ended: f.rec.ended, done: closed}
	if c.state.live() {
		c.state, c.e.Code = StateUnresolved, string(fault.OutcomeUnknown)
	}
	c.outcome = c.e.outcome(c.state)
	c.over = true
	return c.fix(), nil
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
