package ledger

import (
	"bytes"
	"errors"
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

	floor   uint64 // through which the record was durable at the start
	noFloor bool   // a start that does not say so
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
	if b.noFloor {
		return
	}
	if err := b.l.SetRecordFloor(b.floor); err != nil {
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

// Whoever joins a call reads its names while it is armed; -race looks on.
func TestNamesAreReadWhileArmed(t *testing.T) {
	b := newBench(t)
	c := b.claim(ann, "deploy-0001", inputX, true, Fresh)
	joined := b.claim(ann, "deploy-0001", inputX, true, Joined)
	read := make(chan string, 1)
	go func() { read <- joined.RequestID() + " " + joined.Action() }()
	b.arm(c)
	if got := <-read; got != "deploy-0001 deploy_release" {
		t.Errorf("read %q", got)
	}
}
