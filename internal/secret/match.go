package secret

import "bytes"

// matcher rolls one window over one stream of decoded bytes.
type matcher struct {
	c    *class
	hash uint64
	n    int // bytes since the last break
	ring [ringBytes]byte
	from [ringBytes]int // where in the buffer each remembered byte began
	open [2]span        // the find in progress, forward and reversed
}

// span is a find that may still grow; it is empty when to is zero.
type span struct{ from, to int }

// stream is a matcher for each class, over the same decoded bytes.
type stream struct {
	name     string
	matchers []matcher
	hits     *[]Hit
	// A stream of unescaped bytes counts only windows that an escape touches;
	// the others are found by the plain stream. changed is where the newest
	// unescaped byte began, and every window counts where it is nil.
	changed *int
}

func (t *tables) stream(name string, hits *[]Hit, changed *int) *stream {
	s := &stream{name: name, hits: hits, changed: changed, matchers: make([]matcher, len(t.classes))}
	for i := range s.matchers {
		s.matchers[i].c = t.classes[i]
	}
	return s
}

// push takes the next decoded byte, which came from buffer bytes [from, to).
func (s *stream) push(b byte, from, to int) {
	for i := range s.matchers {
		m := &s.matchers[i]
		c := m.c
		m.hash = m.hash*c.base + uint64(b) + 1
		if m.n >= c.width {
			m.hash -= (uint64(m.ring[(m.n-c.width)%ringBytes]) + 1) * c.drop
		}
		m.ring[m.n%ringBytes] = b
		m.from[m.n%ringBytes] = from
		m.n++
		if m.n < c.width {
			continue
		}
		cell := (m.hash * c.mix) >> (64 - filterBits)
		if c.filter[cell>>6]&(1<<(cell&63)) != 0 {
			s.check(m, to)
		}
	}
}

// gap says that the next byte does not follow the last one.
func (s *stream) gap() {
	for i := range s.matchers {
		s.matchers[i].n = 0
		s.matchers[i].hash = 0
	}
}

// check compares the current window for real and keeps the find.
func (s *stream) check(m *matcher, to int) {
	ws := m.c.windows[m.hash]
	if len(ws) == 0 {
		return
	}
	from := m.from[(m.n-m.c.width)%ringBytes]
	if s.changed != nil && *s.changed < from {
		return
	}
	var text [ringBytes]byte
	for i := range m.c.width {
		text[i] = m.ring[(m.n-m.c.width+i)%ringBytes]
	}
	for _, w := range ws {
		if bytes.Equal(w.text, text[:m.c.width]) {
			s.keep(m, w.reversed, from, to)
		}
	}
}

// keep joins a find to the one before it where they touch.
func (s *stream) keep(m *matcher, reversed bool, from, to int) {
	side := 0
	if reversed {
		side = 1
	}
	o := &m.open[side]
	if o.to != 0 && from <= o.to {
		o.to = max(o.to, to)
		return
	}
	s.flushSide(m, side)
	*o = span{from, to}
}

func (s *stream) flushSide(m *matcher, side int) {
	o := m.open[side]
	if o.to == 0 {
		return
	}
	m.open[side] = span{}
	*s.hits = append(*s.hits, Hit{Offset: o.from, Length: o.to - o.from, Encoding: s.label(side == 1)})
}

func (s *stream) label(reversed bool) string {
	switch {
	case !reversed:
		return s.name
	case s.name == "raw":
		return "reversed"
	default:
		return s.name + "-reversed"
	}
}

// finish hands over the finds that were still growing.
func (s *stream) finish() {
	for i := range s.matchers {
		s.flushSide(&s.matchers[i], 0)
		s.flushSide(&s.matchers[i], 1)
	}
}
