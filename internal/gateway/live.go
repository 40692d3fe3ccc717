package gateway

import (
	"context"
	"sync"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
)

// live is what the daemon holds in memory of a call between claim and finish.
type live struct {
	call      *ledger.Call
	sessionID string
	agent     string

	mu      sync.Mutex
	ticket  *approvals.Ticket // guarded by mu; set while a person is asked
	waits   chan struct{}     // closed when the call begins to wait for a person
	waiting bool              // guarded by mu
	plan    *planned          // guarded by mu; set once a person is asked
	seq     uint64            // guarded by mu; the request's last intent, 0 before the first
	again   time.Duration     // guarded by mu; when to ask again for a call that takes long

	over  chan struct{} // closed when the daemon is done with the call
	holds chan struct{} // closed once the call takes longer than a caller waits: it polls
	parks chan struct{} // closed once this run does nothing more for the call
}

func newLive(c *ledger.Call, s sessions.Session) *live {
	return &live{
		call: c, sessionID: s.ID, agent: s.Name,
		waits: make(chan struct{}), holds: make(chan struct{}), parks: make(chan struct{}),
	}
}

// hold notes that callers are answered IN_PROGRESS from now on, and when to ask
// again.
func (l *live) hold(again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again = again
	closeOnce(l.holds)
}

// park notes that the call goes on in the next run only.
func (l *live) park() {
	l.mu.Lock()
	defer l.mu.Unlock()
	closeOnce(l.parks)
}

// closeOnce closes a channel that nobody sends on; its owner holds a lock.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func (l *live) isParked() bool {
	select {
	case <-l.parks:
		return true
	default:
		return false
	}
}

// askAgain is how soon a caller should ask again.
func (l *live) askAgain() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again > 0 {
		return l.again
	}
	return pollAfter
}

// intended notes that an intent is durable under this sequence.
func (l *live) intended(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq = seq
}

func (l *live) intent() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// ask notes that the call waits for a person.
func (l *live) ask(t *approvals.Ticket, p *planned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticket, l.plan = t, p
	if !l.waiting {
		l.waiting = true
		close(l.waits)
	}
}

// asked notes that the person has decided.
func (l *live) asked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticket = nil
}

// withdraw takes the card away, if there is one.
func (l *live) withdraw(code fault.Code) {
	l.mu.Lock()
	t := l.ticket
	l.mu.Unlock()
	if t != nil {
		t.Withdraw(code)
	}
}

// isWaiting says whether a card is open for the call now.
func (l *live) isWaiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ticket != nil && !l.ticket.Decided()
}

// isDecided says whether a person was asked and the card is no longer open.
func (l *live) isDecided() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting && (l.ticket == nil || l.ticket.Decided())
}

// lives is the table of live calls by their ledger entry.
type lives struct {
	mu   sync.Mutex
	max  int
	byID map[*ledger.Call]*live // guarded by mu
}

func (t *lives) init(max int) { t.max, t.byID = max, make(map[*ledger.Call]*live) }

// agentShare is how much of the room one agent may fill: calls that poll are held
// for long, and must not shut the others out.
const agentShare = 4

// room says whether another call of this agent may be held; OVERLOADED otherwise.
func (t *lives) room(agent string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byID) >= t.max {
		return fault.Newf(fault.Overloaded, "%d calls are held already", t.max)
	}
	own, most := 0, max(1, t.max/agentShare)
	for _, l := range t.byID {
		if l.agent == agent {
			own++
		}
	}
	if own >= most {
		return fault.Newf(fault.Overloaded, "%d calls of %s are held already", own, agent)
	}
	return nil
}

func (t *lives) add(l *live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.over = make(chan struct{})
	t.byID[l.call] = l
}

func (t *lives) get(c *ledger.Call) *live {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[c]
}

// drop forgets a call that the daemon is done with. One that is parked stays:
// who asks for it hears IN_PROGRESS, in this run.
func (t *lives) drop(c *ledger.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.byID[c]; l != nil && !l.isParked() {
		close(l.over)
		delete(t.byID, c)
	}
}

// held counts the calls that poll or wait to be reconciled.
func (t *lives) held() int {
	n := 0
	for _, l := range t.all() {
		select {
		case <-l.holds:
			n++
		default:
		}
	}
	return n
}

// all returns a copy, so that the caller may take other locks.
func (t *lives) all() []*live {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*live, 0, len(t.byID))
	for _, l := range t.byID {
		out = append(out, l)
	}
	return out
}

// places counts the calls between arming and answer.
type places struct {
	mu        sync.Mutex
	limits    Limits
	all       int            // guarded by mu
	perTarget map[string]int // guarded by mu
}

func (p *places) init(l Limits) { p.limits, p.perTarget = l, make(map[string]int) }

// take returns a place, or OVERLOADED at once: a queue here would hide from the
// agent that nothing has happened yet.
func (p *places) take(target string) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fullLocked(target); err != nil {
		return nil, err
	}
	p.all++
	p.perTarget[target]++
	var once sync.Once
	return func() { once.Do(func() { p.give(target) }) }, nil
}

// full is OVERLOADED while no place for the target is free; it takes none.
func (p *places) full(target string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fullLocked(target)
}

func (p *places) fullLocked(target string) error {
	if p.all >= p.limits.Calls {
		return fault.Newf(fault.Overloaded, "%d calls run already (limits.calls)", p.all)
	}
	if p.perTarget[target] >= p.limits.CallsPerTarget {
		return fault.Newf(fault.Overloaded, "%d calls to target %s run already (limits.calls_per_target)", p.perTarget[target], target)
	}
	return nil
}

// placeLook is how often a call that may wait looks for a free place.
const placeLook = 20 * time.Millisecond

// wait is take for a call that may wait a little.
func (p *places) wait(ctx context.Context, target string, limit time.Duration) (release func(), err error) {
	look := time.NewTicker(placeLook)
	defer look.Stop()
	for end := time.Now().Add(limit); ; {
		release, err = p.take(target)
		if err == nil || !time.Now().Before(end) {
			return release, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (p *places) give(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.perTarget[target]--; p.perTarget[target] == 0 {
		delete(p.perTarget, target)
	}
}

func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// running counts the calls under way, so that a stop can wait for them. After
// close no further one enters.
type running struct {
	mu     sync.Mutex
	n      int           // guarded by mu
	closed bool          // guarded by mu
	idle   chan struct{} // guarded by mu; closed once closed and n is 0
}

func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.closed {
		close(r.idle)
	}
}

func (r *running) close() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.idle
	}
	r.closed, r.idle = true, make(chan struct{})
	if r.n == 0 {
		close(r.idle)
	}
	return r.idle
}
