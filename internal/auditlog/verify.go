package auditlog

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Verify checks the record at path, a folder or one segment file, without any
// key. It only reads. A folder is checked from its first record to its last; a
// file proves itself alone.
//
// It may run beside a writing daemon: the newest file may end in empty space,
// and a batch that is being written is waited for.
func Verify(path string) Report {
	st, err := os.Stat(path)
	if err != nil {
		return unreadable(err)
	}
	if st.IsDir() {
		return verifyDir(path)
	}
	return verifyFile(path)
}

func verifyFile(path string) Report {
	var s scanner
	s.next, _ = segmentSeq(filepath.Base(path)) // a renamed copy begins anywhere
	_, b, err := s.scanNewest(path, true)
	if err != nil {
		return unreadable(err)
	}
	r := s.report(b, filepath.Base(path))
	r.Segments = 1
	if s.first > 1 {
		r.EarlierNotGiven = s.first - 1
	}
	return r
}

func verifyDir(dir string) Report {
	names, err := listSegments(dir)
	if err != nil {
		return unreadable(err)
	}
	var s scanner
	for i, name := range names {
		b, err := s.scanNamed(dir, name, i == len(names)-1)
		if err != nil {
			return unreadable(err)
		}
		if b != nil {
			r := s.report(b, name)
			r.Segments = i + 1
			return r
		}
	}
	b := s.checkFront()
	r := s.report(b, names[0])
	r.Segments = len(names)
	return r
}

// scanNamed checks one file of a folder, its name included.
func (s *scanner) scanNamed(dir, name string, newest bool) (*broken, error) {
	if b := s.checkName(name); b != nil {
		return b, nil
	}
	path := filepath.Join(dir, name)
	if newest {
		_, b, err := s.scanNewest(path, false)
		return b, err
	}
	data, err := readFile(path, false)
	if err != nil {
		return nil, err
	}
	return s.scanFile(data, false, nil)
}

// checkName holds a file's name against the sequence that must come next.
// Before the first file it sets what must come.
func (s *scanner) checkName(name string) *broken {
	seq, _ := segmentSeq(name)
	switch {
	case seq == 0:
		return &broken{seq: 1, reason: "sequences begin at 1, the file is named 0"}
	case !s.started:
		s.next = seq
	case seq > s.next:
		return s.breakAt(0, fmt.Sprintf("records %d..%d are missing: the next file begins at %d", s.next, seq-1, seq))
	case seq < s.next:
		return s.breakAt(0, fmt.Sprintf("the file is named %d where %d must come", seq, s.next))
	}
	return nil
}

// checkFront refuses a folder whose first records are gone, unless a signed
// PRUNE record covers exactly what is missing.
func (s *scanner) checkFront() *broken {
	if s.first == 1 || s.coveringPrune() != nil {
		return nil
	}
	return &broken{seq: 1, reason: fmt.Sprintf("records 1..%d are missing and no signed PRUNE record covers them", s.first-1)}
}

func (s *scanner) coveringPrune() *pruneInfo {
	for i := range s.prunes {
		p := &s.prunes[i]
		if p.body.first == s.first && p.body.prev == s.firstPrev && p.body.signer == s.firstSigner && p.seq <= s.signed {
			return p
		}
	}
	return nil
}

// report puts together what was seen. name is the file of b.
func (s *scanner) report(b *broken, name string) Report {
	r := Report{
		Chain: chainValid, Verified: s.records, First: s.first, Completeness: completenessWord,
		SignedThrough: s.signed, Epoch: s.epoch, UnanchoredTail: s.records, Recipients: []string{}, Cuts: []Cut{},
	}
	if s.started {
		r.LogID = hex.EncodeToString(s.logID[:])
		r.Last = s.next - 1
	}
	if s.records == 0 {
		r.First, r.Last = 0, 0
	}
	if s.signed > 0 {
		r.Signer = hex.EncodeToString(s.signedBy[:])
	}
	for _, id := range s.recipients {
		r.Recipients = append(r.Recipients, hex.EncodeToString(id[:]))
	}
	for _, c := range s.cuts {
		r.Cuts = append(r.Cuts, Cut{Seq: c.seq, Bytes: c.body.bytes, SHA256: hex.EncodeToString(c.body.sum[:]), LastSeq: c.body.lastSeq})
	}
	if p := s.coveringPrune(); p != nil && s.first > 1 {
		r.PrunedThrough, r.PruneSeq = s.first-1, p.seq
	}
	if b != nil {
		r.Chain, r.UnanchoredTail = chainBroken, 0
		r.FirstBroken, r.File, r.Offset, r.Reason = b.seq, name, b.offset, b.reason
		r.SuspectFrom, r.SuspectTo = min(s.signed+1, b.seq), b.seq
	}
	return r
}
