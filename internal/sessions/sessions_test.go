package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

var (
	testKeys = Keys{Index: bytes.Repeat([]byte{1}, 32), Wrap: bytes.Repeat([]byte{2}, 32)}
	ann      = Caller{UID: 1000, Listener: "socket", PID: 77, Exe: "/usr/bin/agent"}
	bob      = Caller{UID: 1001, Listener: "tcp"}
)

type bench struct {
	t     testing.TB
	path  string
	store *durable.Store
	r     *Registry
	o     Options

	mu    sync.Mutex // guards ended: the registry's timer tells too
	ended []string
}

func (b *bench) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ended)
}

func newBench(t testing.TB, o Options) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "ledger.db"), o: o}
	b.start()
	b.must(b.r.Unlock(testKeys))
	return b
}

func (b *bench) start() {
	b.t.Helper()
	var err error
	b.store, err = durable.OpenStore(b.path, time.Second, Buckets()...)
	b.must(err)
	b.r, err = Open(b.store, b.o)
	b.must(err)
	b.r.OnEnd(func(s Session, reason string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended = append(b.ended, s.Name+": "+reason)
	})
}

func (b *bench) stop() {
	b.t.Helper()
	b.r.Close()
	b.must(b.store.Close())
}

func (b *bench) restart() {
	b.t.Helper()
	b.stop()
	b.start()
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) request(c Caller, name string) Pending {
	b.t.Helper()
	p, err := b.r.Request(c, name, "")
	b.must(err)
	return p
}

func (b *bench) authorised(c Caller, name string) Pending {
	b.t.Helper()
	p := b.request(c, name)
	b.must(b.r.Authorize(p.ID, map[string]string{"deploy_release": "digest-of-" + name}, "operator ann"))
	return p
}

// is checks what a token's bearer is told: a state, or a code.
func (b *bench) is(token string, c Caller, want string) {
	b.t.Helper()
	s, err := b.r.Authenticate(token, c)
	got := s.State
	if err != nil {
		got = string(fault.CodeOf(err))
	}
	if got != want {
		b.t.Fatalf("got %s (%v), want %s", got, err, want)
	}
}

func TestLifeOfASession(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	p := b.request(ann, "build-worker")
	if len(p.Token) != 43 || p.ID == "" || time.Until(p.Expires) > 10*time.Minute {
		t.Fatalf("%+v", p)
	}
	s, err := b.r.Authenticate(p.Token, ann)
	if err != nil || s.State != StatePending || fault.CodeOf(s.RequireAuthorised()) != fault.SessionPending || s.PairingCode != p.PairingCode {
		t.Fatalf("%+v, %v", s, err)
	}
	if fault.CodeOf(b.r.Alive(p.ID)) != fault.SessionPending || b.r.Pins(p.ID) != nil {
		t.Fatal("a pending session may do something")
	}
	b.must(b.r.Authorize(p.ID, map[string]string{"deploy_release": "d"}, "operator ann"))
	s, err = b.r.Authenticate(p.Token, ann)
	if err != nil || s.RequireAuthorised() != nil || s.AuthorisedBy != "operator ann" || s.Exe != ann.Exe || s.Anchor != "self" {
		t.Fatalf("%+v, %v", s, err)
	}
	b.must(b.r.Alive(p.ID))
	if b.r.Pins(p.ID)["deploy_release"] != "d" {
		t.Fatal("no pins")
	}
	b.r.Pins(p.ID)["deploy_release"] = "mine"
	if b.r.Pins(p.ID)["deploy_release"] != "d" {
		t.Fatal("a caller changed the pins")
	}
	if err := b.r.Authorize(p.ID, nil, "x"); !errors.Is(err, ErrDecided) {
		t.Fatalf("%v", err)
	}
	b.must(b.r.End(p.Token, ann))
	b.is(p.Token, ann, "SESSION_REVOKED")
	if err := b.r.End(p.Token, ann); fault.CodeOf(err) != fault.SessionRevoked {
		t.Fatalf("%v", err)
	}
	if fault.CodeOf(b.r.Alive(p.ID)) != fault.SessionRevoked || b.r.Pins(p.ID) != nil || len(b.r.List()) != 0 {
		t.Fatal("an ended session may do something")
	}
	if err := b.r.Authorize(p.ID, nil, "x"); !errors.Is(err, ErrEnded) {
		t.Fatalf("%v", err)
	}
	if told := b.told(); len(told) != 1 || told[0] != "build-worker: the agent ended it" {
		t.Fatalf("%q", told)
	}
}

