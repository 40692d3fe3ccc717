package auditlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var errStop = errors.New("the test ends it")

// followed follows a record; after everything that is there was given out, the steps
// run one after the other, each followed by another look. It returns the call ids, the
// old ones with a mark.
func followed(t *testing.T, dir string, all bool, steps ...func()) ([]string, error) {
	t.Helper()
	var got []string
	o := FollowOptions{All: all, Wait: func(context.Context) error {
		if len(steps) == 0 {
			return errStop
		}
		steps[0]()
		steps = steps[1:]
		return nil
	}}
	err := Follow(context.Background(), dir, testKeys()[0], o, func(ev Event, old bool) error {
		id := ev.CallID
		if old {
			id = "old " + id
		}
		got = append(got, id)
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return got, err
}

// What is written later is given out once, in order, over epochs, full files and
// restarts of the daemon.
func TestFollow(t *testing.T) {
	dir := newDir(t)
	o := smallOptions(dir)
	o.EpochRecords = 8
	l := mustOpen(t, o)
	mustAppend(t, l, testEvent(0), testEvent(1))
	n := 2
	want := []string{"old call-0", "old call-1"}
	write := func(count, size int) func() {
		return func() {
			for range count {
				ev := testEvent(n)
				ev.Body = make([]byte, size)
				mustAppend(t, l, ev)
				want = append(want, fmt.Sprint("call-", n))
				n++
			}
		}
	}
	restart := func() {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = mustOpen(t, o)
	}
	before := len(segments(t, dir))
	got, err := followed(t, dir, false, write(1, 0), func() {}, write(100, 0), write(20, 20<<10), restart, write(3, 0), func() { restart(); restart() }, write(2, 0))
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v\ngot  %v\nwant %v", err, got, want)
	}
	if after := len(segments(t, dir)); after < before+8 {
		t.Fatalf("only %d files: nothing was rotated", after)
	}
	// From the beginning all of it is old.
	for i := range want {
		want[i] = "old " + strings.TrimPrefix(want[i], "old ")
	}
	if got, err := followed(t, dir, true); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\ngot  %v\nwant %v", err, got, want)
	}
}

// A batch larger than one look is met whole.
func TestFollowLargeBatch(t *testing.T) {
	dir := newDir(t)
	o := smallOptions(dir)
	o.SegmentBytes = 1 << 20
	l := mustOpen(t, o)
	got, err := followed(t, dir, false, func() {
		var evs []Event
		for i := range 4 {
			ev := testEvent(i)
			ev.Body = make([]byte, followChunk+1)
			evs = append(evs, ev)
		}
		mustAppend(t, l, evs...)
	})
	if err != nil || len(got) != 4 {
		t.Errorf("%v %v", got, err)
	}
}

// A batch without its end, or an edited one, is waited for and then named; what stands
// before it was given out. An unfinished one that recovery cuts off is no error.
func TestFollowMeetsDamage(t *testing.T) {
	whole, _ := sampleLog(t, 20)
	name := segments(t, whole)[len(segments(t, whole))-1]
	spots := layout(t, whole)
	last := spots[len(spots)-1]
	file := func(dir string) string { return filepath.Join(dir, name) }
	read := func(dir string) []byte {
		b, err := os.ReadFile(file(dir))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(dir string, b []byte) {
		if err := os.WriteFile(file(dir), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name string
		do   func(dir string)
		want string
	}{
		{"cut off", func(dir string) { write(dir, read(dir)[:last.end-9]) }, "the record is cut off"},
		{"edited", func(dir string) { b := read(dir); b[last.off+20] ^= 1; write(dir, b) }, "does not follow"},
		{"zeros and then more", func(dir string) { write(dir, append(read(dir), 0, 0, 7)) }, "not the start of a record"},
		{"no record", func(dir string) { write(dir, append(read(dir), "nonsense"...)) }, "not the start of a record"},
	}
	for _, c := range cases {
		dir := copyDir(t, whole)
		c.do(dir)
		got, err := followed(t, dir, true)
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.File != name || !strings.Contains(broken.Reason, c.want) || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(got) < 19 {
			t.Errorf("%s: only %d events came out", c.name, len(got))
		}
	}
	// While it is followed.
	for what, do := range map[string]func(dir string){
		"cut within what was read": func(dir string) { write(dir, read(dir)[:last.off]) },
		"removed":                  func(dir string) { os.Remove(file(dir)) },
		"another file": func(dir string) {
			if err := os.WriteFile(file(dir)+".new", read(dir), 0o600); err != nil {
				t.Fatal(err)
			}
			os.Rename(file(dir)+".new", file(dir))
		},
		"a gap": func(dir string) { os.WriteFile(filepath.Join(dir, segmentName(999999)), read(dir), 0o600) },
	} {
		dir := copyDir(t, whole)
		if got, err := followed(t, dir, true, func() { do(dir) }); err == nil || len(got) != 20 {
			t.Errorf("%s: %d events, %v", what, len(got), err)
		}
	}
}

// A torn last batch that the next start cuts off does not stop who waits for it.
func TestFollowOverRecovery(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	mustAppend(t, l, testEvent(0))
	got, err := followed(t, dir, false, func() {
		l.Close()
		name := segments(t, dir)[len(segments(t, dir))-1]
		edit(t, dir, name, func(b []byte) []byte { return append(b, frameMagic, frameVersion, byte(kindSealed)) })
		l = mustOpen(t, smallOptions(dir))
		mustAppend(t, l, testEvent(1))
	})
	if err != nil || !slices.Equal(got, []string{"old call-0", "call-1"}) {
		t.Errorf("%v %v", got, err)
	}
}

func TestFollowRefusals(t *testing.T) {
	dir, _ := sampleLog(t, 3)
	none := func(Event, bool) error { return nil }
	stop := FollowOptions{Wait: func(context.Context) error { return errStop }}
	ctx := context.Background()
	if err := Follow(ctx, dir, Identity{}, stop, none); !errors.Is(err, ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	if err := Follow(ctx, dir, testKeys()[2], stop, none); !errors.Is(err, ErrNoKey) {
		t.Errorf("another's key: %v", err)
	}
	if err := Follow(ctx, t.TempDir(), testKeys()[0], stop, none); !errors.Is(err, ErrAbsent) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := Follow(ctx, filepath.Join(dir, "nowhere"), testKeys()[0], stop, none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	os.Mkdir(linked, 0o700)
	os.Symlink(filepath.Join(dir, segments(t, dir)[0]), filepath.Join(linked, segments(t, dir)[0]))
	if err := Follow(ctx, linked, testKeys()[0], stop, none); err == nil || errors.Is(err, errStop) {
		t.Errorf("a link: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := Follow(gone, dir, testKeys()[0], stop, none); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("cannot write")
	if err := Follow(ctx, dir, testKeys()[0], stop, func(Event, bool) error { return full }); err != full {
		t.Errorf("an error of the caller: %v", err)
	}
}
