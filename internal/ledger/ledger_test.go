package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

var (
	testKeys = Keys{Index: bytes.Repeat([]byte{1}, 32), Wrap: bytes.Repeat([]byte{2}, 32)}
	ann      = Owner{Agent: "build-worker-ann", UID: 1000}
	bob      = Owner{Agent: "build-worker-bob", UID: 1000}
	inputX   = [32]byte{'x'}
	inputY   = [32]byte{'y'}
)

// bench is one state file over several runs of the daemon.
type bench struct {
	t     *testing.T
	path  string
	store *durable.Store
	l     *Ledger
	now   time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "ledger.db"), now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	b.start()
	b.unlock()
	t.Cleanup(func() { _ = b.store.Close() })
	return b
}

func (b *bench) start() {
	b.t.Helper()
	var err error
	if b.store, err = durable.OpenStore(b.path, time.Second, Buckets()...); err != nil {
		b.t.Fatal(err)
	}
	if b.l, err = Open(b.store, Options{Now: func() time.Time { return b.now }}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) unlock() {
	b.t.Helper()
	if err := b.l.Unlock(testKeys); err != nil {
		b.t.Fatal(err)
	}
}

// crash loses the process's memory; what is on the disk stays.
func (b *bench) crash() {
	b.t.Helper()
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.start()
	b.unlock()
}

func (b *bench) claim(o Owner, id string, input [32]byte, change bool, want Verdict) *Call {
	b.t.Helper()
	c, v, err := b.l.Claim(o, id, "deploy_release", input, change)
	if err != nil || v != want {
		b.t.Fatalf("claim %s: verdict %d, %v; want %d", id, v, err, want)
	}
	return c
}

func (b *bench) refused(o Owner, id string, input [32]byte, change bool, want fault.Code) {
	b.t.Helper()
	if _, _, err := b.l.Claim(o, id, "deploy_release", input, change); err == nil || fault.CodeOf(err) != want {
		b.t.Fatalf("claim %s: %v; want %s", id, err, want)
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) arm(c *Call) {
	b.t.Helper()
	b.must(c.Arm(Armed{Attempt: 1, IdempotencyKey: c.IdempotencyKey(), Plan: []byte(`{"plan":"frozen"}`), PlanDigest: [32]byte{9}}))
}

func (b *bench) send(c *Call) {
	b.t.Helper()
	b.arm(c)
	b.must(c.SetState(Sent))
	b.must(c.SetState(Proving))
}

func success() Outcome {
	return Outcome{Envelope: []byte(`{"ok":true}`), Fate: fault.Final, Sentence: "Deploy version 2 of api"}
}

func unknown() Outcome {
	return Outcome{Envelope: []byte(`{"ok":false,"error":{"code":"OUTCOME_UNKNOWN"}}`), Code: "OUTCOME_UNKNOWN", Fate: fault.Unresolved}
}

func failure(code fault.Code) Outcome {
	return Outcome{Envelope: []byte(`{"ok":false}`), Code: string(code), Fate: fault.Final}
}

func isDone(c *Call) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestSameIDGivesTheRecordedOutcome(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	if c.Action() != "deploy_release" || !b.l.Unlocked() {
		t.Fatal(c.Action())
	}
	if j := b.claim(ann, "deploy-0001", inputX, true, Joined); j != c {
		t.Fatal("joined another call")
	}
	b.send(c)
	b.must(c.Finish(success()))
	if !isDone(c) || c.State() != Finished {
		t.Fatal("not finished")
	}
	for range 3 {
		r := b.claim(ann, "deploy-0001", inputX, true, Recorded)
		out, ok := r.Outcome()
		if !ok || string(out.Envelope) != `{"ok":true}` || out.Code != "" || out.Fate != fault.Final {
			t.Fatalf("%+v", out)
		}
		b.crash()
	}
	b.refused(ann, "deploy-0001", inputY, true, fault.DuplicateRequest)
	if _, _, err := b.l.Claim(ann, "deploy-0001", "other_action", inputX, true); fault.CodeOf(err) != fault.DuplicateRequest {
		t.Fatalf("%v", err)
	}
	b.claim(bob, "deploy-0001", inputX, true, Fresh) // another agent's id is unknown to it
	b.claim(Owner{Agent: ann.Agent, UID: 7}, "deploy-0001", inputX, true, Fresh)
}

func TestRequestIDForm(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"short-1", strings.Repeat("a", 65), "-leading", "_leading1", ".leading1", "has space", "has/slash1",
		"üüüüüüüü", "deploy-001\n", "act_01J00000000000000000000000", "act_short1", "deploy-0001\x00"} {
		_, _, err := b.l.Claim(ann, id, "a", inputX, true)
		f := fault.From(err)
		if f.Code() != fault.InvalidArgument || len(f.Fields()) != 1 || f.Fields()[0].Pointer != "/request_id" {
			t.Errorf("%q: %v", id, err)
		}
		if strings.Contains(f.Fields()[0].Reason, id) {
			t.Errorf("%q is repeated", id)
		}
	}
	for _, id := range []string{"deploy-1", strings.Repeat("a", 64), "A.b_c-d9", "acts-0001"} {
		c := b.claim(ann, id, inputX, false, Fresh)
		if c.RequestID() != id {
			t.Errorf("%s became %s", id, c.RequestID())
		}
	}
}

func TestOwnIDs(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "", inputX, true, Fresh)
	id := c.RequestID()
	if !idForm.MatchString(id) || !strings.HasPrefix(id, "act_") {
		t.Fatalf("%q", id)
	}
	b.claim(ann, id, inputX, true, Joined)
	_ = c.Release(nil, "VAULT_LOCKED") // not consumed: the same id starts afresh
	c = b.claim(ann, id, inputX, true, Fresh)
	_ = c.Release(nil, "")
	b.crash() // the daemon forgot the call and still knows its own id
	b.claim(ann, id, inputX, true, Fresh)
	last := "0"
	if strings.HasSuffix(id, "0") {
		last = "1"
	}
	b.refused(ann, id[:len(id)-1]+last, inputX, true, fault.InvalidArgument)
	b.l.Lock()
	if l := b.l.NewID(); !b.l.isOwn(l) || l == b.l.NewID() {
		t.Fatal("no id while locked")
	}
}

