package vault

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// What a token endpoint answers is read here and not by package validate, for
// two reasons: this room may not import it, and a token must never become a Go
// string, which nothing can clear. The rules are the same, and a fuzz test holds
// the two readers together: what is read here, that one reads too, alike.
const (
	// tokenAnswerBytes is the executor's own limit. GitHub describes every
	// repository of a token in the answer, some thousand bytes each.
	tokenAnswerBytes = 1 << 20
	// tokenAnswerDepth is twice what a description of a repository reaches.
	tokenAnswerDepth = 16
	// tokenAnswerNodes allows five hundred repositories of a hundred members.
	tokenAnswerNodes = 50_000
	tokenNameBytes   = 1024
	// tokenNumberBytes is far above any count of seconds or id.
	tokenNumberBytes = 64
)

// errNotObject says nothing of what was read: a token may stand anywhere in it.
var errNotObject = errors.New("the answer is not one JSON object as the strict rules want it")

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	jsonNull jsonKind = iota + 1
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonValue is one value. The text of a string is its unescaped bytes, in memory
// of its own; that of all else is as written, in the memory of the answer. The
// zero value is no value.
type jsonValue struct {
	kind jsonKind
	text []byte
}

// jsonMembers are the members of one object.
type jsonMembers map[string]jsonValue

// wipe clears every string.
func (m jsonMembers) wipe() {
	for _, v := range m {
		if v.kind == jsonString {
			clear(v.text)
		}
	}
}

// text returns a member's string; false where it is absent or something else.
func (m jsonMembers) str(name string) ([]byte, bool) {
	v := m[name]
	return v.text, v.kind == jsonString
}

// readObject reads exactly one JSON object (RFC 8259) and refuses what two
// readers could understand differently: duplicate members at any depth (compared
// after unescaping), invalid UTF-8, half surrogates, a byte order mark, anything
// after the value. The caller wipes what it gets.
func readObject(b []byte) (jsonMembers, error) {
	p := &jsonReader{in: b}
	if len(b) > tokenAnswerBytes {
		return nil, errNotObject
	}
	p.space()
	m := jsonMembers{}
	ok := p.peek() == '{' && p.count() && p.members(1, m)
	p.space()
	if !ok || p.pos != len(b) {
		m.wipe()
		return nil, errNotObject
	}
	return m, nil
}

// readObjects reads the objects of an array that was read already; false where it is
// something else, or holds something else. The caller wipes what it gets.
func readObjects(v jsonValue) ([]jsonMembers, bool) {
	if v.kind != jsonArray {
		return nil, false
	}
	var all []jsonMembers
	p := &jsonReader{in: v.text, pos: 1}
	for p.space(); p.peek() != ']'; p.space() {
		one, ok := p.value(1)
		if ok = ok && one.kind == jsonObject; !ok {
			return all, false
		}
		m, err := readObject(one.text)
		if err != nil {
			return all, false
		}
		all = append(all, m)
		p.space()
		p.take(',')
	}
	return all, true
}

// jsonReader stands at one byte of an answer. Every method says whether what it
// read keeps the rules.
type jsonReader struct {
	in    []byte
	pos   int
	nodes int
}

func (p *jsonReader) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

func (p *jsonReader) space() {
	for p.pos < len(p.in) && bytes.IndexByte([]byte(" \t\r\n"), p.in[p.pos]) >= 0 {
		p.pos++
	}
}

// take passes one byte that must come next.
func (p *jsonReader) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *jsonReader) count() bool {
	p.nodes++
	return p.nodes <= tokenAnswerNodes
}

// members reads an object into m; the cursor stands on its brace.
func (p *jsonReader) members(depth int, m jsonMembers) bool {
	if depth > tokenAnswerDepth {
		return false
	}
	p.pos++
	p.space()
	if p.take('}') {
		return true
	}
	for {
		if !p.member(depth, m) {
			return false
		}
		p.space()
		if !p.take(',') {
			return p.take('}')
		}
		p.space()
	}
}

