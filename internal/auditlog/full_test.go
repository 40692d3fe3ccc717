package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
)

// A disk that others fill. Where mounting is allowed it is a small tmpfs;
// elsewhere new files are refused by a seam, as a full disk refuses them.
type smallDisk struct {
	dir     string
	full    func(t *testing.T) // take all that is left
	free    func(t *testing.T) // give it back
	newFile func(string, int64, bool) (*os.File, error)
}

const smallDiskBytes = 2 << 20

// diskSeam stands in for a file system that cannot be mounted.
func diskSeam(t *testing.T) *smallDisk {
	var isFull atomic.Bool
	return &smallDisk{
		dir:  filepath.Join(t.TempDir(), "audit"),
		full: func(*testing.T) { isFull.Store(true) },
		free: func(*testing.T) { isFull.Store(false) },
		newFile: func(path string, size int64, fill bool) (*os.File, error) {
			if isFull.Load() {
				return nil, &os.PathError{Op: "fallocate", Path: path, Err: syscall.ENOSPC}
			}
			return makeFile(path, size, fill)
		},
	}
}

// diskTmpfs mounts a real one; ok is false where that is not allowed.
func diskTmpfs(t *testing.T) (*smallDisk, bool) {
	mnt := t.TempDir()
	if !mountTmpfs(t, mnt, smallDiskBytes) {
		return nil, false
	}
	ballast := filepath.Join(mnt, "ballast")
	return &smallDisk{
		dir:     filepath.Join(mnt, "audit"),
		newFile: makeFile,
		full: func(t *testing.T) {
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := io.Copy(f, endless{}); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("filling the disk: %v", err)
			}
		},
		free: func(t *testing.T) {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		},
	}, true
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestDiskFull(t *testing.T) {
	t.Run("seam", func(t *testing.T) { diskFull(t, diskSeam(t)) })
	t.Run("tmpfs", func(t *testing.T) {
		d, ok := diskTmpfs(t)
		if !ok {
			d = diskSeam(t) // no right to mount: the seam again
		}
		diskFull(t, d)
	})
}

// diskFull: when others have filled the disk, intents are refused while there
// is still room for the answer and outcome of each that was admitted; denials
// go on after that; nothing latches; and freed space is used again.
func diskFull(t *testing.T, d *smallDisk) {
	if err := Create(d.dir, testRecipients()); err != nil {
		t.Fatal(err)
	}
	o := smallOptions(d.dir)
	o.EpochRecords, o.makeFile = 16, d.newFile
	l := mustOpen(t, o)
	l.spares.wg.Wait()
	d.full(t)
	const answer = 9000
	var open []Receipt
	var acked []string
	for {
		id := fmt.Sprintf("call-%d", len(open))
		r, err := l.AppendIntent(Event{Type: TypeIntent, CallID: id}, answer).Wait(context.Background())
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		open, acked = append(open, r), append(acked, id)
	}
	if len(open) < 3 {
		t.Fatalf("only %d intents were admitted", len(open))
	}
	if s := l.State(); s.Warn == "" || s.Latched != nil {
		t.Errorf("state on a full disk: %+v", s)
	}
	denials := fillWithDenials(t, l)
	for i, r := range open {
		body := make([]byte, answer-200)
		mustAppend(t, l, Event{Type: TypeAnswer, IntentSeq: r.Seq, Body: body})
		mustAppend(t, l, Event{Type: TypeOutcome, IntentSeq: r.Seq, CallID: fmt.Sprintf("out-%d", i)})
		acked = append(acked, fmt.Sprintf("out-%d", i))
	}
	t.Logf("full: %d intents with answers, %d denials", len(open), denials)
	if denials < 5 {
		t.Errorf("only %d denials found room after the intents were refused", denials)
	}
	d.free(t)
	untilAdmitted(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, o)
	mustAppend(t, l, Event{Type: TypeLock, CallID: "again"})
	l.Close()
	if r := Verify(d.dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
	wantAcked(t, d.dir, acked)
}

// fillWithDenials appends denials until they are refused: they must not take
// what was promised to the calls that are under way.
func fillWithDenials(t *testing.T, l *Log) (n int) {
	t.Helper()
	for ; ; n++ {
		_, err := l.Append(Event{Type: TypeDeny, CallID: fmt.Sprint(n)}).Wait(context.Background())
		if errors.Is(err, ErrFull) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// untilAdmitted tries intents until freed space is found again.
func untilAdmitted(t *testing.T, l *Log) {
	t.Helper()
	for range 300 {
		r, err := l.AppendIntent(Event{Type: TypeIntent}, 1000).Wait(context.Background())
		if err == nil {
			mustAppend(t, l, Event{Type: TypeOutcome, IntentSeq: r.Seq})
			return
		}
		if !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		pause()
	}
	t.Fatal("freed space is not used")
}

// TestManyPromises: on a disk with room, calls whose answers together need
// many segments are all admitted, and the room grows to it.
func TestManyPromises(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	var rs []Receipt
	for range 30 {
		r, err := l.AppendIntent(Event{Type: TypeIntent}, 8_000).Wait(context.Background())
		if err != nil {
			t.Fatalf("intent %d: %v", len(rs), err)
		}
		rs = append(rs, r)
	}
	for _, r := range rs {
		mustAppend(t, l, Event{Type: TypeAnswer, IntentSeq: r.Seq, Body: make([]byte, 7_500)}, Event{Type: TypeOutcome, IntentSeq: r.Seq})
	}
	l.mu.Lock()
	left := len(l.bookings)
	l.mu.Unlock()
	if left != 0 {
		t.Errorf("%d bookings stay after their outcomes", left)
	}
	l.Close()
	if spares, _ := filepath.Glob(filepath.Join(dir, sparePrefix+"*")); len(spares) > 1 {
		t.Errorf("%d spares stay after Close", len(spares))
	}
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
}

// TestOpenOnFullDisk: no room for a segment at start is ErrFull; the record is
// not touched and opens once there is room.
func TestOpenOnFullDisk(t *testing.T) {
	d := diskSeam(t)
	if err := Create(d.dir, testRecipients()); err != nil {
		t.Fatal(err)
	}
	o := smallOptions(d.dir)
	o.makeFile = d.newFile
	d.full(t)
	if _, err := Open(o); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	d.free(t)
	mustOpen(t, o).Close()
	if r := Verify(d.dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
}

// TestSpareTaken: a spare that someone removed, cut or filled is not missed
// and not used.
func TestSpareTaken(t *testing.T) {
	cases := map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(p string) error { return os.Truncate(p, 10) },
		"linked":  func(p string) error { return os.Link(p, p+".x") },
	}
	for name, f := range cases {
		dir := newDir(t)
		l := mustOpen(t, smallOptions(dir))
		l.spares.wg.Wait()
		spares, _ := filepath.Glob(filepath.Join(dir, sparePrefix+"*"))
		if len(spares) != 1 {
			t.Fatalf("%d spares", len(spares))
		}
		if err := f(spares[0]); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			mustAppend(t, l, Event{Type: TypeAnswer, Body: make([]byte, 30_000)})
		}
		l.Close()
		if r := Verify(dir); r.ExitCode() != 0 {
			t.Errorf("%s:\n%s", name, r.Text())
		}
	}
	dir := newDir(t)
	if err := os.WriteFile(filepath.Join(dir, sparePrefix+"1-1"), append(make([]byte, 64<<10-1), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, smallOptions(dir)).Close()
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Errorf("a spare with content:\n%s", r.Text())
	}
}
