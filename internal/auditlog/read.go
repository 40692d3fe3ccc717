package auditlog

import (
	"errors"
	"fmt"
	"path/filepath"
)

// ErrNoKey says that an epoch is not sealed to the key given.
var ErrNoKey = errors.New("auditlog: this part of the record is not sealed to the key given")

// BrokenError says where a record stops to hold. Everything before that place
// was read.
type BrokenError struct {
	Seq    uint64
	File   string
	Offset int64
	Reason string
}

// Error names the sequence, the file and the offset.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("auditlog: the record is broken at sequence %d (%s, offset %d): %s", e.Seq, e.File, e.Offset, e.Reason)
}

// Is makes a broken record an ErrDamaged.
func (e *BrokenError) Is(target error) bool { return target == ErrDamaged }

// Read opens the record in dir with one recipient's key and gives f every
// event in order. It verifies as it goes and stops at the first break with a
// *BrokenError, at an epoch that is not sealed to the key with ErrNoKey, and at
// an error of f. A folder without a record is ErrAbsent. It may run beside a
// writing daemon.
func Read(dir string, id Identity, f func(seq uint64, ev Event) error) error {
	if id.IsZero() {
		return ErrNoKey
	}
	names, err := listSegments(dir)
	if errors.Is(err, errNoSegments) {
		return ErrAbsent
	}
	if err != nil {
		return fmt.Errorf("auditlog: read %s: %w", dir, err)
	}
	var s scanner
	o := opener{id: id, f: f}
	for i, name := range names {
		if err := o.file(&s, dir, name, i == len(names)-1); err != nil {
			return err
		}
	}
	return nil
}

// opener opens sealed records while a scanner checks them.
type opener struct {
	id Identity
	f  func(uint64, Event) error
	r  ratchet
}

func (o *opener) file(s *scanner, dir, name string, newest bool) error {
	if b := s.checkName(name); b != nil {
		return &BrokenError{Seq: b.seq, File: name, Offset: b.offset, Reason: b.reason}
	}
	data, err := o.load(s, filepath.Join(dir, name), newest)
	if err != nil {
		return fmt.Errorf("auditlog: read %s: %w", name, err)
	}
	b, err := s.scanFile(data, newest, o.visit)
	if err != nil {
		return err
	}
	if b != nil {
		return &BrokenError{Seq: b.seq, File: name, Offset: b.offset, Reason: b.reason}
	}
	return nil
}

// load reads a file; of the newest it takes a look that is not in the middle
// of a batch.
func (o *opener) load(s *scanner, path string, newest bool) ([]byte, error) {
	if !newest {
		return readFile(path, false)
	}
	look := s.snapshot()
	data, _, err := look.scanNewest(path, false)
	return data, err
}

// visit opens the seed at an EPOCH record and the event at a SEALED one.
func (o *opener) visit(s *scanner, f *frame, prev hash) error {
	switch f.kind {
	case kindEpoch:
		seed, ok, err := unwrapSeed(&s.lastEpoch, o.id, seedInfo(s.logID, s.epoch, prev))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w (epoch %d, key %s)", ErrNoKey, s.epoch, o.id.Recipient().ID())
		}
		copy(o.r.state[:], seed)
		clear(seed)
	case kindSealed:
		plain, err := openSealed(&o.r, s.logID, s.epoch, prev, f)
		if err != nil {
			return fmt.Errorf("%w (sequence %d)", err, f.seq)
		}
		ev, err := decodeEvent(plain)
		if err != nil {
			return fmt.Errorf("%w (sequence %d)", err, f.seq)
		}
		ev.Seq = f.seq
		return o.f(f.seq, ev)
	}
	return nil
}