func (p *jsonReader) member(depth int, m jsonMembers) bool {
	if p.peek() != '"' {
		return false
	}
	name, ok := p.text()
	if _, taken := m[string(name)]; !ok || taken || len(name) > tokenNameBytes {
		return false
	}
	p.space()
	if !p.take(':') {
		return false
	}
	p.space()
	v, ok := p.value(depth)
	m[string(name)] = v
	return ok
}

// value reads one value at the cursor, which lies in something of that depth.
func (p *jsonReader) value(depth int) (jsonValue, bool) {
	if !p.count() {
		return jsonValue{}, false
	}
	from := p.pos
	switch c := p.peek(); {
	case c == '"':
		text, ok := p.text()
		return jsonValue{jsonString, text}, ok
	case c == '{':
		inner := jsonMembers{}
		ok := p.members(depth+1, inner)
		inner.wipe()
		return jsonValue{jsonObject, p.in[from:p.pos]}, ok
	case c == '[':
		ok := p.array(depth + 1)
		return jsonValue{jsonArray, p.in[from:p.pos]}, ok
	case c == '-' || c >= '0' && c <= '9':
		ok := p.number()
		return jsonValue{jsonNumber, p.in[from:p.pos]}, ok
	}
	for word, kind := range map[string]jsonKind{"true": jsonBool, "false": jsonBool, "null": jsonNull} {
		if bytes.HasPrefix(p.in[p.pos:], []byte(word)) {
			p.pos += len(word)
			return jsonValue{kind, p.in[from:p.pos]}, true
		}
	}
	return jsonValue{}, false
}

func (p *jsonReader) array(depth int) bool {
	if depth > tokenAnswerDepth {
		return false
	}
	p.pos++
	p.space()
	if p.take(']') {
		return true
	}
	for {
		v, ok := p.value(depth)
		if v.kind == jsonString {
			clear(v.text)
		}
		if !ok {
			return false
		}
		p.space()
		if !p.take(',') {
			return p.take(']')
		}
		p.space()
	}
}

func (p *jsonReader) digits() int {
	from := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos - from
}

// number reads a number as RFC 8259 section 6 writes it.
func (p *jsonReader) number() bool {
	from := p.pos
	p.take('-')
	first := p.peek()
	if n := p.digits(); n == 0 || first == '0' && n > 1 {
		return false
	}
	if p.take('.') && p.digits() == 0 {
		return false
	}
	if p.peek()|0x20 == 'e' {
		p.pos++
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			return false
		}
	}
	return p.pos-from <= tokenNumberBytes
}

var jsonEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// text reads a string into memory of its own; the cursor stands on its quote.
// The room is taken once, so that no half of a token is left behind in memory
// that was outgrown: unescaped text is never longer than escaped.
func (p *jsonReader) text() ([]byte, bool) {
	p.pos++
	out := make([]byte, 0, p.room())
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case c == '"':
			p.pos++
			return out, true
		case c < 0x20:
			return out, false
		case c == '\\':
			r, ok := p.escape()
			if !ok {
				return out, false
			}
			out = utf8.AppendRune(out, r)
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.pos++
		default:
			r, n := utf8.DecodeRune(p.in[p.pos:])
			if r == utf8.RuneError && n == 1 {
				return out, false
			}
			out = append(out, p.in[p.pos:p.pos+n]...)
			p.pos += n
		}
	}
	return out, false
}

// room is how far the string at the cursor reaches.
func (p *jsonReader) room() int {
	for i := p.pos; i < len(p.in); i++ {
		switch p.in[i] {
		case '"':
			return i - p.pos
		case '\\':
			i++
		}
	}
	return 0
}

// escape reads one escape; the cursor stands on its backslash.
func (p *jsonReader) escape() (rune, bool) {
	p.pos++
	if short := jsonEscapes[p.peek()]; short != 0 {
		p.pos++
		return rune(short), true
	}
	r, ok := p.hex4()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if !p.take('\\') {
		return 0, false
	}
	low, ok := p.hex4()
	r = utf16.DecodeRune(r, low)
	return r, ok && r != utf8.RuneError
}

// hex4 reads u and four hex digits.
func (p *jsonReader) hex4() (rune, bool) {
	if !p.take('u') || len(p.in)-p.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p.in[p.pos : p.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return r, true
}
