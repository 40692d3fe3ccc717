package validate

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// longestWait caps what an upstream can ask for; a hostile one could otherwise
// put a caller off for years.
const longestWait = 24 * time.Hour

// RetryAfter reads Retry-After (RFC 9110, section 10.2.3), seconds or a date.
// It returns false where the header is missing, repeated or malformed. The wait
// is between zero and a day.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	lines := h.Values("Retry-After")
	if len(lines) != 1 {
		return 0, false
	}
	if d, ok := waitOf(lines[0], time.Second); ok {
		return d, true
	}
	if t, err := http.ParseTime(lines[0]); err == nil {
		return boundWait(t.Sub(now)), true
	}
	return 0, false
}

// RateLimit reads the header that a contract names under rate_limit. unit is
// seconds or millis (to wait), unix_seconds, unix_millis or http_date (the
// moment when the limit ends). The wait is between zero and a day.
func RateLimit(h http.Header, name, unit string, now time.Time) (time.Duration, bool) {
	lines := h.Values(name)
	if len(lines) != 1 {
		return 0, false
	}
	switch unit {
	case "seconds":
		return waitOf(lines[0], time.Second)
	case "millis":
		return waitOf(lines[0], time.Millisecond)
	case "http_date":
		t, err := http.ParseTime(lines[0])
		if err != nil {
			return 0, false
		}
		return boundWait(t.Sub(now)), true
	case "unix_seconds", "unix_millis":
		s, ok := timeForms[unit](json.Number(lines[0]))
		if !ok {
			return 0, false
		}
		i, _ := parseDateTime(s)
		return boundWait(i.time.Sub(now)), true
	}
	return 0, false
}

func waitOf(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" || countDigits(s) != len(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(longestWait/unit) {
		return longestWait, true // more digits than fit is still a long wait
	}
	return time.Duration(n) * unit, true
}

func boundWait(d time.Duration) time.Duration { return max(0, min(d, longestWait)) }
