package main

import (
	"encoding/csv"
	"encoding/json/jsontext"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"chatelaine/internal/auditlog"
)

func TestParseWhen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		berlin = time.FixedZone("CET", 3600) // a machine without the table of zones
	}
	now := time.Date(2026, 11, 30, 14, 5, 6, 0, berlin)
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	cases := []struct{ text, since, until string }{
		{"2026-11-29", "2026-11-29T00:00:00+01:00", "2026-11-30T00:00:00+01:00"},
		{"today", "2026-11-30T00:00:00+01:00", "2026-12-01T00:00:00+01:00"},
		{"Yesterday", "2026-11-29T00:00:00+01:00", "2026-11-30T00:00:00+01:00"},
		{"2024-02-29", "2024-02-29T00:00:00+01:00", "2024-03-01T00:00:00+01:00"},
		{"2026-11-29 08:30", "2026-11-29T08:30:00+01:00", ""},
		{"2026-11-29T08:30:15", "2026-11-29T08:30:15+01:00", ""},
		{"2026-11-29T08:30:15Z", "2026-11-29T08:30:15Z", ""},
		{"2026-11-29t08:30:15.25+05:30", "2026-11-29T08:30:15.25+05:30", ""},
		{"2h", "2026-11-30T12:05:06+01:00", ""},
		{"1h30m", "2026-11-30T12:35:06+01:00", ""},
		{"90s", "2026-11-30T14:03:36+01:00", ""},
		{"3d", "2026-11-27T14:05:06+01:00", ""},
		{"1w1d2H", "2026-11-22T12:05:06+01:00", ""},
		{" now ", "2026-11-30T14:05:06+01:00", ""},
	}
	for _, c := range cases {
		if c.until == "" {
			c.until = c.since
		}
		for end, want := range map[bool]string{false: c.since, true: c.until} {
			if got, err := parseWhen(c.text, now, end); err != nil || !got.Equal(at(want)) {
				t.Errorf("%q (end %v): %v, %v; want %s", c.text, end, got, err, want)
			}
		}
	}
	for text, want := range map[string]error{
		"": errNoWhen, "soon": errNoWhen, "-2h": errNoWhen, "+2h": errNoWhen, "h": errNoWhen, ".5h": errNoWhen,
		"2026-13-01": errNoDay, "2026-02-30": errNoDay, "2025-02-29": errNoDay, "2026-11-30T25:00": errNoDay, "2026-11-30T14:00:00+99:00": errNoDay,
		"2": errSpan, "2x": errSpan, "3d-1h": errSpan, "1d1w": errSpan, "99999999999w": errSpan, "101y": errSpan, "5300w": errSpan, "876001h": errSpan,
		"99y": errSpan, "26-11-30": errSpan, "30.11.2026": errSpan, "5000w99999d": errSpan,
	} {
		if got, err := parseWhen(text, now, false); err != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// A day of a change of the clock is taken in whole.
func TestDayOfClockChange(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		zone = time.UTC
	}
	now := time.Date(2026, 11, 30, 14, 0, 0, 0, zone)
	got, err := parseWhen("2026-10-25", now, true)
	if err != nil || !got.Equal(time.Date(2026, 10, 26, 0, 0, 0, 0, zone)) {
		t.Errorf("%v, %v", got, err)
	}
}

func filterOf(t *testing.T, args ...string) *auditFilter {
	t.Helper()
	var f auditFilter
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(flags, true)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := f.parse(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestFilter(t *testing.T) {
	wall := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	e := auditlog.Event{Actor: "worker", Action: "deploy", Status: "APPROVAL_DENIED", Target: "prod", SessionID: "ses-1", Wall: wall}
	for args, want := range map[string]bool{
		"": true, "--agent worker": true, "--agent work": false, "--agent Worker": false, "--agent other --agent worker": true, "--agent other,worker": true,
		"--action deploy": true, "--action x": false, "--code approval_denied": true, "--code OK": false, "--code OK,APPROVAL_DENIED": true,
		"--target prod": true, "--target prod --session ses-2": false, "--session ses-1": true,
		"--since 2h": true, "--since 119m": false, "--until 2h": false, "--until 2026-11-30T10:00:01Z": true, "--since 2026-11-30T10:00:00Z": true,
		"--since 2026-11-30 --until 2026-11-30 --agent worker --code APPROVAL_DENIED": true, "--until yesterday": false,
	} {
		if got := filterOf(t, strings.Fields(args)...).event(&e); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

// Whatever is read as a time is one that RFC 3339 can say and that is read the same
// again, and an end is never before its beginning.
func FuzzParseWhen(f *testing.F) {
	for _, s := range []string{"2026-11-30", "2026-11-30 14:00", "2026-11-30T14:00:00.5+01:00", "2h", "1w2d3h4m5s", "today", "0000-01-01", "9999-12-31", "1e9h", "9223372036854775807ns", "0d", "1d1d", "٣d"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 30, 14, 5, 6, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		since, err := parseWhen(text, now, false)
		if err != nil {
			if !since.IsZero() {
				t.Fatalf("%q is refused and is %v", text, since)
			}
			return
		}
		until, err := parseWhen(text, now, true)
		if err != nil || until.Before(since) || until.Sub(since) > day {
			t.Fatalf("%q is from %v to %v, %v", text, since, until, err)
		}
		said := since.Format(time.RFC3339Nano)
		again, err := parseWhen(said, now, false)
		if err != nil || !again.Equal(since) {
			t.Fatalf("%q is %s, which is %v, %v", text, said, again, err)
		}
		if span, err := parseSpan(text); err == nil && (span < 0 || span > maxSpan) {
			t.Fatalf("%q is %v long", text, span)
		}
	})
}

// Nothing that a spreadsheet makes a cell of begins a formula, and a cell is read back
// as it was written.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"", "plain", "=1+1", " =1", "\t=1", "a;=1", `a;"=1`, "-2", "+x", "@sum(a)", "\"=1", "'x", "＝1", "a\n=1", "\r=1", ";;=", "; \u00a0-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var out strings.Builder
		s := newSink(&out)
		detail := jsonOf(map[string]any{"a": text})
		if err := s.csvLine([]string{csvText(text), csvJSON(detail)}); err != nil {
			t.Fatal(err)
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != 2 || rows[0][0] != csvText(text) {
			t.Fatalf("%q became %q, read as %q, %v", text, out.String(), rows, err)
		}
		if !jsontext.Value(rows[0][1]).IsValid() {
			t.Fatalf("%q is no JSON", rows[0][1])
		}
		for _, cell := range rows[0] {
			for _, part := range strings.Split(cell, ";") {
				part = strings.TrimLeft(part, " \"\u00a0")
				if part != "" && strings.ContainsAny(string([]rune(part)[:1]), formulaMarks) {
					t.Fatalf("%q has a cell that begins %q", text, part)
				}
			}
			if strings.ContainsFunc(cell, hidden) {
				t.Fatalf("%q still steers", cell)
			}
		}
	})
}
