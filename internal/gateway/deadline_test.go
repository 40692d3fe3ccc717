package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

// A deadline counts by both clocks, the earlier end wins, and what another clock
// wrote down is over.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deadlineIn(time.Minute)
		time.Sleep(20 * time.Second)
		if left := d.left(); left != 40*time.Second {
			t.Errorf("%s are left", left)
		}
		d.end = d.end.Add(-30 * time.Second) // the wall's clock went forward
		if left := d.left(); left != 10*time.Second {
			t.Errorf("%s are left", left)
		}
		d.end = d.end.Add(time.Hour) // it went back
		if left := d.left(); left != 40*time.Second {
			t.Errorf("%s are left", left)
		}
		now := time.Now().Round(0)
		for name, c := range map[string]struct {
			begun, end time.Time
			left       time.Duration
		}{
			"goes on":             {now.Add(-time.Minute), now.Add(time.Minute), time.Minute},
			"over":                {now.Add(-time.Hour), now.Add(-time.Minute), -time.Minute},
			"begun in the future": {now.Add(time.Second), now.Add(time.Minute), 0},
			"too far away":        {now.Add(-time.Minute), now.Add(time.Hour), 0},
		} {
			if left := deadlineAt(c.begun, c.end, 5*time.Minute).left(); left != c.left {
				t.Errorf("%s: %s are left, want %s", name, left, c.left)
			}
		}
	})
}
