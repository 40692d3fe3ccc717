package validate

import "strings"

// DisplayText is text of the remote system for people. It is untrusted: it
// stands beside the data, never in it.
type DisplayText struct {
	Text      string
	Truncated bool
}

// cleanDisplay removes control characters (newline and tab stay) and the
// characters that turn the direction of text, then cuts at the bound. A newline
// ends a line: where nothing follows it, it begins none.
func cleanDisplay(s string, b DisplayBound) DisplayText {
	var out strings.Builder
	count, ended := 0, 0
	for _, r := range s {
		if isControl(r) || isBidi(r) {
			continue
		}
		if ended >= b.Lines { // the newline before this one is the last that counts
			return DisplayText{strings.TrimSuffix(out.String(), "\n"), true}
		}
		if count++; count > b.Max {
			return DisplayText{out.String(), true}
		}
		if r == '\n' {
			ended++
		}
		out.WriteRune(r)
	}
	return DisplayText{Text: out.String()}
}

// isControl takes C0, DEL and C1, but for newline and tab.
func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}

// isBidi takes the characters of Unicode's Bidi_Control property.
func isBidi(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
