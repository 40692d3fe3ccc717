package auditlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Log is a record open for appending. Its methods may be called from any
// goroutine.
type Log struct {
	o      Options
	lock   *os.File
	spares spares
	ring   ring
	w      writer // used by the leader only

	recovered uint64 // sequence of the last event that was durable before this run

	started    time.Time
	commitFrom atomic.Int64 // nanoseconds since started when the leader began this batch; 0: none runs

	mu       sync.Mutex // guards the fields below
	queue    []*Pending
	leader   chan struct{} // closed when the running leader ends; nil: none runs
	closed   bool
	latched  error
	nextSeq  uint64
	epoch    uint64
	bookings map[uint64]int64 // room promised to the answer and outcome of an intent
}

// State is a log's condition.
type State struct {
	NextSeq, Epoch uint64
	Latched        error  // why writing stopped for good; nil: it goes on
	Warn           string // something the operator should act on; "": nothing
}

// Open takes the record in o.Dir for writing: LOCK, recovery of the newest
// segment, then a new segment with a new epoch. Errors: ErrAbsent, ErrLocked,
// ErrDamaged (as *BrokenError), ErrSigner, ErrFull, or a refusal of options or
// file modes.
func Open(o Options) (*Log, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	if min := 2 * o.headSize(); o.SegmentBytes < min {
		return nil, fmt.Errorf("auditlog: a segment of %d bytes is too small for %d recipients; it must have %d", o.SegmentBytes, len(o.Recipients), min)
	}
	if err := checkDir(o.Dir); err != nil {
		return nil, err
	}
	lock, err := lockWriter(o.Dir)
	if err != nil {
		return nil, err
	}
	l, err := openLocked(o)
	if err != nil {
		lock.Close()
		return nil, err
	}
	l.lock = lock
	l.spares.keepOne()
	return l, nil
}

func openLocked(o Options) (*Log, error) {
	if err := cleanDir(o.Dir); err != nil {
		return nil, err
	}
	names, err := listSegments(o.Dir)
	if errors.Is(err, errNoSegments) {
		return nil, fmt.Errorf("%w (%s)", ErrAbsent, o.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("auditlog: %w", err)
	}
	s, cut, err := recoverLast(o.Dir, names)
	if err != nil {
		return nil, err
	}
	signer, err := loadSigner(o.Dir, s.signer)
	if err != nil {
		return nil, err
	}
	recovered, err := lastEvent(o.Dir, names, s)
	if err != nil {
		return nil, err
	}
	l := &Log{o: o, recovered: recovered, started: time.Now(), bookings: map[uint64]int64{}, ring: ring{max: o.Ring}}
	l.spares.o = &l.o
	l.w = writer{
		o: o, logID: s.logID, number: s.number, next: s.next, chain: s.chain, tree: s.tree.clone(),
		epoch: s.epoch, signer: signer,
	}
	if err := l.spares.load(); err != nil {
		return nil, err
	}
	if err := l.newSegment(cut, true); err != nil {
		return nil, fmt.Errorf("auditlog: start a segment: %w", err)
	}
	l.nextSeq, l.epoch = l.w.next, l.w.epoch
	return l, nil
}

// newSegment continues in a new file. It fails with ErrFull, with nothing
// changed, when the disk has no room for one.
func (l *Log) newSegment(cut *recoverBody, fill bool) error {
	path := filepath.Join(l.o.Dir, segmentName(l.w.next)+tempSuffix)
	f, err := l.spares.take(path, fill)
	if err != nil && isFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return err
	}
	return l.w.startSegment(f, path, l.o.SegmentBytes, cut)
}

// Receipt names the place of an appended batch: its first and last event and
// the chain value of the last.
type Receipt struct {
	Seq   uint64
	Chain [32]byte
	First uint64
}

// Pending is a batch on its way to the disk.
type Pending struct {
	l       *Log
	evs     []Event
	plains  [][]byte
	size    int64
	reserve int64 // intents: room for what follows
	intent  bool

	sealed  chan struct{} // closed when receipt is known
	done    chan struct{}
	receipt Receipt // valid after sealed; the batch may still fail
	err     error   // valid after done

	settled   bool // guarded by l.mu: durable
	abandoned bool // guarded by l.mu: nobody will follow it up
}

// Append queues events as one batch, in order, and returns at once. The batch
// is durable when Wait returns no error, and not before. Sessions, denials and
// other events that were promised no room never take what was promised.
func (l *Log) Append(evs ...Event) *Pending { return l.enqueue(evs, false, 0) }

// AppendIntent queues an intent and books room for its answer and outcome:
// reserve bytes for their bodies and details together. Wait fails with ErrFull
// when that room cannot be had; nothing may be sent then. The booking ends with
// the event of type outcome or reconcile whose IntentSeq is the receipt's Seq,
// or when Wait gives up.
func (l *Log) AppendIntent(ev Event, reserve int64) *Pending {
	return l.enqueue([]Event{ev}, true, max(reserve, 0))
}

