package auditlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chatelaine/internal/testkit"
)

var errInjected = errors.New("injected")

// faults stands between a log and its files. It counts the calls and fails the
// one that at names, before or after it was done.
type faults struct {
	at    int  // which call fails, from 1; 0: none
	after bool // done, but reported as failed
	short bool // a write puts half of its bytes down first
	op    string

	mu    sync.Mutex
	calls int
}

func (f *faults) wrap(s segmentFile) segmentFile { return &faultyFile{s, f} }

// hit counts a call and says whether it is the one.
func (f *faults) hit(op string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.op != "" && f.op != op {
		return false
	}
	f.calls++
	return f.calls == f.at
}

type faultyFile struct {
	segmentFile
	f *faults
}

func (x *faultyFile) do(op string, call func() error) error {
	if !x.f.hit(op) {
		return call()
	}
	if x.f.after {
		call()
	}
	return errInjected
}

func (x *faultyFile) WriteAt(b []byte, off int64) (n int, err error) {
	if x.f.hit("write") {
		switch {
		case x.f.short:
			n, _ = x.segmentFile.WriteAt(b[:len(b)/2], off)
		case x.f.after:
			n, _ = x.segmentFile.WriteAt(b, off)
		}
		return n, errInjected
	}
	return x.segmentFile.WriteAt(b, off)
}

func (x *faultyFile) Datasync() error { return x.do("datasync", x.segmentFile.Datasync) }
func (x *faultyFile) Sync() error     { return x.do("sync", x.segmentFile.Sync) }
func (x *faultyFile) Truncate(n int64) error {
	return x.do("truncate", func() error { return x.segmentFile.Truncate(n) })
}
func (x *faultyFile) Check(n int64) error {
	return x.do("check", func() error { return x.segmentFile.Check(n) })
}

// work opens the record, appends until it fails or is done, and returns what
// was acknowledged.
func work(t *testing.T, dir string, f *faults, n int) (acked []string, latched int32, err error) {
	t.Helper()
	var latches atomic.Int32
	o := smallOptions(dir)
	o.SegmentBytes, o.EpochRecords = 16<<10, 4
	o.seam = f.wrap
	o.OnLatch = func(error) { latches.Add(1) }
	l, err := Open(o)
	if err != nil {
		return nil, 0, err
	}
	for i := range n {
		if _, err = l.Append(testEvent(i)).Wait(context.Background()); err != nil {
			break
		}
		acked = append(acked, testEvent(i).CallID)
	}
	if err != nil {
		if !errors.Is(err, ErrLatched) || l.State().Latched == nil {
			t.Errorf("not latched: %v", err)
		}
		if n := latches.Load(); n != 1 {
			t.Errorf("OnLatch was called %d times", n)
		}
		if _, again := l.Append(testEvent(0)).Wait(context.Background()); !errors.Is(again, ErrLatched) {
			t.Errorf("an append after the latch: %v", again)
		}
	}
	if cerr := l.Close(); err == nil {
		err = cerr
	}
	return acked, latches.Load(), err
}

// TestEveryFault fails each call to the file in turn, in three ways. After
// each the log latches, and a restart finds everything that was acknowledged.
func TestEveryFault(t *testing.T) {
	t.Run("not done", func(t *testing.T) { t.Parallel(); everyFault(t, false, false) })
	t.Run("done but reported failed", func(t *testing.T) { t.Parallel(); everyFault(t, true, false) })
	t.Run("half done", func(t *testing.T) { t.Parallel(); everyFault(t, false, true) })
}

func everyFault(t *testing.T, after, short bool) {
	const events, wantFaults = 22, 60
	at := 1
	for ; ; at++ {
		dir := newDir(t)
		acked, latches, err := work(t, dir, &faults{at: at, after: after, short: short}, events)
		if err == nil {
			break
		}
		if !errors.Is(err, errInjected) || latches > 1 {
			t.Fatalf("call %d: %v, %d latches", at, err, latches)
		}
		l, err := Open(smallOptions(dir))
		if err != nil {
			t.Fatalf("call %d: reopen: %v", at, err)
		}
		mustAppend(t, l, Event{Type: TypeReconcile, CallID: "after"})
		l.Close()
		if r := Verify(dir); r.ExitCode() != 0 {
			t.Fatalf("call %d:\n%s", at, r.Text())
		}
		wantAcked(t, dir, append(acked, "after"))
		os.RemoveAll(dir)
	}
	t.Logf("%d calls failed in turn", at-1)
	if at <= wantFaults {
		t.Fatalf("only %d faults", at-1)
	}
}

