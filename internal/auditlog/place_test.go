package auditlog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"chatelaine/internal/testkit"
)

// gatedLog is a log whose syncs wait once the gate is on.
func gatedLog(t *testing.T, dir string) (*Log, *gate) {
	t.Helper()
	o := smallOptions(dir)
	g := &gate{hold: make(chan struct{})}
	o.seam = func(s segmentFile) segmentFile { return &gatedFile{s, g} }
	return mustOpen(t, o), g
}

func isOver(p *Pending) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// TestSealedBeforeDurable: the place is known while the sync still hangs, and
// it is the place that Wait gives.
func TestSealedBeforeDurable(t *testing.T) {
	l, g := gatedLog(t, newDir(t))
	g.on.Store(true)
	p := l.Append(testEvent(0), testEvent(1))
	place, err := p.Sealed(context.Background())
	if err != nil || place.Seq != place.First+1 || place.Chain == ([32]byte{}) {
		t.Fatalf("%+v, %v", place, err)
	}
	if isOver(p) {
		t.Fatal("durable behind a gate")
	}
	g.on.Store(false)
	close(g.hold)
	for range 2 {
		if r, err := p.Wait(context.Background()); err != nil || r != place {
			t.Fatalf("%+v, %v; sealed as %+v", r, err, place)
		}
		if r, err := p.Sealed(context.Background()); err != nil || r != place {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// TestSealedAndLost: a batch whose sync fails had a place, Wait gives none, and
// the next run gives the same numbers to others.
func TestSealedAndLost(t *testing.T) {
	dir := newDir(t)
	l, g := gatedLog(t, dir)
	kept := mustAppend(t, l, testEvent(0)).Seq
	g.on.Store(true)
	g.err.Store(&errInjected)
	p := l.Append(testEvent(1))
	lost, err := p.Sealed(context.Background())
	if err != nil || lost.Seq != kept+1 {
		t.Fatalf("%+v, %v", lost, err)
	}
	start := l.w.off // its last writer is the leader, which waits at the gate
	close(g.hold)
	if r, err := p.Wait(context.Background()); !errors.Is(err, ErrLatched) || r != (Receipt{}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, q := range []*Pending{p, l.Append(testEvent(2))} {
		if r, err := q.Sealed(context.Background()); !errors.Is(err, ErrLatched) || r != (Receipt{}) {
			t.Errorf("sealed after the latch: %+v, %v", r, err)
		}
	}
	l.Close()
	names := segments(t, dir)
	edit(t, dir, names[len(names)-1], func(d []byte) []byte { clear(d[start+100:]); return d }) // what the disk lost

	l = mustOpen(t, smallOptions(dir))
	if got := l.RecoveredSeq(); got != kept {
		t.Fatalf("recovered through %d, want %d", got, kept)
	}
	again := mustAppend(t, l, testEvent(3), testEvent(4)).Seq
	if again <= lost.Seq {
		t.Fatalf("%d is not beyond the lost %d: no number was given again", again, lost.Seq)
	}
	l.Close()
	if l = mustOpen(t, smallOptions(dir)); l.RecoveredSeq() != again {
		t.Errorf("recovered through %d, want %d", l.RecoveredSeq(), again)
	}
}

// TestSealedGivesUp: nobody waits longer than a commit may take.
func TestSealedGivesUp(t *testing.T) {
	l, g := gatedLog(t, newDir(t))
	g.on.Store(true)
	first := l.Append(testEvent(0))
	if _, err := first.Sealed(context.Background()); err != nil {
		t.Fatal(err)
	}
	p := l.Append(testEvent(1)) // behind the one that hangs
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := p.Sealed(ctx); !errors.Is(err, context.Canceled) || r != (Receipt{}) {
		t.Errorf("%+v, %v", r, err)
	}
	l.o.CommitDeadline = 30 * time.Millisecond
	if r, err := p.Sealed(context.Background()); !errors.Is(err, ErrDeadline) || r != (Receipt{}) {
		t.Errorf("%+v, %v", r, err)
	}
	l.o.CommitDeadline = testkit.Patience
	g.on.Store(false)
	close(g.hold)
	if _, err := p.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := l.Append().Sealed(context.Background()); err == nil {
		t.Error("an empty batch has a place")
	}
	l.Close()
	if _, err := l.Append(testEvent(2)).Sealed(context.Background()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestRecoveredSeq: the last event that was durable. What a start writes for
// itself does not count, however often it starts: else a number that an event
// lost would seem to be there.
func TestRecoveredSeq(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	if l.RecoveredSeq() != 0 {
		t.Errorf("an empty record is durable through %d", l.RecoveredSeq())
	}
	last := mustAppend(t, l, testEvent(0), testEvent(1)).Seq
	if l.RecoveredSeq() != 0 {
		t.Error("what this run wrote counts")
	}
	putControl(t, l, kindCheck, []byte(note(l.w.signer, "o", l.w.tree.size, l.w.tree.root())))
	l.Close()
	for i := range 3 { // each leaves a file with a head alone
		l = mustOpen(t, smallOptions(dir))
		if l.RecoveredSeq() != last {
			t.Errorf("start %d: durable through %d, want %d", i, l.RecoveredSeq(), last)
		}
		l.Close()
	}
	// The files before the ones that are kept held events too.
	names := segments(t, dir)
	for _, name := range names[:len(names)-2] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := segmentSeq(names[len(names)-2])
	if l = mustOpen(t, smallOptions(dir)); l.RecoveredSeq() != first-1 {
		t.Errorf("without the old files durable through %d, want %d", l.RecoveredSeq(), first-1)
	}
}

// TestRecoveredSeqOfTornTail: a batch cut at the start was never durable.
func TestRecoveredSeqOfTornTail(t *testing.T) {
	dir, file, start, end := crashState(t)
	var last uint64
	for _, s := range layout(t, dir) {
		if s.file == file && s.end == start {
			last = s.seq
		}
	}
	whole := copyDir(t, dir)
	if l := mustOpen(t, smallOptions(whole)); l.RecoveredSeq() != last+8 {
		t.Errorf("a whole batch: durable through %d, want %d", l.RecoveredSeq(), last+8)
	}
	edit(t, dir, file, func(d []byte) []byte { clear(d[end-100:]); return d })
	for range 3 { // also from the files that hold a head alone
		l := mustOpen(t, smallOptions(dir))
		if l.RecoveredSeq() != last {
			t.Errorf("a torn batch: durable through %d, want %d", l.RecoveredSeq(), last)
		}
		l.Close()
	}
}

// TestRecoveredSeqNeedsWholeFiles: where the last event lies in a file that
// does not hold, the record is damaged.
func TestRecoveredSeqNeedsWholeFiles(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	mustAppend(t, l, testEvent(0))
	off := l.w.off
	l.Close()
	mustOpen(t, smallOptions(dir)).Close()
	names := segments(t, dir)
	held := names[len(names)-2]
	edit(t, dir, held, func(d []byte) []byte { d[off-100] ^= 1; return d })
	_, err := Open(smallOptions(dir))
	var b *BrokenError
	if !errors.Is(err, ErrDamaged) || !errors.As(err, &b) || b.File != held {
		t.Errorf("%v", err)
	}
}
