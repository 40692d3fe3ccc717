package ledger

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

func TestNotConsumed(t *testing.T) {
	b := newBench(t)
	for _, armed := range []bool{false, true} {
		c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
		other := b.claim(ann, "deploy-0002", inputX, true, Joined)
		if armed {
			b.arm(c) // the intent failed beside it: nothing was sent
		}
		b.must(c.Release([]byte(`{"ok":false}`), "AUDIT_UNAVAILABLE"))
		out, ok := other.Outcome()
		if !isDone(other) || !ok || out.Code != "AUDIT_UNAVAILABLE" || out.Fate != fault.NotConsumed {
			t.Fatalf("%+v", out)
		}
		b.must(c.Release(nil, "")) // a second one does nothing
		b.crash()
		if n, err := b.l.Recover(); n != 0 || err != nil {
			t.Fatalf("%d unresolved, %v", n, err)
		}
		c = b.claim(ann, "deploy-0002", inputX, true, Fresh)
		b.must(c.Release(nil, ""))
	}
}

func TestCancel(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.must(c.SetState(Waiting))
	b.must(c.Cancel([]byte("envelope")))
	if err := c.Arm(Armed{Attempt: 1}); !errors.Is(err, ErrTransition) {
		t.Fatalf("armed after it was withdrawn: %v", err)
	}
	b.crash()
	r := b.claim(ann, "deploy-0001", inputX, true, Recorded)
	if out, _ := r.Outcome(); out.Code != "CANCELLED" || string(out.Envelope) != "envelope" {
		t.Fatalf("%+v", out)
	}
	c = b.claim(ann, "deploy-0002", inputX, true, Fresh)
	b.arm(c)
	if err := c.Cancel(nil); !errors.Is(err, ErrArmed) || isDone(c) {
		t.Fatalf("%v", err)
	}
}

// TestCancelRacesArm: exactly one of the two wins.
func TestCancelRacesArm(t *testing.T) {
	b := newBench(t)
	for i := range 20 {
		c := b.claim(ann, "deploy-race-"+string(rune('a'+i)), inputX, true, Fresh)
		var armErr, cancelErr error
		var wg sync.WaitGroup
		wg.Go(func() { armErr = c.Arm(Armed{Attempt: 1}) })
		wg.Go(func() { cancelErr = c.Cancel(nil) })
		wg.Wait()
		if (armErr == nil) == (cancelErr == nil) {
			t.Fatalf("arm %v, cancel %v", armErr, cancelErr)
		}
		if armErr == nil {
			b.must(c.Finish(success()))
		}
	}
}

func TestRearm(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	key := c.IdempotencyKey()
	b.send(c)
	b.must(c.Rearm(Outcome{Envelope: []byte("slow down"), Code: "REMOTE_RATE_LIMITED"}, time.Minute))
	if out, ok := c.Outcome(); !ok || out.Fate != fault.Rearmed || !isDone(c) {
		t.Fatalf("%+v", out)
	}
	b.crash()
	r := b.claim(ann, "deploy-0001", inputX, true, Recorded) // too early
	if out, _ := r.Outcome(); string(out.Envelope) != "slow down" {
		t.Fatalf("%+v", out)
	}
	b.refused(ann, "deploy-0001", inputY, true, fault.DuplicateRequest)
	b.now = b.now.Add(time.Minute)
	c = b.claim(ann, "deploy-0001", inputX, true, Fresh)
	if c.IdempotencyKey() != key {
		t.Fatal("another idempotency key")
	}
	b.must(c.Release(nil, "APPROVAL_EXPIRED")) // not consumed: as it was
	b.crash()
	c = b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.arm(c)
	b.must(c.Release(nil, "AUDIT_UNAVAILABLE"))
	c = b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	b.crash() // a re-armed call that was sent again is unresolved like any other
	r = b.claim(ann, "deploy-0001", inputX, true, Unresolved)
	if r.IdempotencyKey() != key {
		t.Fatal("another idempotency key")
	}
}

func TestRearmClockBack(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	b.must(c.Rearm(failure(fault.RemoteRateLimited), time.Hour))
	b.now = b.now.Add(-24 * time.Hour)
	b.claim(ann, "deploy-0001", inputX, true, Fresh) // a step back does not lengthen the wait
}

// TestDoubt: once an attempt of a change may have happened, the call ends in
// success or OUTCOME_UNKNOWN.
func TestDoubt(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	c.Doubt()
	b.must(c.Arm(Armed{Attempt: 2, IdempotencyKey: c.IdempotencyKey()}))
	if err := c.Finish(failure("ALREADY_DEPLOYED")); !errors.Is(err, ErrDoubted) || isDone(c) {
		t.Fatalf("%v", err)
	}
	if err := c.Rearm(failure(fault.UpstreamUnavailable), 0); !errors.Is(err, ErrDoubted) || isDone(c) {
		t.Fatalf("%v", err)
	}
	if !c.Doubted() {
		t.Fatal("the doubt is gone")
	}
	b.must(c.Finish(success()))
	c = b.claim(ann, "deploy-0002", inputX, true, Fresh)
	b.send(c)
	c.Doubt()
	b.must(c.Arm(Armed{Attempt: 2}))
	if err := c.Release(nil, "AUDIT_UNAVAILABLE"); !errors.Is(err, ErrTransition) || c.State() != StateUnresolved {
		t.Fatalf("released in doubt: %v", err)
	}
	b.claim(ann, "deploy-0003", inputX, true, Unresolved)
	r := b.claim(ann, "read-00001", inputY, false, Fresh)
	r.Doubt()
	if r.Doubted() {
		t.Fatal("a read changes nothing")
	}
}

