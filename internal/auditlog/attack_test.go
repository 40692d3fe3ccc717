package auditlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// attackLog is a record of three or more segments with several epochs each.
func attackLog(t *testing.T) (dir string, spots []spot) {
	dir, _ = sampleLog(t, 50)
	return dir, layout(t, dir)
}

// target picks a SEALED record in the middle of the second segment, with a
// neighbour of the same kind and size in the same epoch, both ending batches.
func target(t *testing.T, spots []spot) (a, b spot) {
	t.Helper()
	for i := len(spots) / 2; i < len(spots)-1; i++ {
		a, b = spots[i], spots[i+1]
		if a.kind == kindSealed && b.kind == kindSealed && a.file == b.file {
			return a, b
		}
	}
	t.Fatal("no pair of sealed records")
	return
}

func wantBroken(t *testing.T, dir string, seq uint64, file string, offset int64, reason string) {
	t.Helper()
	r := Verify(dir)
	if r.ExitCode() != 1 || r.FirstBroken != seq || (file != "" && (r.File != file || r.Offset != offset)) || !strings.Contains(r.Reason, reason) {
		t.Errorf("want broken at %d (%s, offset %d): %s; got\n%s", seq, file, offset, reason, r.Text())
	}
	if r.Verified != r.Last-r.First+1 && r.Verified != 0 {
		t.Errorf("counts do not fit: %s", r.Text())
	}
}

// rechain gives every record from off on in data a new chain value, from prev
// on, with sequences from seq on, as one who holds no signing key could.
func rechain(t *testing.T, data []byte, off int, prev hash, seq uint64) {
	t.Helper()
	for off < len(data) {
		_, _, n, _, err := parseHeader(data[off:])
		if err != nil {
			t.Fatal(err)
		}
		binary.BigEndian.PutUint64(data[off+8:], seq)
		prev = chainNext(prev, data[off:off+headerSize+n])
		copy(data[off+headerSize+n:], prev[:])
		off += n + frameExtra
		seq++
	}
}

func prevChain(data []byte, off int) (h hash) {
	copy(h[:], data[off-hashSize:])
	return h
}

// nextEpoch is the first EPOCH record of the same file at or after seq.
func nextEpoch(spots []spot, file string, seq uint64) spot {
	for _, s := range spots {
		if s.file == file && s.seq >= seq && s.kind == kindEpoch {
			return s
		}
	}
	return spot{}
}

func TestAttacksOnRecords(t *testing.T) {
	dir, spots := attackLog(t)
	a, b := target(t, spots)
	e := nextEpoch(spots, a.file, a.seq)
	if e.seq == 0 {
		t.Fatal("no epoch after the target")
	}
	for _, c := range recordAttacks(t, spots, a, b, e) {
		copied := copyDir(t, dir)
		edit(t, copied, a.file, c.edit)
		file, offset := a.file, int64(c.offset)
		if c.offset < 0 {
			file = ""
		}
		t.Run(c.name, func(t *testing.T) { wantBroken(t, copied, c.seq, file, offset, c.reason) })
	}
}

// recordAttack is an edit of one file and what must be named.
type recordAttack struct {
	name   string
	edit   func(d []byte) []byte
	seq    uint64
	offset int // -1: not compared
	reason string
}

