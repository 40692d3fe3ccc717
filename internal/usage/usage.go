// Package usage remembers of each identity when its secret was last sent and how
// it last failed: times and codes, kept over restarts. It must never hold a
// secret, a destination or a byte of an answer, and nothing may be decided by it:
// what it knows may be a minute old. Only cmd/chatelained imports it.
package usage

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

const (
	bucket = "usage.identities"

	// FlushEvery is how often what was noted goes to the disk: a busy identity is
	// used many times a second, and each write is a sync. What was noted since is
	// lost with a crash; nothing depends on it.
	FlushEvery = time.Minute

	// codeMax is the longest code that is kept; those of the catalogue are shorter.
	codeMax = 32
	// plainSize is the size of every value: what is kept shows in no length.
	plainSize = 3*8 + 1 + codeMax
)

// Buckets are the names that the store must be opened with.
func Buckets() []string { return []string{bucket} }

// Keys come from the vault's data key: Index for the keyed digests of the names,
// Wrap for the values. 32 bytes each. Unlock copies them.
type Keys struct{ Index, Wrap []byte }

// Entry is what is known of one identity. The zero time is never, or not known.
type Entry struct {
	Used       time.Time  // something was sent with its secret
	Failed     time.Time  // that ended in Code
	Code       fault.Code // of the last failure, "" for none
	Generation uint64     // of the secret that failed
}

// Book keeps the entries. It is safe for concurrent use.
type Book struct {
	store *durable.Store
	// write is held through a write, so that an older one never lands on a newer one.
	// It is taken before mu.
	write sync.Mutex

	mu          sync.Mutex // guards all below
	index, wrap []byte     // nil while the vault is locked
	known       map[string]Entry
	dirty       map[string]bool
}

// Open takes the store; it reads nothing before Unlock.
func Open(store *durable.Store) *Book {
	return &Book{store: store, known: map[string]Entry{}, dirty: map[string]bool{}}
}

// Unlock takes the keys; it copies them.
func (b *Book) Unlock(k Keys) error {
	if len(k.Index) != durable.SealKeySize || len(k.Wrap) != durable.SealKeySize {
		return fmt.Errorf("the book of uses needs two keys of %d bytes", durable.SealKeySize)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index == nil {
		b.index, b.wrap = append([]byte(nil), k.Index...), append([]byte(nil), k.Wrap...)
	}
	return nil
}

// Lock writes what is left and wipes the keys. What is noted from then on is
// written after the next Unlock.
func (b *Book) Lock() error {
	err := b.Flush()
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.index)
	clear(b.wrap)
	b.index, b.wrap = nil, nil
	return err
}

// Note adds one use. sent says that something left with the secret; code is ""
// where the end says nothing about the identity. A clock that went back never
// makes an entry older.
func (b *Book) Note(name string, generation uint64, at time.Time, sent bool, code fault.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.getLocked(name)
	if sent && at.After(e.Used) {
		e.Used = at
	}
	if code != "" && len(code) <= codeMax && at.After(e.Failed) {
		e.Failed, e.Code, e.Generation = at, code, generation
	}
	b.known[name] = e
	b.dirty[name] = true
}

// Get is what is known of an identity, the zero Entry for nothing. What lies on
// the disk is known while the vault is open.
func (b *Book) Get(name string) Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.getLocked(name)
}

// getLocked joins what was noted with what lies on the disk: a use that was noted
// while the vault was locked hides no earlier failure.
func (b *Book) getLocked(name string) Entry {
	e, ok := b.known[name]
	if b.index == nil || ok && !b.dirty[name] {
		return e
	}
	var sealed []byte
	err := b.store.View(func(tx durable.Tx) error {
		sealed = tx.Get(bucket, b.keyLocked(name))
		return nil
	})
	if err == nil && sealed != nil {
		e = b.openLocked(name, sealed).join(e)
	}
	if !b.dirty[name] {
		b.known[name] = e
	}
	return e
}