func TestIllegalSteps(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	for name, err := range map[string]error{
		"sent before armed":    c.SetState(Sent),
		"proving before armed": c.SetState(Proving),
		"armed by name":        c.SetState(StateArmed),
		"finished by name":     c.SetState(Finished),
		"unresolved, unsent":   c.Finish(unknown()),
		"re-armed, unsent":     c.Rearm(success(), 0),
		"another key":          c.Arm(Armed{Attempt: 1, IdempotencyKey: "mine"}),
		"a waiting outcome":    c.Finish(Outcome{Fate: fault.Waiting}),
	} {
		if !errors.Is(err, ErrTransition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if isDone(c) || c.State() != Claimed {
		t.Fatal("an illegal step had an effect")
	}
	b.send(c)
	if err := c.Release(nil, "INTERNAL"); !errors.Is(err, ErrTransition) {
		t.Fatalf("%v", err)
	}
	if c.State() != StateUnresolved || !isDone(c) {
		t.Fatal("a change that was sent must end unresolved")
	}
	c.Publish() // nothing prepared: nothing happens
}

func TestPrepareAndPublish(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	b.must(c.Prepare(success()))
	if isDone(c) {
		t.Fatal("told before it was published")
	}
	b.claim(ann, "deploy-0001", inputX, true, Joined)
	if err := c.Arm(Armed{Attempt: 2}); !errors.Is(err, ErrTransition) {
		t.Fatalf("armed with an outcome: %v", err)
	}
	b.must(c.Finish(unknown())) // the record failed: the data is not told
	b.crash()
	r := b.claim(ann, "deploy-0001", inputX, true, Unresolved)
	if out, _ := r.Outcome(); out.Code != "OUTCOME_UNKNOWN" || strings.Contains(string(out.Envelope), "true") {
		t.Fatalf("%+v", out)
	}
	c = b.claim(ann, "deploy-0002", inputY, true, Fresh)
	b.send(c)
	b.must(c.Prepare(success()))
	c.Publish()
	b.claim(ann, "deploy-0002", inputY, true, Recorded)
}

// TestDiskRefuses: nothing is armed, nothing is consumed, and what was sent
// ends as unknown.
func TestDiskRefuses(t *testing.T) {
	b := newBench(t)
	fresh := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	sent := b.claim(ann, "deploy-0002", inputY, true, Fresh)
	b.send(sent)
	armed := b.claim(ann, "deploy-0003", [32]byte{3}, true, Fresh)
	b.arm(armed)
	b.must(b.store.Close())
	if err := fresh.Arm(Armed{Attempt: 1}); fault.CodeOf(err) != fault.AuditUnavailable || fresh.State() != Claimed {
		t.Fatalf("%v", err)
	}
	b.must(fresh.Release(nil, "AUDIT_UNAVAILABLE"))
	if err := sent.Finish(success()); err == nil || isDone(sent) {
		t.Fatalf("%v", err)
	}
	if err := sent.Finish(unknown()); err == nil || !isDone(sent) || sent.State() != StateUnresolved {
		t.Fatalf("%v", err)
	}
	if c := b.claim(ann, "deploy-0002", inputY, true, Unresolved); c != sent {
		t.Fatal("this run must answer as it did")
	}
	if err := armed.Release(nil, "AUDIT_UNAVAILABLE"); err == nil || !isDone(armed) {
		t.Fatalf("%v", err)
	}
	if run, un := b.l.Counts(); run != 0 || un != 1 {
		t.Fatalf("%d running, %d unresolved", run, un)
	}
}

// TestForgetsLater: an armed entry that the disk refused to forget does not
// block its id in this run, and Sweep forgets it.
func TestForgetsLater(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.arm(c)
	b.l.mu.Lock()
	b.l.stale[c.key] = nil // as Release leaves it when the disk refuses
	b.l.noteLockedForTest(c)
	b.l.mu.Unlock()
	again := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.must(b.l.Sweep()) // it is live: not touched
	b.arm(again)
	b.must(again.Release(nil, ""))
	b.must(b.l.Sweep())
	b.crash()
	if n, err := b.l.Recover(); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}

func (l *Ledger) noteLockedForTest(c *Call) {
	delete(l.open, c.key)
	c.endLocked(Forgotten, Outcome{}, false)
}

func TestEveryStateHasAName(t *testing.T) {
	for s := Forgotten; s <= StateRearmed; s++ {
		if strings.HasPrefix(s.String(), "state(") {
			t.Errorf("%d", s)
		}
		if _, ok := table[s]; !ok {
			t.Errorf("%s is not in the table", s)
		}
	}
	if State(200).String() != "state(200)" {
		t.Error("an unknown state")
	}
}
