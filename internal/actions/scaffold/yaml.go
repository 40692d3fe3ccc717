package scaffold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"chatelaine/internal/validate"
)

// pair is one member of a tree.
type pair struct {
	key   string
	value any
}

// tree is a mapping whose order is kept: people read what is written.
type tree []pair

// plain is the tree as the parser of JSON would give it.
func (t tree) plain() any {
	out := make(map[string]any, len(t))
	for _, p := range t {
		out[p.key] = plainValue(p.value)
	}
	return out
}

func plainValue(v any) any {
	switch v := v.(type) {
	case tree:
		return v.plain()
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plainValue(x)
		}
		return out
	case int:
		return json.Number(strconv.Itoa(v))
	}
	return v
}

// plainWord is text that YAML reads as itself in every place.
var plainWord = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// otherMeaning are words that some reader of YAML takes for something else than
// text.
var otherMeaning = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"}

// quoted writes a text so that our strict reader gives it back.
func quoted(s string) string {
	if plainWord.MatchString(s) && !slices.Contains(otherMeaning, strings.ToLower(s)) {
		return s
	}
	if !strings.ContainsFunc(s, steers) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	// JSON's escapes are YAML's too.
	var b strings.Builder
	for _, r := range string(validate.Canonical(strings.ToValidUTF8(s, "\ufffd"))) {
		if !steers(r) || r == unicode.ReplacementChar {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

// plainLine is text that YAML reads as itself at the end of a line, though not in
// brackets: sentences, addresses and paths with placeholders.
var plainLine = regexp.MustCompile(`^(https?://|[A-Za-z/])([A-Za-z0-9 ,.;()/_{}~-]|:[0-9])*$`)

// lineText writes a text that stands alone behind its key.
func lineText(s string) string {
	if plainLine.MatchString(s) && strings.TrimSpace(s) == s && !slices.Contains(otherMeaning, strings.ToLower(s)) {
		return s
	}
	return quoted(s)
}

// Hidden says whether a text holds characters that a reviewer does not see.
func Hidden(s string) bool { return strings.ContainsFunc(s, steers) }

// steers says whether a character would move a line or its reader.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
}

// flow writes a value on one line.
func flow(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return quoted(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case json.Number:
		return string(v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = flow(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case tree:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = quoted(p.key) + ": " + flow(p.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case map[string]any:
		return string(validate.Canonical(v)) // JSON is YAML
	}
	return fmt.Sprintf("%v", v)
}

// oneLine makes what came from elsewhere fit a comment or a list: one line,
// nothing that steers, at most so many characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, " "), func(r rune) bool { return unicode.IsSpace(r) || steers(r) }), " ")
	if rs := []rune(s); len(rs) > most {
		return strings.TrimSpace(string(rs[:most-1])) + "…"
	}
	return s
}
