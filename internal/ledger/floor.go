package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"chatelaine/internal/durable"
)

// A finished entry becomes durable beside the outcome in the record, so a crash
// can keep the entry and lose the outcome. Therefore the entry leaves a mark in
// the clear: where its outcome stands in the record. The next start knows
// through which sequence the record was durable, and judges every mark once and
// in one write, before anything new is finished and while the vault is still
// locked:
//
//	mark: record key → sequence 8 | input 32 for a change, nothing for a read
//
// A mark above the floor becomes an open entry, as an armed one is: unresolved,
// whatever its sealed part says. The judgement stands from then on. It must,
// since the record gives lost sequences to other events later.

// errFloor says that the record's floor was set twice, or too late.
var errFloor = errors.New("the record's floor is set once, at the start, before a call is finished")

// SetRecordFloor takes the sequence of the last event that was durable in the
// record before this run wrote to it. What an earlier run finished beyond it is
// unresolved from now on, since its outcome is not in the record. It needs no
// keys. It is called once at each start; until then no outcome with a sequence
// can be finished, and none is answered.
func (l *Ledger) SetRecordFloor(seq uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.floored {
		return errFloor
	}
	var lost []mark
	err := l.store.Update(func(tx durable.Tx) error {
		all, err := marksIn(tx)
		if err != nil {
			return err
		}
		lost = lost[:0] // the store may try again
		for _, m := range all {
			if raw := tx.Get(bucketCalls, m.key[:]); m.seq > seq && len(raw) > 0 && raw[0] == kindRecord {
				lost = append(lost, m)
				if err := tx.Put(bucketOpen, m.key[:], m.input); err != nil {
					return err
				}
			}
			if err := tx.Delete(bucketMarks, m.key[:]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("hold the ledger against the record: %w", err)
	}
	for _, m := range lost {
		l.openedLocked(m.key, m.input)
	}
	l.floored = true
	return nil
}

// openedLocked notes an entry of an earlier run that is armed or unresolved.
func (l *Ledger) openedLocked(key recordKey, input []byte) {
	l.open[key] = struct{}{}
	if len(input) == len(inputKey{}) {
		l.unresolved[inputKey(input)] = &unresolved{key: key}
	}
}

// mark says where the outcome of a finished entry stands in the record.
type mark struct {
	key   recordKey
	seq   uint64
	input []byte // of a change; nil for a read
}

const markSeqSize = 8

func (m mark) value() []byte {
	return append(binary.BigEndian.AppendUint64(nil, m.seq), m.input...)
}

func marksIn(tx durable.Tx) (all []mark, err error) {
	err = tx.ForEach(bucketMarks, func(k, v []byte) error {
		n := len(v) - markSeqSize
		if len(k) != len(recordKey{}) || (n != 0 && n != len(inputKey{})) {
			return fmt.Errorf("%w: a mark of %d and %d bytes", errRecord, len(k), len(v))
		}
		all = append(all, mark{key: recordKey(k), seq: binary.BigEndian.Uint64(v), input: v[markSeqSize:]})
		return nil
	})
	return all, err
}

// recordedLocked says whether the record holds the outcome of a finished entry,
// as far as it has one: an entry that is open although it says finished was
// found beyond the record's end.
func (l *Ledger) recordedLocked(key recordKey, e *entry) bool {
	if e.State != Finished {
		return true
	}
	_, open := l.open[key]
	return !open && (e.RecordSeq == 0 || l.floored)
}

// unfinish leaves of an entry what was known before its end: it was armed, or its
// poll had begun.
func (e *entry) unfinish() {
	to := StateArmed
	if !e.Deadline.IsZero() {
		to = Polling
	}
	e.State, e.Code, e.Envelope, e.Detail, e.RecordSeq = to, "", nil, nil, 0
}
