package vault

import (
	"bytes"
	"strings"
	"testing"
)

// What a writer has outgrown holds nothing of what was written.
func TestOutgrownMemoryIsCleared(t *testing.T) {
	for name, write := range map[string]func(w *writer, n int){
		"raw": func(w *writer, n int) { w.raw(make([]byte, n)) },
		"str": func(w *writer, n int) { w.str(strings.Repeat("x", n)) },
		"u8": func(w *writer, n int) {
			for range n {
				w.u8(1)
			}
		},
		"u64": func(w *writer, n int) {
			for range n {
				w.u64(1)
			}
		},
	} {
		w := &writer{}
		w.blob([]byte(planted))
		var before [][]byte
		for n := 1; n < 2000; n *= 2 {
			before = append(before, w.b)
			write(w, n)
		}
		left := 0
		for _, b := range before {
			if bytes.Contains(b, []byte(planted)) && &b[0] != &w.b[0] {
				left++
			}
		}
		if left > 0 || !bytes.Contains(w.b, []byte(planted)) {
			t.Errorf("%s: the secret is left in memory %d times", name, left)
		}
	}
}