// TestLatchFailsAllWaiting: one failed sync fails the whole batch and the
// queue, and nothing more is written.
func TestLatchFailsAllWaiting(t *testing.T) {
	dir := newDir(t)
	o := smallOptions(dir)
	gate := &gate{hold: make(chan struct{})}
	o.seam = func(s segmentFile) segmentFile { return &gatedFile{s, gate} }
	l := mustOpen(t, o)
	gate.on.Store(true)
	var ps []*Pending
	for i := range 10 {
		ps = append(ps, l.Append(testEvent(i)))
	}
	gate.err.Store(&errInjected)
	close(gate.hold)
	for i, p := range ps {
		if _, err := p.Wait(context.Background()); !errors.Is(err, ErrLatched) || !errors.Is(err, errInjected) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	if err := l.Close(); !errors.Is(err, ErrLatched) {
		t.Errorf("Close: %v", err)
	}
	l = mustOpen(t, smallOptions(dir))
	l.Close()
}

// gate holds or fails every sync while it is on.
type gate struct {
	on   atomic.Bool
	hold chan struct{}
	err  atomic.Pointer[error]
}

type gatedFile struct {
	segmentFile
	g *gate
}

func (x *gatedFile) Datasync() error {
	if x.g.on.Load() {
		<-x.g.hold
		if err := x.g.err.Load(); err != nil {
			return *err
		}
	}
	return nil // how fast the real disk is decides nothing here
}

// TestHangingDisk: a disk that does not answer denies within the deadline, at
// once for those who come later, and the log goes on when it answers again.
func TestHangingDisk(t *testing.T) {
	dir := newDir(t)
	l, gate := gatedLog(t, dir)
	l.o.CommitDeadline = 100 * time.Millisecond
	gate.on.Store(true)
	if _, err := l.AppendIntent(Event{Type: TypeIntent, CallID: "lone"}, 100).Wait(context.Background()); !errors.Is(err, ErrDeadline) {
		t.Fatal(err)
	}
	time.Sleep(2 * l.o.CommitDeadline) // the deadline is past, however the clocks of the two are rounded
	if w := l.State().Warn; !strings.Contains(w, "does not answer") {
		t.Errorf("warning %q", w)
	}
	p := l.Append(testEvent(1))
	select {
	case <-p.done:
	default:
		t.Error("an append behind a hanging disk is queued")
	}
	if err := l.Close(); !errors.Is(err, ErrDeadline) {
		t.Errorf("Close on a hanging disk: %v", err)
	}
	gate.on.Store(false)
	close(gate.hold)
}

func TestHangingDiskRecovers(t *testing.T) {
	dir := newDir(t)
	l, gate := gatedLog(t, dir)
	l.o.CommitDeadline = 50 * time.Millisecond
	gate.on.Store(true)
	if _, err := l.AppendIntent(Event{Type: TypeIntent}, 100).Wait(context.Background()); !errors.Is(err, ErrDeadline) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Append(testEvent(1)).Wait(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrDeadline) {
		t.Fatal(err)
	}
	gate.on.Store(false)
	close(gate.hold)
	testkit.Until(t, "an append after the disk answers again", func() bool {
		_, err := l.Append(testEvent(2)).Wait(context.Background())
		return err == nil
	})
	l.mu.Lock()
	booked := len(l.bookings)
	l.mu.Unlock()
	if booked != 0 {
		t.Errorf("%d bookings of given-up intents stay", booked)
	}
	if l.State().Latched != nil || l.State().Warn != "" {
		t.Errorf("%+v", l.State())
	}
}

// TestAlteredSegment: a segment that someone else cut, extended, linked or
// unlinked stops the log before the next byte.
func TestAlteredSegment(t *testing.T) {
	cases := map[string]func(path string) error{
		"cut":      func(p string) error { return os.Truncate(p, 5000) },
		"extended": func(p string) error { return os.Truncate(p, 1<<20) },
		"linked":   func(p string) error { return os.Link(p, p+"x") },
		"unlinked": os.Remove,
	}
	for name, f := range cases {
		dir := newDir(t)
		l := mustOpen(t, smallOptions(dir))
		mustAppend(t, l, testEvent(0))
		names := segments(t, dir)
		if err := f(filepath.Join(dir, names[len(names)-1])); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(testEvent(1)).Wait(context.Background()); !errors.Is(err, ErrLatched) || !errors.Is(err, errAltered) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConcurrentAppenders: many appenders, all acknowledged, all there, and
// batches much fewer than events.
func TestConcurrentAppenders(t *testing.T) {
	dir := newDir(t)
	f := &faults{op: "datasync"}
	o := smallOptions(dir)
	o.SegmentBytes, o.EpochRecords, o.seam = 128<<10, 100, f.wrap
	l := mustOpen(t, o)
	const appenders, each = 16, 40
	acked := make([][]string, appenders)
	var wg sync.WaitGroup
	for g := range appenders {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", g, i)
				r, err := l.Append(Event{Type: TypeIntent, CallID: id}, Event{Type: TypeDeny, CallID: id + "b"}).Wait(context.Background())
				if err != nil || r.Seq != r.First+1 {
					t.Errorf("%s: %+v %v", id, r, err)
					return
				}
				acked[g] = append(acked[g], id, id+"b")
				l.State()
				l.Recent()
			}
		})
	}
	wg.Wait()
	l.Close()
	var all []string
	for _, a := range acked {
		all = append(all, a...)
	}
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
	wantAcked(t, dir, all)
	if f.calls >= appenders*each {
		t.Errorf("%d syncs for %d batches: no group commit", f.calls, appenders*each)
	}
	t.Logf("%d events, %d syncs", len(all), f.calls)
}

// TestVerifyBesideWriter: a verifier and a reader beside a busy writer never
// see a broken record.
func TestVerifyBesideWriter(t *testing.T) {
	dir := newDir(t)
	o := smallOptions(dir)
	o.EpochRecords = 50
	l := mustOpen(t, o)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := l.Append(testEvent(g * i)).Wait(context.Background()); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond) // the record must not outgrow the verifier
			}
		})
	}
	for range 30 {
		if r := Verify(dir); r.ExitCode() != 0 {
			t.Errorf("beside a writer:\n%s", r.Text())
		}
		if err := Read(dir, testKeys()[0], func(uint64, Event) error { return nil }); err != nil {
			t.Errorf("beside a writer: %v", err)
		}
	}
	close(stop)
	wg.Wait()
}
