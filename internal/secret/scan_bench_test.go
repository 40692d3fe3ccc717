package secret

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// answers are bodies of 1 MiB: an ordinary one and those made to be slow.
func answers(text string) map[string][]byte {
	const size = 1 << 20
	fill := func(s string) []byte { return []byte(strings.Repeat(s, size/len(s)+1)[:size]) }
	return map[string][]byte{
		"json":           fill(`{"id":12345,"name":"build-worker","state":"running","at":"2026-11-30T16:00:00Z"},`),
		"base64":         fill("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODk"),
		"escapes":        fill(`\u0041%42\u0043%44`),
		"zeros":          make([]byte, size),
		"almost the key": fill(text[:WindowBytes-1] + "."),
		"the key itself": fill(text),
		"one letter":     fill("a"),
	}
}

// TestScanIsLinear makes the worst bodies 16 times longer: the time must not
// grow 256 times. The bound is wide, since machines are busy.
func TestScanIsLinear(t *testing.T) {
	text := strings.Repeat("a", 64)
	s := NewScanner(New([]byte(text)))
	for name, b := range answers(text) {
		took := func(b []byte) time.Duration {
			best := time.Hour
			for range 3 {
				start := time.Now()
				s.Scan(b)
				best = min(best, time.Since(start))
			}
			return best
		}
		small, large := took(b[:len(b)/64]), took(b[:len(b)/4])
		if large > 16*12*max(small, 3*time.Millisecond) {
			t.Errorf("%s: %s for 16 KiB, %s for 256 KiB", name, small, large)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	text := "ghp_x7Kq2LmZ9vTfW3bN8cRd5sYh1JpA4eU6"
	s := NewScanner(New([]byte(text)))
	for name, body := range answers(text) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				s.Scan(body)
			}
		})
	}
}

// BenchmarkContains is the lower bound: one encoding, whole, with the standard
// library.
func BenchmarkContains(b *testing.B) {
	text := []byte("ghp_x7Kq2LmZ9vTfW3bN8cRd5sYh1JpA4eU6")
	for name, body := range answers(string(text)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				bytes.Contains(body, text)
			}
		})
	}
}

func BenchmarkNewScanner(b *testing.B) {
	s := New([]byte("ghp_x7Kq2LmZ9vTfW3bN8cRd5sYh1JpA4eU6"))
	for b.Loop() {
		NewScanner(s)
	}
}
