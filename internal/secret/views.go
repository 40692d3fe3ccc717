package secret

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// scanPlain reads the buffer as it is.
func (t *tables) scanPlain(b []byte, hits *[]Hit) {
	l := t.layer("", hits)
	for i, c := range b {
		l.push(c, i, i+1)
	}
	l.finish()
}

// scanPercent reads it with every %XX decoded. Where a secret has a space the
// buffer is read once more with '+' as a space, as forms do.
func (t *tables) scanPercent(b []byte, hits *[]Hit) {
	if bytes.IndexByte(b, '%') >= 0 {
		t.percent(b, false, hits)
	}
	if t.space && bytes.IndexByte(b, '+') >= 0 {
		t.percent(b, true, hits)
	}
}

func (t *tables) percent(b []byte, plus bool, hits *[]Hit) {
	l := t.layer("percent", hits)
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '%' && i+2 < len(b) && hexDigit[b[i+1]] != notDigit && hexDigit[b[i+2]] != notDigit:
			l.pushUnescaped(hexDigit[b[i+1]]<<4|hexDigit[b[i+2]], i, i+3)
			i += 2
		case plus && b[i] == '+':
			l.pushUnescaped(' ', i, i+1)
		default:
			l.push(b[i], i, i+1)
		}
	}
	l.finish()
}

// scanJSON reads it with JSON's escapes decoded. A secret with bytes above 0x7f
// may have been escaped as UTF-8 text or byte by byte, so both are tried.
func (t *tables) scanJSON(b []byte, hits *[]Hit) {
	if bytes.IndexByte(b, '\\') < 0 {
		return
	}
	t.json(b, false, hits)
	if t.nonASCII {
		t.json(b, true, hits)
	}
}

func (t *tables) json(b []byte, latin bool, hits *[]Hit) {
	l := t.layer("json", hits)
	for i := 0; i < len(b); {
		r, n := jsonEscape(b[i:])
		if n == 0 {
			l.push(b[i], i, i+1)
			i++
			continue
		}
		eachByte(r, latin, func(c byte) { l.pushUnescaped(c, i, i+n) })
		i += n
	}
	l.finish()
}

// eachByte gives the bytes that a code point stands for: one byte where latin
// is set and it fits, UTF-8 otherwise.
func eachByte(r rune, latin bool, f func(byte)) {
	if r < utf8.RuneSelf || latin && r <= 0xff {
		f(byte(r))
		return
	}
	var buf [utf8.UTFMax]byte
	for _, c := range buf[:utf8.EncodeRune(buf[:], r)] {
		f(c)
	}
}

// jsonEscape reads one escape sequence (RFC 8259 section 7) at the start of b
// and returns its code point and length; the length is zero where there is
// none.
func jsonEscape(b []byte) (rune, int) {
	if len(b) < 2 || b[0] != '\\' {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := jsonUnit(b)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := jsonUnit(b[6:]); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full, 12
			}
		}
	}
	return r, 6
}

// jsonUnit reads \uXXXX.
func jsonUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		v := hexDigit[c]
		if v == notDigit {
			return 0, false
		}
		r = r<<4 | rune(v)
	}
	return r, true
}

// scanUTF16 reads it as 16-bit units of both byte orders, from both parities.
// Units of ASCII text hold a zero byte, so a buffer without one is left out
// unless a secret has other characters.
func (t *tables) scanUTF16(b []byte, hits *[]Hit) {
	if !t.nonASCII && bytes.IndexByte(b, 0) < 0 {
		return
	}
	for parity := range 2 {
		t.utf16(b, parity, "utf-16le", func(x, y byte) rune { return rune(y)<<8 | rune(x) }, hits)
		t.utf16(b, parity, "utf-16be", func(x, y byte) rune { return rune(x)<<8 | rune(y) }, hits)
	}
}

func (t *tables) utf16(b []byte, parity int, name string, unit func(x, y byte) rune, hits *[]Hit) {
	s := t.stream(name, hits, nil)
	latin := t.stream(name, hits, nil)
	for i := parity; i+1 < len(b); {
		r, n := unit(b[i], b[i+1]), 2
		if utf16.IsSurrogate(r) && i+3 < len(b) {
			if full := utf16.DecodeRune(r, unit(b[i+2], b[i+3])); full != utf8.RuneError {
				r, n = full, 4
			}
		}
		if r >= utf8.RuneSelf && !t.nonASCII {
			s.gap()
			i += n
			continue
		}
		eachByte(r, false, func(c byte) { s.push(c, i, i+n) })
		if t.nonASCII {
			eachByte(r, true, func(c byte) { latin.push(c, i, i+n) })
		}
		i += n
	}
	s.finish()
	latin.finish()
}
