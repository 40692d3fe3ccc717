package auditlog

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"chatelaine/internal/durable"
)

// writer appends to the newest segment. One goroutine at a time uses it. After
// an error it is not used again: what is on disk is then unknown until a
// restart has looked.
type writer struct {
	o    Options
	file segmentFile
	off  int64 // end of the last batch
	size int64 // preallocated

	logID  [32]byte
	number uint32
	next   uint64
	chain  hash
	tree   tree

	epoch      uint64
	epochLeft  int // records that may still be sealed in this epoch
	epochStart time.Time
	keys       ratchet
	signer     ed25519.PrivateKey
	nextSigner ed25519.PrivateKey // stored as signer.next, its EPOCH record not yet durable
	buf        []byte
}

// recordSize is what an event of that plaintext length takes on disk.
func recordSize(plain int) int64 { return int64(plain) + sealExtra + frameExtra }

// epochSize is what an EPOCH record takes on disk.
func (o *Options) epochSize() int64 {
	const wrapped = 8 + 2 + 1120 + seedSize + 16 // id, length, X-Wing encapsulation, sealed seed
	return frameExtra + 8 + 6 + 1 + int64(len(o.Recipients))*wrapped + hashSize + 32 + ed25519.SignatureSize
}

// headSize bounds what stands at the head of a segment: SEGMENT with the
// largest frontier, RECOVER and EPOCH.
func (o *Options) headSize() int64 {
	return frameExtra + segmentFixed + 64*hashSize + frameExtra + 64 + o.epochSize()
}

// room is what one empty segment holds.
func (o *Options) room() int64 { return o.SegmentBytes - o.headSize() }

// put adds one control frame to the batch.
func (w *writer) put(k kind, flags uint8, body []byte) {
	w.buf, w.chain = appendFrame(w.buf, k, flags, w.next, w.chain, body)
	w.step()
}

// seal adds one event to the batch.
func (w *writer) seal(flags uint8, plain []byte) {
	w.buf, w.chain = appendSealed(w.buf, &w.keys, w.logID, w.epoch, w.next, flags, w.chain, plain)
	w.epochLeft--
	w.step()
}

func (w *writer) step() {
	w.tree.add(w.chain)
	w.next++
}

// putEpoch adds an EPOCH record: a new seed for the recipients, and the next
// signing key, which is stored first.
func (w *writer) putEpoch(flags uint8) error {
	next, err := newSigner(w.o.Dir, signerNextName)
	if err != nil {
		return err
	}
	var seed [seedSize]byte
	rand.Read(seed[:])
	defer clear(seed[:])
	e := epochBody{epoch: w.epoch + 1, kem: kemXWing, kdf: kdfSHA256, aead: aeadAES256, seedCommit: seedCommit(seed[:])}
	e.next = [32]byte(next.Public().(ed25519.PublicKey))
	if e.wraps, err = wrapSeed(seed[:], w.o.Recipients, seedInfo(w.logID, e.epoch, w.chain)); err != nil {
		return err
	}
	body := e.unsigned()
	body = append(body, ed25519.Sign(w.signer, epochMessage(w.logID, w.next, w.chain, body))...)
	w.put(kindEpoch, flags, body)
	w.epoch, w.epochLeft, w.epochStart = e.epoch, w.o.EpochRecords, time.Now()
	w.keys.state, w.nextSigner = seed, next
	return nil
}

// epochDue says whether n more events need a new epoch.
func (w *writer) epochDue(n int) bool {
	return w.epochLeft < n || time.Since(w.epochStart) >= w.o.EpochAge
}

// settleSigner ends the change of keys once the EPOCH record is durable.
func (w *writer) settleSigner() error {
	if w.nextSigner == nil {
		return nil
	}
	clear(w.signer)
	w.signer, w.nextSigner = w.nextSigner, nil
	return promoteSigner(w.o.Dir)
}

// flush writes the batch: one look at the file, one write, one sync.
func (w *writer) flush() error {
	if err := w.file.Check(w.size); err != nil {
		return fmt.Errorf("check the segment: %w", err)
	}
	if _, err := w.file.WriteAt(w.buf, w.off); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := w.file.Datasync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	w.off += int64(len(w.buf))
	return w.settleSigner()
}

// maxKeptBuffer bounds the batch buffer that is kept for the next batch.
const maxKeptBuffer = 1 << 20

// reset empties the batch buffer.
func (w *writer) reset() {
	if cap(w.buf) > maxKeptBuffer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
}

// startSegment continues the log in a new file. temp is an open, empty,
// preallocated file at tempPath.
//
// On disk after each step: (1) the old file cut to its length and synced; (2)
// the head of the new one written and synced under a temporary name: a crash
// leaves the old file as the newest; (3) renamed, folder synced.
func (w *writer) startSegment(temp *os.File, tempPath string, size int64, cut *recoverBody) error {
	if err := w.finish(); err != nil {
		temp.Close()
		return err
	}
	w.number++
	seq := w.next
	seg := segmentBody{logID: w.logID, number: w.number, prev: w.chain, epoch: w.epoch, tree: w.tree.clone()}
	seg.signer = [32]byte(w.signer.Public().(ed25519.PublicKey))
	w.reset()
	w.put(kindSegment, 0, seg.encode())
	if cut != nil {
		w.put(kindRecover, 0, cut.encode())
	}
	if err := w.putEpoch(flagEnd); err != nil {
		temp.Close()
		return err
	}
	w.file, w.off, w.size = w.o.seam(osSegment{temp}), 0, size
	if err := w.writeHead(); err != nil {
		return err
	}
	if err := os.Rename(tempPath, filepath.Join(w.o.Dir, segmentName(seq))); err != nil {
		return err
	}
	if err := durable.SyncDir(w.o.Dir); err != nil {
		return err
	}
	return w.settleSigner()
}

func (w *writer) writeHead() error {
	if _, err := w.file.WriteAt(w.buf, 0); err != nil {
		return fmt.Errorf("write the head of a segment: %w", err)
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("sync the head of a segment: %w", err)
	}
	w.off = int64(len(w.buf))
	w.reset()
	return nil
}

// finish cuts the current file to its length and closes it.
func (w *writer) finish() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	err := f.Truncate(w.off)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("finish a segment: %w", err)
	}
	return nil
}

// wipe forgets the keys.
func (w *writer) wipe() {
	w.keys.wipe()
	clear(w.signer)
	clear(w.nextSigner)
}
