package sessions

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// msession is the reference model of one session: what the pages promise, by
// plain times.
type msession struct {
	p      Pending
	caller Caller
	name   string
	state  string
	began  time.Time // of the request, then of the authority
	used   time.Time
	holds  []func()
	run    int
	known  bool // authorised once: its token is known after a restart
}

type walk struct {
	t      *testing.T
	b      *bench
	r      *rand.Rand
	now    time.Time
	run    int
	locked bool
	read   bool // the names were unsealed in this run
	all    []*msession
	owner  map[string]uint32
	log    []string
}

func (w *walk) note(f string, a ...any) { w.log = append(w.log, fmt.Sprintf(f, a...)) }

func (w *walk) fail(f string, a ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-30):] {
		w.t.Log(l)
	}
	w.t.Fatalf(f, a...)
}

// lapse moves the model's sessions past their ends.
func (w *walk) lapse() {
	for _, s := range w.all {
		age := w.now.Sub(s.began)
		switch {
		case s.state == StatePending && age >= 10*time.Minute,
			s.state == StateAuthorised && age >= 8*time.Hour,
			s.state == StateAuthorised && len(s.holds) == 0 && w.now.Sub(s.used) >= 30*time.Minute:
			s.state = StateExpired
		}
	}
}

// told is what the bearer of s's token must be told.
func (w *walk) told(s *msession, c Caller) string {
	switch {
	case s.run != w.run && !s.known:
		return "SESSION_REQUIRED"
	case s.run != w.run:
		return "SESSION_REVOKED"
	case c.UID != s.caller.UID:
		return "SESSION_REQUIRED"
	case s.state == StatePending, s.state == StateAuthorised:
		return s.state
	}
	return "SESSION_REVOKED"
}

func (w *walk) request() {
	c := []Caller{ann, bob}[w.r.IntN(2)]
	name := fmt.Sprintf("agent-%d", w.r.IntN(3))
	pending := 0
	for _, s := range w.all {
		if s.run == w.run && s.state == StatePending && s.caller.UID == c.UID {
			pending++
		}
	}
	uid, owned := w.owner[name]
	w.note("request %s by %d", name, c.UID)
	p, err := w.b.r.Request(c, name, "")
	want := fault.Code("")
	switch {
	case owned && uid != c.UID && w.read: // sealed until the first unlock
		want = fault.InvalidArgument
	case pending >= 4:
		want = fault.Overloaded
	}
	if fault.CodeOf(err) != want {
		w.fail("%v, want %q", err, want)
	}
	if err == nil {
		w.all = append(w.all, &msession{p: p, caller: c, name: name, state: StatePending, began: w.now, run: w.run})
	}
}

func (w *walk) authorize(s *msession) {
	uid, owned := w.owner[s.name]
	w.note("authorize %s, %s, run %d of %d", s.name, s.state, s.run, w.run)
	ok := s.run == w.run && s.state == StatePending && !w.locked && (!owned || uid == s.caller.UID)
	err := w.b.r.Authorize(s.p.ID, nil, "op")
	if (err == nil) != ok {
		w.fail("%v, allowed %v", err, ok)
	}
	if !ok {
		return
	}
	for _, x := range w.all {
		if x != s && x.run == w.run && x.name == s.name && x.state == StateAuthorised {
			x.state = StateEnded
		}
	}
	w.owner[s.name] = s.caller.UID
	s.state, s.began, s.used, s.known = StateAuthorised, w.now, w.now, true
}

func (w *walk) present(s *msession) {
	c := s.caller
	if w.r.IntN(6) == 0 {
		c.UID = 4242
	}
	want := w.told(s, c)
	w.note("present %s as %d: %s", s.name, c.UID, want)
	got, err := w.b.r.Authenticate(s.p.Token, c)
	is := got.State
	if err != nil {
		is = string(fault.CodeOf(err))
	}
	if is != want {
		w.fail("told %s, want %s", is, want)
	}
	if is == StateAuthorised {
		s.used = w.now
	}
}

