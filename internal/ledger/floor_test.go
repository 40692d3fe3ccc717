package ledger

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// recorded is a success whose outcome stands at seq in the record.
func recorded(seq uint64) Outcome {
	o := success()
	o.RecordSeq, o.Detail = seq, []byte(`{"data":true}`)
	return o
}

// restart is a crash after which the record was durable through floor.
func (b *bench) restart(floor uint64) {
	b.t.Helper()
	b.floor = floor
	b.crash()
}

func (b *bench) marks() (n int) {
	b.t.Helper()
	b.must(b.store.View(func(tx durable.Tx) error {
		all, err := marksIn(tx)
		n = len(all)
		return err
	}))
	return n
}

// prepared is a call of which the disk holds the end, and nobody was told.
func (b *bench) prepared(id string, input [32]byte, change bool, seq uint64) *Call {
	b.t.Helper()
	c := b.claim(ann, id, input, change, Fresh)
	b.send(c)
	b.must(c.Prepare(recorded(seq)))
	return c
}

// isUnknown checks every way to the call: none may show the data.
func (b *bench) isUnknown(id string, input [32]byte, change bool) {
	b.t.Helper()
	c := b.claim(ann, id, input, change, Unresolved)
	found, ok, err := b.l.Lookup(ann, id)
	if err != nil || !ok {
		b.t.Fatalf("look up %s: %v, %v", id, ok, err)
	}
	for _, c := range []*Call{c, found} {
		out, over := c.Outcome()
		if !over || out.Code != "OUTCOME_UNKNOWN" || out.Fate != fault.Unresolved || out.Envelope != nil || out.Detail != nil || out.RecordSeq != 0 {
			b.t.Fatalf("%s: %+v", id, out)
		}
	}
	got, ok, err := b.l.Get(id)
	if err != nil || !ok {
		b.t.Fatalf("get %s: %v, %v", id, ok, err)
	}
	list, err := b.l.List(true)
	b.must(err)
	at := slices.IndexFunc(list, func(i Info) bool { return i.RequestID == id })
	if at < 0 {
		b.t.Fatalf("%s is not among the unresolved: %+v", id, list)
	}
	for _, i := range []Info{got, list[at]} {
		if i.State != StateUnresolved || i.Code != "OUTCOME_UNKNOWN" || i.Envelope != nil || i.Detail != nil || i.Plan == nil {
			b.t.Fatalf("%s: %+v", id, i)
		}
	}
}

// TestFinishedBeyondTheRecord: the entry says finished, the record lost the
// outcome. The call is as one that never came back.
func TestFinishedBeyondTheRecord(t *testing.T) {
	b := newBench(t)
	b.prepared("deploy-0001", inputX, true, 8)
	b.claim(ann, "deploy-0002", inputX, true, Joined)
	b.prepared("read-00001", inputX, false, 9)
	for range 3 {
		b.restart(7)
		if running, un := b.l.Counts(); running != 0 || un != 2 {
			t.Fatalf("%d running, %d unresolved", running, un)
		}
		b.isUnknown("deploy-0001", inputX, true)
		b.isUnknown("read-00001", inputX, false)
		for _, id := range []string{"deploy-0002", "deploy-0003", ""} { // the same change is not sent again
			if c := b.claim(ann, id, inputX, true, Unresolved); c.RequestID() != "deploy-0001" {
				t.Fatal(c.RequestID())
			}
		}
		b.refused(ann, "deploy-0001", inputY, true, fault.DuplicateRequest)
	}
	left, err := b.l.Left()
	if err != nil || len(left) != 2 || left[0].Envelope != nil {
		t.Fatalf("%+v, %v", left, err)
	}
	if n, err := b.l.Recover(); n != 2 || err != nil { // and written down so
		t.Fatalf("%d, %v", n, err)
	}
	b.isUnknown("deploy-0001", inputX, true)
	if n, err := b.l.Recover(); n != 0 || err != nil {
		t.Fatalf("a second time: %d, %v", n, err)
	}
	b.must(b.l.Resolve("deploy-0001", true, []byte(`{"ok":true,"resolved":true}`)))
	b.must(b.l.Resolve("read-00001", false, []byte(`{"ok":false,"error":{"code":"UPSTREAM_UNAVAILABLE"}}`)))
	b.restart(7)
	for _, id := range []string{"deploy-0001", "deploy-0002", "deploy-0003"} {
		if out, _ := b.claim(ann, id, inputX, true, Recorded).Outcome(); !bytes.Contains(out.Envelope, []byte("resolved")) {
			t.Fatalf("%+v", out)
		}
	}
	b.claim(ann, "read-00001", inputX, false, Fresh)
}

