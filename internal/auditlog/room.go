package auditlog

// Room on a full disk. The current segment and the spares are preallocated, so
// what they hold can be promised. An intent is admitted only when its answer
// and outcome are sure to find room, whatever else fills the disk; other
// events only take what is promised to nobody.

// bookingExtra is added to what an intent reserves, for the two records around
// its answer and outcome: their frames and the fields that every event has.
const bookingExtra = 2 * (frameExtra + sealExtra + 2048)

// controlShare is the part of a segment that intents leave to denials, locks
// and the end of sessions.
const controlShare = 16

// cost is what p may take on disk: its records, and an EPOCH record that it
// may begin.
func (l *Log) cost(p *Pending) int64 { return p.size + l.o.epochSize() }

// booking is what the intent p promises to those that follow it.
func (l *Log) booking(p *Pending) int64 { return p.reserve + bookingExtra + 2*l.o.epochSize() }

// admit says whether p finds room beside what is promised, to intents of the
// batch d as well.
func (l *Log) admit(d *draft, p *Pending) bool {
	spares := int64(l.spares.count())
	l.mu.Lock()
	defer l.mu.Unlock()
	need, largest := l.cost(p), l.cost(p)
	if p.intent {
		need += l.booking(p) + l.o.SegmentBytes/controlShare
		largest = max(largest, l.booking(p))
	} else {
		need -= l.creditLocked(p)
	}
	booked := d.promised
	for _, b := range l.bookings {
		booked += b
		largest = max(largest, b)
	}
	// The end of each segment is not counted: a record that does not fit
	// there goes into the next one.
	here := max(0, l.w.size-l.w.off-d.bytes-largest)
	return need <= 0 || booked+need <= here+spares*max(0, l.o.room()-largest)
}

// creditLocked is what was promised to p, when it belongs to an intent.
func (l *Log) creditLocked(p *Pending) int64 {
	var credit int64
	seen := map[uint64]bool{}
	for i := range p.evs {
		if seq := p.evs[i].IntentSeq; seq != 0 && !seen[seq] {
			seen[seq] = true
			credit += l.bookings[seq]
		}
	}
	return credit
}

// bookLocked notes what the durable batch p promises and what it uses up.
func (l *Log) bookLocked(p *Pending) {
	if p.intent && !p.abandoned {
		l.bookings[p.receipt.Seq] = l.booking(p)
	}
	for i := range p.evs {
		seq := p.evs[i].IntentSeq
		left, ok := l.bookings[seq]
		if !ok {
			continue
		}
		if t := p.evs[i].Type; t == TypeOutcome || t == TypeReconcile {
			delete(l.bookings, seq)
			continue
		}
		l.bookings[seq] = max(0, left-recordSize(len(p.plains[i]))-l.o.epochSize())
	}
}
