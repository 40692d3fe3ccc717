package approvals

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

const (
	// closedKept is how long a closed card is still known, so that a late
	// decision hears that it is late.
	closedKept = 10 * time.Minute
	closedMax  = 512
)

// Desk holds the cards and the challenges. It is safe for concurrent use.
type Desk struct {
	o     Options
	clock durable.Clock

	mu         sync.Mutex // guards what follows
	cards      map[string]*card
	active     map[string]*card // open or approved
	closed     []*card          // oldest first
	challenges map[string]*challenge
	seq        uint64
	timer      *time.Timer
	events     []func()
}

// card is one card; the desk's lock guards it.
type card struct {
	Card
	life    durable.Lifetime // of the card, then from approval to spending
	gone    durable.Lifetime // how long it is known once closed
	decided chan struct{}    // closed when the card is no longer open
	seq     uint64
}

// shown is what a card shows and what its approval covers.
type shown struct {
	action, sentence, daemonLine string
	lines                        []actions.CardLine
	exceptions                   []string
	digest                       [32]byte
}

// NewDesk returns a desk without cards.
func NewDesk(o Options) *Desk {
	o = o.filled()
	return &Desk{o: o, clock: o.Clock, cards: map[string]*card{}, active: map[string]*card{}, challenges: map[string]*challenge{}}
}

// do runs f under the lock, over cards whose lapse has been noted, and then
// tells the listeners what changed.
func (d *Desk) do(f func() error) error {
	d.mu.Lock()
	d.lapseLocked()
	err := f()
	d.scheduleLocked()
	events := d.events
	d.events = nil
	d.mu.Unlock()
	for _, tell := range events {
		tell()
	}
	return err
}

func (d *Desk) lapseLocked() {
	for _, c := range d.active {
		if !d.clock.Over(c.life) {
			continue
		}
		event := EventExpire
		if c.State == StateApproved {
			event = EventLapse
		}
		_ = d.moveLocked(c, event, fault.ApprovalExpired) // the table allows it: it is active
	}
	for len(d.closed) > 0 && (len(d.closed) > closedMax || d.clock.Over(d.closed[0].gone)) {
		delete(d.cards, d.closed[0].ID)
		d.closed = d.closed[1:]
	}
}