// TestFinishedWithinTheRecord: what the record holds is given again, also when
// nobody had been told before the crash.
func TestFinishedWithinTheRecord(t *testing.T) {
	b := newBench(t)
	b.prepared("deploy-0001", inputX, true, 8)
	c := b.prepared("deploy-0002", inputY, true, 7)
	c.Publish()
	if b.marks() != 2 {
		t.Fatalf("%d marks", b.marks())
	}
	for range 2 {
		b.restart(8)
		for id, input := range map[string][32]byte{"deploy-0001": inputX, "deploy-0002": inputY} {
			out, _ := b.claim(ann, id, input, true, Recorded).Outcome()
			if string(out.Envelope) != `{"ok":true}` || out.RecordSeq == 0 {
				t.Fatalf("%s: %+v", id, out)
			}
		}
		if n, err := b.l.Recover(); n != 0 || err != nil || b.marks() != 0 {
			t.Fatalf("%d unresolved, %v, %d marks", n, err, b.marks())
		}
	}
	if i, _, err := b.l.Get("deploy-0001"); err != nil || i.RecordSeq != 8 {
		t.Fatalf("%+v, %v", i, err)
	}
}

// TestSequenceGivenAgain: the judgement is made at the first start and stands,
// though the record has given the lost number to another event by the second,
// and though nobody unlocked in between.
func TestSequenceGivenAgain(t *testing.T) {
	b := newBench(t)
	b.prepared("deploy-0001", inputX, true, 8)
	b.must(b.store.Close())
	for _, floor := range []uint64{7, 20, 21} {
		b.floor = floor
		b.start()
		if _, un := b.l.Counts(); un != 1 {
			t.Fatalf("floor %d, still locked: %d unresolved", floor, un)
		}
		b.must(b.store.Close())
	}
	b.floor = 22
	b.start()
	b.unlock()
	b.isUnknown("deploy-0001", inputX, true)
	// A call of this run may well have the number that was lost.
	b.prepared("deploy-0009", inputY, true, 8).Publish()
	b.restart(23)
	b.isUnknown("deploy-0001", inputX, true)
	b.claim(ann, "deploy-0009", inputY, true, Recorded)
}

// TestStartThatDies: a start that was killed before it set the floor, or that
// never set it, answers nothing that may not be in the record.
func TestStartThatDies(t *testing.T) {
	b := newBench(t)
	b.prepared("deploy-0001", inputX, true, 8)
	b.prepared("deploy-0002", inputY, true, 6).Publish()
	c := b.claim(ann, "deploy-0003", [32]byte{3}, true, Fresh)
	b.must(c.Finish(failure("OWN_CODE"))) // denied: it has no place in the record
	b.noFloor = true
	for range 2 {
		b.restart(0)
		for id, input := range map[string][32]byte{"deploy-0001": inputX, "deploy-0002": inputY} {
			if out, _ := b.claim(ann, id, input, true, Unresolved).Outcome(); out.Envelope != nil {
				t.Fatalf("%s: %+v", id, out)
			}
		}
		b.claim(ann, "deploy-0003", [32]byte{3}, true, Recorded)
		c := b.claim(ann, "deploy-0004", [32]byte{4}, false, Fresh)
		b.send(c)
		if err := c.Prepare(recorded(9)); !errors.Is(err, errFloor) {
			t.Fatalf("finished before the floor: %v", err)
		}
		b.must(c.Rearm(failure(fault.UpstreamUnavailable), 0))
	}
	b.noFloor = false
	b.restart(7)
	b.isUnknown("deploy-0001", inputX, true)
	b.claim(ann, "deploy-0002", inputY, true, Recorded)
	if err := b.l.SetRecordFloor(9); !errors.Is(err, errFloor) {
		t.Fatalf("set twice: %v", err)
	}
	b.isUnknown("deploy-0001", inputX, true)
}

