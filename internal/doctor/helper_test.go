package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Users that are on no machine by chance.
const (
	stranger = 23456
	another  = 23457
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// found is the finding of one check.
func found(t testing.TB, r Report, id string) Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.ID == id })
	if i < 0 {
		t.Fatalf("the report has no finding %s", id)
	}
	return r.Findings[i]
}

// examine runs every check over the facts, with a /proc of the test's own.
func examine(t testing.TB, f Facts, proc string) Report {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
	return (&exam{Facts: f, proc: proc}).report(context.Background(), nil)
}

// want holds a finding to a verdict and to a part of its text.
func want(t testing.TB, f Finding, v Verdict, text string) {
	t.Helper()
	if f.Verdict != v || !strings.Contains(f.Detail, text) {
		t.Errorf("%s: %s, %q; want %s with %q", f.ID, f.Verdict, f.Detail, v, text)
	}
	if v != Solved && v != Unseen && f.WayOut == "" {
		t.Errorf("%s: %s without a way out", f.ID, f.Verdict)
	}
}
