package secret

// layer reads one stream of text three ways at once: as it is, as hex digits
// and as base64 characters. Text may start at any digit, so hex has two
// streams and base64 four.
type layer struct {
	plain   *stream
	hex     [2]*stream
	b64     [4]*stream
	changed int // where the newest unescaped byte began; only an escaped layer sets it

	hexRun  int // hex digits in a row
	hexLast byte
	hexFrom int

	b64Run  int    // base64 characters in a row
	b64Bits uint32 // the newest four of them
	b64Pos  [4]span
}

// notDigit marks characters outside an alphabet.
const notDigit = 0xff

var hexDigit, b64Digit = digitTables()

// digitTables maps characters to their values. Both base64 alphabets share one
// table: a text that mixes them is read as well, at no cost.
func digitTables() (hex, b64 [256]byte) {
	for i := range 256 {
		hex[i], b64[i] = notDigit, notDigit
	}
	for i, c := range []byte("0123456789abcdef") {
		hex[c] = byte(i)
	}
	for i, c := range []byte("ABCDEF") {
		hex[c] = byte(10 + i)
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		b64[c] = byte(i)
	}
	b64['-'], b64['_'] = 62, 63
	return hex, b64
}

// layer makes the streams; prefix names the escaping around them, "" for none.
func (t *tables) layer(prefix string, hits *[]Hit) *layer {
	l := &layer{changed: -1}
	var changed *int
	name, inner := "raw", ""
	if prefix != "" {
		changed, name, inner = &l.changed, prefix, prefix+"-"
	}
	l.plain = t.stream(name, hits, changed)
	for i := range l.hex {
		l.hex[i] = t.stream(inner+"hex", hits, changed)
	}
	for i := range l.b64 {
		l.b64[i] = t.stream(inner+"base64", hits, changed)
	}
	return l
}

// push takes the next byte of text.
func (l *layer) push(c byte, from, to int) {
	l.plain.push(c, from, to)
	l.pushHex(c, from, to)
	l.pushB64(c, from, to)
}

// pushUnescaped is push for a byte that was escaped in the buffer.
func (l *layer) pushUnescaped(c byte, from, to int) {
	l.changed = from
	l.push(c, from, to)
}

func (l *layer) pushHex(c byte, from, to int) {
	v := hexDigit[c]
	if v == notDigit {
		if l.hexRun > 0 {
			l.hexRun = 0
			l.hex[0].gap()
			l.hex[1].gap()
		}
		return
	}
	if l.hexRun > 0 {
		l.hex[l.hexRun&1].push(l.hexLast<<4|v, l.hexFrom, to)
	}
	l.hexLast, l.hexFrom = v, from
	l.hexRun++
}

func (l *layer) pushB64(c byte, from, to int) {
	v := b64Digit[c]
	if v == notDigit {
		if c != '\r' && c != '\n' { // wrapped lines are one text
			l.endB64()
		}
		return
	}
	l.b64Bits = l.b64Bits<<6 | uint32(v)
	l.b64Pos[l.b64Run&3] = span{from, to}
	l.b64Run++
	if l.b64Run >= 4 {
		l.emitB64(l.b64Run&3, l.b64Bits, l.b64Run-4, 3)
	}
}

// emitB64 pushes the first n bytes of a group of four characters whose first
// one is number start of the run.
func (l *layer) emitB64(phase int, bits uint32, start, n int) {
	for i := range n {
		from, to := l.b64Pos[(start+i)&3].from, l.b64Pos[(start+i+1)&3].to
		l.b64[phase].push(byte(bits>>(16-8*i)), from, to)
	}
}

// endB64 reads what is left of the last group in each alignment and ends the
// run. One character alone holds no byte.
func (l *layer) endB64() {
	if l.b64Run == 0 {
		return
	}
	for rest := 2; rest <= 3 && rest <= l.b64Run; rest++ {
		start := l.b64Run - rest
		l.emitB64(start&3, l.b64Bits<<(6*(4-rest)), start, rest-1)
	}
	l.b64Run = 0
	for i := range l.b64 {
		l.b64[i].gap()
	}
}

// finish ends all runs and hands over the finds.
func (l *layer) finish() {
	l.endB64()
	l.plain.finish()
	for _, s := range l.hex {
		s.finish()
	}
	for _, s := range l.b64 {
		s.finish()
	}
}
