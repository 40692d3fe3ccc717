package vault

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what an item may have beyond its first form.
const (
	maxItemLabel = 64
	maxSource    = maxSourceName + 1 + maxReference
	// maxTime is a moment in milliseconds that every reader can hold exactly; it
	// is in the year 287396.
	maxTime = 1<<53 - 1
)

// hasMore says whether the item needs the form with more in it. An item without
// is written as it always was.
func (it item) hasMore() bool {
	return it.label != "" || !it.expires.IsZero() || it.hasBoundMore()
}

// hasBoundMore says the same of what is sealed with the secret. Label and expiry
// are not, so that they can be changed without it.
func (it item) hasBoundMore() bool { return it.source != "" || it.binding.hasMore() }

func (it item) encodeMore(w *writer) {
	w.str(it.label)
	if it.expires.IsZero() {
		w.u64(0)
	} else {
		w.u64(uint64(it.expires.UnixMilli()))
	}
	it.encodeBoundMore(w)
}

func (it item) encodeBoundMore(w *writer) {
	w.str(it.source)
	it.binding.encodeMore(w)
}

// decodeMore takes only what encodeMore writes.
func (it *item) decodeMore(r *reader) {
	it.label = r.str(maxItemLabel)
	ms := r.u64()
	if ms > maxTime {
		r.bad = true
	} else if ms > 0 {
		it.expires = time.UnixMilli(int64(ms))
	}
	it.source = r.str(maxSource)
	it.binding.decodeMore(r)
	if !it.hasMore() || checkLabel(it.label) != nil || checkSource(it.source) != nil {
		r.bad = true
	}
}

// checkLabel takes a short text that a person can read on one line.
func checkLabel(s string) error {
	if len(s) > maxItemLabel || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: its label must be at most %d bytes of printable text", ErrBadIdentity, maxItemLabel)
	}
	return nil
}

// checkSource takes "" and a NAME:REFERENCE that a source could have.
func checkSource(s string) error {
	if s == "" {
		return nil
	}
	if _, _, err := SplitSource(s); err != nil {
		return fmt.Errorf("%w: %w", ErrBadIdentity, err)
	}
	return nil
}

// checkExpiry takes no moment and one that the file can hold.
func checkExpiry(t time.Time) error {
	if !t.IsZero() && (t.UnixMilli() <= 0 || t.UnixMilli() > maxTime) {
		return fmt.Errorf("%w: its expiry is not a date that can be kept", ErrBadIdentity)
	}
	return nil
}
