package durable

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// writer is the only goroutine that writes. While one group is being synced
// the next one gathers, so the sync is shared without any added delay.
func (s *Store) writer() {
	defer close(s.done)
	for {
		select {
		case w := <-s.queue:
			s.commit(s.gather(w))
		case <-s.quit:
			return
		}
	}
}

func (s *Store) gather(first *write) []*write {
	group := []*write{first}
	for len(group) < groupMax {
		select {
		case w := <-s.queue:
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}

// commit writes a group in one transaction. A write that fails by its own
// fault is answered and left out, and the others are tried again without it.
func (s *Store) commit(group []*write) {
	for len(group) > 0 {
		if err := s.refuses(); err != nil {
			answer(group, err)
			return
		}
		failed, own, err := s.try(group)
		if err == nil {
			answer(group, nil)
			return
		}
		if !own {
			answer(group, s.failed(err))
			return
		}
		group[failed].result <- err
		group = append(group[:failed], group[failed+1:]...)
	}
}

// try runs one transaction. own says that the error came from the group's
// member failed and not from the disk.
func (s *Store) try(group []*write) (failed int, own bool, err error) {
	defer guard(s.path, &err)()
	err = s.db.Update(func(tx *bolt.Tx) error {
		for i, w := range group {
			if e := w.f(boltTx{tx}); e != nil {
				failed, own = i, true
				return e
			}
		}
		return nil
	})
	return failed, own, err
}

func answer(group []*write, err error) {
	for _, w := range group {
		w.result <- err
	}
}

func (s *Store) refuses() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// failed sorts a failed commit. Want of room leaves the old state whole. After
// anything else, a failed sync above all, the kernel may have dropped the pages
// and call them clean, so a later good sync would prove nothing: the store
// stays shut until it is opened again.
func (s *Store) failed(err error) error {
	if noRoom(err) {
		return fmt.Errorf("%s: %w: %w", s.path, ErrStoreFull, err)
	}
	err = storeError(s.path, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = fmt.Errorf("%s: %w", s.path, ErrStoreBroken)
	}
	return err
}

// noRoom knows the errors after which nothing was written. bbolt does not wrap
// the cause when the file cannot be made longer; that comes before any page.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		errors.Is(err, bolterrors.ErrMaxSizeReached) || strings.HasPrefix(err.Error(), "file resize error")
}

// guard turns a panic of the page reader, and a fault in the mapped file, into
// ErrStoreDamaged: bbolt asserts on pages that do not fit together.
func guard(path string, err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fmt.Errorf("%s: %w: %v", path, ErrStoreDamaged, r)
		}
	}
}

func storeError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: %w; is another chatelained running on this state folder?", path, ErrStoreHeld)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrInvalidMapping):
		return fmt.Errorf("%s: %w: %w", path, ErrStoreDamaged, err)
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return fmt.Errorf("%s: %w", path, ErrStoreClosed)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// boltTx is the narrow view of a bbolt transaction.
type boltTx struct{ tx *bolt.Tx }

func (t boltTx) Get(bucket string, key []byte) []byte {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return nil
	}
	return bytes.Clone(b.Get(key))
}

func (t boltTx) Put(bucket string, key, value []byte) error {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return fmt.Errorf("bucket %q: %w", bucket, errNoBucket)
	}
	return b.Put(bytes.Clone(key), bytes.Clone(value))
}

func (t boltTx) Delete(bucket string, key []byte) error {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return fmt.Errorf("bucket %q: %w", bucket, errNoBucket)
	}
	return b.Delete(key)
}

func (t boltTx) ForEach(bucket string, f func(k, v []byte) error) error {
	return t.Prefix(bucket, nil, f)
}

func (t boltTx) Prefix(bucket string, prefix []byte, f func(k, v []byte) error) error {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return fmt.Errorf("bucket %q: %w", bucket, errNoBucket)
	}
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if err := f(bytes.Clone(k), bytes.Clone(v)); err != nil {
			return err
		}
	}
	return nil
}
