package ledger

import (
	"errors"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

func polled(b *bench) Polled {
	return Polled{Captured: []byte(`{"run":"r-1"}`), Deadline: b.now.Add(time.Hour)}
}

// left takes up the one call that was left behind.
func (b *bench) left() Left {
	b.t.Helper()
	all, err := b.l.Left()
	if err != nil || len(all) != 1 {
		b.t.Fatalf("left behind: %+v, %v", all, err)
	}
	return all[0]
}

// A poll is written down before it begins, also while the vault is locked, and
// the next run has all it needs to go on. Those who come meanwhile join.
func TestPollGoesOnInTheNextRun(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.claim(ann, "deploy-0002", inputX, true, Joined)
	b.must(c.Arm(Armed{Attempt: 1, Plan: []byte("plan"), Session: "ses_1", Now: b.now}))
	b.must(c.SetState(Sent))
	b.l.Lock()
	b.must(c.Poll(polled(b)))
	if c.State() != Polling {
		t.Fatal(c.State())
	}
	if err := c.Arm(Armed{Attempt: 2}); !errors.Is(err, ErrTransition) {
		t.Fatalf("a call that polls was armed: %v", err)
	}
	for range 2 { // also a second time in the middle of it
		b.crash()
		b.claim(ann, "deploy-0003", inputX, true, Unresolved)
		x := b.left()
		if !x.IsPolling || x.Session != "ses_1" || !x.Now.Equal(b.now) || string(x.Plan) != "plan" ||
			string(x.Polled.Captured) != `{"run":"r-1"}` || !x.Polled.Deadline.Equal(b.now.Add(time.Hour)) {
			t.Fatalf("%+v", x)
		}
		var err error
		if c, err = b.l.Resume(x); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"deploy-0001", "deploy-0002", "deploy-0003", "deploy-0004", ""} {
			if j := b.claim(ann, id, inputX, true, Joined); j != c {
				t.Fatalf("%s joined another call", id)
			}
		}
		if run, un := b.l.Counts(); run != 1 || un != 0 {
			t.Fatalf("%d running, %d unresolved", run, un)
		}
		if _, err := b.l.Resume(x); !errors.Is(err, ErrTransition) {
			t.Fatalf("resumed twice: %v", err)
		}
		if err := b.l.GiveUp(x); !errors.Is(err, ErrTransition) {
			t.Fatalf("given up although it goes on: %v", err)
		}
	}
	b.must(c.Finish(success()))
	b.crash()
	if all, err := b.l.Left(); len(all) != 0 || err != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, id := range []string{"deploy-0001", "deploy-0002", "deploy-0003", "deploy-0004"} {
		b.claim(ann, id, inputX, true, Recorded)
	}
}

// A poll that the disk refuses does not begin.
func TestPollNotWritten(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	b.must(b.store.Close())
	if err := c.Poll(polled(b)); fault.CodeOf(err) != fault.AuditUnavailable || c.State() != Proving {
		t.Fatalf("%v, %s", err, c.State())
	}
	b.start()
	b.unlock()
	if x := b.left(); x.IsPolling {
		t.Fatal("it polls")
	}
}

// What was armed and not finished is reconciled by the next run; what a look
// found ends the id as any outcome does, also one that was in doubt.
func TestReconcileEndsWhatWasLeftBehind(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(*Call) error
		want Verdict
	}{
		"it took effect":  {func(c *Call) error { return c.Finish(success()) }, Recorded},
		"an own code":     {func(c *Call) error { return c.Finish(failure("OWN_CODE")) }, Recorded},
		"it did not":      {func(c *Call) error { return c.Rearm(failure(fault.UpstreamUnavailable), 0) }, Fresh},
		"it cannot tell":  {func(c *Call) error { return c.Finish(unknown()) }, Unresolved},
		"nobody finished": {func(*Call) error { return nil }, Unresolved},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
			key := c.IdempotencyKey()
			b.send(c)
			c.Doubt()
			b.must(c.Arm(Armed{Attempt: 2}))
			b.crash()
			c, err := b.l.Resume(b.left())
			if err != nil || c.State() != Reconciling || c.IdempotencyKey() != key {
				t.Fatalf("%s, %v", c.State(), err)
			}
			b.must(c.Told())
			b.must(end.do(c))
			b.crash()
			c = b.claim(ann, "deploy-0001", inputX, true, end.want)
			if c.IdempotencyKey() != key {
				t.Error("another idempotency key")
			}
		})
	}
}

