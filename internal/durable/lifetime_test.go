package durable

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLifetimeEarlierEndWins(t *testing.T) {
	wall, mono := time.Unix(1_700_000_000, 0), time.Duration(0)
	c := Clock{Wall: func() time.Time { return wall }, Mono: func() time.Duration { return mono }}
	for name, tc := range map[string]struct {
		wall, mono time.Duration
		left       time.Duration
	}{
		"both went on":                   {4 * time.Minute, 4 * time.Minute, time.Minute},
		"the wall stepped back an hour":  {-time.Hour, 4 * time.Minute, time.Minute},
		"stepped back, and all the time": {-time.Hour, 5 * time.Minute, 0},
		"the machine slept":              {6 * time.Minute, time.Minute, 0},
		"the wall stepped forward":       {4 * time.Minute, time.Second, time.Minute},
	} {
		wall, mono = time.Unix(1_700_000_000, 0), 0
		l := c.Start(5 * time.Minute)
		wall, mono = wall.Add(tc.wall), tc.mono
		if got := c.Left(l); got != tc.left || c.Over(l) != (tc.left == 0) {
			t.Errorf("%s: %v left", name, got)
		}
	}
	if !c.Over(Lifetime{}) {
		t.Error("the zero lifetime lives")
	}
}

func TestStoredOver(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := Clock{Wall: func() time.Time { return now }}
	for name, tc := range map[string]struct {
		at   time.Time
		over bool
	}{
		"now":           {now, false},
		"almost":        {now.Add(-time.Hour + time.Second), false},
		"over":          {now.Add(-time.Hour), true},
		"in the future": {now.Add(time.Second), true},
	} {
		if got := c.StoredOver(tc.at, time.Hour); got != tc.over {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		l := c.Start(time.Minute)
		time.Sleep(59 * time.Second)
		if c.Over(l) {
			t.Fatal("over early")
		}
		time.Sleep(time.Second)
		if !c.Over(l) || !l.Ends().Equal(l.Began().Add(time.Minute)) {
			t.Fatal("not over")
		}
	})
	b := BootClock()
	l := b.Start(time.Hour)
	time.Sleep(2 * time.Millisecond)
	if left := b.Left(l); left >= time.Hour || left < time.Hour-time.Minute {
		t.Fatalf("%v", left)
	}
}
