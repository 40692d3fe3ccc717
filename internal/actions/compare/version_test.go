package compare

import "testing"

func TestBumps(t *testing.T) {
	for _, c := range []struct {
		old, new string
		want     Bump
	}{
		{"1.2.3", "1.2.3", NoBump},
		{"1.2.3", "1.2.4", Patch},
		{"1.2.3", "1.3.0", Minor},
		{"1.2.3", "2.0.0", Major},
		{"1.2.3", "1.2.2", Backward},
		{"1.2.3", "1.2.3-rc.1", Backward},
		{"1.2.3", "1.2.3+build", NoBump},
		{"2.0.0-rc.1", "2.0.0", Major},
		{"2.0.0-rc.1", "2.0.0-rc.2", Major},
		{"2.0.0-rc.2", "2.0.0-rc.1", Backward},
		{"2.0.0-rc.2", "2.0.0-rc.10", Major},
		{"2.0.0-1", "2.0.0-a", Major},
		{"2.0.0-a", "2.0.0-a.1", Major},
		{"1.9.0", "1.10.0", Minor},
		{"0.1.0", "0.2.0", Minor},
		{"", "1.0.0", NoBump},
	} {
		if got := made(c.old, c.new); got != c.want {
			t.Errorf("%s → %s: %s, want %s", c.old, c.new, got, c.want)
		}
	}
}

func TestNeededBeforeOne(t *testing.T) {
	for _, c := range []struct {
		old  string
		kind string
		want Bump
	}{
		{"1.0.0", "input-narrower", Major}, {"0.9.0", "input-narrower", Minor},
		{"1.0.0", "input-wider", Minor}, {"0.9.0", "input-wider", Patch},
		{"1.0.0", "summary-changed", Patch}, {"0.9.0", "summary-changed", Patch},
	} {
		if got := needed(c.old, []Change{newChange(c.kind, "", "", "", "")}); got != c.want {
			t.Errorf("%s from %s: %s, want %s", c.kind, c.old, got, c.want)
		}
	}
	if needed("1.0.0", nil) != NoBump {
		t.Error("no change needs a bump")
	}
}

func TestBackwardIsNeverEnough(t *testing.T) {
	if enough(NoBump, Backward) || enough(Major, Minor) || !enough(Minor, Major) || !enough(NoBump, NoBump) {
		t.Error("enough is wrong")
	}
}
