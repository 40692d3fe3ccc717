package auditlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// killsEnv sets how many times TestKillNine kills its child; the default keeps
// the ordinary test run short.
const (
	killsEnv     = "CHATELAINE_TEST_KILLS"
	defaultKills = 100
	childDirEnv  = "CHATELAINE_TEST_AUDIT_CHILD"
	childRecsEnv = "CHATELAINE_TEST_AUDIT_RECIPIENTS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDirEnv); dir != "" {
		os.Exit(crashChild(dir))
	}
	os.Exit(m.Run())
}

// crashChild appends from several goroutines until it is killed, and prints
// each call id once its record is acknowledged.
func crashChild(dir string) int {
	var rs []Recipient
	for _, s := range strings.Fields(os.Getenv(childRecsEnv)) {
		r, err := ParseRecipient(s)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		rs = append(rs, r)
	}
	l, err := Open(Options{Dir: dir, Recipients: rs, SegmentBytes: 32 << 10, EpochRecords: 20})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
				ev := Event{Type: TypeHeartbeat, CallID: id, Detail: map[string]any{"pad": strings.Repeat("x", i%700)}}
				if _, err := l.Append(ev).Wait(context.Background()); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(4)
				}
				mu.Lock()
				fmt.Println(id) // one write, unbuffered
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return 0
}

// runAndKill starts the child, kills it after the delay and returns what it
// acknowledged.
func runAndKill(t *testing.T, dir string, after time.Duration) (acked []string) {
	t.Helper()
	rs := testRecipients()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDirEnv+"="+dir, childRecsEnv+"="+rs[0].String()+" "+rs[1].String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	first := true
	for {
		line, err := r.ReadString('\n')
		if err != nil { // the end, or a line cut by the kill
			break
		}
		acked = append(acked, strings.TrimSpace(line))
		if first {
			first = false
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	io.Copy(io.Discard, r)
	cmd.Wait()
	if stderr.Len() > 0 || first {
		t.Fatalf("the child failed: %s", stderr.String())
	}
	return acked
}

// TestKillNine kills a real writing process again and again. After every kill
// the record must verify or be an unfinished batch, the next start must
// succeed, and at the end every acknowledged event must be there once.
func TestKillNine(t *testing.T) {
	kills := defaultKills
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", killsEnv, err)
		}
		kills = n
	}
	const records = 4 // side by side, so that the disk and not the start-up is busy
	for i := range records {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			killLoop(t, (kills+records-1)/records)
		})
	}
}

func killLoop(t *testing.T, kills int) {
	dir := newDir(t)
	var acked []string
	unfinished := 0
	for range kills {
		acked = append(acked, runAndKill(t, dir, time.Duration(rand.IntN(15000))*time.Microsecond)...)
		if r := Verify(dir); r.ExitCode() != 0 {
			unfinished++
		}
	}
	mustOpen(t, smallOptions(dir)).Close()
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
	wantAcked(t, dir, acked)
	t.Logf("%d kills, %d acknowledged, %d unfinished batches, %d segments", kills, len(acked), unfinished, len(segments(t, dir)))
}

