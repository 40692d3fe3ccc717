package auditlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// The benchmarks run the whole pipeline beside bare pwrite+fdatasync of the
// same bytes, alternating in one run, and report the ratio: disks differ, the
// ratio travels.

// benchEvent has a plaintext of about 512 bytes.
func benchEvent() Event {
	return Event{
		Type: TypeIntent, CallID: "0123456789abcdef0123456789abcdef", SessionID: "ses_0123456789abcdef", Actor: "agent (uid 1000)",
		Target: "production", Action: "deploy_release", Detail: map[string]any{"pad": string(make([]byte, 20)), "input": map[string]any{
			"app": "api", "version": "2.14.3", "reason": "the fix for the login page, asked for by the team on call today"}},
	}
}

// bareAppender writes and syncs blocks of one size into a preallocated file.
type bareAppender struct {
	mu  sync.Mutex
	f   *os.File
	off int64
	b   []byte
}

const benchFile = 64 << 20

func newBare(b *testing.B, size int) *bareAppender {
	f, err := makeFile(filepath.Join(b.TempDir(), "bare"), benchFile, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return &bareAppender{f: f, b: make([]byte, size)}
}

func (a *bareAppender) append(b *testing.B) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.off+int64(len(a.b)) > benchFile {
		a.off = 0
	}
	if _, err := a.f.WriteAt(a.b, a.off); err != nil {
		b.Error(err)
	}
	if err := datasync(a.f); err != nil {
		b.Error(err)
	}
	a.off += int64(len(a.b))
}

func benchLog(b *testing.B) (*Log, int) {
	dir := newDir(b)
	l := mustOpen(b, Options{Dir: dir, Recipients: testRecipients()})
	before := l.w.off
	mustAppend(b, l, benchEvent())
	return l, int(l.w.off - before)
}

// timed runs f n times on each of appenders goroutines and returns the sorted
// times and the whole time.
func timed(appenders, n int, f func()) (each []time.Duration, all time.Duration) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for range appenders {
		wg.Go(func() {
			var mine []time.Duration
			for range n {
				t := time.Now()
				f()
				mine = append(mine, time.Since(t))
			}
			mu.Lock()
			each = append(each, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	all = time.Since(start)
	slices.Sort(each)
	return each, all
}

// BenchmarkAppend: "p50-ratio" is the median of full over bare,
// "throughput-ratio" is records a second of full over bare.
func BenchmarkAppend(b *testing.B) {
	for _, appenders := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("appenders=%d", appenders), func(b *testing.B) {
			l, size := benchLog(b)
			bare := newBare(b, size)
			const round = 50
			var p50, rate []float64
			for b.Loop() {
				be, ball := timed(appenders, round, func() { bare.append(b) })
				fe, fall := timed(appenders, round, func() {
					if _, err := l.Append(benchEvent()).Wait(context.Background()); err != nil {
						b.Error(err)
					}
				})
				p50 = append(p50, float64(fe[len(fe)/2])/float64(be[len(be)/2]))
				rate = append(rate, float64(ball)/float64(fall))
			}
			slices.Sort(p50)
			slices.Sort(rate)
			b.ReportMetric(p50[len(p50)/2], "p50-ratio")
			b.ReportMetric(rate[len(rate)/2], "throughput-ratio")
		})
	}
}

// BenchmarkSeal: one event sealed, chained and added to the tree.
// "hpke-ratio" is the time of one HPKE seal to one recipient over it.
func BenchmarkSeal(b *testing.B) {
	l, _ := benchLog(b)
	plain := make([]byte, 512)
	info := seedInfo(l.w.logID, 1, l.w.chain)
	w := writer{keys: ratchet{}, logID: l.w.logID, next: 1}
	start := time.Now()
	const wraps = 200
	for range wraps {
		if _, err := wrapSeed(plain[:seedSize], testRecipients()[:1], info); err != nil {
			b.Fatal(err)
		}
	}
	wrapped := time.Since(start) / wraps
	n := 0
	start = time.Now()
	for b.Loop() {
		w.reset()
		w.seal(0, plain)
		n++
	}
	b.ReportMetric(float64(wrapped)/(float64(time.Since(start))/float64(n)), "hpke-ratio")
}

// BenchmarkScan: the chain and tree check of a segment in memory. "sha256-ratio"
// is its speed over plain SHA-256 of the same bytes.
func BenchmarkScan(b *testing.B) {
	dir := newDir(b)
	l := mustOpen(b, Options{Dir: dir, Recipients: testRecipients()})
	for range 40 {
		var evs []Event
		for range 100 {
			evs = append(evs, benchEvent())
		}
		mustAppend(b, l, evs...)
	}
	l.Close()
	names := segments(b, dir)
	data, err := os.ReadFile(filepath.Join(dir, names[len(names)-1]))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	var scan, plain time.Duration
	for b.Loop() {
		start := time.Now()
		var s scanner
		if br, _ := s.scanFile(data, true, nil); br != nil {
			b.Fatal(br)
		}
		scan += time.Since(start)
		start = time.Now()
		sha256.Sum256(data)
		plain += time.Since(start)
	}
	b.ReportMetric(float64(plain)/float64(scan), "sha256-ratio")
}