// TestReplacedOutcome: only the outcome that stands has a mark.
func TestReplacedOutcome(t *testing.T) {
	b := newBench(t)
	placed := func(o Outcome) Outcome { o.RecordSeq = 13; return o }
	b.must(b.prepared("deploy-0001", inputX, true, 8).Finish(placed(unknown())))
	b.must(b.prepared("deploy-0002", inputY, true, 9).Rearm(placed(failure(fault.UpstreamUnavailable)), 0))
	b.must(b.prepared("read-00001", inputX, false, 10).Release(nil, "")) // a read goes where a change would not
	if b.marks() != 0 {
		t.Fatalf("%d marks", b.marks())
	}
	b.must(b.prepared("deploy-0003", [32]byte{3}, true, 11).Finish(recorded(12)))
	b.restart(11)
	out, _ := b.claim(ann, "deploy-0001", inputX, true, Unresolved).Outcome()
	if out.Envelope == nil {
		t.Fatalf("%+v", out)
	}
	b.claim(ann, "deploy-0002", inputY, true, Fresh)
	b.claim(ann, "read-00001", inputX, false, Fresh)
	b.isUnknown("deploy-0003", [32]byte{3}, true)
}

// TestLostInThisRun: the record and then the ledger refuse. This run answers
// unknown out of its memory, and the next one by the floor.
func TestLostInThisRun(t *testing.T) {
	b := newBench(t)
	c := b.prepared("deploy-0001", inputX, true, 8)
	b.must(b.store.Close())
	if err := c.Finish(unknown()); err == nil || c.State() != StateUnresolved {
		t.Fatalf("%v, %s", err, c.State())
	}
	b.floor = 7
	b.start()
	b.unlock()
	b.isUnknown("deploy-0001", inputX, true)

	c = b.prepared("deploy-0002", inputY, true, 9)
	c.lose(unknown())
	b.must(b.l.Resolve("deploy-0002", true, []byte(`{"ok":true}`)))
	b.restart(8) // a person's word stands, whatever the record held
	b.claim(ann, "deploy-0002", inputY, true, Recorded)
}

// TestSweepForgetsMarks: a mark lives as long as its outcome, however long the
// daemon runs.
func TestSweepForgetsMarks(t *testing.T) {
	b := newBench(t)
	b.prepared("deploy-0001", inputX, true, 8).Publish()
	b.now = b.now.Add(29 * 24 * time.Hour)
	b.prepared("deploy-0002", inputY, true, 9).Publish()
	b.must(b.l.Sweep())
	if b.marks() != 2 {
		t.Fatalf("%d marks", b.marks())
	}
	b.now = b.now.Add(2 * 24 * time.Hour)
	b.must(b.l.Sweep())
	if b.marks() != 1 {
		t.Fatalf("%d marks", b.marks())
	}
	b.restart(0) // the record is lost whole: only what is kept can be unresolved
	if _, un := b.l.Counts(); un != 1 {
		t.Fatalf("%d unresolved", un)
	}
	b.refused(ann, "deploy-0001", inputX, true, fault.DuplicateRequest)
	b.isUnknown("deploy-0002", inputY, true)
}

// TestOlderLedger: a file without the bucket of marks gets one, and its
// entries, which name no place in the record, answer as before.
func TestOlderLedger(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.send(c)
	b.must(c.Finish(success()))
	var value []byte
	b.must(b.store.View(func(tx durable.Tx) error { value = tx.Get(bucketCalls, c.key[:]); return nil }))
	rec, err := parseRecord(value)
	b.must(err)
	entryKey, err := durable.Unseal(testKeys.Wrap, wrapPlace(c.key), rec.wrapped)
	b.must(err)
	plain, err := durable.Unseal(entryKey, entryPlace(c.key, rec.head), rec.sealed)
	b.must(err)
	plain = bytes.Replace(plain, []byte(`,"record_seq":0`), nil, 1)
	if bytes.Contains(plain, []byte("record_seq")) {
		t.Fatalf("%s", plain)
	}
	sealed, err := durable.Seal(entryKey, entryPlace(c.key, rec.head), plain)
	b.must(err)

	b.must(b.store.Close())
	b.path += ".older"
	old, err := durable.OpenStore(b.path, time.Second, "ledger.calls", "ledger.open", "ledger.ids", "ledger.meta")
	b.must(err)
	b.must(old.Put(bucketCalls, c.key[:], slices.Concat(rec.head, rec.wrapped, sealed)))
	b.must(old.Close())
	b.floor = 3
	b.start()
	b.unlock()
	if out, _ := b.claim(ann, "deploy-0001", inputX, true, Recorded).Outcome(); out.Envelope == nil || out.RecordSeq != 0 {
		t.Fatalf("%+v", out)
	}
	b.prepared("deploy-0002", inputY, true, 4)
	b.restart(3)
	b.isUnknown("deploy-0002", inputY, true)
}

