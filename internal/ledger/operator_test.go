package ledger

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

func TestLock(t *testing.T) {
	b := newBench(t)
	armed := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(armed)
	waiting := b.claim(ann, "deploy-0002", inputY, true, Fresh)
	b.must(waiting.SetState(Waiting))
	b.l.Lock()
	b.refused(ann, "deploy-0001", inputX, true, fault.VaultLocked)
	for name, err := range map[string]error{
		"lookup":  second(b.l.Lookup(ann, "deploy-0001")),
		"list":    func() error { _, err := b.l.List(false); return err }(),
		"get":     second(b.l.Get("deploy-0001")),
		"resolve": b.l.Resolve("deploy-0001", true, nil),
		"recover": func() error { _, err := b.l.Recover(); return err }(),
		"arm":     waiting.Arm(Armed{Attempt: 1}),
		"retry":   armed.Arm(Armed{Attempt: 2}),
	} {
		if fault.CodeOf(err) != fault.VaultLocked {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.must(armed.Finish(success())) // what was sent finishes and is kept
	if run, un := b.l.Counts(); run != 1 || un != 0 {
		t.Fatalf("%d running, %d unresolved", run, un)
	}
	b.unlock()
	b.claim(ann, "deploy-0001", inputX, true, Recorded)
	if err := waiting.Arm(Armed{Attempt: 1}); fault.CodeOf(err) != fault.VaultLocked {
		t.Fatalf("approved before the lock, armed after it: %v", err)
	}
	b.must(waiting.Release(nil, "VAULT_LOCKED"))
	b.claim(ann, "deploy-0002", inputY, true, Fresh)
	b.l.Lock()
	if err := b.l.Unlock(Keys{Index: []byte("short")}); err == nil {
		t.Fatal("a short key")
	}
}

func second[T any](_ T, _ bool, err error) error { return err }

func TestWrongKeys(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	b.must(b.store.Close())
	b.start()
	b.must(b.l.Unlock(Keys{Index: testKeys.Index, Wrap: bytes.Repeat([]byte{3}, 32)}))
	b.refused(ann, "deploy-0001", inputX, true, fault.Internal) // never sent again
	b.refused(ann, "deploy-0002", inputX, true, fault.Internal)
	if n, err := b.l.Recover(); n != 0 || err != nil || len(b.l.Damaged()) != 1 {
		t.Fatalf("%d, %v, %v", n, err, b.l.Damaged())
	}
}

func TestKeepThenTombstone(t *testing.T) {
	b := newBench(t)
	done := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.claim(ann, "deploy-0002", inputX, true, Joined)
	b.send(done)
	b.must(done.Finish(success()))
	open := b.claim(ann, "deploy-0003", inputY, true, Fresh)
	b.send(open)
	b.must(open.Finish(unknown()))
	b.now = b.now.Add(30 * 24 * time.Hour)
	b.must(b.l.Sweep())
	b.claim(ann, "deploy-0001", inputX, true, Recorded)
	b.now = b.now.Add(time.Hour)
	for range 2 { // before and after the sweep
		b.refused(ann, "deploy-0001", inputX, true, fault.DuplicateRequest)
		b.refused(ann, "deploy-0002", inputX, true, fault.DuplicateRequest)
		if _, _, err := b.l.Lookup(ann, "deploy-0001"); fault.CodeOf(err) != fault.DuplicateRequest {
			t.Fatalf("%v", err)
		}
		b.claim(ann, "deploy-0003", inputY, true, Unresolved)
		b.must(b.l.Sweep())
		b.crash()
	}
	infos, err := b.l.List(false)
	if err != nil || len(infos) != 1 || infos[0].RequestID != "deploy-0003" {
		t.Fatalf("%+v, %v", infos, err)
	}
}

func TestOperator(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.must(c.Arm(Armed{Attempt: 1, Plan: []byte("plan"), PlanDigest: [32]byte{7}, Detail: []byte("{}"), IntentSeq: 12}))
	other := b.claim(bob, "deploy-0001", inputX, true, Fresh)
	b.send(other)
	if _, _, err := b.l.Get("deploy-0001"); !errors.Is(err, ErrAmbiguous) {
		t.Fatalf("%v", err)
	}
	b.must(c.Finish(unknown()))
	b.must(other.Finish(success()))
	if _, _, err := b.l.Get("deploy-0001"); !errors.Is(err, ErrAmbiguous) {
		t.Fatalf("%v", err)
	}
	info, ok, err := b.l.Get("deploy-0001@" + ann.Agent)
	if err != nil || !ok || info.State != StateUnresolved || info.Attempt != 1 || string(info.Plan) != "plan" ||
		info.PlanDigest != [32]byte{7} || info.IntentSeq != 12 || info.Agent != ann.Agent || info.Code != "OUTCOME_UNKNOWN" {
		t.Fatalf("%+v %v %v", info, ok, err)
	}
	if _, ok, err := b.l.Get("deploy-0001@" + ann.Agent + ":1"); ok || err != nil {
		t.Fatalf("another user's: %v %v", ok, err)
	}
	if _, ok, err := b.l.Get("never-seen-1"); ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	if err := b.l.Resolve("never-seen-1", true, nil); !errors.Is(err, ErrNotFound) {
		t.Fatalf("%v", err)
	}
	if err := b.l.Resolve("deploy-0001@"+bob.Agent, true, nil); !errors.Is(err, ErrNotUnresolved) {
		t.Fatalf("%v", err)
	}
	all, err := b.l.List(false)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d, %v", len(all), err)
	}
	un, err := b.l.List(true)
	if err != nil || len(un) != 1 || un[0].Agent != ann.Agent {
		t.Fatalf("%+v, %v", un, err)
	}
	b.must(b.l.Resolve("deploy-0001", true, []byte(`{"ok":true}`))) // one is unresolved: it is meant
	if _, un := b.l.Counts(); un != 0 {
		t.Fatal("still counted")
	}
	if r := b.claim(ann, "deploy-0001", inputX, true, Recorded); r.State() != Finished {
		t.Fatal(r.State())
	}
}

// TestResolvedAsNotHappened: a code that re-arms frees the id, with the same
// idempotency key; any other is final.
func TestResolvedAsNotHappened(t *testing.T) {
	for code, want := range map[string]Verdict{"UPSTREAM_UNAVAILABLE": Fresh, "NOT_FOUND": Recorded, "OWN_CODE": Recorded, "": Recorded} {
		b := newBench(t)
		c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
		key := c.IdempotencyKey()
		b.send(c)
		b.crash()
		envelope := []byte(`{"ok":false,"error":{"code":"` + code + `"}}`)
		b.must(b.l.Resolve("deploy-0001", false, envelope))
		b.crash()
		c = b.claim(ann, "deploy-0001", inputX, true, want)
		if c.IdempotencyKey() != key {
			t.Errorf("%s: another key", code)
		}
		if out, over := c.Outcome(); over && out.Code == "" {
			t.Errorf("%s: a success", code)
		}
	}
}

func TestRecover(t *testing.T) {
	b := newBench(t)
	for i, upto := range []State{Claimed, Waiting, StateArmed, Sent, Proving} {
		b.now = b.now.Add(time.Second)
		c := b.claim(ann, "deploy-000"+string(rune('0'+i)), [32]byte{byte(i)}, true, Fresh)
		switch upto {
		case Waiting:
			b.must(c.SetState(Waiting))
		case StateArmed:
			b.arm(c)
		case Sent:
			b.arm(c)
			b.must(c.SetState(Sent))
		case Proving:
			b.send(c)
		}
	}
	b.crash()
	if _, un := b.l.Counts(); un != 3 {
		t.Fatalf("%d unresolved", un)
	}
	live := b.claim(ann, "deploy-0009", [32]byte{9}, true, Fresh)
	b.arm(live) // of this run: not to be recovered
	infos, err := b.l.Left()
	if err != nil || len(infos) != 3 || infos[0].RequestID != "deploy-0002" {
		t.Fatalf("%+v, %v", infos, err)
	}
	if n, err := b.l.Recover(); n != 3 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := b.l.Recover(); n != 0 || err != nil {
		t.Fatalf("a second time: %d, %v", n, err)
	}
	b.must(live.Finish(success()))
	b.claim(ann, "deploy-0000", [32]byte{0}, true, Fresh)
	b.claim(ann, "deploy-0001", [32]byte{1}, true, Fresh)
	for _, id := range []string{"2", "3", "4"} {
		c := b.claim(ann, "deploy-000"+id, [32]byte{id[0] - '0'}, true, Unresolved)
		if out, ok := c.Outcome(); !ok || out.Code != "OUTCOME_UNKNOWN" || out.Envelope != nil {
			t.Fatalf("%+v", out)
		}
	}
}

// TestNothingInClear reads the file as a thief would.
func TestNothingInClear(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.claim(ann, "secret-alias", inputX, true, Joined)
	b.send(c)
	b.must(c.Finish(Outcome{Envelope: []byte(`{"ok":true,"data":{"who":"planted-envelope"}}`), Fate: fault.Final, Sentence: "planted sentence", RecordSeq: 5}))
	c = b.claim(ann, "deploy-0009", inputY, true, Fresh)
	b.arm(c)
	raw, err := os.ReadFile(b.path)
	b.must(err)
	for _, word := range []string{"deploy-0001", "deploy-0009", "secret-alias", ann.Agent, "deploy_release", "planted", "frozen", "act_", c.IdempotencyKey(), "request_id"} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("%q stands in clear", word)
		}
	}
}