// recordAttacks are the edits around a and its neighbour b; e is the next
// EPOCH record, whose signature covers both.
func recordAttacks(t *testing.T, spots []spot, a, b, e spot) []recordAttack {
	cut := func(d []byte, from, to int) []byte { return append(bytes.Clone(d[:from]), d[to:]...) }
	return []recordAttack{
		{"edit a ciphertext byte", func(d []byte) []byte { d[a.off+40] ^= 1; return d }, a.seq, a.off, "chain value"},
		{"edit and fix its own hash", func(d []byte) []byte {
			d[a.off+40] ^= 1
			h := chainNext(prevChain(d, a.off), d[a.off:a.end-hashSize])
			copy(d[a.end-hashSize:], h[:])
			return d
		}, b.seq, b.off, "chain value"},
		{"edit and chain anew", func(d []byte) []byte {
			d[a.off+40] ^= 1
			rechain(t, d, a.off, prevChain(d, a.off), a.seq)
			return d
		}, e.seq, e.off, "not signed"},
		{"delete", func(d []byte) []byte { return cut(d, a.off, a.end) }, a.seq, a.off, fmt.Sprintf("sequence %d where %d must come", b.seq, a.seq)},
		{"delete, renumber, chain anew", func(d []byte) []byte {
			prev := prevChain(d, a.off)
			d = cut(d, a.off, a.end)
			rechain(t, d, a.off, prev, a.seq)
			return d
		}, e.seq - 1, e.off - (a.end - a.off), "not signed"},
		{"insert a copy", func(d []byte) []byte { return append(bytes.Clone(d[:a.end]), d[a.off:]...) }, b.seq, a.end, "sequence"},
		{"insert a copy, renumber, chain anew", func(d []byte) []byte {
			d = append(bytes.Clone(d[:a.end]), d[a.off:]...)
			rechain(t, d, a.end, prevChain(d, a.end), b.seq)
			return d
		}, e.seq + 1, e.off + a.end - a.off, "not signed"},
		{"swap neighbours", func(d []byte) []byte {
			x, y := bytes.Clone(d[a.off:a.end]), bytes.Clone(d[b.off:b.end])
			copy(d[a.off:], append(y, x...))
			return d
		}, a.seq, a.off, "sequence"},
		{"sequence twice", func(d []byte) []byte { copy(d[b.off+8:b.off+16], d[a.off+8:a.off+16]); return d }, b.seq, b.off, "sequence"},
		{"cut inside", func(d []byte) []byte { return d[:a.off+20] }, a.seq, a.off, "cut off"},
		{"zeros inside", func(d []byte) []byte { clear(d[a.off:a.end]); return d }, a.seq, a.off, "not the start"},
		{"unknown version", func(d []byte) []byte { d[a.off+1] = 2; return d }, a.seq, a.off, "version"},
		{"unknown kind", func(d []byte) []byte { d[a.off+2] = 8; return d }, a.seq, a.off, "kind"},
		{"reserved flag", func(d []byte) []byte { d[a.off+3] |= 4; return d }, a.seq, a.off, "flags"},
		{"empty body", func(d []byte) []byte { clear(d[a.off+4 : a.off+8]); return d }, a.seq, a.off, "length"},
		{"space in an older file", func(d []byte) []byte { return append(d, make([]byte, 100)...) }, spotAfter(spots, a.file), -1, "not the newest"},
	}
}

// spotAfter is the sequence after the last record of a file.
func spotAfter(spots []spot, file string) (seq uint64) {
	for _, s := range spots {
		if s.file == file {
			seq = s.seq + 1
		}
	}
	return seq
}

func TestAttacksOnFiles(t *testing.T) {
	dir, _ := attackLog(t)
	other, _ := attackLog(t)
	names := segments(t, dir)
	if len(names) < 4 {
		t.Fatalf("%d segments", len(names))
	}
	seq := func(i int) uint64 { n, _ := segmentSeq(names[i]); return n }
	path := func(d string, i int) string { return filepath.Join(d, names[i]) }
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name   string
		attack func(d string)
		seq    uint64
		reason string
	}{
		{"middle segment deleted", func(d string) { os.Remove(path(d, 1)) }, seq(1), "are missing"},
		{"first segment deleted", func(d string) { os.Remove(path(d, 0)) }, 1, "no signed PRUNE record covers them"},
		{"old segment over a later one", func(d string) {
			edit(t, d, names[2], func([]byte) []byte { b, _ := os.ReadFile(path(d, 1)); return b })
		}, seq(2), "sequence"},
		{"segments swapped", func(d string) {
			move(path(d, 1), filepath.Join(d, "x"))
			move(path(d, 2), path(d, 1))
			move(filepath.Join(d, "x"), path(d, 2))
		}, seq(1), "sequence"},
		{"segment of another log", func(d string) {
			edit(t, d, names[1], func([]byte) []byte { b, _ := os.ReadFile(path(other, 1)); return b })
		}, seq(1), "chain value"},
		{"segment renamed", func(d string) { move(path(d, 1), filepath.Join(d, segmentName(seq(1)+1))) }, seq(1), "are missing"},
		{"newest segment hidden as 0", func(d string) { move(path(d, len(names)-1), filepath.Join(d, segmentName(0))) }, 1, "named 0"},
		{"newest segment hidden as 99…", func(d string) {
			move(path(d, len(names)-1), filepath.Join(d, "seg-"+strings.Repeat("9", seqDigits)+".alog"))
		}, seq(len(names) - 1), "are missing"},
		{"segment emptied", func(d string) { os.Truncate(path(d, 1), 0) }, seq(1), "SEGMENT"},
		{"newest segment emptied", func(d string) { os.Truncate(path(d, len(names)-1), 0) }, seq(len(names) - 1), "SEGMENT"},
		{"newest segment all zeros", func(d string) {
			edit(t, d, names[len(names)-1], func(b []byte) []byte { clear(b); return b })
		}, seq(len(names) - 1), "SEGMENT"},
		{"bytes after the empty space", func(d string) {
			edit(t, d, names[len(names)-1], func(b []byte) []byte { return append(b, 0, 0, 0, 1) })
		}, 0, "not the start"},
	}
	for _, c := range cases {
		copied := copyDir(t, dir)
		c.attack(copied)
		want := c.seq
		if want == 0 {
			want = Verify(dir).Last + 1
		}
		t.Run(c.name, func(t *testing.T) { wantBroken(t, copied, want, "", 0, c.reason) })
	}
}

