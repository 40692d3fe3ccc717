package contracts_test

import "testing"

// Every near-miss of every accepted answer is refused, or is another answer
// that the contract's author wrote out; and no row, pick, display text or check
// is without a fixture.
func TestShippedContractsHaveNoHole(t *testing.T) {
	report := playShipped(t)
	if len(report.Mutations) != len(shipped) {
		t.Errorf("near-misses of %d contracts, %d are shipped", len(report.Mutations), len(shipped))
	}
	for _, c := range report.Coverage {
		for _, p := range c.Missing {
			t.Errorf("%s:%d: %s: %s", c.Contract, p.Line, p.Name, p.Why)
		}
	}
	for _, m := range report.Mutations {
		if m.Answers == 0 || m.Refused == 0 || m.Capped {
			t.Errorf("%s: %d answers, %d near-misses refused, cut short: %v", m.Action, m.Answers, m.Refused, m.Capped)
		}
		for _, h := range m.Holes {
			t.Errorf("%s:%d: %s", h.Contract, h.Line, h)
		}
	}
}