func (w *walk) end(s *msession) {
	live := s.run == w.run && (s.state == StatePending || s.state == StateAuthorised)
	var err error
	to := StateRevoked
	if w.r.IntN(2) == 0 {
		err = w.b.r.Revoke(s.p.ID, "op")
	} else {
		err, to = w.b.r.End(s.p.Token, s.caller), StateEnded
	}
	w.note("end %s: %s", s.name, to)
	if (err == nil) != live {
		w.fail("%v, live %v", err, live)
	}
	if live {
		s.state = to
	}
}

func (w *walk) hold(s *msession) {
	if s.run != w.run || s.state != StateAuthorised {
		return
	}
	if len(s.holds) > 0 && w.r.IntN(2) == 0 {
		w.note("release %s", s.name)
		s.holds[0]()
		s.holds = s.holds[1:]
		s.used = w.now
		return
	}
	w.note("hold %s", s.name)
	s.holds = append(s.holds, w.b.r.Hold(s.p.ID))
}

func (w *walk) world() {
	switch w.r.IntN(8) {
	case 0:
		w.note("restart")
		w.b.restart()
		w.run++
		w.locked, w.read = true, false
	case 1:
		w.note("lock")
		w.b.r.Lock()
		w.locked = true
	case 2, 3:
		w.note("unlock")
		w.b.must(w.b.r.Unlock(testKeys))
		w.locked, w.read = false, true
	default:
		d := []time.Duration{time.Minute, 9 * time.Minute, 20 * time.Minute, 31 * time.Minute, 3 * time.Hour}[w.r.IntN(5)]
		w.note("%v go by", d)
		w.now = w.now.Add(d)
	}
}

// TestModel walks the machine at random beside the model.
func TestModel(t *testing.T) {
	const walks, steps = 20, 300
	for seed := range uint64(walks) {
		w := &walk{t: t, r: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1_800_000_000, 0), owner: map[string]uint32{}, read: true}
		start := w.now
		w.b = newBench(t, Options{Clock: durable.Clock{
			Wall: func() time.Time { return w.now }, Mono: func() time.Duration { return w.now.Sub(start) },
		}})
		for range steps {
			w.lapse()
			n := w.r.IntN(12)
			if len(w.all) == 0 || n < 3 {
				w.request()
				continue
			}
			s := w.all[max(0, len(w.all)-1-w.r.IntN(8))]
			switch {
			case n < 6:
				w.authorize(s)
			case n < 9:
				w.present(s)
			case n == 9:
				w.hold(s)
			case n == 10 && w.r.IntN(2) == 0:
				w.end(s)
			default:
				w.world()
			}
			w.lapse()
			for _, s := range w.all {
				alive := s.run == w.run && s.state == StateAuthorised
				if (w.b.r.Alive(s.p.ID) == nil) != alive {
					w.fail("%s is alive: %v, want %v", s.name, !alive, alive)
				}
			}
		}
		w.b.stop()
	}
}

// TestTable: every state that a session can be in is in the table, and nothing
// leads out of an end but a restart.
func TestTable(t *testing.T) {
	for _, s := range []string{StatePending, StateAuthorised, StateEnded, StateRevoked, StateExpired} {
		row, ok := table[s]
		if !ok {
			t.Fatalf("%s is not in the table", s)
		}
		live := s == StatePending || s == StateAuthorised
		for e, to := range row {
			if !live && (e != EventRestart || to != StateRevoked) {
				t.Errorf("%s leads to %s", s, to)
			}
		}
		for e := EventAuthorise; e <= EventRestart; e++ {
			if _, err := next(s, e); (err == nil) != has(row, e) {
				t.Errorf("%s, event %d: %v", s, e, err)
			}
		}
	}
	if _, err := next("", EventEnd); err == nil {
		t.Error("no session has an end")
	}
}

func has(row map[Event]string, e Event) bool { _, ok := row[e]; return ok }
