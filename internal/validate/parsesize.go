package validate

import "bytes"

// A list that grows while it is read is copied again and again, and an object
// too: for small values that is many times the size of the document. So one quick
// look ahead counts what each of them will hold. The counts only say how much
// memory to ask for; the parser alone decides what is a document, and a wrong
// count changes nothing that it reads.

const (
	// smallObject is how many members a Go map holds before it is laid out by a
	// size.
	smallObject = 8
	// memberBytes is the least that one of many different members takes in a
	// document: two quotes, a colon, a comma, a value and a name of two bytes.
	// An object that claims more members than fit is no document.
	memberBytes = 7
)

// container is a list or an object that the look ahead is in.
type container struct {
	at     int32 // its place among the counts
	start  int32 // its first byte
	count  int32
	object bool
	colon  bool // the name of a member is past
	filled bool // a value began, or the name of a member
}

// lookAhead counts the values of each list and object, in the order in which they
// open. It ends early where the parser will refuse.
func lookAhead(in []byte, l Limits) []uint16 {
	opens := min(bytes.Count(in, []byte{'['})+bytes.Count(in, []byte{'{'}), l.Nodes)
	if opens == 0 {
		return nil
	}
	counts := make([]uint16, 0, opens)
	open := make([]container, 0, min(l.Depth, opens))
	var here *container // the innermost; nil outside
	for i := 0; i < len(in); i++ {
		switch c := in[i]; c {
		case ' ', '\t', '\n', '\r':
		case '[', '{':
			if len(counts) == opens || len(open) == cap(open) {
				return settled(counts, open, i)
			}
			if here != nil {
				here.filled = true
			}
			open = append(open, container{at: int32(len(counts)), start: int32(i), object: c == '{'})
			counts = append(counts, 0)
			here = &open[len(open)-1]
		case ']', '}':
			if here == nil {
				return counts
			}
			here.next()
			counts[here.at] = here.fits(i)
			if open = open[:len(open)-1]; len(open) == 0 {
				return counts
			}
			here = &open[len(open)-1]
		case ',':
			if here != nil {
				here.next()
			}
		case ':':
			if here != nil {
				here.colon, here.filled = true, false
			}
		default:
			if here != nil {
				here.filled = true
			}
			if c == '"' {
				i = endOfText(in, i)
			}
		}
	}
	return settled(counts, open, len(in))
}

// settled gives what is still open the counts so far.
func settled(counts []uint16, open []container, end int) []uint16 {
	for i := range open {
		open[i].next()
		counts[open[i].at] = open[i].fits(end)
	}
	return counts
}

// next ends an element or a member, if there was one.
func (c *container) next() {
	if c.filled && (c.colon || !c.object) {
		c.count++
	}
	c.filled, c.colon = false, false
}

// fits is the count as far as it can be true.
func (c *container) fits(end int) uint16 {
	n := int(c.count)
	if c.object && n > smallObject {
		n = min(n, (end-int(c.start))/memberBytes)
	}
	return uint16(min(n, 1<<16-1))
}

// endOfText finds the closing quote of the text that begins at i.
func endOfText(in []byte, i int) int {
	for i++; i < len(in); i++ {
		switch in[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return i
}

// room is how many values the list or object that opens now will hold, as far as
// was counted.
func (p *parser) room() int {
	if p.opened >= len(p.sizes) {
		return 0
	}
	n := int(p.sizes[p.opened])
	p.opened++
	return n
}

// newObject makes the map of an object with n members.
func newObject(n int) map[string]any {
	if n <= smallObject {
		return map[string]any{} // of one size, laid out with its first member
	}
	return make(map[string]any, n)
}
