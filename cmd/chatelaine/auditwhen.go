package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// maxSpan is longer than any record and short enough to count in nanoseconds.
	maxSpan = 100 * 365 * day
)

var (
	errNoWhen = errors.New("that is no time")
	errNoDay  = errors.New("there is no such day or hour")
	errSpan   = errors.New("that is no span of time up to a hundred years")
)

// whenForms are the forms of a time without a zone, which is then the person's own, as
// the tables show it.
var whenForms = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}

// parseWhen reads what --since and --until take: a date or a time in the zone of now,
// RFC 3339, today, yesterday, or a span back from now. A date is its first instant;
// with end it is the first of the day after, so that the day is in.
func parseWhen(text string, now time.Time, end bool) (time.Time, error) {
	text = strings.TrimSpace(text)
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch strings.ToLower(text) {
	case "now":
		return now, nil
	case "today":
		return dayOf(today, end), nil
	case "yesterday":
		return dayOf(today.AddDate(0, 0, -1), end), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return dayOf(t, end), nil
	}
	for _, form := range whenForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(text)); err == nil {
		return t, nil
	}
	if looksLikeDate(text) {
		return time.Time{}, errNoDay
	}
	span, err := parseSpan(text)
	if err != nil {
		return time.Time{}, err
	}
	return now.Add(-span), nil
}

func dayOf(t time.Time, end bool) time.Time {
	if end {
		return t.AddDate(0, 0, 1)
	}
	return t
}

// looksLikeDate says whether a text has the digits and lines of a date at its start.
func looksLikeDate(text string) bool {
	if len(text) < len(time.DateOnly) {
		return false
	}
	for i, want := range time.DateOnly {
		isDigit := text[i] >= '0' && text[i] <= '9'
		if isDigit == (want == '-') || want == '-' && text[i] != '-' {
			return false
		}
	}
	return true
}

// parseSpan reads spans such as 90m, 1h30m, 3d, 2w, 1d12h.
func parseSpan(text string) (time.Duration, error) {
	rest := strings.ToLower(text)
	if rest == "" || rest[0] < '0' || rest[0] > '9' {
		return 0, errNoWhen
	}
	var sum time.Duration
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		digits, after, ok := strings.Cut(rest, unit.letter)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || n > uint64(maxSpan/unit.length) {
			return 0, errSpan
		}
		sum, rest = sum+time.Duration(n)*unit.length, after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > maxSpan {
			return 0, errSpan
		}
		sum += d
	}
	if sum > maxSpan {
		return 0, errSpan
	}
	return sum, nil
}
