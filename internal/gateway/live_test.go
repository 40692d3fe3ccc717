package gateway

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
)

func TestPlaces(t *testing.T) {
	var p places
	p.init(Limits{Calls: 3, CallsPerTarget: 2})
	take := func(target string, want fault.Code) func() {
		t.Helper()
		release, err := p.take(target)
		if fault.CodeOf(err) != want {
			t.Fatalf("a place at %s: %v, want %q", target, err, want)
		}
		return release
	}
	a1, _ := take("a", ""), take("a", "")
	take("a", fault.Overloaded)
	b1 := take("b", "")
	take("c", fault.Overloaded)
	a1()
	a1() // giving back twice frees one place
	if p.count() != 2 {
		t.Errorf("%d run", p.count())
	}
	take("c", "")
	take("c", fault.Overloaded)
	b1()
	take("a", "")
}

// A poll leaves half of the places to calls.
func TestPollsLeavePlaces(t *testing.T) {
	var p places
	p.init(Limits{Calls: 100, CallsPerTarget: 4})
	one, err := p.takeBehind("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.takeBehind("a"); err != nil {
		t.Fatal(err)
	}
	if _, err = p.takeBehind("a"); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("a third poll: %v", err)
	}
	if _, err = p.takeBehind("b"); err != nil {
		t.Errorf("another target: %v", err)
	}
	for range 2 {
		if _, err = p.take("a"); err != nil {
			t.Errorf("a call finds no place: %v", err)
		}
	}
	one()
	if _, err = p.takeBehind("a"); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("a poll before calls: %v", err)
	}
	var least places
	least.init(Limits{Calls: 1, CallsPerTarget: 1}) // the least that can be set still polls
	if _, err = least.takeBehind("a"); err != nil {
		t.Error(err)
	}
}

func TestPlacesMany(t *testing.T) {
	var p places
	p.init(Limits{Calls: 8, CallsPerTarget: 8})
	var wg sync.WaitGroup
	for range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if release, err := p.take("a"); err == nil {
				if n := p.count(); n < 1 || n > 8 {
					t.Errorf("%d run", n)
				}
				release()
			}
		}()
	}
	wg.Wait()
	if p.count() != 0 || len(p.perTarget) != 0 {
		t.Errorf("%d run, %d targets are kept", p.count(), len(p.perTarget))
	}
}

func TestRunning(t *testing.T) {
	var r running
	for range 2 {
		if !r.enter() {
			t.Fatal("no one may enter")
		}
	}
	idle := r.close()
	if r.enter() {
		t.Error("a call entered after the stop")
	}
	r.leave()
	select {
	case <-idle:
		t.Error("idle with one running")
	default:
	}
	r.leave()
	<-idle
	<-r.close() // a second stop is the same
	var none running
	<-none.close()
}

func TestLives(t *testing.T) {
	var l lives
	l.init(2)
	one, two := &ledger.Call{}, &ledger.Call{}
	if l.get(one) != nil || l.room("a") != nil {
		t.Error("an empty table has something")
	}
	first := newLive(one, sessions.Session{})
	l.add(first)
	l.add(newLive(two, sessions.Session{}))
	if l.room("a") == nil || l.get(one) != first || len(l.all()) != 2 {
		t.Error("two of two do not fill it")
	}
	first.ask(nil, nil)
	first.ask(nil, nil) // asked again after a stale card: the channel closes once
	<-first.waits
	l.drop(one)
	l.drop(one)
	if l.room("a") != nil || l.get(one) != nil {
		t.Error("a dropped call is kept")
	}
	first.withdraw(fault.PlanStale) // without a card: nothing
	l.max = 5
	l.add(newLive(&ledger.Call{}, sessions.Session{Name: "a"}))
	if l.room("a") == nil || l.room("b") != nil {
		t.Error("one agent may fill the room, or takes it from another")
	}
	second := l.get(two)
	second.park()
	second.park()
	if l.drop(two); l.get(two) != second {
		t.Error("a parked call is not answered any more")
	}
}

// Before an authorised session one refusal a minute is written for a user and
// code; in one, six hundred an hour; the rest is counted into the next.
func TestRefusalsAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		written := func(session string, n int) (lines, told int) {
			for range n {
				sum, write := r.note(7, session, fault.InvalidArgument, time.Now())
				if write {
					lines++
					told += sum
				}
			}
			return lines, told
		}
		if lines, told := written("", 1000); lines != 1 || told != 0 {
			t.Errorf("a stranger: %d lines, %d told", lines, told)
		}
		if _, write := r.note(8, "", fault.InvalidArgument, time.Now()); !write {
			t.Error("another user is summed with the first")
		}
		if _, write := r.note(7, "", fault.SessionRequired, time.Now()); !write {
			t.Error("another code is summed with the first")
		}
		time.Sleep(time.Minute)
		if lines, told := written("", 10); lines != 1 || told != 999 {
			t.Errorf("a minute later: %d lines, %d told", lines, told)
		}
		if lines, told := written("ses_a", 1000); lines != 600 || told != 0 {
			t.Errorf("in a session: %d lines, %d told", lines, told)
		}
		time.Sleep(time.Hour)
		if lines, told := written("ses_a", 1); lines != 1 || told != 400 {
			t.Errorf("an hour later: %d lines, %d told", lines, told)
		}
	})
}

// The table stays bounded, whatever comes.
func TestRefusalsTableIsBounded(t *testing.T) {
	var r refusals
	now := time.Now()
	for uid := range uint32(3 * refusalKeysMax) {
		r.note(uid, "", fault.SessionRequired, now)
	}
	if len(r.count) > refusalKeysMax {
		t.Errorf("%d rows", len(r.count))
	}
}

// A session that nobody has accepted gives its refusals no room of their own.
func TestOnlyAuthorisedSessionsCount(t *testing.T) {
	for state, want := range map[string]string{sessions.StateAuthorised: "ses_a", sessions.StatePending: "", sessions.StateRevoked: "", "": ""} {
		if got := authorisedID(sessions.Session{ID: "ses_a", State: state}); got != want {
			t.Errorf("state %q: %q, want %q", state, got, want)
		}
	}
}

func TestRequestIDForm(t *testing.T) {
	for id, want := range map[string]bool{
		"req-0001": true, "A.b_c-d9": true, "act_01ABCDEFGH": true,
		"": false, "short-7": false, "-req-0001": false, ".req-0001": false, "req 0001": false, "req-0001\n": false, "req/0001": false, "réq-0001": false,
		"a123456789012345678901234567890123456789012345678901234567890123":  true,
		"a1234567890123456789012345678901234567890123456789012345678901234": false,
	} {
		if got := requestIDForm.MatchString(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}

func TestHub(t *testing.T) {
	var h Hub
	h.publish("card", "nobody listens")
	one, end := h.subscribe()
	two, endTwo := h.subscribe()
	defer endTwo()
	for range 3 * hubBacklog { // a slow listener loses some and stops nobody
		h.publish("card", "apr_x")
	}
	if len(one) != hubBacklog || len(two) != hubBacklog || (<-one) != (Notice{"card", "apr_x"}) {
		t.Errorf("%d and %d notices", len(one), len(two))
	}
	end()
	n := len(one)
	h.publish("vault", "open")
	if len(one) != n || len(h.subs) != 1 {
		t.Error("an ended listener still gets notices")
	}
}