// scheduleLocked lets the next lapse be noted when it comes.
func (d *Desk) scheduleLocked() {
	next := time.Duration(-1)
	for _, c := range d.active {
		if left := d.clock.Left(c.life); next < 0 || left < next {
			next = left
		}
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if next >= 0 {
		d.timer = time.AfterFunc(next, func() { _ = d.do(func() error { return nil }) })
	}
}

// moveLocked is the one place where a card changes its state.
func (d *Desk) moveLocked(c *card, e Event, code fault.Code) error {
	to, err := next(c.State, e)
	if err != nil {
		return err
	}
	if c.State == StateOpen {
		close(c.decided)
	}
	c.State = to
	switch to {
	case StateApproved:
		c.life = d.clock.Start(d.o.SpendWithin)
	case StateSpent:
		d.closeLocked(c)
	default:
		c.Code = code
		d.closeLocked(c)
	}
	if f := d.o.OnClose; f != nil {
		v := c.clone()
		d.events = append(d.events, func() { f(v) })
	}
	return nil
}

func (d *Desk) closeLocked(c *card) {
	delete(d.active, c.ID)
	c.gone = d.clock.Start(closedKept)
	d.closed = append(d.closed, c)
}

// Open lays a card before the operators. It lives Options.CardLife. The error is
// OVERLOADED when the session has too many open.
func (d *Desk) Open(r CardRequest) (*Ticket, error) {
	p := r.Plan
	return d.open(r, shown{
		action: p.Contract().Action(), sentence: p.Sentence(), daemonLine: p.DaemonLine(), lines: p.Lines(),
		exceptions: p.Exceptions(), digest: p.Digest(),
	})
}

func (d *Desk) open(r CardRequest, s shown) (*Ticket, error) {
	var t *Ticket
	err := d.do(func() error {
		own := 0
		for _, c := range d.active {
			if c.SessionID == r.SessionID {
				own++
			}
		}
		if own >= d.o.PerSession {
			return fault.Newf(fault.Overloaded, "session %s has %d cards open already", r.SessionID, own)
		}
		life := d.clock.Start(d.o.CardLife)
		d.seq++
		c := &card{life: life, decided: make(chan struct{}), seq: d.seq, Card: Card{
			ID: newID("apr_"), State: StateOpen, Sentence: s.sentence, DaemonLine: s.daemonLine, RequestedBy: r.CallerLabel,
			Action: s.action, CallID: r.CallID, SessionID: r.SessionID, Agent: r.Agent, PlanDigest: s.digest,
			Lines: slices.Clone(s.lines), Exceptions: slices.Clone(s.exceptions), Opened: life.Began(), Expires: life.Ends(),
		}}
		d.cards[c.ID], d.active[c.ID] = c, c
		if f := d.o.OnOpen; f != nil {
			v := c.clone()
			d.events = append(d.events, func() { f(v) })
		}
		t = &Ticket{d: d, c: c}
		return nil
	})
	return t, err
}

// Cards returns the cards that are open, or approved and not spent yet, oldest
// first.
func (d *Desk) Cards() []Card {
	var live []*card
	var out []Card
	_ = d.do(func() error {
		for _, c := range d.active {
			live = append(live, c)
		}
		slices.SortFunc(live, func(a, b *card) int { return cmp.Compare(a.seq, b.seq) })
		for _, c := range live {
			out = append(out, c.clone())
		}
		return nil
	})
	return out
}

// Card returns one card, closed ones too for ten minutes.
func (d *Desk) Card(id string) (Card, bool) {
	var out Card
	var ok bool
	_ = d.do(func() error {
		if c := d.cards[id]; c != nil {
			out, ok = c.clone(), true
		}
		return nil
	})
	return out, ok
}

// Approve says yes to exactly what the card shows. Only an open card can be
// approved, only with a proof over a challenge of this card. Errors:
// ErrNotFound; ErrDecided (the first decision stands; a proof that holds is
// noted as late); ErrNewChallenge (nothing was decided); the verifier's (the
// challenge is used up, nothing was decided).
func (d *Desk) Approve(id string, p Proof, by string) error {
	var ch Challenge
	var wasDecided error
	err := d.do(func() (err error) {
		c := d.cards[id]
		if c == nil {
			return ErrNotFound
		}
		_, wasDecided = next(c.State, EventApprove)
		ch, err = d.takeLocked(Operation{Kind: KindApprove, Subject: id, Digest: c.PlanDigest}, p.ChallengeID)
		if err != nil && wasDecided != nil {
			return wasDecided
		}
		return err
	})
	if err != nil {
		return err
	}
	// Outside the lock: the vault takes its time over a proof. What changed
	// meanwhile is seen below, where a denial that came first has won.
	if err := d.o.Verify(p.Kind, ch.Bytes, p.MAC); err != nil {
		if wasDecided != nil {
			return wasDecided
		}
		return err
	}
	return d.do(func() error { return d.decideLocked(id, EventApprove, decisionApprove, by, "") })
}

// Deny says no. It needs no proof and wins over an approval that is not spent.
// Errors: ErrNotFound, ErrDecided.
func (d *Desk) Deny(id, by string) error {
	return d.do(func() error { return d.decideLocked(id, EventDeny, decisionDeny, by, fault.ApprovalDenied) })
}

func (d *Desk) decideLocked(id string, e Event, decision, by string, code fault.Code) error {
	c := d.cards[id]
	if c == nil {
		return ErrNotFound
	}
	if _, err := next(c.State, e); err != nil {
		d.lateLocked(c, Mark{By: by, Decision: decision, At: d.clock.Now()})
		return err
	}
	if c.DecidedBy != "" { // a denial after an approval: both stay on the card
		c.Late = append(c.Late, Mark{By: c.DecidedBy, Decision: c.Decision, At: d.clock.Now()})
	}
	c.DecidedBy, c.Decision = by, decision
	return d.moveLocked(c, e, code)
}

// lateMax bounds the marks of one card.
const lateMax = 16

func (d *Desk) lateLocked(c *card, m Mark) {
	if len(c.Late) < lateMax {
		c.Late = append(c.Late, m)
	}
	if f := d.o.OnLate; f != nil {
		v := c.clone()
		d.events = append(d.events, func() { f(v, m) })
	}
}

// WithdrawSession takes away the cards of a session that ended. Their calls end
// with code.
func (d *Desk) WithdrawSession(sessionID string, code fault.Code) {
	d.withdraw(code, func(c *card) bool { return c.SessionID == sessionID })
}

// WithdrawAll takes away every card, as when the vault is locked.
func (d *Desk) WithdrawAll(code fault.Code) {
	d.withdraw(code, func(*card) bool { return true })
}

// WithdrawCalls takes away the cards whose plan is touched by a reload.
func (d *Desk) WithdrawCalls(code fault.Code, touched func(Card) bool) {
	d.withdraw(code, func(c *card) bool { return touched(c.clone()) })
}

func (d *Desk) withdraw(code fault.Code, which func(*card) bool) {
	_ = d.do(func() error {
		var all []*card
		for _, c := range d.active {
			if which(c) {
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b *card) int { return strings.Compare(a.ID, b.ID) })
		for _, c := range all {
			_ = d.moveLocked(c, EventWithdraw, code) // the table allows it: it is active
		}
		return nil
	})
}
