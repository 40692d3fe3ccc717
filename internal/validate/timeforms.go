package validate

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// timeForms are the forms of time that a pick can turn into RFC 3339 UTC. The
// fraction is kept as it came, up to nine digits; a longer one is refused.
var timeForms = map[string]func(any) (string, bool){
	"rfc3339":       textTime(parseDateTime),
	"rfc3339_loose": textTime(parseLoose),
	"http_date":     textTime(parseHTTPDate),
	"unix_seconds":  unixTime(0),
	"unix_millis":   unixTime(3),
	"unix_nanos":    unixTime(9),
}

func textTime(parse func(string) (instant, bool)) func(any) (string, bool) {
	return func(v any) (string, bool) {
		s, ok := v.(string)
		if !ok {
			return "", false
		}
		i, ok := parse(s)
		if !ok {
			return "", false
		}
		return i.utc(), true
	}
}

// parseLoose reads what services write that is nearly RFC 3339: a space for the
// T, a comma before the fraction, a zone as Z, UTC, GMT, ±hh:mm, ±hhmm or ±hh,
// a space before it. A zone must be there: none is ever assumed.
func parseLoose(s string) (instant, bool) {
	const dateClock = len("2006-01-02T15:04:05")
	if len(s) <= dateClock || !strings.ContainsRune("Tt ", rune(s[10])) {
		return instant{}, false
	}
	rest, fraction := s[dateClock:], ""
	if rest[0] == '.' || rest[0] == ',' {
		n := countDigits(rest[1:])
		if n == 0 || n > fractionDigits {
			return instant{}, false
		}
		fraction, rest = rest[1:n+1], rest[n+1:]
	}
	zone, ok := looseZone(strings.TrimPrefix(rest, " "))
	if !ok {
		return instant{}, false
	}
	return assemble(s[:10], s[11:dateClock], fraction, zone)
}

func looseZone(z string) (string, bool) {
	switch z {
	case "Z", "z", "UTC", "GMT":
		return "Z", true
	}
	if len(z) == 3 {
		z += "00"
	}
	if len(z) == 5 {
		z = z[:3] + ":" + z[3:]
	}
	return z, isOffset(z)
}

// parseHTTPDate reads HTTP-date of RFC 9110, section 5.6.7, all three forms.
func parseHTTPDate(s string) (instant, bool) {
	t, err := http.ParseTime(s)
	if err != nil || t.Nanosecond() != 0 {
		return instant{}, false
	}
	return instant{time: t}, true
}

// lastSecond is 9999-12-31T23:59:59Z, the end of RFC 3339's years.
const lastSecond = 253402300799

// unixTime reads a number of 10^-places seconds since 1970. Text is no number;
// integer: true stands before where a service writes one as text.
func unixTime(places int) func(any) (string, bool) {
	return func(v any) (string, bool) {
		n, ok := v.(json.Number)
		if !ok {
			return "", false
		}
		d, ok := parseDecimal(n)
		if !ok || d.sign() < 0 {
			return "", false
		}
		d.exp -= places
		if d.digits != "" && d.adjusted() > 11 || -d.exp > fractionDigits {
			return "", false
		}
		whole, fraction, _ := strings.Cut(d.plain(), ".")
		var seconds int64
		for _, c := range whole {
			seconds = seconds*10 + int64(c-'0')
		}
		if seconds > lastSecond {
			return "", false
		}
		return instant{time.Unix(seconds, 0), fraction}.utc(), true
	}
}
