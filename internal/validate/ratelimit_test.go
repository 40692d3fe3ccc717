package validate

import (
	"net/http"
	"testing"
	"time"
)

func TestRateLimitUnits(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		unit, value string
		want        time.Duration
		ok          bool
	}{
		{"seconds", "7", 7 * time.Second, true},
		{"millis", "1500", 1500 * time.Millisecond, true},
		{"unix_seconds", "1767607210", 10 * time.Second, true},
		{"unix_millis", "1767607200500", 500 * time.Millisecond, true},
		{"http_date", "Mon, 05 Jan 2026 10:00:30 GMT", 30 * time.Second, true},
		{"http_date", "Mon, 05 Jan 2026 09:00:30 GMT", 0, true},
		{"http_date", "soon", 0, false},
		{"seconds", "-1", 0, false},
		{"seconds", "1.5", 0, false},
		{"fortnights", "1", 0, false},
	} {
		h := http.Header{"X-Reset": {c.value}}
		if got, ok := RateLimit(h, "X-Reset", c.unit, now); got != c.want || ok != c.ok {
			t.Errorf("%s %q: %s %v, want %s %v", c.unit, c.value, got, ok, c.want, c.ok)
		}
	}
	if _, ok := RateLimit(http.Header{"X-Reset": {"1", "2"}}, "X-Reset", "seconds", now); ok {
		t.Error("two values were taken for one")
	}
}