// join takes the newer of each.
func (e Entry) join(o Entry) Entry {
	if o.Used.After(e.Used) {
		e.Used = o.Used
	}
	if o.Failed.After(e.Failed) {
		e.Failed, e.Code, e.Generation = o.Failed, o.Code, o.Generation
	}
	return e
}

// Forget drops an identity that was removed.
func (b *Book) Forget(name string) error {
	b.write.Lock()
	defer b.write.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, name)
	delete(b.dirty, name)
	if b.index == nil {
		return fault.New(fault.VaultLocked, nil)
	}
	key := b.keyLocked(name)
	return b.store.Update(func(tx durable.Tx) error { return tx.Delete(bucket, key) })
}

// Flush writes what was noted, in one go. It does nothing while the vault is
// locked. What could not be written is kept for the next time. Nobody who notes a
// use waits for the disk.
func (b *Book) Flush() error {
	b.write.Lock()
	defer b.write.Unlock()
	values, written, err := b.pending()
	if err != nil || len(values) == 0 {
		return err
	}
	err = b.store.Update(func(tx durable.Tx) error {
		for key, sealed := range values {
			if err := tx.Put(bucket, []byte(key), sealed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("last uses of identities: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, e := range written {
		if b.known[name] == e { // else it was used meanwhile
			delete(b.dirty, name)
		}
	}
	return nil
}

// pending seals what is to be written.
func (b *Book) pending() (values map[string][]byte, written map[string]Entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index == nil {
		return nil, nil, nil
	}
	values, written = map[string][]byte{}, map[string]Entry{}
	for name := range b.dirty {
		e := b.getLocked(name)
		sealed, err := durable.Seal(b.wrap, b.placeLocked(name), e.encode())
		if err != nil {
			return nil, nil, err
		}
		b.known[name], written[name] = e, e
		values[string(b.keyLocked(name))] = sealed
	}
	return values, written, nil
}

// Watch flushes every FlushEvery until ctx ends, and tells bad of what could not
// be written.
func (b *Book) Watch(ctx context.Context, bad func(error)) {
	t := time.NewTicker(FlushEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := b.Flush(); err != nil {
				bad(err)
			}
		}
	}
}

// keyLocked is the keyed digest under which an identity stands.
func (b *Book) keyLocked(name string) []byte {
	h := hmac.New(sha256.New, b.index)
	h.Write([]byte("chatelaine/v1 usage\x00" + name))
	return h.Sum(nil)
}

// placeLocked binds a value to its place: one copied to another does not open.
func (b *Book) placeLocked(name string) []byte {
	return append([]byte("chatelaine/v1 usage\x00"), b.keyLocked(name)...)
}

// openLocked reads a value. One that does not open is as good as none: nothing
// depends on it, and the next flush replaces it.
func (b *Book) openLocked(name string, sealed []byte) Entry {
	plain, err := durable.Unseal(b.wrap, b.placeLocked(name), sealed)
	if err != nil {
		return Entry{}
	}
	e, err := decode(plain)
	if err != nil {
		return Entry{}
	}
	return e
}

// encode writes used and failed in milliseconds since 1970 (0 for never), the
// generation, the length of the code, and the code, filled up with zeros.
func (e Entry) encode() []byte {
	b := make([]byte, 0, plainSize)
	b = binary.BigEndian.AppendUint64(b, millis(e.Used))
	b = binary.BigEndian.AppendUint64(b, millis(e.Failed))
	b = binary.BigEndian.AppendUint64(b, e.Generation)
	b = append(b, byte(len(e.Code)))
	b = append(b, e.Code...)
	return append(b, make([]byte, plainSize-len(b))...)
}

var errForm = errors.New("the entry has another form")

func decode(b []byte) (Entry, error) {
	if len(b) != plainSize || b[24] > codeMax {
		return Entry{}, errForm
	}
	return Entry{
		Used: fromMillis(binary.BigEndian.Uint64(b)), Failed: fromMillis(binary.BigEndian.Uint64(b[8:])),
		Generation: binary.BigEndian.Uint64(b[16:]), Code: fault.Code(b[25 : 25+int(b[24])]),
	}, nil
}

func millis(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli())
}

func fromMillis(ms uint64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}
