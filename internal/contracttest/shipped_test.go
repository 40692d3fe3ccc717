package contracttest

import (
	"context"
	"testing"
)

// The shipped contracts play as their fixtures say.
func TestShippedContracts(t *testing.T) {
	rep, err := Run(context.Background(), Options{Site: "../../contracts/targets.yaml", Contracts: "../../contracts"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rep.Cases {
		if !c.OK {
			t.Errorf("%s (%s): want %s, got %s: %s\n%v", c.File, c.Fixture, c.Want, c.Got, c.Reason, c.Diffs)
		}
	}
	if len(rep.Cases) < 100 {
		t.Errorf("%d fixtures were played", len(rep.Cases))
	}
}
