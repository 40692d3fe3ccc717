//go:build race

package main_test

// raceEnabled says whether this test was built with -race; the daemon is then too.
const raceEnabled = true
