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
