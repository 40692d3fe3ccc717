package validate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pointer is a parsed JSON pointer (RFC 6901). The zero value is the whole
// document.
type Pointer struct{ tokens []string }

// ParsePointer reads the string form: "" or /-led tokens in which ~0 is ~ and
// ~1 is /.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return Pointer{}, errors.New("a JSON pointer is empty or begins with /")
	}
	if !utf8.ValidString(s) {
		return Pointer{}, errors.New("a JSON pointer is UTF-8")
	}
	tokens := strings.Split(s[1:], "/")
	for i, t := range tokens {
		plain, err := unescapeToken(t)
		if err != nil {
			return Pointer{}, fmt.Errorf("JSON pointer, part %d: %w", i+1, err)
		}
		tokens[i] = plain
	}
	return Pointer{tokens}, nil
}

func unescapeToken(t string) (string, error) {
	for i := 0; i < len(t); i++ {
		if t[i] == '~' && (i+1 == len(t) || t[i+1] != '0' && t[i+1] != '1') {
			return "", errors.New("after ~ stands 0 (for ~) or 1 (for /)")
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~"), nil
}

func escapeToken(t string) string {
	return strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
}

// Get returns what the pointer points at. An index has no leading zero; the
// place after the last element ("-") never exists in an answer.
func (p Pointer) Get(v any) (any, bool) {
	for _, t := range p.tokens {
		switch c := v.(type) {
		case map[string]any:
			e, ok := c[t]
			if !ok {
				return nil, false
			}
			v = e
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || strconv.Itoa(i) != t || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// String returns the form that ParsePointer reads.
func (p Pointer) String() string {
	var b strings.Builder
	for _, t := range p.tokens {
		b.WriteString("/" + escapeToken(t))
	}
	return b.String()
}

const (
	shownName  = 48 // code points of a foreign member name that an operator sees
	shownDepth = 24 // steps of a path that an operator sees
)

// renderPath writes a place in hostile data for an operator. A member name is
// the other side's text: it is escaped, made printable ASCII and cut.
func renderPath(tokens []string) string {
	var b strings.Builder
	for i, t := range tokens {
		if i == shownDepth {
			return b.String() + "/…"
		}
		b.WriteString("/" + showName(t))
	}
	return b.String()
}

// showName makes a hostile name safe to print: a plain name as it is, anything
// else with its odd characters written as numbers.
func showName(name string) string {
	var b strings.Builder
	n := 0
	for _, r := range escapeToken(name) {
		if n++; n > shownName {
			return b.String() + "…"
		}
		if r > unicode.MaxASCII || !unicode.IsPrint(r) || strings.ContainsRune("\"\\<>&' ", r) {
			fmt.Fprintf(&b, "{U+%04X}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
