package validate

import (
	"bytes"
	"fmt"
	"strconv"
)

// ParseError says why bytes are not a document that we read. It holds our rule
// and a place, never a byte of the input.
type ParseError struct {
	Rule         string // a stable id: duplicate-member, invalid-utf8, …
	Offset       int64  // byte where the trouble is, counted from zero
	Line, Column int    // the same place, counted from one, column in bytes
	Pointer      string // the value or member concerned, names quoted and cut
}

// Error gives the rule, its sentence and the place.
func (e *ParseError) Error() string {
	s := fmt.Sprintf("line %d, column %d: %s: %s", e.Line, e.Column, e.Rule, parseSentence(e.Rule))
	if e.Pointer != "" {
		s += " (at " + e.Pointer + ")"
	}
	return s
}

// The rules of Parse. Their ids are stable.
const (
	ruleSyntax    = "syntax"
	ruleTrailing  = "trailing-data"
	ruleBOM       = "bom"
	ruleUTF8      = "invalid-utf8"
	ruleSurrogate = "lone-surrogate"
	ruleDuplicate = "duplicate-member"
	ruleNumber    = "number"
	ruleBytes     = "bytes"
	ruleDepth     = "depth"
	ruleNodes     = "nodes"
	ruleString    = "string-length"
	ruleName      = "name-length"
	ruleDigits    = "number-length"
	ruleExponent  = "exponent"

	// Of the forms that are no JSON.
	ruleForm      = "form"
	ruleControl   = "control-character"
	ruleEmptyLine = "empty-line"
	ruleEmptyName = "empty-name"
	ruleSeparator = "separator"
	ruleColumns   = "columns"
	ruleLine      = "line"
	ruleNotEmpty  = "not-empty"
)

// byteOrderMark is U+FEFF in UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

var parseSentences = map[string]string{
	ruleSyntax:    "not JSON as RFC 8259 writes it",
	ruleTrailing:  "something follows the one value",
	ruleBOM:       "begins with a byte order mark",
	ruleUTF8:      "not valid UTF-8",
	ruleSurrogate: "half of a surrogate pair",
	ruleDuplicate: "the same member twice in one object",
	ruleNumber:    "not a JSON number",
	ruleBytes:     "more bytes than the limit",
	ruleDepth:     "nested deeper than the limit",
	ruleNodes:     "more values than the limit",
	ruleString:    "a string longer than the limit",
	ruleName:      "a member name longer than the limit",
	ruleDigits:    "a number of more digits than the limit",
	ruleExponent:  "a number with a larger exponent than the limit",

	ruleForm:      "no form was declared",
	ruleControl:   "a control character or another end of line",
	ruleEmptyLine: "an empty line",
	ruleEmptyName: "a key without a name",
	ruleSeparator: "a line without the separator",
	ruleColumns:   "not as many words as there are columns",
	ruleNotEmpty:  "bytes where there must be none",
	ruleLine:      "not the one line that the pattern describes",
}

func parseSentence(rule string) string { return parseSentences[rule] }

// Parse reads exactly one JSON document (RFC 8259) in one pass and refuses what
// two readers could understand differently: duplicate members (compared after
// unescaping), invalid UTF-8, half surrogates, a byte order mark, anything after
// the value. The result holds only map[string]any, []any, string, json.Number,
// bool and nil; a number keeps its exact spelling. An error is a *ParseError.
func Parse(b []byte, l Limits) (any, error) {
	p := &parser{in: b, limits: l}
	if err := p.whole(); err != nil {
		return nil, err
	}
	p.sizes = lookAhead(b, l)
	p.space()
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(b) {
		return nil, p.fail(ruleTrailing, p.pos)
	}
	return v, nil
}

// step is one move down into the document: a member name or an index.
type step struct {
	name   string
	index  int
	member bool
}

type parser struct {
	in     []byte
	pos    int
	nodes  int
	limits Limits
	path   []step // where we are, for errors and for the depth

	sizes  []uint16 // how many values each list and object holds, see lookAhead
	opened int      // how many of them are open or past
}

func (p *parser) fail(rule string, at int) *ParseError {
	before := p.in[:min(at, len(p.in))]
	line := bytes.Count(before, []byte{'\n'})
	return &ParseError{
		Rule: rule, Offset: int64(at), Line: line + 1,
		Column:  len(before) - bytes.LastIndexByte(before, '\n'),
		Pointer: renderPath(p.names()),
	}
}

func (p *parser) names() []string {
	out := make([]string, len(p.path))
	for i, s := range p.path {
		if out[i] = s.name; !s.member {
			out[i] = strconv.Itoa(s.index)
		}
	}
	return out
}

func (p *parser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the byte at the cursor, zero at the end. A zero byte in the
// input is no JSON token either, so the two need no telling apart.
func (p *parser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

func (p *parser) value() (any, error) {
	if p.nodes++; p.nodes > p.limits.Nodes {
		return nil, p.fail(ruleNodes, p.pos)
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		return p.text(p.limits.StringBytes, ruleString)
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return true, p.word("true")
	case c == 'f':
		return false, p.word("false")
	case c == 'n':
		return nil, p.word("null")
	}
	return nil, p.fail(ruleSyntax, p.pos)
}

func (p *parser) word(w string) error {
	if !bytes.HasPrefix(p.in[p.pos:], []byte(w)) {
		return p.fail(ruleSyntax, p.pos)
	}
	p.pos += len(w)
	return nil
}

// down enters an array or object; up leaves it.
func (p *parser) down() error {
	if len(p.path) >= p.limits.Depth {
		return p.fail(ruleDepth, p.pos)
	}
	p.path = append(p.path, step{})
	p.pos++
	p.space()
	return nil
}

func (p *parser) up() {
	p.path = p.path[:len(p.path)-1]
	p.pos++
}

func (p *parser) array() (any, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	out := make([]any, 0, p.room())
	if p.peek() == ']' {
		p.up()
		return out, nil
	}
	for {
		p.path[len(p.path)-1].index = len(out)
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
		case ']':
			p.up()
			return out, nil
		default:
			return nil, p.fail(ruleSyntax, p.pos)
		}
	}
}

func (p *parser) object() (any, error) {
	if err := p.down(); err != nil {
		return nil, err
	}
	out := newObject(p.room())
	if p.peek() == '}' {
		p.up()
		return out, nil
	}
	for {
		if err := p.member(out); err != nil {
			return nil, err
		}
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
		case '}':
			p.up()
			return out, nil
		default:
			return nil, p.fail(ruleSyntax, p.pos)
		}
	}
}

func (p *parser) member(out map[string]any) error {
	start, here := p.pos, &p.path[len(p.path)-1]
	*here = step{}
	if p.peek() != '"' {
		return p.fail(ruleSyntax, p.pos)
	}
	name, err := p.text(p.limits.NameBytes, ruleName)
	if err != nil {
		return err
	}
	*here = step{name: name, member: true}
	if _, ok := out[name]; ok {
		return p.fail(ruleDuplicate, start)
	}
	p.space()
	if p.peek() != ':' {
		return p.fail(ruleSyntax, p.pos)
	}
	p.pos++
	p.space()
	v, err := p.value()
	if err != nil {
		return err
	}
	out[name] = v
	return nil
}
