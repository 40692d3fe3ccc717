package sessions

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		defer b.stop()
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		p := b.request(ann, "pending")
		wait(10*time.Minute - time.Second)
		b.is(p.Token, ann, StatePending)
		wait(time.Second)
		if told := b.told(); len(told) != 1 || !strings.Contains(told[0], "did not decide") {
			t.Fatalf("nobody was told: %q", told)
		}
		b.is(p.Token, ann, "SESSION_REVOKED")
		if err := b.r.Authorize(p.ID, nil, "op"); !errors.Is(err, ErrEnded) {
			t.Fatalf("authorised too late: %v", err)
		}

		p = b.authorised(ann, "idle")
		for range 5 {
			wait(30*time.Minute - time.Second)
			b.is(p.Token, ann, StateAuthorised) // each use begins the idle time anew
		}
		wait(30 * time.Minute)
		if told := b.told(); len(told) != 2 || !strings.Contains(told[1], "idle") {
			t.Fatalf("%q", told)
		}
		b.is(p.Token, ann, "SESSION_REVOKED")

		p = b.authorised(ann, "absolute")
		for range 8*3 - 1 {
			wait(20 * time.Minute)
			b.is(p.Token, ann, StateAuthorised)
		}
		wait(20*time.Minute - time.Second)
		b.is(p.Token, ann, StateAuthorised)
		wait(time.Second)
		b.is(p.Token, ann, "SESSION_REVOKED")
	})
}

// TestWaitingIsNotIdle: while a call waits for a person the idle time stands
// still; the absolute one goes on.
func TestWaitingIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		defer b.stop()
		p := b.authorised(ann, "build-worker")
		first, second := b.r.Hold(p.ID), b.r.Hold(p.ID)
		time.Sleep(2 * time.Hour)
		b.must(b.r.Alive(p.ID))
		first()
		first() // once
		time.Sleep(time.Hour)
		b.must(b.r.Alive(p.ID))
		second()
		time.Sleep(30*time.Minute - time.Second)
		b.must(b.r.Alive(p.ID))
		time.Sleep(time.Second)
		if fault.CodeOf(b.r.Alive(p.ID)) != fault.SessionRevoked {
			t.Fatal("idle and alive") // Alive is no use
		}
		b.r.Hold("ses_none")()
		q := b.authorised(ann, "build-worker")
		defer b.r.Hold(q.ID)()
		time.Sleep(8 * time.Hour)
		if fault.CodeOf(b.r.Alive(q.ID)) != fault.SessionRevoked {
			t.Fatal("held beyond the absolute limit")
		}
	})
}

// TestClockSteps: the earlier end wins, a step back lengthens nothing, and a
// stored time in the future has ended.
func TestClockSteps(t *testing.T) {
	wall, mono := time.Unix(1_800_000_000, 0), time.Duration(0)
	b := newBench(t, Options{Clock: durable.Clock{Wall: func() time.Time { return wall }, Mono: func() time.Duration { return mono }}})
	defer func() { b.stop() }()
	p := b.authorised(ann, "back")
	wall, mono = wall.Add(-24*time.Hour), 29*time.Minute
	b.is(p.Token, ann, StateAuthorised)
	mono += 30 * time.Minute
	b.is(p.Token, ann, "SESSION_REVOKED")

	p = b.authorised(ann, "slept")
	wall = wall.Add(9 * time.Hour) // the monotonic clock saw none of it
	b.is(p.Token, ann, "SESSION_REVOKED")

	p = b.authorised(ann, "stored")
	wall = wall.Add(-time.Hour)
	b.restart()
	b.is(p.Token, ann, "SESSION_REQUIRED") // from the future: not known any more
}
