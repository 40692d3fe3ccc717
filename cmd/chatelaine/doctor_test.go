package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/doctor"
)

// TestDoctorOutput holds both forms of the report to files: people and programs
// read them. -update writes them.
func TestDoctorOutput(t *testing.T) {
	facts := doctorFacts{version: "0.1.0"}
	facts.Caller = doctor.Caller{UID: 1000, Groups: []doctor.Group{{GID: 1000, Name: "people"}}}
	facts.Daemon = &doctor.Daemon{PID: 4711, UID: 990, Told: &doctor.Told{}}
	const way = "write it differently"
	r := doctor.Report{Mode: doctor.ModeIsolated, Still: "A hostile program of your user can still do this.", Findings: []doctor.Finding{
		{ID: "mode", Verdict: doctor.Solved, Attack: "be the user who runs the daemon or decides", Detail: "isolated"},
		{ID: "path-site", Verdict: doctor.NotSolved, Attack: "replace targets.yaml", Detail: "/etc/x\u202e: anybody may write to it (mode 0666)", WayOut: way},
		{ID: "path-vault", Verdict: doctor.NotSolved, Attack: "replace the vault", Detail: "/var/x: anybody may write to it (mode 0777)", WayOut: way},
		{ID: "proofs", Verdict: doctor.Partial, Attack: "decide with somebody else's proof", Detail: "the operator passphrase decides", WayOut: "another way"},
		{ID: "clock", Verdict: doctor.Unseen, Attack: "let a wrong clock make old answers fresh"},
	}}
	for _, c := range []struct {
		name     string
		accepted []string
		json     bool
		across   int
	}{{"text", nil, false, 0}, {"accepted", []string{"proofs", "clock"}, false, 0}, {"narrow", nil, false, 60}, {"json", []string{"proofs"}, true, 0}} {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &bytes.Buffer{}, func(string) string { return "" })
		if c.json {
			if err := a.printJSON(doctorValue(facts, r, c.accepted)); err != nil {
				t.Fatal(err)
			}
		} else {
			a.printDoctor(facts, r, c.accepted, c.across)
		}
		got := strings.Replace(out.String(), `"system": "`+doctor.System()+`"`, `"system": "$SYSTEM"`, 1)
		path := filepath.Join("testdata", "doctor", c.name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not %s; look at it, then: go test ./cmd/chatelaine -run TestDoctorOutput -update\n%s", c.name, path, got)
		}
	}
	if n := len(findingsLeft(r, []string{"proofs", "clock"})); n != 2 {
		t.Errorf("%d findings count", n)
	}
}
