package ledger

import (
	"errors"
	"fmt"

	"chatelaine/internal/durable"
)

// sweepBatch bounds how many entries one write of Sweep touches, so that calls
// are not held up behind it.
const sweepBatch = 200

// Sweep leaves of every outcome past its keep only its keyed digest, and tries
// again to forget what the disk refused to forget. It needs no keys.
func (l *Ledger) Sweep() error {
	for {
		l.mu.Lock()
		old, err := l.oldLocked()
		stale := len(l.stale)
		l.mu.Unlock()
		if err != nil {
			return err
		}
		if len(old) == 0 && stale == 0 {
			return nil
		}
		if err := l.sweep(old); err != nil {
			return fmt.Errorf("sweep the ledger: %w", err)
		}
		if len(old) < sweepBatch {
			return nil
		}
	}
}

func (l *Ledger) oldLocked() ([]recordKey, error) {
	var old []recordKey
	errEnough := errors.New("enough")
	err := l.store.View(func(tx durable.Tx) error {
		return tx.ForEach(bucketCalls, func(k, v []byte) error {
			if len(k) != len(recordKey{}) || len(v) == 0 || v[0] != kindRecord {
				return nil
			}
			key := recordKey(k)
			rec, err := parseRecord(v)
			if err != nil {
				return err
			}
			if l.live[key] == nil && l.tooOldLocked(found{key: key, rec: rec}) {
				old = append(old, key)
			}
			if len(old) == sweepBatch {
				return errEnough
			}
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return old, err
}

// sweep holds the ledger's lock, so that no id is claimed while its entry goes.
func (l *Ledger) sweep(old []recordKey) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.store.Update(func(tx durable.Tx) error {
		for key, raw := range l.stale {
			if l.liveLocked(key) != nil {
				continue // it is being written again
			}
			if err := putOrDelete(tx, key, raw); err != nil {
				return err
			}
		}
		for _, key := range old {
			if l.live[key] != nil {
				continue
			}
			if err := tx.Delete(bucketMarks, key[:]); err != nil {
				return err
			}
			if err := tx.Put(bucketCalls, key[:], []byte{kindTomb}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key := range l.stale {
		if l.liveLocked(key) == nil {
			delete(l.stale, key)
		}
	}
	return nil
}

func putOrDelete(tx durable.Tx, key recordKey, raw []byte) error {
	if err := tx.Delete(bucketOpen, key[:]); err != nil {
		return err
	}
	if err := tx.Delete(bucketMarks, key[:]); err != nil {
		return err
	}
	if raw == nil {
		return tx.Delete(bucketCalls, key[:])
	}
	return tx.Put(bucketCalls, key[:], raw)
}
