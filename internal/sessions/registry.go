package sessions

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"chatelaine/internal/durable"
)

// Defaults of Options, from the documents.
const (
	defaultAbsolute = 8 * time.Hour
	defaultIdle     = 30 * time.Minute
	defaultPending  = 10 * time.Minute
	defaultPerUID   = 4
	defaultInAll    = 16

	// endedMax bounds how many ended sessions are remembered, so that their
	// tokens are told SESSION_REVOKED.
	endedMax = 1024
)

// Options of a registry; zero values are the defaults of the documents.
type Options struct {
	Clock      durable.Clock
	Absolute   time.Duration // of an authorised session: 8 h
	Idle       time.Duration // 30 min; waiting for a person is not idle
	PendingFor time.Duration // 10 min
	PerUID     int           // 4 pending
	InAll      int           // 16 pending
}

func (o Options) filled() Options {
	fill := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	fill(&o.Absolute, defaultAbsolute)
	fill(&o.Idle, defaultIdle)
	fill(&o.PendingFor, defaultPending)
	if o.PerUID <= 0 {
		o.PerUID = defaultPerUID
	}
	if o.InAll <= 0 {
		o.InAll = defaultInAll
	}
	return o
}

// Registry holds the sessions. It is safe for concurrent use.
type Registry struct {
	store    *durable.Store
	o        Options
	clock    durable.Clock
	tokenKey []byte

	mu      sync.Mutex // guards what follows
	index   []byte     // nil while locked
	wrap    []byte     // nil while locked
	owners  map[string]uint32
	byID    map[string]*session // ended ones too, the last endedMax of them
	active  map[string]*session // pending or authorised
	byToken map[tokenDigest]*session
	earlier map[tokenDigest]bool // authorised in an earlier run
	ended   []*session           // oldest first
	timer   *time.Timer
	closed  bool
	events  []event
	onEnd   []func(Session, string)
	onChg   []func(Session)
}

// session is one live or ended session; the registry's lock guards it.
type session struct {
	Session
	digest tokenDigest
	life   durable.Lifetime // pending, then absolute
	idle   durable.Lifetime
	holds  int
}

type event struct {
	s    Session
	over bool
}

// Open reads the sessions of a store that was opened with Buckets. It begins
// locked; sessions may be asked for, but none can be authorised.
func Open(store *durable.Store, o Options) (*Registry, error) {
	r := &Registry{
		store: store, o: o.filled(), clock: o.Clock, owners: map[string]uint32{},
		byID: map[string]*session{}, active: map[string]*session{}, byToken: map[tokenDigest]*session{}, earlier: map[tokenDigest]bool{},
	}
	if err := r.readDisk(); err != nil {
		return nil, fmt.Errorf("open the sessions: %w", err)
	}
	return r, nil
}

// Unlock takes the keys, which it copies, and reads who owns which name.
func (r *Registry) Unlock(k Keys) error {
	if len(k.Index) != durable.SealKeySize || len(k.Wrap) != durable.SealKeySize {
		return fmt.Errorf("the sessions need two keys of %d bytes", durable.SealKeySize)
	}
	owners, err := readNames(r.store, k.Wrap)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index, r.wrap, r.owners = bytes.Clone(k.Index), bytes.Clone(k.Wrap), owners
	return nil
}

// Lock wipes the keys. The sessions of this run are kept.
func (r *Registry) Lock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.index)
	clear(r.wrap)
	r.index, r.wrap = nil, nil
}

// Close stops the registry's timer.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// OnEnd adds a function that hears of every session that ends, with the reason.
// It is called without the registry's lock, after the change.
func (r *Registry) OnEnd(f func(s Session, reason string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onEnd = append(r.onEnd, f)
}

// OnChange adds a function that hears of every session that is asked for,
// authorised or ended.
func (r *Registry) OnChange(f func(s Session)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onChg = append(r.onChg, f)
}

// do runs f under the lock, over sessions whose lapse has been noted, and then
// tells the listeners what changed.
func (r *Registry) do(f func() error) error {
	r.mu.Lock()
	r.lapseLocked()
	err := f()
	r.scheduleLocked()
	events, onEnd, onChg := r.events, r.onEnd, r.onChg
	r.events = nil
	r.mu.Unlock()
	for _, e := range events {
		for _, f := range onChg {
			f(e.s)
		}
		if !e.over {
			continue
		}
		for _, f := range onEnd {
			f(e.s, e.s.Reason)
		}
	}
	return err
}

// leftLocked is how long s still lives if nobody touches it.
func (r *Registry) leftLocked(s *session) time.Duration {
	left := r.clock.Left(s.life)
	if s.State == StateAuthorised && s.holds == 0 {
		left = min(left, r.clock.Left(s.idle))
	}
	return left
}

func (s *session) over() bool { return s.State != StatePending && s.State != StateAuthorised }

func (r *Registry) lapseLocked() {
	for _, s := range r.active {
		if r.leftLocked(s) > 0 {
			continue
		}
		why := "its time is over"
		switch {
		case s.State == StatePending:
			why = "the operator did not decide in time"
		case r.clock.Left(s.life) > 0:
			why = "it was idle"
		}
		_ = r.endLocked(s, EventLapse, "", why) // the table allows it: it is not over
	}
}

// scheduleLocked lets the next lapse be noted when it comes.
func (r *Registry) scheduleLocked() {
	next := time.Duration(-1)
	for _, s := range r.active {
		if left := r.leftLocked(s); next < 0 || left < next {
			next = left
		}
	}
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if next < 0 || r.closed {
		return
	}
	r.timer = time.AfterFunc(next, func() { _ = r.do(func() error { return nil }) })
}

// endLocked moves s to one of its ends and notes the event.
func (r *Registry) endLocked(s *session, e Event, by, why string) error {
	to, err := next(s.State, e)
	if err != nil {
		return err
	}
	s.State, s.EndedBy, s.Reason, s.Ended = to, by, why, r.clock.Now()
	delete(r.active, s.ID)
	r.ended = append(r.ended, s)
	if len(r.ended) > endedMax {
		old := r.ended[0]
		r.ended = r.ended[1:]
		delete(r.byID, old.ID)
		delete(r.byToken, old.digest)
	}
	r.events = append(r.events, event{s: r.viewLocked(s), over: true})
	return nil
}

func (r *Registry) viewLocked(s *session) Session {
	v := s.Session.clone()
	v.Conflict = s.State == StatePending && r.holderLocked(s.Name) != nil
	return v
}

// holderLocked is the authorised session that holds a name.
func (r *Registry) holderLocked(name string) *session {
	for _, s := range r.active {
		if s.State == StateAuthorised && s.Name == name {
			return s
		}
	}
	return nil
}
