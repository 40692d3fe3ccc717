package auditlog

import (
	"crypto/ed25519"
	"fmt"
)

// scanner checks records in order, without a key. The verifier, the reader and
// the writer's recovery all use it, so that they cannot disagree.
type scanner struct {
	started bool
	logID   [32]byte
	number  uint32 // of the current segment
	next    uint64 // the sequence that must come next; 0: any
	chain   hash   // chain value of the last good record
	tree    tree
	epoch   uint64
	signer  [32]byte // public key that signs the next EPOCH, CHECK or CLOSE

	first       uint64 // first sequence seen
	firstPrev   hash   // chain value before it
	firstSigner [32]byte
	records     uint64
	signed      uint64 // covered by a signature, through this sequence; 0: none
	signedBy    [32]byte
	recipients  [][8]byte // of the newest epoch
	cuts        []cutInfo
	prunes      []pruneInfo
	lastEpoch   epochBody // the newest EPOCH, for the reader and the writer
	lastEvent   uint64    // the newest SEALED; 0: none seen

	inFile    uint64 // records seen in the current file
	epochHere bool   // the current file has its EPOCH
	end       int64  // offset after the last END frame of the current file
}

// cutInfo is a RECOVER record that was seen.
type cutInfo struct {
	seq  uint64
	body recoverBody
}

// pruneInfo is a PRUNE record that was seen.
type pruneInfo struct {
	seq  uint64
	body pruneBody
}

// broken is the first place where the record does not hold.
type broken struct {
	seq    uint64
	offset int64
	reason string
	// rule says that the bytes are whole and chained but break a rule. An
	// interrupted write cannot do that.
	rule bool
}

// visitor sees every good record, with the chain value before it. An error
// stops the scan and is returned as it is.
type visitor func(s *scanner, f *frame, prev hash) error

// scanFile checks one file. newest says that the file may end in preallocated
// space: zeros and nothing else after the last finished batch.
func (s *scanner) scanFile(data []byte, newest bool, visit visitor) (*broken, error) {
	s.inFile, s.epochHere, s.end = 0, false, 0
	off, ended := int64(0), false
	for off < int64(len(data)) && data[off] != 0 {
		f, err := parseFrame(data[off:])
		if err != nil {
			return s.breakAt(off, err.Error()), nil
		}
		prev, reason, rule := s.accept(&f)
		if reason != "" {
			b := s.breakAt(off, reason)
			b.rule = rule
			return b, nil
		}
		off += int64(f.size())
		if ended = f.end(); ended {
			s.end = off
		}
		if visit == nil {
			continue
		}
		if err := visit(s, &f, prev); err != nil {
			return nil, err
		}
	}
	return s.checkTail(data, off, newest, ended), nil
}

// checkTail judges what follows the last record of a file.
func (s *scanner) checkTail(data []byte, off int64, newest, ended bool) *broken {
	switch {
	case off == 0:
		return s.breakAt(0, "the file does not begin with a SEGMENT record")
	case !allZero(data[off:]):
		return s.breakAt(off, errMagic.Error())
	case !ended:
		return s.breakAt(off, "the last batch is not finished")
	case off < int64(len(data)) && !newest:
		return s.breakAt(off, "empty space in a file that is not the newest")
	}
	return nil
}

func (s *scanner) breakAt(off int64, reason string) *broken {
	return &broken{seq: max(s.next, 1), offset: off, reason: reason}
}

// accept checks one frame against all that came before and moves on. It
// returns the chain value before the frame, and why the frame is refused: for
// its bytes, or for a rule that whole bytes break.
func (s *scanner) accept(f *frame) (prev hash, reason string, rule bool) {
	if s.next != 0 && f.seq != s.next {
		return prev, fmt.Sprintf("sequence %d where %d must come", f.seq, s.next), false
	}
	if (s.inFile == 0) != (f.kind == kindSegment) {
		return prev, "a file has one SEGMENT record, and it comes first", false
	}
	prev = s.chain
	var seg segmentBody
	if f.kind == kindSegment {
		var err error
		if seg, err = parseSegment(f.body); err != nil {
			return prev, "SEGMENT: " + err.Error(), false
		}
		if !s.started {
			prev = seg.prev
		}
	}
	if chainNext(prev, f.raw) != f.chain {
		return prev, "the chain value does not follow from the record before", false
	}
	if reason := s.apply(f, &seg, prev); reason != "" {
		return prev, reason, true
	}
	s.tree.add(f.chain)
	s.chain, s.next = f.chain, f.seq+1
	s.records++
	s.inFile++
	return prev, "", false
}

