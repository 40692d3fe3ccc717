package ledger

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// Buckets of the store. calls holds records by key, open the keys of those that
// are armed or unresolved with their input, ids the way from an id to its keys
// for the operator, marks where finished calls stand in the record, meta the
// ledger's own facts.
const (
	bucketCalls = "ledger.calls"
	bucketOpen  = "ledger.open"
	bucketIDs   = "ledger.ids"
	bucketMarks = "ledger.marks"
	bucketMeta  = "ledger.meta"
)

// Buckets are the names that the store must be opened with.
func Buckets() []string { return []string{bucketCalls, bucketOpen, bucketIDs, bucketMarks, bucketMeta} }

const (
	// defaultKeep is how long a finished outcome is given again
	// (http-api.md, "Once").
	defaultKeep = 30 * 24 * time.Hour

	// maxAliases bounds how many further ids may join one call. An agent that
	// comes with a new id each time is in a loop.
	maxAliases = 256

	idKeySize = 32
)

var metaIDKey = []byte("id-key")

// Options of a ledger. Keep is how long finished outcomes are given again (30
// days when zero). Now is the wall clock (time.Now when nil).
type Options struct {
	Keep time.Duration
	Now  func() time.Time
}

// Ledger is every call by its request id. It is safe for concurrent use.
type Ledger struct {
	store *durable.Store
	keep  time.Duration
	now   func() time.Time
	idKey []byte // marks the daemon's own ids; no secret hangs on it

	mu         sync.Mutex               // guards what follows and the marked fields of every Call
	index      []byte                   // nil while locked
	wrap       []byte                   // nil while locked
	epoch      uint64                   // counts locks: what was claimed before one is not armed after it
	live       map[recordKey]*Call      // calls of this run that go on, or whose end the disk refused
	names      map[recordKey]*Call      // further ids that joined a live call
	byInput    map[inputKey]*Call       // the live call of each change
	unresolved map[inputKey]*unresolved // of changes, ended or of an earlier run
	open       map[recordKey]struct{}   // armed or unresolved on the disk
	damaged    []Damage                 // what the last Left could not read
	stale      map[recordKey][]byte     // on the disk by mistake: what holds instead, nil for nothing
	floored    bool                     // SetRecordFloor has run
}

type unresolved struct {
	key     recordKey
	aliases int // joined in this run
}

// Open reads the ledger of a store that was opened with Buckets. It begins
// locked.
func Open(store *durable.Store, o Options) (*Ledger, error) {
	l := &Ledger{
		store: store, keep: o.Keep, now: o.Now,
		live: map[recordKey]*Call{}, names: map[recordKey]*Call{}, byInput: map[inputKey]*Call{},
		unresolved: map[inputKey]*unresolved{}, open: map[recordKey]struct{}{}, stale: map[recordKey][]byte{},
	}
	if l.keep <= 0 {
		l.keep = defaultKeep
	}
	if l.now == nil {
		l.now = time.Now
	}
	if err := l.readIDKey(); err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	if err := l.readOpen(); err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return l, nil
}

func (l *Ledger) readIDKey() error {
	return l.store.Update(func(tx durable.Tx) error {
		l.idKey = tx.Get(bucketMeta, metaIDKey)
		if len(l.idKey) == idKeySize {
			return nil
		}
		l.idKey = make([]byte, idKeySize)
		_, _ = rand.Read(l.idKey) // never fails
		return tx.Put(bucketMeta, metaIDKey, l.idKey)
	})
}

// readOpen loads which calls of earlier runs are armed or unresolved: keyed
// digests only, so it needs no vault.
func (l *Ledger) readOpen() error {
	return l.store.View(func(tx durable.Tx) error {
		return tx.ForEach(bucketOpen, func(k, v []byte) error {
			if len(k) != len(recordKey{}) {
				return fmt.Errorf("%w: a key of %d bytes", errRecord, len(k))
			}
			l.openedLocked(recordKey(k), v)
			return nil
		})
	})
}

// Unlock takes the keys; it copies them.
func (l *Ledger) Unlock(k Keys) error {
	if len(k.Index) != durable.SealKeySize || len(k.Wrap) != durable.SealKeySize {
		return fmt.Errorf("the ledger needs two keys of %d bytes", durable.SealKeySize)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index != nil {
		return nil
	}
	l.index, l.wrap = bytes.Clone(k.Index), bytes.Clone(k.Wrap)
	return nil
}

// Lock wipes the keys. What is armed keeps its own key and finishes; what is
// not armed yet cannot be armed any more.
func (l *Ledger) Lock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == nil {
		return
	}
	clear(l.index)
	clear(l.wrap)
	l.index, l.wrap = nil, nil
	l.epoch++
}

// Unlocked says whether the keys are there.
func (l *Ledger) Unlocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.index != nil
}

// Counts needs no keys: how many calls go on, and how many are unresolved.
func (l *Ledger) Counts() (running, unresolved int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, c := range l.live {
		if c.state.live() {
			running++
		} else if _, onDisk := l.open[key]; !onDisk {
			unresolved++
		}
	}
	for key := range l.open {
		if c, ok := l.live[key]; !ok || !c.state.live() {
			unresolved++
		}
	}
	return running, unresolved
}

func (l *Ledger) unlockedLocked() error {
	if l.index == nil {
		return fault.New(fault.VaultLocked, nil)
	}
	return nil
}

// found is what the disk says of an id.
type found struct {
	key  recordKey // of the call, after following an alias
	rec  *record   // nil when there is none
	tomb bool
}

// readLocked looks an id up on the disk. Another id that joined leads to the
// call it joined.
func (l *Ledger) readLocked(key recordKey) (found, error) {
	f := found{key: key}
	err := l.store.View(func(tx durable.Tx) error {
		raw := l.rawLocked(tx, f.key)
		for hops := 0; isAlias(raw); hops++ {
			if hops == hopsMax {
				return fmt.Errorf("%w: its names lead nowhere", errRecord)
			}
			f.key = recordKey(raw[1:])
			raw = l.rawLocked(tx, f.key)
		}
		if len(raw) == 0 {
			return nil
		}
		if raw[0] == kindTomb {
			f.tomb = true
			return nil
		}
		rec, err := parseRecord(raw)
		f.rec = rec
		return err
	})
	if err != nil {
		return found{}, fault.New(fault.Internal, err)
	}
	if f.rec == nil && !f.tomb {
		f.key = key // a name that leads nowhere is free
	}
	if f.rec != nil && l.tooOldLocked(f) {
		f.rec, f.tomb = nil, true
	}
	return f, nil
}

// hopsMax bounds a chain of names. One grows by a hop when a re-armed id, which
// others had joined, joins a call itself.
const hopsMax = 1000

func isAlias(raw []byte) bool { return len(raw) == 1+len(recordKey{}) && raw[0] == kindAlias }

func (l *Ledger) rawLocked(tx durable.Tx, key recordKey) []byte {
	if raw, ok := l.stale[key]; ok {
		return raw
	}
	return tx.Get(bucketCalls, key[:])
}

// tooOldLocked says whether a finished outcome is past its keep. Unresolved
// ones are kept until a person resolves them.
func (l *Ledger) tooOldLocked(f found) bool {
	if _, open := l.open[f.key]; open || f.rec.ended.IsZero() {
		return false
	}
	return l.now().Sub(f.rec.ended) > l.keep
}
