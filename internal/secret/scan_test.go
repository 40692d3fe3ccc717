package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// encoding writes text the way an upstream might; pre and post stand around it
// in the same encoded text.
type encoding struct {
	name   string // of the hits
	encode func(pre, text, post []byte) []byte
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func wholly(f func([]byte) []byte) func(pre, text, post []byte) []byte {
	return func(pre, text, post []byte) []byte { return f(join(pre, text, post)) }
}

func b64(e *base64.Encoding) func([]byte) []byte {
	return func(b []byte) []byte { return []byte(e.EncodeToString(b)) }
}

func utf16Bytes(b []byte, little bool) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(string(b))) {
		x, y := byte(u>>8), byte(u)
		if little {
			x, y = y, x
		}
		out = append(out, x, y)
	}
	return out
}

func percentAll(b []byte) []byte {
	var out []byte
	for i, c := range b {
		format := "%%%02X"
		if i%2 == 0 {
			format = "%%%02x"
		}
		out = fmt.Appendf(out, format, c)
	}
	return out
}

func jsonAll(b []byte) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(string(b))) {
		out = fmt.Appendf(out, "\\u%04x", u)
	}
	return out
}

func reversed(b []byte) []byte {
	out := bytes.Clone(b)
	slices.Reverse(out)
	return out
}

func encodings() []encoding {
	plain := func(pre, text, post []byte) []byte { return join(pre, text, post) }
	wrapped := func(b []byte) []byte {
		text := base64.StdEncoding.EncodeToString(b)
		var out []byte
		for len(text) > 10 {
			out = append(out, text[:10]+"\r\n"...)
			text = text[10:]
		}
		return append(out, text...)
	}
	slashes := func(b []byte) []byte {
		var out []byte
		for i, c := range []byte(base64.StdEncoding.EncodeToString(b)) {
			switch {
			case i%3 == 0:
				out = fmt.Appendf(out, "\\u%04X", c)
			case c == '/':
				out = append(out, '\\', '/')
			default:
				out = append(out, c)
			}
		}
		return out
	}
	return []encoding{
		{"raw", plain},
		{"hex", wholly(func(b []byte) []byte { return []byte(hex.EncodeToString(b)) })},
		{"hex", wholly(func(b []byte) []byte { return []byte(strings.ToUpper(hex.EncodeToString(b))) })},
		{"base64", wholly(b64(base64.StdEncoding))},
		{"base64", wholly(b64(base64.RawStdEncoding))},
		{"base64", wholly(b64(base64.URLEncoding))},
		{"base64", wholly(b64(base64.RawURLEncoding))},
		{"base64", wholly(wrapped)},
		{"json-base64", wholly(slashes)},
		{"percent", wholly(percentAll)},
		{"percent-base64", func(pre, text, post []byte) []byte { return percentAll(b64(base64.StdEncoding)(join(pre, text, post))) }},
		{"json", wholly(jsonAll)},
		{"utf-16le", wholly(func(b []byte) []byte { return utf16Bytes(b, true) })},
		{"utf-16be", wholly(func(b []byte) []byte { return utf16Bytes(b, false) })},
		{"reversed", wholly(reversed)},
	}
}

func find(hits []Hit, name string) (Hit, bool) {
	for _, h := range hits {
		if h.Encoding == name {
			return h, true
		}
	}
	return Hit{}, false
}

func TestEveryEncodingAtEveryAlignment(t *testing.T) {
	for _, text := range []string{"ghp_x7Kq2LmZ9vTfW3bN8cRd5sYh1JpA4eU6", "a+b/c?d~e>f<g\"h\\i j&k", "pässwört-mit-ümläuten-😀", "0123456789abcdef", "k9$Q", "hunter2-short"} {
		s := NewScanner(New([]byte(text)))
		for _, e := range encodings() {
			for pre := range 7 {
				for post := range 4 {
					body := e.encode([]byte("<%{~}>!"[:pre]), []byte(text), []byte(";#@|"[:post]))
					b := join([]byte("\x01 answer: \""), body, []byte("\"\x01"))
					h, ok := find(s.Scan(b), e.name)
					if !ok {
						t.Fatalf("%s of %q after %d and before %d bytes is not found in %q; hits %v", e.name, text, pre, post, b, s.Scan(b))
					}
					masked := Mask(b, s.Scan(b))
					if h.Offset < 0 || h.Offset+h.Length > len(b) || len(s.Scan(masked)) != 0 {
						t.Fatalf("%s of %q: %v leaves something in %q", e.name, text, h, masked)
					}
				}
			}
		}
	}
}

func TestPartsOfASecret(t *testing.T) {
	text := []byte("ghp_x7Kq2LmZ9vTfW3bN8cRd5sYh1JpA4eU6")
	s := NewScanner(New(text))
	for _, e := range encodings() {
		for from := 0; from+WindowBytes <= len(text); from++ {
			b := e.encode([]byte("~"), text[from:from+WindowBytes], []byte("~"))
			if _, ok := find(s.Scan(b), e.name); !ok {
				t.Fatalf("%s: bytes %d to %d are not found", e.name, from, from+WindowBytes)
			}
		}
		b := e.encode([]byte("~"), text[:WindowBytes-1], []byte("~"))
		if hits := s.Scan(b); len(hits) != 0 {
			t.Errorf("%s: %d bytes alone are a hit: %v", e.name, WindowBytes-1, hits)
		}
	}
}

