package demo

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// needles are the spellings in which a token would be found again. The list is
// the demo's own and not the product's, so that a spelling which the product
// forgets is still found.
type needles [][]byte

// needlesOf makes the spellings of tokens of plain ASCII.
func needlesOf(tokens ...string) needles {
	var out needles
	for _, token := range tokens {
		b := []byte(token)
		back := slices.Clone(b)
		slices.Reverse(back)
		var percent, escaped strings.Builder
		for _, c := range b {
			fmt.Fprintf(&percent, "%%%02X", c)
			fmt.Fprintf(&escaped, `\u%04x`, c)
		}
		var little, big []byte
		for _, u := range utf16.Encode([]rune(token)) {
			little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
		}
		x := hex.EncodeToString(b)
		out = append(out, b, back, []byte(x), []byte(strings.ToUpper(x)), []byte(percent.String()), []byte(escaped.String()), little, big)
		for offset := range 3 {
			out = append(out, inner(base64.RawStdEncoding, b, offset), inner(base64.RawURLEncoding, b, offset))
		}
	}
	return out
}

// inner is the part of a base64 text that does not depend on what stands before
// and behind the token.
func inner(e *base64.Encoding, token []byte, offset int) []byte {
	const group = 3 // bytes that become four letters
	whole := append(make([]byte, offset), token...)
	whole = whole[:len(whole)/group*group]
	text := []byte(e.EncodeToString(whole))
	if offset > 0 {
		text = text[4:]
	}
	return text
}

// in counts the spellings that stand in b, each once.
func (n needles) in(b []byte) int {
	hits := 0
	for _, needle := range n {
		if bytes.Contains(b, needle) {
			hits++
		}
	}
	return hits
}
