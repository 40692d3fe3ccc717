package actions

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// pathValue renders one value for a path, or says why it cannot. It is applied
// to every value again at each call, whatever the schema promised.
func pathValue(v any, mode byte) (string, error) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		text, err := decimalText(v)
		if err != nil || strings.ContainsAny(text, "-.") {
			return "", fmt.Errorf("not a whole number of 0 or more")
		}
		s = text
	default:
		return "", fmt.Errorf("not a text or a number")
	}
	parts := []string{s}
	if mode != 's' {
		parts = strings.Split(s, "/")
	}
	for _, p := range parts {
		switch {
		case p == "":
			return "", fmt.Errorf("empty")
		case p == "." || p == "..":
			return "", fmt.Errorf("a dot segment")
		case !segmentText.MatchString(p):
			return "", fmt.Errorf("a character that a path cannot have")
		}
	}
	if mode == '%' {
		return strings.Join(parts, "%2F"), nil
	}
	return s, nil
}

// operatorPath renders one of the operator's constants, which are escaped.
func operatorPath(v any, mode byte) (string, error) {
	s, ok := v.(string)
	if !ok {
		return pathValue(v, mode)
	}
	parts := strings.Split(s, "/")
	for i, p := range parts {
		switch {
		case p == "" || p == "." || p == "..":
			return "", fmt.Errorf("empty or a dot segment")
		case strings.ContainsAny(p, "\\\x00\r\n"):
			return "", fmt.Errorf("a backslash or a control character")
		}
		parts[i] = url.PathEscape(p)
	}
	if mode == '/' {
		return strings.Join(parts, "/"), nil
	}
	return strings.Join(parts, "%2F"), nil
}

// pathError says what made a path impossible: input is the caller's value, ""
// where it was none.
type pathError struct {
	input string
	// captured says that the value came with an answer.
	captured bool
	cause    error
}

func (e *pathError) Error() string { return "the path cannot be built: " + e.cause.Error() }
func (e *pathError) Unwrap() error { return e.cause }

// build fills the template. It returns the escaped path, without base path.
func (t *pathTemplate) build(e env) (string, error) {
	var b strings.Builder
	for _, seg := range t.segments {
		b.WriteByte('/')
		text, err := fillSegment(seg, e)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func fillSegment(seg []pathPart, e env) (text string, err error) {
	from := &pathError{}
	fail := func(format string, args ...any) (string, error) {
		from.cause = fmt.Errorf(format, args...)
		return "", from
	}
	for _, p := range seg {
		if p.path == "" {
			text += p.lit
			continue
		}
		root, rest, _ := strings.Cut(p.path, ".")
		_, looked := e.looked[root]
		from.captured = from.captured || looked || root == stepRequest
		if root == "input" {
			from.input = rest
		}
		v, ok := e.lookup(p.path)
		if !ok {
			return fail("%s is absent", p.path)
		}
		fill := pathValue
		if root == "target" {
			fill = operatorPath
		}
		s, err := fill(v, p.mode)
		if err != nil {
			return fail("%s: %w", p.path, err)
		}
		text += s
	}
	if text == "." || text == ".." {
		return fail("a dot segment")
	}
	return text, nil
}

// placeholders lists the template's placeholders, none of one that was refused.
func (t *pathTemplate) placeholders() []pathPart {
	if t == nil {
		return nil
	}
	var out []pathPart
	for _, seg := range t.segments {
		for _, p := range seg {
			if p.path != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

// pathInputs lists the inputs in the template.
func (t *pathTemplate) pathInputs() []pathPart {
	return slices.DeleteFunc(t.placeholders(), func(p pathPart) bool { return !strings.HasPrefix(p.path, "input.") })
}

// constant says whether the template has no placeholder.
func (t *pathTemplate) constant() bool { return len(t.placeholders()) == 0 }
