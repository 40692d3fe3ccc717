package main

import (
	"os"
	"slices"
	"testing"

	"chatelaine/internal/vault/execsource"
)

// What the settings have the daemon run, and what it hands to a shell, is told:
// who can change it runs as the daemon.
func TestProgramsAreTold(t *testing.T) {
	script := t.TempDir() + "/tell.sh"
	if err := os.WriteFile(script, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	c := Config{
		Notify: []string{"sh", script, "--quiet", "/no/such/file"}, Alert: []string{"/no/such/program"},
		Sources: []sourceConfig{{}, {Program: execsource.Options{Argv: []string{script, "REFERENCE"}}}},
	}
	got := programs(c)
	if len(got) != 2 || !slices.Contains(got, script) {
		t.Errorf("got %q, want the shell and %s", got, script)
	}
	if got := programs(Config{}); got == nil || len(got) != 0 {
		t.Errorf("without programs: %#v", got)
	}
}