// A person's word wins over a reconcile that is under way, until what it found is
// written.
func TestResolveWinsOverReconcile(t *testing.T) {
	b := newBench(t)
	said := []byte(`{"ok":false,"error":{"code":"UPSTREAM_UNAVAILABLE"}}`)
	begin := func(id string, input [32]byte) *Call {
		c := b.claim(ann, id, input, true, Fresh)
		b.send(c)
		if err := b.l.Resolve(id, true, said); !errors.Is(err, ErrNotUnresolved) {
			t.Fatalf("a call that runs was resolved: %v", err)
		}
		b.must(c.SetState(Reconciling))
		return c
	}
	c := begin("deploy-0001", inputX)
	if all, err := b.l.List(true); err != nil || len(all) != 1 || all[0].State != Reconciling {
		t.Fatalf("%+v, %v", all, err)
	}
	b.must(b.l.Resolve("deploy-0001", false, said))
	if out, over := c.Outcome(); !isDone(c) || !over || out.Fate != fault.Rearmed {
		t.Fatalf("%+v", out)
	}
	for name, err := range map[string]error{"success": c.Finish(success()), "unknown": c.Finish(unknown()), "rearm": c.Rearm(failure("X"), 0), "told": c.Told()} {
		if !errors.Is(err, ErrTransition) {
			t.Errorf("%s after a person's word: %v", name, err)
		}
	}
	b.crash()
	b.claim(ann, "deploy-0001", inputX, true, Fresh)

	c = begin("deploy-0002", inputY)
	b.must(c.Prepare(success()))
	if err := b.l.Resolve("deploy-0002", false, said); !errors.Is(err, ErrNotUnresolved) {
		t.Fatalf("what was found was thrown away: %v", err)
	}
	c.Publish()
	b.claim(ann, "deploy-0002", inputY, true, Recorded)
}

// A lookup that failed frees the id, at the earliest when the remote said.
func TestLookingIsRearmed(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.must(c.SetState(Looking))
	b.must(c.Rearm(failure(fault.RemoteRateLimited), time.Minute))
	b.crash()
	b.claim(ann, "deploy-0001", inputX, true, Recorded)
	b.now = b.now.Add(time.Minute)
	b.claim(ann, "deploy-0001", inputX, true, Fresh)
}

// One entry that cannot be read keeps nobody from the others, and is told of. Its
// id and its change are never sent again.
func TestADamagedEntryIsToldAndLeft(t *testing.T) {
	for name, spoil := range map[string]func(raw []byte) []byte{
		"a changed byte": func(raw []byte) []byte { raw[len(raw)-1] ^= 1; return raw },
		"a torn end":     func(raw []byte) []byte { return raw[:headSize] },
		"gone":           func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			bad := b.claim(ann, "deploy-0001", inputX, true, Fresh)
			b.arm(bad)
			b.arm(b.claim(ann, "deploy-0002", inputY, true, Fresh))
			b.must(b.store.Update(func(tx durable.Tx) error {
				if raw := spoil(tx.Get(bucketCalls, bad.key[:])); raw != nil {
					return tx.Put(bucketCalls, bad.key[:], raw)
				}
				return tx.Delete(bucketCalls, bad.key[:])
			}))
			b.crash()
			b.unlock()
			for range 2 { // told once each time
				if x := b.left(); x.RequestID != "deploy-0002" {
					t.Fatalf("%+v", x)
				}
				d := b.l.Damaged()
				if len(d) != 1 || len(d[0].Entry) != 2*damageShown || !errors.Is(d[0].Cause, errRecord) || name == "a changed byte" && !d[0].Claimed.Equal(b.now) {
					t.Fatalf("%+v", d)
				}
			}
			if all, err := b.l.List(true); err != nil || len(all) != 1 || all[0].RequestID != "deploy-0002" {
				t.Fatalf("%+v, %v", all, err)
			}
			if name != "gone" {
				b.refused(ann, "deploy-0001", inputX, true, fault.Internal)
			}
			b.refused(ann, "deploy-0003", inputX, true, fault.Internal)
			if n, err := b.l.Recover(); n != 1 || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		})
	}
}
