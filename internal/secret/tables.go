package secret

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
)

// filterBits is the size of the first, cheap test of a window: 2^16 bits are
// 8 KiB, which stays in the processor's cache and lets almost nothing through.
const filterBits = 16

// ringBytes is how many decoded bytes a matcher remembers. It is a power of two
// and not below the longest window, ShortBytes-1.
const ringBytes = 16

// class is the set of windows of one length.
type class struct {
	width   int
	base    uint64 // of the rolling hash, random and odd: an upstream cannot aim at it
	drop    uint64 // base^width, to take the oldest byte out
	mix     uint64 // random and odd: spreads the hash for the filter
	filter  [1 << (filterBits - 6)]uint64
	windows map[uint64][]window
}

// window is one piece of a secret, forward or reversed.
type window struct {
	text     []byte
	reversed bool
}

// tables is everything that a scanner knows. mu guards classes against wipe.
type tables struct {
	mu       sync.RWMutex
	classes  []*class
	nonASCII bool // some secret has a byte above 0x7f
	space    bool // some secret has a space, which '+' may stand for
}

func newTables(secrets []Secret) *tables {
	t := &tables{}
	for _, s := range secrets {
		s.Use(t.add)
	}
	return t
}

// add puts the windows of one secret in, forward and reversed.
func (t *tables) add(b []byte) {
	if len(b) == 0 {
		return
	}
	width := WindowBytes
	if len(b) < ShortBytes {
		width = len(b)
	}
	t.nonASCII = t.nonASCII || bytes.ContainsFunc(b, func(r rune) bool { return r > 0x7f })
	t.space = t.space || bytes.IndexByte(b, ' ') >= 0
	c := t.class(width)
	back := bytes.Clone(b)
	slices.Reverse(back)
	for i := 0; i+width <= len(b); i++ {
		c.add(b[i:i+width], false)
	}
	for i := 0; i+width <= len(b); i++ {
		c.add(back[i:i+width], true)
	}
	clear(back)
}

// class returns the class of that width, making it where needed.
func (t *tables) class(width int) *class {
	for _, c := range t.classes {
		if c.width == width {
			return c
		}
	}
	var seed [16]byte
	_, _ = rand.Read(seed[:]) // crypto/rand.Read never fails
	c := &class{
		width:   width,
		base:    binary.LittleEndian.Uint64(seed[:8]) | 1,
		mix:     binary.LittleEndian.Uint64(seed[8:]) | 1,
		drop:    1,
		windows: map[uint64][]window{},
	}
	for range width {
		c.drop *= c.base
	}
	t.classes = append(t.classes, c)
	return c
}

// add keeps one window once; a forward one stands before its own mirror image.
func (c *class) add(text []byte, reversed bool) {
	var h uint64
	for _, x := range text {
		h = h*c.base + uint64(x) + 1
	}
	for _, w := range c.windows[h] {
		if bytes.Equal(w.text, text) {
			return
		}
	}
	c.windows[h] = append(c.windows[h], window{text: bytes.Clone(text), reversed: reversed})
	cell := (h * c.mix) >> (64 - filterBits)
	c.filter[cell>>6] |= 1 << (cell & 63)
}

// wipe clears the windows.
func (t *tables) wipe() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.classes {
		for _, ws := range c.windows {
			for _, w := range ws {
				clear(w.text)
			}
		}
	}
	t.classes = nil
}

// scan runs every view of b once.
func (t *tables) scan(b []byte) []Hit {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.classes) == 0 {
		return nil
	}
	var hits []Hit
	t.scanPlain(b, &hits)
	t.scanUTF16(b, &hits)
	t.scanPercent(b, &hits)
	t.scanJSON(b, &hits)
	return sortHits(hits)
}