// apply checks what the kind of the record asks for.
func (s *scanner) apply(f *frame, seg *segmentBody, prev hash) string {
	switch f.kind {
	case kindSegment:
		return s.applySegment(f, seg)
	case kindEpoch:
		return s.applyEpoch(f, prev)
	case kindSealed:
		return s.applySealed(f)
	case kindCheck:
		if err := verifyCheckpoint(f.body, &s.tree, s.signer); err != nil {
			return err.Error()
		}
		s.sign(f.seq - 1)
	case kindRecover:
		return s.applyRecover(f)
	case kindPrune:
		p, err := parsePrune(f.body)
		if err != nil || p.first > f.seq {
			return "PRUNE: " + errBody.Error()
		}
		s.prunes = append(s.prunes, pruneInfo{seq: f.seq, body: p})
	case kindClose:
		c, err := parseClose(f.body)
		if err != nil {
			return "CLOSE: " + err.Error()
		}
		if !ed25519.Verify(s.signer[:], closeMessage(s.logID, f.seq, prev, c.next), c.sig[:]) {
			return "the CLOSE record is not signed by the epoch's key"
		}
		s.sign(f.seq)
		s.signer = c.next
	}
	return ""
}

// sign notes that the present signer's signature covers all through seq.
func (s *scanner) sign(seq uint64) {
	if seq >= s.signed {
		s.signed, s.signedBy = seq, s.signer
	}
}

func (s *scanner) applySegment(f *frame, seg *segmentBody) string {
	if !s.started {
		return s.start(f, seg)
	}
	switch {
	case seg.logID != s.logID:
		return "the file belongs to another log"
	case seg.number != s.number+1:
		return fmt.Sprintf("segment number %d where %d must come", seg.number, s.number+1)
	case seg.prev != s.chain:
		return "the file does not follow from the file before"
	case seg.epoch != s.epoch || seg.signer != s.signer:
		return "the SEGMENT record names another epoch or signer"
	case !seg.tree.equal(&s.tree):
		return "the SEGMENT record's tree is not the tree of the records"
	}
	s.number = seg.number
	return ""
}

// start takes the first file's SEGMENT record as given: what it says of the
// records before is proved only when they are given too.
func (s *scanner) start(f *frame, seg *segmentBody) string {
	if f.seq == 0 || seg.tree.size != f.seq-1 || seg.number == 0 {
		return "the SEGMENT record's numbers do not fit together"
	}
	if f.seq == 1 && (seg.prev != genesis(seg.logID) || seg.epoch != 0 || seg.number != 1) {
		return "the log does not begin with its own first value"
	}
	s.started, s.logID, s.number = true, seg.logID, seg.number
	s.epoch, s.signer, s.tree = seg.epoch, seg.signer, seg.tree.clone()
	s.next, s.first, s.firstPrev, s.firstSigner = f.seq, f.seq, seg.prev, seg.signer
	return ""
}

func (s *scanner) applyEpoch(f *frame, prev hash) string {
	e, err := parseEpoch(f.body)
	if err != nil {
		return "EPOCH: " + err.Error()
	}
	if e.epoch != s.epoch+1 {
		return fmt.Sprintf("epoch %d where %d must come", e.epoch, s.epoch+1)
	}
	unsigned := f.body[:len(f.body)-ed25519.SignatureSize]
	if !ed25519.Verify(s.signer[:], epochMessage(s.logID, f.seq, prev, unsigned), e.sig[:]) {
		return "the EPOCH record is not signed by the epoch before"
	}
	s.sign(f.seq)
	s.epoch, s.signer, s.epochHere = e.epoch, e.next, true
	s.recipients = s.recipients[:0]
	for _, w := range e.wraps {
		s.recipients = append(s.recipients, w.id)
	}
	s.lastEpoch = e
	return ""
}

func (s *scanner) applySealed(f *frame) string {
	need := sealExtra + 1
	if f.flags&flagBodyRef != 0 {
		need += bodyRefSize
	}
	switch {
	case len(f.body) < need:
		return "SEALED: " + errBody.Error()
	case !s.epochHere:
		return "a SEALED record before the file's EPOCH record"
	}
	s.lastEvent = f.seq
	return ""
}

func (s *scanner) applyRecover(f *frame) string {
	r, err := parseRecover(f.body)
	if err != nil {
		return "RECOVER: " + err.Error()
	}
	if s.epochHere || r.lastSeq != f.seq-1-s.inFile {
		return "a RECOVER record stands at the head of a file and names the record before it"
	}
	if r.reason == recoverDamage {
		return fmt.Sprintf("a declared gap after sequence %d", r.lastSeq)
	}
	s.cuts = append(s.cuts, cutInfo{seq: f.seq, body: r})
	return ""
}
