package auditlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"chatelaine/internal/testkit"
)

// testKeys are made once: their secrecy does not matter in tests.
var testKeys = sync.OnceValue(func() (out [3]Identity) {
	for i := range out {
		id, err := GenerateIdentity()
		if err != nil {
			panic(err)
		}
		out[i] = id
	}
	return out
})

func testRecipients() []Recipient {
	k := testKeys()
	return []Recipient{k[0].Recipient(), k[1].Recipient()}
}

// newDir makes an empty record.
func newDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	if err := Create(dir, testRecipients()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func smallOptions(dir string) Options {
	return Options{Dir: dir, Recipients: testRecipients(), SegmentBytes: 64 << 10, CommitDeadline: testkit.Patience}
}

func mustOpen(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// mustAppend appends one batch and waits for it.
func mustAppend(t testing.TB, l *Log, evs ...Event) Receipt {
	t.Helper()
	r, err := l.Append(evs...).Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func testEvent(i int) Event {
	return Event{
		Type: TypeHeartbeat, CallID: fmt.Sprintf("call-%d", i), SessionID: "ses-1", Actor: "agent",
		Detail: map[string]any{"n": i},
	}
}

// sampleLog writes a record of several segments and epochs and returns the
// number of records, closed.
func sampleLog(t testing.TB, events int) (dir string, last uint64) {
	t.Helper()
	dir = newDir(t)
	o := smallOptions(dir)
	o.EpochRecords = 8
	for start := 0; start < events; {
		l := mustOpen(t, o)
		for range min(20, events-start) {
			last = mustAppend(t, l, testEvent(start)).Seq
			start++
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir, last
}

// copyDir copies a record so that it can be attacked.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	fixModes(t, to)
	return to
}

// fixModes gives a copied record the modes that the writer asks for.
func fixModes(t testing.TB, dir string) {
	t.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(dir, e.Name()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	names, err := listSegments(dir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// spot is where a record lies.
type spot struct {
	seq      uint64
	file     string
	off, end int
	kind     kind
	flags    uint8
}

// layout lists the records of a folder.
func layout(t testing.TB, dir string) []spot {
	t.Helper()
	var out []spot
	for _, name := range segments(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for off := 0; off < len(data) && data[off] != 0; {
			f, err := parseFrame(data[off:])
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, spot{f.seq, name, off, off + f.size(), f.kind, f.flags})
			off += f.size()
		}
	}
	return out
}

// edit rewrites one file of a folder.
func edit(t testing.TB, dir, name string, f func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
