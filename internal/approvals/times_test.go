package approvals

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the desk's timer tells too
		var states []string
		tell := func(c Card) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, c.State)
		}
		told := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(states, " ")
		}
		d := newDesk(Options{OnOpen: tell, OnClose: tell})
		k := openCard(t, d, "s")
		time.Sleep(5*time.Minute - time.Second)
		if k.Card().State != StateOpen {
			t.Fatal(k.Card().State)
		}
		old := proofFor(t, d, k)
		time.Sleep(time.Second)
		synctest.Wait()
		if told() != "open expired" {
			t.Fatalf("nobody was told: %q", told())
		}
		if waitCode(t, k) != fault.ApprovalExpired {
			t.Fatal("not expired")
		}
		if err := d.Approve(k.Card().ID, old, "op"); !errors.Is(err, ErrDecided) {
			t.Fatalf("approved too late: %v", err)
		}

		k = openCard(t, d, "s") // an old challenge, an open card: no denial
		old = proofFor(t, d, k)
		time.Sleep(119 * time.Second)
		fresh := proofFor(t, d, k)
		time.Sleep(time.Second)
		if err := d.Approve(k.Card().ID, old, "op"); !errors.Is(err, ErrNewChallenge) || k.Card().State != StateOpen {
			t.Fatalf("%v", err)
		}
		if err := d.Approve(k.Card().ID, fresh, "op"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if err := k.Spend(plan.digest); err != nil {
			t.Fatal(err)
		}

		k = openCard(t, d, "s")
		approve(t, d, k, "op")
		time.Sleep(10 * time.Second)
		if err := k.Spend(plan.digest); fault.CodeOf(err) != fault.ApprovalExpired || k.Card().State != StateWithdrawn {
			t.Fatalf("%v", err)
		}
		time.Sleep(closedKept)
		if _, ok := d.Card(k.c.ID); ok {
			t.Fatal("kept for ever")
		}

		k = openCard(t, d, "s") // a challenge never outlives its card
		time.Sleep(4*time.Minute + 30*time.Second)
		c, err := d.Challenge(Operation{Kind: KindApprove, Subject: k.Card().ID})
		if err != nil || !c.Expires.Equal(k.Card().Expires) {
			t.Fatalf("%v, %v", c.Expires, err)
		}
		k.Withdraw(fault.Cancelled)
	})
}

func TestClockSteps(t *testing.T) {
	wall, mono := time.Unix(1_800_000_000, 0), time.Duration(0)
	d := newDesk(Options{Clock: durable.Clock{Wall: func() time.Time { return wall }, Mono: func() time.Duration { return mono }}})
	k := openCard(t, d, "back")
	wall, mono = wall.Add(-time.Hour), 4*time.Minute
	if k.Card().State != StateOpen {
		t.Fatal(k.Card().State)
	}
	mono += time.Minute
	if k.Card().State != StateExpired {
		t.Fatal("a step back made the card live longer")
	}
	k = openCard(t, d, "slept")
	p := proofFor(t, d, k)
	wall = wall.Add(3 * time.Minute)
	if err := d.Approve(k.Card().ID, p, "op"); !errors.Is(err, ErrNewChallenge) {
		t.Fatalf("%v", err)
	}
	wall = wall.Add(3 * time.Minute)
	if k.Card().State != StateExpired {
		t.Fatal("the machine slept and the card did not age")
	}
}
