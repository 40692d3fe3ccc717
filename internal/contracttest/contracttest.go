// Package contracttest plays the fixtures of contracts: each goes through the
// real loader, the real executor and the real validator, against a real HTTPS
// server on loopback, and what left the machine is compared byte for byte with
// what the fixture says. It must never send anything to a target's real
// address and never touch a real credential. The command line and tests may
// import it.
package contracttest

import (
	"context"
	"errors"
)

// Options say what to play.
type Options struct {
	Site      string   // the site file, targets.yaml
	Contracts string   // the folder of contract folders
	Actions   []string // only these; none means all
	Parallel  int      // fixtures at once; 0 means one a processor
}

// Run plays the fixtures. The error is for what kept them from being played
// (files that do not load); a fixture that fails is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	return Report{}, errors.New("not built yet")
}