func TestShortSecretsAreSearchedWhole(t *testing.T) {
	for n := 2; n < ShortBytes; n++ {
		text := []byte("Zq9!xW7@kP5#mT3")[:n]
		s := NewScanner(New(text))
		for _, e := range encodings() {
			if _, ok := find(s.Scan(e.encode([]byte("-"), text, []byte("-"))), e.name); !ok {
				t.Errorf("%s of %d bytes is not found", e.name, n)
			}
			if hits := s.Scan(e.encode([]byte("-"), text[:n-1], []byte("-"))); len(hits) != 0 {
				t.Errorf("%s: %d of %d bytes are a hit", e.name, n-1, n)
			}
		}
	}
}

func TestHitsAreExact(t *testing.T) {
	text := "ghp_x7Kq2LmZ9vTfW3bN"
	s := NewScanner(New([]byte(text)))
	for _, c := range []struct {
		name, in string
		want     []Hit
	}{
		{"raw", "ab" + text + "cd", []Hit{{2, len(text), "raw"}}},
		{"two", text + "--" + text, []Hit{{0, 20, "raw"}, {22, 20, "raw"}}},
		{"hex after an odd digit", "f" + hex.EncodeToString([]byte(text)), []Hit{{1, 40, "hex"}}},
		{"one escape, then plain: the escape brings its windows", url.QueryEscape("g") + "%68" + text[2:], []Hit{{0, 15, "percent"}, {4, 18, "raw"}}},
		{"escaped, the rest plain", "\\u0067" + text[1:], []Hit{{0, 17, "json"}, {6, 19, "raw"}}},
		{"none", strings.Repeat("ghp_x7Kq2Lm ", 9), nil},
		{"empty", "", nil},
	} {
		if got := s.Scan([]byte(c.in)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFormsWithPlusForSpace(t *testing.T) {
	text := "correct horse battery staple"
	s := NewScanner(New([]byte(text)))
	if _, ok := find(s.Scan([]byte("p="+url.QueryEscape(text))), "percent"); !ok {
		t.Error("a form's spaces hide the secret")
	}
}

func TestBytesAboveASCII(t *testing.T) {
	text := []byte("\xe9\xe8-latin-one-\xff\xfe-bytes")
	s := NewScanner(New(text))
	var jsonText, wide []byte
	for _, c := range text {
		jsonText = fmt.Appendf(jsonText, "\\u%04X", c)
		wide = append(wide, c, 0)
	}
	for name, b := range map[string][]byte{"json": jsonText, "utf-16le": wide, "percent": percentAll(text), "raw": text} {
		if _, ok := find(s.Scan(b), name); !ok {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestSeveralSecrets(t *testing.T) {
	long, short := "ghp_x7Kq2LmZ9vTfW3bN", "k9$Q!"
	s := NewScanner(New([]byte(long)), Secret{}, New([]byte(short)))
	hits := s.Scan([]byte("x " + short + " y " + long))
	if want := []Hit{{2, 5, "raw"}, {10, 20, "raw"}}; !slices.Equal(hits, want) {
		t.Errorf("got %v, want %v", hits, want)
	}
}

func TestScannerWithoutSecrets(t *testing.T) {
	wiped := NewScanner(New([]byte(planted)))
	wiped.Wipe()
	var none *Scanner
	none.Wipe()
	for name, s := range map[string]*Scanner{"nil": none, "zero": {}, "no secrets": NewScanner(), "empty secret": NewScanner(New(nil)), "wiped": wiped} {
		if hits := s.Scan([]byte(planted)); hits != nil {
			t.Errorf("%s: got %v", name, hits)
		}
	}
}

func TestMask(t *testing.T) {
	in := []byte("0123456789")
	got := Mask(in, []Hit{{2, 3, "raw"}, {4, 2, "hex"}, {-5, 6, "raw"}, {9, 100, "raw"}, {50, 5, "raw"}})
	if string(got) != "*1****678*" || string(in) != "0123456789" {
		t.Errorf("got %q from %q", got, in)
	}
	if got := Mask(nil, []Hit{{0, 4, "raw"}}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

// FuzzScan holds the scanner against encoding and bytes.Contains: what they
// find, it finds, and what it reports holds the secret.
func FuzzScan(f *testing.F) {
	f.Add([]byte("ghp_x7Kq2LmZ9vTfW3bN"), []byte("pre"), []byte("post"), uint8(0), uint8(0))
	f.Add([]byte("k9$Q"), []byte("%%\\u"), []byte("=="), uint8(9), uint8(3))
	f.Add(bytes.Repeat([]byte("a"), 40), bytes.Repeat([]byte("a"), 100), []byte("b"), uint8(3), uint8(20))
	f.Add([]byte("\xff\x00pässwört-mit\\\""), []byte{0, 0, 1}, []byte("\xd8\x00\xdc\x00"), uint8(12), uint8(1))
	all := encodings()
	f.Fuzz(func(t *testing.T, text, pre, post []byte, which, from uint8) {
		if len(text) == 0 || len(text) > 200 || len(pre)+len(post) > 4000 {
			return
		}
		s := NewScanner(New(text))
		for _, h := range s.Scan(join(pre, post)) {
			checkHit(t, join(pre, post), text, h)
		}
		e := all[int(which)%len(all)]
		piece := text
		if len(text) >= ShortBytes {
			at := int(from) % (len(text) - WindowBytes + 1)
			piece = text[at : at+WindowBytes]
		}
		if strings.HasPrefix(e.name, "utf") || e.name == "json" {
			piece = []byte(strings.ToValidUTF8(string(piece), ""))
			if len(piece) < min(len(text), WindowBytes) || len(text) < ShortBytes && len(piece) != len(text) {
				return
			}
		}
		body := e.encode(nil, piece, nil)
		b := join(pre, []byte("\x01"), body, []byte("\x01"), post)
		if !covered(s.Scan(b), len(pre)+1, len(body)) {
			t.Fatalf("%s of %q is not found in %q: %v", e.name, piece, b, s.Scan(b))
		}
		for _, h := range s.Scan(b) {
			checkHit(t, b, text, h)
		}
	})
}

// covered says whether some hit lies over the encoded piece.
func covered(hits []Hit, from, n int) bool {
	for _, h := range hits {
		if h.Offset < from+n && h.Offset+h.Length > from {
			return true
		}
	}
	return false
}

// checkHit decodes the reported bytes in the reported encoding, naively, and
// looks for a window of the secret.
func checkHit(t *testing.T, b, text []byte, h Hit) {
	t.Helper()
	if h.Offset < 0 || h.Length <= 0 || h.Offset+h.Length > len(b) {
		t.Fatalf("%v lies outside %d bytes", h, len(b))
	}
	part := b[h.Offset : h.Offset+h.Length]
	width := WindowBytes
	if len(text) < ShortBytes {
		width = len(text)
	}
	for _, decoded := range naive(part, h.Encoding) {
		for i := 0; i+width <= len(text); i++ {
			w := text[i : i+width]
			if bytes.Contains(decoded, w) || bytes.Contains(decoded, reversed(w)) {
				return
			}
		}
	}
	t.Fatalf("%v is no %s of %q: %q", h, h.Encoding, text, part)
}

func naive(part []byte, name string) [][]byte {
	name = strings.TrimSuffix(name, "-reversed")
	outer, inner, nested := strings.Cut(name, "-")
	if nested && outer != "utf" {
		var out [][]byte
		for _, d := range naive(part, outer) {
			out = append(out, naive(d, inner)...)
		}
		return out
	}
	switch name {
	case "hex":
		d, _ := hex.DecodeString(string(part))
		return [][]byte{d}
	case "base64":
		var out [][]byte
		clean := strings.NewReplacer("\r", "", "\n", "", "-", "+", "_", "/").Replace(string(part))
		for skip := range 4 {
			d, _ := base64.RawStdEncoding.DecodeString(strings.Repeat("A", skip) + clean)
			out = append(out, d)
			for cut := range 4 {
				if cut < len(clean) {
					d, _ := base64.RawStdEncoding.DecodeString(strings.Repeat("A", skip) + clean[:len(clean)-cut])
					out = append(out, d)
				}
			}
		}
		return out
	case "percent":
		return [][]byte{naivePercent(part, false), naivePercent(part, true)}
	case "json":
		return [][]byte{naiveJSON(part, false), naiveJSON(part, true)}
	case "utf-16le", "utf-16be":
		var units []uint16
		for i := 0; i+1 < len(part); i += 2 {
			x, y := uint16(part[i]), uint16(part[i+1])
			if name == "utf-16le" {
				x, y = y, x
			}
			units = append(units, x<<8|y)
		}
		var latin []byte
		for _, r := range utf16.Decode(units) {
			if r < 0x100 {
				latin = append(latin, byte(r))
			} else {
				latin = append(latin, string(r)...)
			}
		}
		return [][]byte{[]byte(string(utf16.Decode(units))), latin}
	}
	return [][]byte{part}
}

func naivePercent(b []byte, plus bool) []byte {
	var out []byte
	for i := 0; i < len(b); i++ {
		if b[i] == '%' && i+2 < len(b) {
			if d, err := hex.DecodeString(string(b[i+1 : i+3])); err == nil {
				out = append(out, d...)
				i += 2
				continue
			}
		}
		if plus && b[i] == '+' {
			out = append(out, ' ')
			continue
		}
		out = append(out, b[i])
	}
	return out
}

func naiveJSON(b []byte, latin bool) []byte {
	var out []byte
	for len(b) > 0 {
		r, n := jsonEscape(b)
		switch {
		case n == 0:
			out = append(out, b[0])
			n = 1
		case r < 0x80 || latin && r < 0x100:
			out = append(out, byte(r))
		default:
			out = append(out, string(r)...)
		}
		b = b[n:]
	}
	return out
}