// TestDamagedMark: a mark that cannot be read stops the start.
func TestDamagedMark(t *testing.T) {
	for _, m := range []struct{ k, v []byte }{
		{make([]byte, 31), make([]byte, 8)}, {make([]byte, 32), make([]byte, 7)},
		{make([]byte, 32), nil}, {make([]byte, 32), make([]byte, 39)},
	} {
		b := newBench(t)
		b.must(b.store.Put(bucketMarks, m.k, m.v))
		b.must(b.store.Close())
		b.noFloor = true
		b.start()
		if err := b.l.SetRecordFloor(1); !errors.Is(err, errRecord) || b.l.floored {
			t.Errorf("%d, %d bytes: %v", len(m.k), len(m.v), err)
		}
	}
}

// TestAnothersCall: names and the list of open calls stand in clear. Whoever
// bends them leads nobody to another owner's call, ended or live.
func TestAnothersCall(t *testing.T) {
	ended := func(b *bench, c *Call) { b.send(c); b.must(c.Finish(success())) }
	cases := []struct {
		name string
		end  func(*bench, *Call)
		bend func(b *bench, c *Call, alias recordKey, input inputKey) error
		id   string
	}{
		{"a name", ended, func(b *bench, c *Call, alias recordKey, _ inputKey) error {
			return b.store.Put(bucketCalls, alias[:], aliasValue(c.key))
		}, "bobs-00001"},
		{"a name of a live call", func(*bench, *Call) {}, func(b *bench, c *Call, alias recordKey, _ inputKey) error {
			b.arm(c)
			return b.store.Put(bucketCalls, alias[:], aliasValue(c.key))
		}, "bobs-00001"},
		{"an open input", ended, func(b *bench, c *Call, _ recordKey, input inputKey) error {
			if err := b.store.Put(bucketOpen, c.key[:], input[:]); err != nil {
				return err
			}
			b.crash()
			return nil
		}, ""},
		{"a mark's input", ended, func(b *bench, c *Call, _ recordKey, input inputKey) error {
			if err := b.store.Put(bucketMarks, c.key[:], mark{seq: 9, input: input[:]}.value()); err != nil {
				return err
			}
			b.crash()
			return nil
		}, ""},
	}
	for _, tc := range cases {
		for _, o := range []Owner{bob, {Agent: ann.Agent, UID: 7}} {
			b := newBench(t)
			c := b.claim(ann, "anns-00001", inputX, true, Fresh)
			tc.end(b, c)
			b.l.mu.Lock()
			alias, input := b.l.recordKeyLocked(o, "bobs-00001"), b.l.inputKeyLocked(o, "deploy_release", inputX)
			b.l.mu.Unlock()
			b.must(tc.bend(b, c, alias, input))
			if got, v, err := b.l.Claim(o, tc.id, "deploy_release", inputX, true); fault.CodeOf(err) != fault.Internal || !errors.Is(err, errRecord) || got != nil {
				t.Errorf("%s: claimed with verdict %d, %v", tc.name, v, err)
			}
			if tc.id == "" {
				continue
			}
			if got, ok, err := b.l.Lookup(o, tc.id); fault.CodeOf(err) != fault.Internal || ok || got != nil {
				t.Errorf("%s: looked up %v, %v", tc.name, ok, err)
			}
		}
	}
}

// TestAnotherInputsCall: nor to another call of one's own.
func TestAnotherInputsCall(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "anns-00001", inputX, true, Fresh)
	b.send(c)
	b.must(c.Finish(unknown()))
	b.l.mu.Lock()
	input := b.l.inputKeyLocked(ann, "deploy_release", inputY)
	b.l.mu.Unlock()
	b.must(b.store.Put(bucketOpen, c.key[:], input[:]))
	b.crash()
	b.refused(ann, "anns-00002", inputY, true, fault.Internal)
	b.claim(ann, "anns-00001", inputX, true, Unresolved)
}