// wantAcked holds the record against what was acknowledged: all of it, once.
func wantAcked(t testing.TB, dir string, acked []string) {
	t.Helper()
	seen := map[string]int{}
	err := Read(dir, testKeys()[0], func(_ uint64, ev Event) error {
		seen[ev.CallID]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, id := range acked {
		if seen[id] != 1 {
			lost++
		}
	}
	if lost > 0 {
		t.Fatalf("%d of %d acknowledged events are not there exactly once", lost, len(acked))
	}
}

// crashState is a record whose last batch was on its way to the disk when the
// power failed: any of its sectors may be there or not.
func crashState(t *testing.T) (dir, file string, start, end int) {
	t.Helper()
	dir = newDir(t)
	l := mustOpen(t, smallOptions(dir))
	for i := range 3 {
		mustAppend(t, l, testEvent(i))
	}
	start = int(l.w.off)
	var evs []Event
	for i := range 8 {
		evs = append(evs, testEvent(100+i))
	}
	mustAppend(t, l, evs...)
	end = int(l.w.off)
	// The file as a running writer has it: with the empty space behind.
	names := segments(t, dir)
	file = names[len(names)-1]
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file, start, end
}

// loseSectors zeroes some of the 512-byte sectors of the last batch, and says
// whether any of it is gone.
func loseSectors(rnd *rand.Rand, d []byte, start, end int) (lost bool) {
	const sector = 512
	for s := start / sector * sector; s < end; s += sector {
		if rnd.IntN(2) == 0 {
			continue
		}
		for i := max(s, start); i < min(s+sector, end); i++ {
			lost = lost || d[i] != 0
			d[i] = 0
		}
	}
	return lost
}

// TestLostSectors: whatever a power failure leaves of the unacknowledged last
// batch, the record opens, keeps the bytes, says so, and loses nothing that
// was acknowledged.
func TestLostSectors(t *testing.T) {
	dir, file, start, end := crashState(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 120 {
		c := copyDir(t, dir)
		lost := false
		edit(t, c, file, func(d []byte) []byte {
			lost = loseSectors(rnd, d, start, end)
			return d
		})
		if code := Verify(c).ExitCode(); lost && allGone(t, c, file, start, end) != (code == 0) {
			t.Fatalf("state %d: exit code %d", i, code)
		}
		l, err := Open(smallOptions(c))
		if err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		l.Close()
		r := Verify(c)
		if r.ExitCode() != 0 {
			t.Fatalf("state %d:\n%s", i, r.Text())
		}
		wantAcked(t, c, []string{"call-0", "call-1", "call-2"})
		torn, _ := filepath.Glob(filepath.Join(c, "*"+tornMark+"*"))
		if len(torn) != len(r.Cuts) || (!lost && len(torn) > 0) {
			t.Fatalf("state %d: %d torn files, %d cuts in the report", i, len(torn), len(r.Cuts))
		}
		os.RemoveAll(c)
	}
}

func allGone(t *testing.T, dir, file string, start, end int) bool {
	t.Helper()
	d, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return len(d) < end && len(d) <= start || allZero(d[start:])
}

// TestCrashDuringRecovery: a second crash at any point between the cut and the
// new segment still ends in exactly one RECOVER record.
func TestCrashDuringRecovery(t *testing.T) {
	dir, file, start, end := crashState(t)
	edit(t, dir, file, func(d []byte) []byte { clear(d[end-100:]); return d })
	names := segments(t, dir)
	steps := []struct {
		name string
		do   func(dir string) error
	}{
		{"before anything", func(string) error { return nil }},
		{"bytes saved", func(d string) error {
			data, err := os.ReadFile(filepath.Join(d, file))
			if err != nil {
				return err
			}
			return saveTorn(d, file, data, int64(start))
		}},
		{"cut", func(d string) error { _, _, err := recoverLast(d, names); return err }},
		{"cut twice", func(d string) error {
			recoverLast(d, names)
			_, _, err := recoverLast(d, names)
			return err
		}},
	}
	for _, s := range steps {
		c := copyDir(t, dir)
		if err := s.do(c); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		mustOpen(t, smallOptions(c)).Close()
		mustOpen(t, smallOptions(c)).Close()
		r := Verify(c)
		if r.ExitCode() != 0 || len(r.Cuts) != 1 || r.Cuts[0].LastSeq != r.Cuts[0].Seq-2 {
			t.Errorf("%s:\n%s%+v", s.name, r.Text(), r.Cuts)
		}
	}
}

// TestDamageIsNotCut: a break that is followed by a later batch, or that sits
// in whole and chained bytes, is damage. Nothing is appended and nothing cut.
func TestDamageIsNotCut(t *testing.T) {
	dir, file, start, _ := crashState(t)
	var before spot
	for _, s := range layout(t, dir) {
		if s.file == file && s.end == start {
			before = s
		}
	}
	cases := map[string]func([]byte) []byte{
		"body of a synced record":  func(d []byte) []byte { d[before.off+30] ^= 1; return d },
		"two batches back":         func(d []byte) []byte { d[before.off-60] ^= 1; return d },
		"header of the first":      func(d []byte) []byte { d[3] ^= 4; return d },
		"the whole head is zero":   func(d []byte) []byte { clear(d[:before.off]); return d },
		"a synced record is zeros": func(d []byte) []byte { clear(d[before.off-40 : before.off]); return d },
	}
	for name, f := range cases {
		c := copyDir(t, dir)
		edit(t, c, file, f)
		was, _ := os.ReadFile(filepath.Join(c, file))
		_, err := Open(smallOptions(c))
		var b *BrokenError
		if !errors.Is(err, ErrDamaged) || !errors.As(err, &b) || b.File != file {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := os.ReadFile(filepath.Join(c, file)); !bytes.Equal(was, now) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// TestSignerOrder: a crash between any two steps of the change of keys leaves
// a record that opens; a foreign key never does.
func TestSignerOrder(t *testing.T) {
	dir := newDir(t)
	read := func(d, name string) []byte { b, _ := os.ReadFile(filepath.Join(d, name)); return b }
	write := func(d, name string, b []byte) {
		if err := os.WriteFile(filepath.Join(d, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := read(dir, signerName)
	stray := bytes.Repeat([]byte{7}, 32)
	cases := []struct {
		name         string
		signer, next []byte
		want         error
	}{
		{"in order", good, nil, nil},
		{"next stored, epoch not durable", good, stray, nil},
		{"epoch durable, not renamed", stray, good, nil},
		{"epoch durable, old key erased", make([]byte, 32), good, nil},
		{"old key lost", nil, good, nil},
		{"foreign key", stray, nil, ErrSigner},
		{"foreign keys", stray, stray, ErrSigner},
		{"no key", nil, nil, ErrSigner},
		{"short key", good[:31], nil, ErrSigner},
	}
	for _, c := range cases {
		d := copyDir(t, dir)
		os.Remove(filepath.Join(d, signerName))
		if c.signer != nil {
			write(d, signerName, c.signer)
		}
		if c.next != nil {
			write(d, signerNextName, c.next)
		}
		l, err := Open(smallOptions(d))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		l.Close()
		if r := Verify(d); r.ExitCode() != 0 {
			t.Errorf("%s:\n%s", c.name, r.Text())
		}
		if !allZero(read(d, signerNextName)) {
			t.Errorf("%s: signer.next still holds a key", c.name)
		}
	}
}
