package vault

import "encoding/binary"

// writer builds the binary forms of docs/vault.md. Numbers are big-endian. What is
// written may be secret, so memory that is outgrown is cleared; the slice that it
// begins with is its own.
type writer struct{ b []byte }

// room makes place for n more bytes.
func (w *writer) room(n int) []byte {
	if cap(w.b)-len(w.b) < n {
		b := append(make([]byte, 0, 2*cap(w.b)+n), w.b...)
		clear(w.b)
		w.b = b
	}
	return w.b
}

func (w *writer) u8(n uint8)   { w.b = append(w.room(1), n) }
func (w *writer) u16(n uint16) { w.b = binary.BigEndian.AppendUint16(w.room(2), n) }
func (w *writer) u32(n uint32) { w.b = binary.BigEndian.AppendUint32(w.room(4), n) }
func (w *writer) u64(n uint64) { w.b = binary.BigEndian.AppendUint64(w.room(8), n) }
func (w *writer) raw(b []byte) { w.b = append(w.room(len(b)), b...) }

// str writes a text of at most 65,535 bytes; every text's limit is far below.
func (w *writer) str(s string) {
	w.u16(uint16(len(s)))
	w.b = append(w.room(len(s)), s...)
}

// blob writes bytes with a 32-bit length.
func (w *writer) blob(b []byte) {
	w.u32(uint32(len(b)))
	w.raw(b)
}

// reader takes them apart. After the first mistake it yields zeros and bad
// stays set, so that a parser checks once at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// fill reads exactly len(dst) bytes.
func (r *reader) fill(dst []byte) { copy(dst, r.take(len(dst))) }

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// str reads a text of at most limit bytes.
func (r *reader) str(limit int) string {
	n := int(r.u16())
	if n > limit {
		r.bad = true
	}
	return string(r.take(n))
}

// blob reads bytes, at most limit of them.
func (r *reader) blob(limit int) []byte {
	n := r.u32()
	if uint64(n) > uint64(limit) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

// done says whether everything was read and nothing was wrong.
func (r *reader) done() bool { return !r.bad && len(r.b) == 0 }
