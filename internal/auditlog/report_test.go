package auditlog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestReportValid(t *testing.T) {
	dir, last := sampleLog(t, 30)
	r := Verify(dir)
	want := fmt.Sprintf(`verified: %d records
first sequence: 1
last sequence: %d
chain: valid
signed through: %d  (epoch %d, key %s)
witnessed through: none
unanchored tail: %d records - their removal would not be noticed
completeness: not proven - an intact chain does not show that everything was logged
`, last, last, r.SignedThrough, r.Epoch, r.Signer[:16], last)
	if r.Text() != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text(), want)
	}
	if r.SignedThrough == 0 || r.SignedThrough > last {
		t.Errorf("signed through %d", r.SignedThrough)
	}
}

// A single file proves itself alone and says what was not given.
func TestReportOneFile(t *testing.T) {
	dir, _ := sampleLog(t, 50)
	names := segments(t, dir)
	name := names[len(names)-2]
	first, _ := segmentSeq(name)
	copied := filepath.Join(t.TempDir(), "copy.bin")
	data, _ := os.ReadFile(filepath.Join(dir, name))
	os.WriteFile(copied, data, 0o644)
	for _, path := range []string{filepath.Join(dir, name), copied} {
		r := Verify(path)
		lines := strings.Split(r.Text(), "\n")
		if r.ExitCode() != 0 || lines[1] != fmt.Sprintf("first sequence: %d", first) ||
			!strings.Contains(r.Text(), fmt.Sprintf("\nearlier records: not given (1..%d)\n", first-1)) {
			t.Errorf("%s:\n%s", path, r.Text())
		}
	}
	wrong := filepath.Join(t.TempDir(), segmentName(first+1))
	os.WriteFile(wrong, data, 0o644)
	if r := Verify(wrong); r.ExitCode() != 1 || r.FirstBroken != first+1 {
		t.Errorf("a file under another's name:\n%s", r.Text())
	}
}

func TestReportBroken(t *testing.T) {
	dir, _ := sampleLog(t, 30)
	spots := layout(t, dir)
	a, _ := target(t, spots)
	edit(t, dir, a.file, func(d []byte) []byte { d[a.off+20] ^= 1; return d })
	r := Verify(dir)
	want := fmt.Sprintf(`verified: %d records
first sequence: 1
last sequence: %d
chain: broken
first broken sequence: %d
file: %s
offset: %d
reason: the chain value does not follow from the record before
suspect range: %d..%d
signed through: %d  (epoch %d, key %s)
`, a.seq-1, a.seq-1, a.seq, a.file, a.off, r.SignedThrough+1, a.seq, r.SignedThrough, r.Epoch, r.Signer[:16])
	if r.Text() != want || r.ExitCode() != 1 {
		t.Errorf("got\n%s\nwant\n%s", r.Text(), want)
	}
	var doc map[string]any
	if err := json.Unmarshal(r.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]any{
		"chain": "broken", "exit_code": 1.0, "first_broken_sequence": float64(a.seq), "file": a.file,
		"offset": float64(a.off), "completeness": "not proven", "suspect_to": float64(a.seq),
	} {
		if doc[member] != want {
			t.Errorf("%s is %v, want %v", member, doc[member], want)
		}
	}
}

func TestReportUnreadable(t *testing.T) {
	empty := t.TempDir()
	planted := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(planted, segmentName(1))); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, segmentName(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(empty, "x"): "no such file",
		empty:                     "no record here",
		planted:                   "symbolic links",
		folder:                    "not a regular file",
		"/dev/null":               "not a regular file",
	} {
		r := Verify(path)
		if r.ExitCode() != 2 || !strings.Contains(r.Text(), want) || !strings.HasPrefix(r.Text(), "verified: 0 records\nfirst sequence: none\nlast sequence: none\nchain: unreadable\nerror: ") {
			t.Errorf("%s: exit %d\n%s", path, r.ExitCode(), r.Text())
		}
	}
	notOne := filepath.Join(empty, "text")
	os.WriteFile(notOne, []byte("hello\n"), 0o600)
	if r := Verify(notOne); r.ExitCode() != 1 || r.FirstBroken != 1 {
		t.Errorf("a text file:\n%s", r.Text())
	}
}

// The first four lines have one form whatever was found.
func TestReportFirstLines(t *testing.T) {
	form := regexp.MustCompile(`\Averified: \d+ records\nfirst sequence: (\d+|none)(  .*)?\nlast sequence: (\d+|none)(  .*)?\nchain: (valid|broken|unreadable)(  .*)?\n`)
	for _, r := range []Report{
		unreadable(os.ErrNotExist),
		{Chain: chainValid, Verified: 184, First: 9012, Last: 9195, PrunedThrough: 9011, PruneSeq: 9050},
		{Chain: chainBroken, FirstBroken: 1},
	} {
		if !form.MatchString(r.Text()) {
			t.Errorf("%s", r.Text())
		}
	}
	pruned := Report{Chain: chainValid, Verified: 184, First: 9012, Last: 9195, PrunedThrough: 9011, PruneSeq: 9050}
	if !strings.Contains(pruned.Text(), "first sequence: 9012  (1..9011 pruned by policy, recorded at 9050)\n") {
		t.Errorf("%s", pruned.Text())
	}
}

func TestReadStopsAtBreak(t *testing.T) {
	dir, _ := sampleLog(t, 30)
	a, _ := target(t, layout(t, dir))
	edit(t, dir, a.file, func(d []byte) []byte { d[a.off+20] ^= 1; return d })
	var last uint64
	err := Read(dir, testKeys()[0], func(seq uint64, _ Event) error { last = seq; return nil })
	var b *BrokenError
	if e, ok := err.(*BrokenError); ok {
		b = e
	}
	if b == nil || b.Seq != a.seq || b.File != a.file || b.Offset != int64(a.off) || last >= a.seq {
		t.Errorf("read up to %d: %v", last, err)
	}
	stop := fmt.Errorf("enough")
	if err := Read(dir, testKeys()[0], func(uint64, Event) error { return stop }); err != stop {
		t.Errorf("an error of the callback: %v", err)
	}
}
