package validate

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// conversion is one declared conversion. It returns false where the value is
// not of the form that it reads; nothing is repaired.
type conversion struct {
	rule  string
	apply func(v any, src source) (any, bool)
}

// onText makes a conversion of a string into another.
func onText(rule string, f func(string) (string, bool)) conversion {
	return conversion{rule, func(v any, _ source) (any, bool) {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		s, ok = f(s)
		return s, ok
	}}
}

// conversions lists those that a pick writes, in the one order of the format.
func conversions(s PickSpec) []conversion {
	var out []conversion
	add := func(written bool, c conversion) {
		if written {
			out = append(out, c)
		}
	}
	add(s.Base64, onText("base64", decodeBase64))
	add(s.LastSegment, conversion{"last-segment", lastSegment})
	add(s.Trim, onText("trim", func(t string) (string, bool) { return strings.Trim(t, " \t\r\n\v\f"), true }))
	add(s.StripPrefix != "", onText("strip-prefix", func(t string) (string, bool) { return strings.CutPrefix(t, s.StripPrefix) }))
	add(s.Lower, onText("lower", func(t string) (string, bool) { return lowerASCII(t), true }))
	add(s.HasMap, conversion{"map", mapped(s)})
	add(s.Integer, conversion{"integer", toInteger})
	add(s.Time != "", conversion{"time", func(v any, _ source) (any, bool) { return timeForms[s.Time](v) }})
	add(s.Text, conversion{"text", toText})
	add(s.Prefix != "", onText("prefix", func(t string) (string, bool) { return s.Prefix + t, true }))
	if s.Matches != "" {
		re := regexp.MustCompile(s.Matches) // checkPick has compiled it before
		out = append(out, onText("matches", func(t string) (string, bool) { return t, re.MatchString(t) }))
	}
	return out
}

// decodeBase64 reads standard base64 with padding (RFC 4648, section 4); line
// breaks between its lines are let through, as file services send them. What is
// inside must be UTF-8.
func decodeBase64(s string) (string, bool) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return string(b), err == nil && utf8.Valid(b)
}

// lowerASCII leaves everything outside A-Z alone: Unicode's lower case turns
// look-alikes such as the Kelvin sign into plain letters.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func mapped(s PickSpec) func(any, source) (any, bool) {
	return func(v any, _ source) (any, bool) {
		text, ok := v.(string)
		if !ok {
			return nil, false
		}
		if ours, known := s.Map[text]; known {
			return clone(ours), true
		}
		return clone(s.Other), s.HasOther
	}
}

var decimalText = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// toInteger turns decimal text into the number it spells. A number is no text.
func toInteger(v any, _ source) (any, bool) {
	s, ok := v.(string)
	return json.Number(s), ok && decimalText.MatchString(s) && numberRule(s, AnswerLimits()) == ""
}

// toText turns a number into plain decimal text.
func toText(v any, _ source) (any, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	d, ok := parseDecimal(n)
	return d.plain(), ok
}

// lastSegment gives the last non-empty segment of the path of a URL on the
// target's host. A reference that begins with one slash is on that host too.
func lastSegment(v any, src source) (any, bool) {
	s, ok := v.(string)
	if !ok || src.host == "" {
		return nil, false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Opaque != "" {
		return nil, false
	}
	switch u.Scheme {
	case "http", "https":
		if !sameHost(u, src.host) {
			return nil, false
		}
	case "":
		if u.Host != "" || !strings.HasPrefix(s, "/") {
			return nil, false
		}
	default:
		return nil, false
	}
	segment := strings.TrimRight(u.EscapedPath(), "/")
	segment = segment[strings.LastIndexByte(segment, '/')+1:]
	// An escaped segment has a second spelling; a dot segment is no name.
	if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "%\\;") {
		return nil, false
	}
	return segment, true
}

func sameHost(u *url.URL, host string) bool {
	port := u.Port()
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		return strings.EqualFold(u.Hostname(), strings.Trim(stripPort(host, port), "[]"))
	}
	return strings.EqualFold(u.Host, host)
}

func stripPort(host, port string) string { return strings.TrimSuffix(host, ":"+port) }
