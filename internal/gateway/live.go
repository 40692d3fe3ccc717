package gateway

import (
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
