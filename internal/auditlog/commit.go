package auditlog

import (
	"errors"
	"fmt"
	"time"
)

// Group commit: whoever queues while no commit runs starts a leader, which
// commits until the queue is empty and then ends. What is queued during a
// commit goes into the next one, together.
//
// The leader is a goroutine of its own and starts in Append, for two reasons:
// the caller can make the ledger durable at the same time, and a disk that
// hangs holds the leader alone while Wait gives up.

// maxBatchBytes bounds one batch, so that a small event does not wait long
// behind large answers.
const maxBatchBytes = 4 << 20

// draft is the batch that a leader collects.
type draft struct {
	groups   []*Pending
	events   int
	bytes    int64 // with the EPOCH record that comes first, if one does
	promised int64 // bookings of the intents in it
	turn     bool  // the batch begins with an EPOCH record
	limit    int   // events that the epoch still takes
}

// lead commits batches until nothing is queued or writing has failed.
func (l *Log) lead(done chan struct{}) {
	defer close(done)
	for more := true; more; {
		l.commitFrom.Store(max(1, int64(time.Since(l.started))))
		var d draft
		more = l.collect(&d)
		if len(d.groups) > 0 {
			l.commit(&d)
		}
		l.commitFrom.Store(0)
	}
}

// collect takes the next batch off the queue and makes room for it. It returns
// false when the leader has ended.
func (l *Log) collect(d *draft) bool {
	for {
		p := l.head(len(d.groups) == 0)
		switch {
		case p == nil:
			return len(d.groups) > 0
		case len(d.groups) > 0 && !l.joins(d, p):
			return true
		}
		if err := l.prepare(d, p); err != nil {
			if !l.refuse(p, err) {
				return false
			}
			continue
		}
		l.pop()
		d.groups = append(d.groups, p)
		d.bytes += p.size
		d.events += len(p.evs)
		if p.intent {
			d.promised += l.booking(p)
		}
	}
}

// head looks at the first of the queue. With an empty queue the leader ends,
// unless it still holds a batch.
func (l *Log) head(idle bool) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		return l.queue[0]
	}
	if idle {
		l.leader = nil
	}
	return nil
}

func (l *Log) pop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// joins says whether p fits into the batch: the same epoch, the same file, and
// not too many bytes.
func (l *Log) joins(d *draft, p *Pending) bool {
	return d.events+len(p.evs) <= d.limit && d.bytes+p.size <= maxBatchBytes && l.w.off+d.bytes+p.size <= l.w.size
}

// prepare admits p. For the first of a batch it also decides about a new epoch
// and changes to a new segment where the present one is too full.
func (l *Log) prepare(d *draft, p *Pending) error {
	for !l.admit(d, p) {
		if !l.spares.grow() {
			return ErrFull
		}
	}
	if len(d.groups) > 0 {
		return nil
	}
	d.bytes, d.limit, d.turn = 0, l.w.epochLeft, l.w.epochDue(len(p.evs))
	if d.turn {
		d.bytes, d.limit = l.o.epochSize(), l.o.EpochRecords
	}
	if l.w.off+d.bytes+p.size <= l.w.size {
		return nil
	}
	if err := l.newSegment(nil, false); err != nil {
		return err
	}
	d.bytes, d.limit, d.turn = 0, l.w.epochLeft, false
	return nil
}

// refuse ends p, which is the first of the queue, with err. It says whether
// the leader goes on: anything but a full disk stops writing for good.
func (l *Log) refuse(p *Pending, err error) bool {
	if errors.Is(err, ErrFull) {
		l.pop()
		p.fail(err)
		return true
	}
	l.latch(nil, err)
	return false
}

// commit seals, writes and syncs one batch, then lets its waiters go.
func (l *Log) commit(d *draft) {
	if err := l.write(d); err != nil {
		l.latch(d.groups, err)
		return
	}
	l.settle(d.groups)
	for _, p := range d.groups {
		close(p.done)
	}
	l.spares.keepOne()
}

// write builds the frames of a batch and makes them durable.
func (l *Log) write(d *draft) error {
	w := &l.w
	w.reset()
	if d.turn {
		if err := w.putEpoch(0); err != nil {
			return err
		}
	}
	left := d.events
	for _, p := range d.groups {
		p.receipt.First = w.next
		for j, plain := range p.plains {
			flags := uint8(0)
			if left--; left == 0 {
				flags = flagEnd
			}
			p.evs[j].Seq = w.next
			w.seal(flags, plain)
		}
		p.receipt.Seq, p.receipt.Chain = w.next-1, w.chain
		close(p.sealed)
	}
	return w.flush()
}

// settle notes what a durable batch changes: bookings, state, the ring.
func (l *Log) settle(batch []*Pending) {
	l.mu.Lock()
	for _, p := range batch {
		p.settled = true
		l.bookLocked(p)
	}
	l.nextSeq, l.epoch = l.w.next, l.w.epoch
	l.mu.Unlock()
	for _, p := range batch {
		l.ring.add(p.evs)
	}
}

// latch stops writing for good, tells the daemon and fails everything that
// waits.
func (l *Log) latch(batch []*Pending, cause error) {
	err := fmt.Errorf("%w: %w", ErrLatched, cause)
	l.mu.Lock()
	first := l.latched == nil
	if first {
		l.latched = err
	}
	waiting := l.queue
	l.queue, l.leader = nil, nil
	l.mu.Unlock()
	if first && l.o.OnLatch != nil {
		l.o.OnLatch(err)
	}
	for _, p := range append(batch, waiting...) {
		p.fail(err)
	}
}