// What no chain can show without an anchor is not claimed: these pass, and the
// report says that the tail's removal would not be noticed.
func TestAttacksNotSeen(t *testing.T) {
	dir, spots := attackLog(t)
	names := segments(t, dir)
	last := names[len(names)-1]
	end := spots[len(spots)-2]
	cutAt := copyDir(t, dir)
	edit(t, cutAt, last, func(b []byte) []byte { return b[:end.end] })
	noLast := copyDir(t, dir)
	os.Remove(filepath.Join(noLast, last))
	for name, d := range map[string]string{"cut at a batch": cutAt, "newest file deleted": noLast} {
		r := Verify(d)
		if r.ExitCode() != 0 || !strings.Contains(r.Text(), fmt.Sprintf("unanchored tail: %d records - their removal would not be noticed", r.Verified)) {
			t.Errorf("%s:\n%s", name, r.Text())
		}
	}
}

// Every single-bit flip of every byte is seen, at exactly the record it is in.
func TestEveryBitFlip(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	for i := range 3 {
		mustAppend(t, l, testEvent(i), testEvent(i+100))
	}
	l.Close()
	flips := 0
	for _, s := range layout(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, s.file))
		if err != nil {
			t.Fatal(err)
		}
		before := scanUpTo(t, dir, s.file)
		for bit := s.off * 8; bit < s.end*8; bit++ {
			data[bit/8] ^= 1 << (bit % 8)
			sc := before.snapshot()
			b, _ := sc.scanFile(data, true, nil)
			if b == nil || b.seq != s.seq || b.offset != int64(s.off) {
				t.Fatalf("bit %d of byte %d in record %d: %+v", bit%8, bit/8, s.seq, b)
			}
			data[bit/8] ^= 1 << (bit % 8)
			flips++
		}
	}
	t.Logf("%d flips, all seen", flips)
}

// scanUpTo gives the scanner as it is before a file.
func scanUpTo(t *testing.T, dir, file string) *scanner {
	t.Helper()
	s := &scanner{}
	for _, name := range segments(t, dir) {
		if b := s.checkName(name); b != nil {
			t.Fatal(b)
		}
		if name == file {
			return s
		}
		data, _ := os.ReadFile(filepath.Join(dir, name))
		if b, _ := s.scanFile(data, false, nil); b != nil {
			t.Fatal(b)
		}
	}
	return s
}

// Every cut of the newest file, at every byte, is seen but at the end of a
// batch; and every bit of the empty space after it counts.
func TestEveryTailCut(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	ends := map[int]bool{}
	for i := range 3 {
		mustAppend(t, l, testEvent(i), testEvent(i+100))
	}
	l.Close()
	names := segments(t, dir)
	last := names[len(names)-1]
	var spots []spot
	for _, s := range layout(t, dir) {
		if s.file == last {
			spots = append(spots, s)
			ends[s.end] = s.flags&flagEnd != 0
		}
	}
	data, _ := os.ReadFile(filepath.Join(dir, last))
	before := scanUpTo(t, dir, last)
	for n := range len(data) {
		for _, tail := range []int{0, 1, 100} { // cut short, or overwritten with empty space
			at := n // a zero that was cut off is one again
			for at < min(n+tail, len(data)) && data[at] == 0 {
				at++
			}
			sc := before.snapshot()
			b, _ := sc.scanFile(append(bytes.Clone(data[:n]), make([]byte, tail)...), true, nil)
			if (b == nil) != ends[at] {
				t.Fatalf("cut at %d with %d zeros: %+v", n, tail, b)
			}
			if b != nil && at >= spots[0].end && b.seq != seqAt(spots, at) {
				t.Fatalf("cut at %d with %d zeros: first broken %d, want %d", n, tail, b.seq, seqAt(spots, at))
			}
		}
	}
	tail := append(bytes.Clone(data), make([]byte, 64)...)
	for bit := len(data) * 8; bit < len(tail)*8; bit++ {
		tail[bit/8] ^= 1 << (bit % 8)
		sc := before.snapshot()
		if b, _ := sc.scanFile(tail, true, nil); b == nil {
			t.Fatalf("bit %d in the empty space passes", bit)
		}
		tail[bit/8] ^= 1 << (bit % 8)
	}
}

// seqAt is the record that a cut at offset n breaks.
func seqAt(spots []spot, n int) uint64 {
	for _, s := range spots {
		if n < s.end {
			return s.seq
		}
	}
	return 0
}