// TestSameChangeIsNotSentTwice: while a change waits, runs or is unresolved,
// another with the same input answers with the first.
func TestSameChangeIsNotSentTwice(t *testing.T) {
	b := newBench(t)
	first := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	for _, id := range []string{"deploy-0002", ""} {
		if c := b.claim(ann, id, inputX, true, Joined); c != first {
			t.Fatal("joined another call")
		}
	}
	b.claim(ann, "deploy-0003", inputY, true, Fresh) // another input
	b.claim(bob, "deploy-0004", inputX, true, Fresh) // another agent
	b.send(first)
	b.claim(ann, "deploy-0005", inputX, true, Joined)
	b.must(first.Finish(unknown()))
	check := func() {
		t.Helper()
		for _, id := range []string{"deploy-0001", "deploy-0002", "deploy-0005", "deploy-0006", ""} {
			c := b.claim(ann, id, inputX, true, Unresolved)
			out, ok := c.Outcome()
			if c.RequestID() != "deploy-0001" || !ok || out.Code != "OUTCOME_UNKNOWN" || out.Fate != fault.Unresolved {
				t.Fatalf("%s: %s %+v", id, c.RequestID(), out)
			}
		}
	}
	check()
	b.crash()
	check()
	b.must(b.l.Resolve("deploy-0001", true, []byte(`{"ok":false,"error":{"code":"OUTCOME_UNKNOWN"}}`)))
	for range 2 {
		// The ids that were answered with the first call stay bound to it; a new
		// one is a new call.
		for _, id := range []string{"deploy-0001", "deploy-0002", "deploy-0005", "deploy-0006"} {
			if c := b.claim(ann, id, inputX, true, Recorded); c.RequestID() != "deploy-0001" {
				t.Fatal(c.RequestID())
			}
			b.refused(ann, id, inputY, true, fault.DuplicateRequest)
		}
		b.crash()
	}
	b.claim(ann, "deploy-0007", inputX, true, Fresh)
}

func TestReadsDoNotJoinByInput(t *testing.T) {
	b := newBench(t)
	b.claim(ann, "read-00001", inputX, false, Fresh)
	b.claim(ann, "read-00002", inputX, false, Fresh)
	b.claim(ann, "read-00002", inputX, false, Joined)
}

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

// TestOneOfManyRuns: of many calls for one change at one moment, one runs.
func TestOneOfManyRuns(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for i := range 40 {
		wg.Go(func() {
			c, v, err := b.l.Claim(ann, "deploy-many-"+strings.Repeat("n", i+1), "deploy_release", inputX, true)
			if err != nil {
				t.Error(err)
				return
			}
			if v == Fresh {
				mu.Lock()
				fresh++
				mu.Unlock()
				if err := errors.Join(c.Arm(Armed{Attempt: 1}), c.Finish(unknown())); err != nil {
					t.Error(err)
				}
			}
			<-c.Done()
			if out, ok := c.Outcome(); !ok || out.Code != "OUTCOME_UNKNOWN" {
				t.Errorf("%+v", out)
			}
		})
	}
	wg.Wait()
	if fresh != 1 {
		t.Fatalf("%d ran", fresh)
	}
	b.crash()
	for i := range 40 {
		b.claim(ann, "deploy-many-"+strings.Repeat("n", i+1), inputX, true, Unresolved)
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
	if _, err := b.l.Recover(); fault.CodeOf(err) != fault.Internal {
		t.Fatalf("%v", err)
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
	infos, err := b.l.RecoverInfos()
	if err != nil || len(infos) != 3 || infos[0].RequestID != "deploy-0002" {
		t.Fatalf("%+v, %v", infos, err)
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

func TestTooManyIDsOnOneCall(t *testing.T) {
	b := newBench(t)
	b.claim(ann, "deploy-0001", inputX, true, Fresh)
	id := func(i int) string { return "another-" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	for i := range maxAliases {
		b.claim(ann, id(i), inputX, true, Joined)
	}
	b.refused(ann, id(maxAliases), inputX, true, fault.Overloaded)
	b.claim(ann, id(3), inputX, true, Joined)
}

// TestNothingInClear reads the file as a thief would.
func TestNothingInClear(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	b.claim(ann, "secret-alias", inputX, true, Joined)
	b.send(c)
	b.must(c.Finish(Outcome{Envelope: []byte(`{"ok":true,"data":{"who":"planted-envelope"}}`), Fate: fault.Final, Sentence: "planted sentence"}))
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