func (l *Log) enqueue(evs []Event, intent bool, reserve int64) *Pending {
	p := &Pending{l: l, evs: append([]Event(nil), evs...), intent: intent, reserve: reserve, sealed: make(chan struct{}), done: make(chan struct{})}
	if err := p.encode(); err != nil {
		return p.fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return p.fail(ErrClosed)
	case l.latched != nil:
		return p.fail(l.latched)
	case l.overdue():
		return p.fail(ErrDeadline)
	}
	l.queue = append(l.queue, p)
	if l.leader == nil {
		l.leader = make(chan struct{})
		go l.lead(l.leader)
	}
	return p
}

// overdue says whether the running commit takes longer than it may. Queueing
// more behind it would only fill the memory.
func (l *Log) overdue() bool {
	from := l.commitFrom.Load()
	return from != 0 && time.Since(l.started)-time.Duration(from) > l.o.CommitDeadline
}

// encode makes the plaintexts and refuses what no segment can hold.
func (p *Pending) encode() error {
	if len(p.evs) == 0 {
		return errors.New("auditlog: nothing to append")
	}
	for i := range p.evs {
		p.evs[i].complete()
		plain, err := encodeEvent(&p.evs[i])
		if err != nil {
			return err
		}
		if len(plain)+sealExtra > maxBody {
			return ErrTooLarge
		}
		p.plains = append(p.plains, plain)
		p.size += recordSize(len(plain))
	}
	o := &p.l.o
	if len(p.evs) > o.EpochRecords || p.size+p.reserve > o.room()-o.epochSize() {
		return ErrTooLarge
	}
	return nil
}

// fail ends p with err.
func (p *Pending) fail(err error) *Pending {
	p.err = err
	close(p.done)
	return p
}

// Wait returns when the batch is durable, or with the reason why it is not.
// ErrDeadline and the context's error mean that it may still become durable;
// the caller must act as if it had not, and a booking made by it is given back.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) {
	if err := p.await(ctx, p.done); err != nil {
		return p.abandon(err)
	}
	return p.result()
}

// Sealed returns as soon as the batch has its place: its sequence numbers and
// chain value are fixed, while it may not be written yet, or never. What is
// kept elsewhere under that place counts only if Wait returns no error, or if
// RecoveredSeq of the next run has reached it. Where writing fails for good the
// next run gives the same numbers again. Sealed gives no booking back.
func (p *Pending) Sealed(ctx context.Context) (Receipt, error) {
	if err := p.await(ctx, p.sealed); err != nil {
		return Receipt{}, err
	}
	select {
	case <-p.done:
		return p.result()
	default:
		return p.receipt, nil
	}
}

// await waits for that step of the batch or its end, at most as long as a
// commit may take.
func (p *Pending) await(ctx context.Context, step <-chan struct{}) error {
	select {
	case <-step:
		return nil
	case <-p.done:
		return nil
	default:
	}
	timer := time.NewTimer(p.l.o.CommitDeadline)
	defer timer.Stop()
	select {
	case <-step:
		return nil
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrDeadline
	}
}

// result is valid after done.
func (p *Pending) result() (Receipt, error) {
	if p.err != nil {
		return Receipt{}, p.err
	}
	return p.receipt, nil
}

// abandon gives up the room that an intent is about to book. A batch that has
// become durable in the meantime is a success.
func (p *Pending) abandon(err error) (Receipt, error) {
	p.l.mu.Lock()
	p.abandoned = !p.settled
	p.l.mu.Unlock()
	if p.abandoned {
		return Receipt{}, err
	}
	<-p.done
	return p.result()
}

// RecoveredSeq returns the sequence of the last event that was durable when
// Open found the record, before this run wrote anything; 0 when there was none.
// Records without an event do not count: a start that wrote the head of a
// segment and nothing else moves no floor, however often it is repeated.
func (l *Log) RecoveredSeq() uint64 { return l.recovered }

// State returns the log's condition.
func (l *Log) State() State {
	warn := l.spares.warning()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overdue() {
		warn = "the disk of the record does not answer"
	}
	return State{NextSeq: l.nextSeq, Epoch: l.epoch, Latched: l.latched, Warn: warn}
}

// Recent returns the newest events of this run that are durable, oldest first
// and without their bodies.
func (l *Log) Recent() []Event { return l.ring.all() }

// Close writes what is queued, cuts the segment to its length and gives the
// record back. Later appends fail with ErrClosed. It fails with ErrDeadline
// when the disk hangs, and with the latched error when writing had stopped.
func (l *Log) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	leader := l.leader
	l.mu.Unlock()
	if again {
		return nil
	}
	if leader != nil {
		select {
		case <-leader:
		case <-time.After(l.o.CommitDeadline):
			return ErrDeadline
		}
	}
	l.spares.close()
	l.mu.Lock()
	err := l.latched
	l.mu.Unlock()
	if err == nil {
		err = l.w.finish()
	} else if l.w.file != nil {
		l.w.file.Close() // fail-stop: not one byte more
	}
	l.w.wipe()
	if cerr := l.lock.Close(); err == nil {
		err = cerr
	}
	return err
}
