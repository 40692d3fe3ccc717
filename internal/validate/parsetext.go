package validate

import (
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string; the cursor stands on its first quote. max bounds its
// bytes after unescaping, rule names that bound.
func (p *parser) text(max int, rule string) (string, error) {
	start := p.pos
	p.pos++
	plain, err := p.run()
	if err != nil {
		return "", err
	}
	if p.peek() == '"' && p.pos < len(p.in) {
		p.pos++
		if len(plain) > max {
			return "", p.fail(rule, start)
		}
		return string(plain), nil
	}
	out := append([]byte(nil), plain...)
	for {
		if out, err = p.escape(out); err != nil {
			return "", err
		}
		if plain, err = p.run(); err != nil {
			return "", err
		}
		out = append(out, plain...)
		if len(out) > max {
			return "", p.fail(rule, start)
		}
		if p.in[p.pos] == '"' {
			p.pos++
			return string(out), nil
		}
	}
}

// run reads up to the next quote or backslash, which it leaves at the cursor.
func (p *parser) run() ([]byte, error) {
	start := p.pos
	for p.pos < len(p.in) {
		c := p.in[p.pos]
		switch {
		case c == '"' || c == '\\':
			return p.in[start:p.pos], nil
		case c < 0x20:
			return nil, p.fail(ruleSyntax, p.pos)
		case c < utf8.RuneSelf:
			p.pos++
		default:
			// DecodeRune refuses overlong forms, surrogates and what lies
			// beyond U+10FFFF.
			r, n := utf8.DecodeRune(p.in[p.pos:])
			if r == utf8.RuneError && n == 1 {
				return nil, p.fail(ruleUTF8, p.pos)
			}
			p.pos += n
		}
	}
	return nil, p.fail(ruleSyntax, p.pos)
}

var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads one escape; the cursor stands on its backslash.
func (p *parser) escape(out []byte) ([]byte, error) {
	at := p.pos
	p.pos++
	c := p.peek()
	if s := shortEscapes[c]; s != 0 {
		p.pos++
		return append(out, s), nil
	}
	if c != 'u' {
		return nil, p.fail(ruleSyntax, at)
	}
	r, ok := p.hex4()
	if !ok {
		return nil, p.fail(ruleSyntax, at)
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), nil
	}
	// The pair must be complete and in order: DecodeRune gives U+FFFD
	// otherwise, which no valid pair encodes.
	if p.peek() != '\\' {
		return nil, p.fail(ruleSurrogate, at)
	}
	p.pos++
	low, ok := rune(0), false
	if p.peek() == 'u' {
		low, ok = p.hex4()
	}
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return nil, p.fail(ruleSurrogate, at)
	}
	return utf8.AppendRune(out, r), nil
}

// hex4 reads u and four hex digits; the cursor stands on the u.
func (p *parser) hex4() (rune, bool) {
	if len(p.in)-p.pos < 5 {
		return 0, false
	}
	var r rune
	for _, c := range p.in[p.pos+1 : p.pos+5] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 5
	return r, true
}
