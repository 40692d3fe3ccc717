package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf16"
)

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