func TestTokens(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	p := b.authorised(ann, "build-worker")
	for name, token := range map[string]string{"none": "", "wrong": strings.Repeat("A", 43), "short": p.Token[:42], "longer": p.Token + "A", "padded": p.Token + "="} {
		if _, err := b.r.Authenticate(token, ann); fault.CodeOf(err) != fault.SessionRequired || strings.Contains(err.Error(), p.Token[:20]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.is(p.Token, Caller{UID: 7, Listener: "tcp"}, "SESSION_REQUIRED") // a stranger: refused, not revoked
	b.is(p.Token, Caller{UID: 1000, Listener: "tcp"}, StateAuthorised)
	var zero Session
	if fault.CodeOf(zero.RequireAuthorised()) != fault.SessionRequired {
		t.Fatal("the zero session may do something")
	}
	if fault.CodeOf(b.r.Alive("ses_none")) != fault.SessionRevoked {
		t.Fatal("an unknown session lives")
	}
}

func TestPairingCode(t *testing.T) {
	form := regexp.MustCompile(`^[ACEFHJKMPRTWXY3479]{4}-[ACEFHJKMPRTWXY3479]{4}$`)
	seen := map[string]bool{}
	for range 300 {
		c := newPairingCode()
		if !form.MatchString(c) || seen[c] {
			t.Fatal(c)
		}
		seen[c] = true
	}
}

func TestRequestRefusals(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	for _, name := range []string{"", "-x", ".x", "has space", "new\nline", "аgent" /* Cyrillic a */, strings.Repeat("n", 65), "a/b", "a:b", "a@b"} {
		_, err := b.r.Request(ann, name, "self")
		if f := fault.From(err); f.Code() != fault.InvalidArgument || f.Fields()[0].Pointer != "/name" {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := b.r.Request(ann, "fine", "grandparent"); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("%v", err)
	}
	for i := range 4 {
		b.request(ann, fmt.Sprintf("agent-%d", i))
	}
	if _, err := b.r.Request(ann, "one-more", "self"); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("a fifth of one user: %v", err)
	}
	for uid := uint32(1); uid <= 3; uid++ {
		for i := range 4 {
			b.request(Caller{UID: uid}, fmt.Sprintf("agent-%d", i))
		}
	}
	if _, err := b.r.Request(Caller{UID: 9}, "one-more", "self"); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("a seventeenth: %v", err)
	}
	first := b.r.List()[0]
	b.must(b.r.Authorize(first.ID, nil, "op")) // it waits no more: there is room
	b.request(ann, "one-more")
}

func TestNameBelongsToItsFirstUser(t *testing.T) {
	b := newBench(t, Options{})
	defer func() { b.stop() }()
	early := b.request(bob, "build-worker") // before anyone holds it
	b.authorised(ann, "build-worker")
	if err := b.r.Authorize(early.ID, nil, "op"); !errors.Is(err, ErrNameTaken) {
		t.Fatalf("%v", err)
	}
	for range 2 {
		_, err := b.r.Request(bob, "build-worker", "self")
		if fault.CodeOf(err) != fault.InvalidArgument || !errors.Is(err, ErrNameTaken) {
			t.Fatalf("%v", err)
		}
		b.restart()
		late := b.request(bob, "build-worker") // locked: the daemon cannot know yet
		b.must(b.r.Unlock(testKeys))
		if err := b.r.Authorize(late.ID, nil, "op"); !errors.Is(err, ErrNameTaken) {
			t.Fatalf("%v", err)
		}
		b.authorised(ann, "build-worker")
	}
}

func TestConflict(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	first := b.authorised(ann, "build-worker")
	second := b.request(ann, "build-worker")
	list := b.r.List()
	if len(list) != 2 || list[0].Conflict || !list[1].Conflict || list[1].ID != second.ID {
		t.Fatalf("%+v", list)
	}
	b.is(first.Token, ann, StateAuthorised) // asking ends nothing
	b.must(b.r.Authorize(second.ID, nil, "op"))
	b.is(first.Token, ann, "SESSION_REVOKED")
	b.is(second.Token, ann, StateAuthorised)
	if s, _ := b.r.Get(first.ID); s.State != StateEnded || s.EndedBy != "op" {
		t.Fatalf("%+v", s)
	}
	if told := b.told(); len(told) != 1 {
		t.Fatalf("%q", told)
	}
}

func TestRevoke(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	p, q := b.authorised(ann, "build-worker"), b.request(ann, "other")
	b.r.Lock() // narrowing works while locked
	b.must(b.r.Revoke(p.ID, "op"))
	b.must(b.r.Revoke(q.ID, "op"))
	b.is(p.Token, ann, "SESSION_REVOKED")
	b.is(q.Token, ann, "SESSION_REVOKED")
	if err := b.r.Revoke(p.ID, "op"); !errors.Is(err, ErrEnded) {
		t.Fatalf("%v", err)
	}
	if err := b.r.Revoke("ses_none", "op"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("%v", err)
	}
}

func TestLockKeepsSessions(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	p := b.authorised(ann, "build-worker")
	b.r.Lock()
	b.is(p.Token, ann, StateAuthorised)
	q := b.request(ann, "other")
	if err := b.r.Authorize(q.ID, nil, "op"); fault.CodeOf(err) != fault.VaultLocked {
		t.Fatalf("%v", err)
	}
	b.must(b.r.Unlock(testKeys))
	b.must(b.r.Authorize(q.ID, nil, "op"))
}

// TestRestart: the daemon does not watch the processes of an earlier run.
func TestRestart(t *testing.T) {
	b := newBench(t, Options{})
	defer func() { b.stop() }()
	p, pending := b.authorised(ann, "build-worker"), b.request(ann, "other")
	b.restart()
	b.is(p.Token, ann, "SESSION_REVOKED") // locked already
	b.is(pending.Token, ann, "SESSION_REQUIRED")
	b.must(b.r.Unlock(testKeys))
	b.is(p.Token, ann, "SESSION_REVOKED")
	b.is(strings.Repeat("A", 43), ann, "SESSION_REQUIRED")
	if len(b.r.List()) != 0 {
		t.Fatal("a session of an earlier run is listed")
	}
	b.authorised(ann, "build-worker")
}

func TestRestartKeys(t *testing.T) {
	b := newBench(t, Options{})
	defer func() { b.stop() }()
	b.authorised(ann, "build-worker")
	b.restart()
	if err := b.r.Unlock(Keys{Index: testKeys.Index, Wrap: testKeys.Index}); err == nil {
		t.Fatal("opened under another key")
	}
	if err := b.r.Unlock(Keys{}); err == nil {
		t.Fatal("opened under no key")
	}
}

func TestDiskRefuses(t *testing.T) {
	b := newBench(t, Options{})
	p := b.request(ann, "build-worker")
	b.must(b.store.Close())
	if err := b.r.Authorize(p.ID, nil, "op"); fault.CodeOf(err) != fault.AuditUnavailable {
		t.Fatalf("%v", err)
	}
	b.is(p.Token, ann, StatePending)
	b.r.Close()
}

func TestNothingInClear(t *testing.T) {
	b := newBench(t, Options{})
	p := b.authorised(ann, "planted-name")
	b.stop()
	raw, err := os.ReadFile(b.path)
	b.must(err)
	for _, word := range []string{"planted-name", p.Token, p.ID, p.PairingCode, "operator ann", "deploy_release", "digest-of", "/usr/bin/agent"} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("%q stands in clear", word)
		}
	}
}

func TestEndedAreBounded(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	first := b.request(ann, "agent")
	b.must(b.r.End(first.Token, ann))
	for range endedMax {
		p := b.request(ann, "agent")
		b.must(b.r.End(p.Token, ann))
	}
	if len(b.r.byID) != endedMax || len(b.r.byToken) != endedMax {
		t.Fatalf("%d, %d", len(b.r.byID), len(b.r.byToken))
	}
	b.is(first.Token, ann, "SESSION_REQUIRED")
}

func TestOnChange(t *testing.T) {
	b := newBench(t, Options{})
	defer b.stop()
	var seen []string
	b.r.OnChange(func(s Session) {
		seen = append(seen, s.State)
		b.r.List() // a listener may ask
	})
	p := b.authorised(ann, "build-worker")
	b.must(b.r.Revoke(p.ID, "op"))
	if strings.Join(seen, " ") != "pending authorised revoked" {
		t.Fatalf("%q", seen)
	}
}
