package auditlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"chatelaine/internal/durable"
)

// maxBatchRecords bounds how far ahead a sequence in a torn batch may be, when
// bytes are searched for frames: a batch never crosses an epoch.
const maxBatchRecords = DefaultEpochRecords + 8

// recoverLast looks at the newest segment after a stop or a crash. It returns
// the state at the end of the last finished batch, and the RECOVER record to
// write when an unfinished one was cut.
//
// Only a last batch that was never acknowledged may be cut, and its bytes are
// kept beside the segment. On disk after each step: (1) the cut bytes saved as
// seg-….torn-OFFSET; (2) the segment cut and synced: a crash leaves a clean
// segment with a torn file at its very end, from which the next start writes
// the RECOVER record; (3) the new segment with the RECOVER record.
func recoverLast(dir string, names []string) (*scanner, *recoverBody, error) {
	name := names[len(names)-1]
	f, err := openOwned(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // what a killed process left in memory
		return nil, nil, fmt.Errorf("auditlog: sync %s: %w", name, err)
	}
	dropCache(f)
	data, err := readOpen(f)
	if err != nil {
		return nil, nil, fmt.Errorf("auditlog: read %s: %w", name, err)
	}
	end, err := finishedEnd(name, data)
	if err != nil {
		return nil, nil, err
	}
	if err := saveTorn(dir, name, data, end); err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > end {
		if err := cutFile(f, end); err != nil {
			return nil, nil, fmt.Errorf("auditlog: cut %s: %w", name, err)
		}
	}
	s, err := rescan(dir, names, data[:end])
	if err != nil {
		return nil, nil, err
	}
	cut, err := loadTorn(dir, name, end, s.next-1)
	return s, cut, err
}

// finishedEnd finds the end of the last finished batch, or refuses when what
// follows is not an interrupted last write.
func finishedEnd(name string, data []byte) (int64, error) {
	s := &scanner{}
	s.next, _ = segmentSeq(name)
	b, err := s.scanFile(data, true, nil)
	if err != nil {
		return 0, err
	}
	if b == nil {
		return s.end, nil
	}
	damage := &BrokenError{Seq: b.seq, File: name, Offset: b.offset, Reason: b.reason}
	switch {
	case s.end == 0:
		// The head was durable before the file got its name.
		return 0, damage
	case b.rule:
		return 0, damage
	case laterCommit(data, b.offset, b.seq):
		damage.Reason += "; later records show that it was durable once"
		return 0, damage
	}
	return s.end, nil
}

// laterCommit says whether a well-formed frame follows the END of a batch at or
// beyond off. Batches are written one after the other, so the second was
// written only after the first had been synced: the break is damage and not an
// interrupted write.
func laterCommit(data []byte, off int64, seq uint64) bool {
	endAt, endSeq := int64(-1), uint64(0)
	for o := off; o+headerSize <= int64(len(data)); o++ {
		if data[o] != frameMagic {
			continue
		}
		_, flags, n, got, err := parseHeader(data[o:])
		if err != nil || got < seq || got > seq+maxBatchRecords {
			continue
		}
		if endAt >= 0 && o >= endAt && got > endSeq {
			return true
		}
		if flags&flagEnd != 0 && endAt < 0 {
			endAt, endSeq = o+int64(n)+frameExtra, got
		}
	}
	return false
}

// tornName gives the name under which bytes cut at end are kept.
func tornName(name string, end int64) string { return fmt.Sprintf("%s%s%d", name, tornMark, end) }

// saveTorn keeps what follows the last finished batch, without the empty space
// after it. Nothing is saved when there is nothing.
func saveTorn(dir, name string, data []byte, end int64) error {
	torn := bytes.TrimRight(data[end:], "\x00")
	if len(torn) == 0 {
		return nil
	}
	return durable.WriteFile(filepath.Join(dir, tornName(name, end)), torn, fileMode)
}

// loadTorn makes the RECOVER record for bytes that were cut at the end of the
// newest segment. The record goes into the segment after it, so a torn file
// there has none yet.
func loadTorn(dir, name string, end int64, lastSeq uint64) (*recoverBody, error) {
	torn, err := readFile(filepath.Join(dir, tornName(name, end)), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("auditlog: read the cut bytes: %w", err)
	}
	return &recoverBody{bytes: uint64(len(torn)), sum: sha256.Sum256(torn), reason: recoverTorn, lastSeq: lastSeq}, nil
}

func cutFile(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

// rescan gives the scanner's state at the end of the finished part, and holds
// the file against the end of the one before it.
func rescan(dir string, names []string, data []byte) (*scanner, error) {
	name := names[len(names)-1]
	s := &scanner{}
	s.next, _ = segmentSeq(name)
	if b, err := s.scanFile(data, false, nil); err != nil || b != nil {
		return nil, fmt.Errorf("%w: %s changed while it was read", ErrDamaged, name)
	}
	if len(names) == 1 {
		return s, nil
	}
	before, err := readTail(filepath.Join(dir, names[len(names)-2]))
	if err != nil {
		return nil, err
	}
	if before != s.firstPrev {
		return nil, &BrokenError{Seq: s.first, File: name, Reason: "the file does not follow from the file before"}
	}
	return s, nil
}

// lastEvent finds the last event of the record, where s stands at its end. The
// newest file may hold a head and nothing else; then it lies in a file before.
// A run that wrote no event left a small file, so that of large ones at most
// one more is read.
func lastEvent(dir string, names []string, s *scanner) (uint64, error) {
	for i := len(names) - 2; s.lastEvent == 0 && i >= 0; i-- {
		name := names[i]
		data, err := readFile(filepath.Join(dir, name), false)
		if err != nil {
			return 0, fmt.Errorf("auditlog: read %s: %w", name, err)
		}
		s = &scanner{}
		s.next, _ = segmentSeq(name)
		if b, _ := s.scanFile(data, false, nil); b != nil {
			return 0, &BrokenError{Seq: b.seq, File: name, Offset: b.offset, Reason: b.reason}
		}
	}
	if s.lastEvent == 0 {
		first, _ := segmentSeq(names[0])
		return first - 1, nil // what came before the files that are kept
	}
	return s.lastEvent, nil
}

// readTail reads the last chain value of a finished segment.
func readTail(path string) (h hash, err error) {
	f, err := openOwned(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.Size() < hashSize {
		err = errShort
	}
	if err == nil {
		_, err = f.ReadAt(h[:], st.Size()-hashSize)
	}
	if err != nil {
		return h, fmt.Errorf("auditlog: read %s: %w", filepath.Base(path), err)
	}
	return h, nil
}
