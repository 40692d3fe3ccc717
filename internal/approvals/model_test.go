package approvals

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// mcard is the reference model of one card.
type mcard struct {
	k      *Ticket
	id     string
	state  string
	code   fault.Code
	since  time.Time // opened, then approved
	proofs []mproof
}

type mproof struct {
	p      Proof
	issued time.Time
	used   bool
}

type walk struct {
	t   *testing.T
	d   *Desk
	r   *rand.Rand
	now time.Time
	all []*mcard
	log []string
}

func (w *walk) note(f string, a ...any) { w.log = append(w.log, fmt.Sprintf(f, a...)) }

func (w *walk) fail(f string, a ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-30):] {
		w.t.Log(l)
	}
	w.t.Fatalf(f, a...)
}

func (w *walk) lapse() {
	for _, c := range w.all {
		age := w.now.Sub(c.since)
		switch {
		case c.state == StateOpen && age >= 5*time.Minute:
			c.state, c.code = StateExpired, fault.ApprovalExpired
		case c.state == StateApproved && age >= 10*time.Second:
			c.state, c.code = StateWithdrawn, fault.ApprovalExpired
		}
	}
}

func (w *walk) open() {
	active := 0
	for _, c := range w.all {
		if c.state == StateOpen || c.state == StateApproved {
			active++
		}
	}
	k, err := w.d.open(CardRequest{SessionID: "s", CallID: fmt.Sprint(len(w.all))}, plan)
	w.note("open card %d", len(w.all))
	if (err == nil) != (active < defaultPerSession) {
		w.fail("%v with %d open", err, active)
	}
	if err == nil {
		w.all = append(w.all, &mcard{k: k, id: k.c.ID, state: StateOpen, since: w.now})
	}
}

func (w *walk) look(c *mcard) {
	ch, err := w.d.Challenge(Operation{Kind: KindApprove, Subject: c.id})
	w.note("look at %s, %s", c.k.c.CallID, c.state)
	if (err == nil) != (c.state == StateOpen) {
		w.fail("challenge: %v", err)
	}
	if err == nil {
		c.proofs = append(c.proofs, mproof{p: Proof{ChallengeID: ch.ID, MAC: ch.Bytes[:]}, issued: w.now})
	}
}

func (w *walk) approve(c *mcard) {
	var m *mproof
	p := Proof{ChallengeID: "chl_none"}
	if len(c.proofs) > 0 {
		m = &c.proofs[w.r.IntN(len(c.proofs))]
		p = m.p
	}
	bad := w.r.IntN(5) == 0
	if bad {
		p.MAC = []byte("wrong")
	}
	good := m != nil && !m.used && w.now.Sub(m.issued) < 120*time.Second
	var want error
	switch {
	case c.state != StateOpen:
		want = ErrDecided
	case !good:
		want = ErrNewChallenge
	case bad:
		want = errWrong
	}
	w.note("approve %s, %s, proof good %v bad %v", c.k.c.CallID, c.state, good, bad)
	if err := w.d.Approve(c.id, p, "op"); !errors.Is(err, want) || (err == nil) != (want == nil) {
		w.fail("%v, want %v", err, want)
	}
	if m != nil {
		m.used = true
	}
	if want == nil {
		c.state, c.since = StateApproved, w.now
	}
}

func (w *walk) deny(c *mcard) {
	ok := c.state == StateOpen || c.state == StateApproved
	w.note("deny %s, %s", c.k.c.CallID, c.state)
	if err := w.d.Deny(c.id, "op"); (err == nil) != ok {
		w.fail("%v", err)
	}
	if ok {
		c.state, c.code = StateDenied, fault.ApprovalDenied
	}
}

func (w *walk) spend(c *mcard) {
	w.note("spend %s, %s", c.k.c.CallID, c.state)
	digest := plan.digest
	if w.r.IntN(4) == 0 {
		digest = [32]byte{0xbb}
	}
	err := c.k.Spend(digest)
	ok := c.state == StateApproved && digest == plan.digest
	if (err == nil) != ok {
		w.fail("%v", err)
	}
	switch {
	case ok:
		c.state = StateSpent
	case c.state == StateApproved:
		c.state, c.code = StateWithdrawn, fault.PlanStale
	case c.state != StateOpen && c.state != StateSpent && fault.CodeOf(err) != c.code:
		w.fail("%v, want %s", err, c.code)
	}
}

func (w *walk) withdraw(c *mcard) {
	w.note("withdraw %s, %s", c.k.c.CallID, c.state)
	c.k.Withdraw(fault.VaultLocked)
	if c.state == StateOpen || c.state == StateApproved {
		c.state, c.code = StateWithdrawn, fault.VaultLocked
	}
}

// TestModel walks the machine at random beside the model.
func TestModel(t *testing.T) {
	const walks, steps = 25, 300
	for seed := range uint64(walks) {
		w := &walk{t: t, r: rand.New(rand.NewPCG(seed, 5)), now: time.Unix(1_800_000_000, 0)}
		start := w.now
		w.d = newDesk(Options{Clock: durable.Clock{
			Wall: func() time.Time { return w.now }, Mono: func() time.Duration { return w.now.Sub(start) },
		}})
		for range steps {
			w.lapse()
			n := w.r.IntN(12)
			if len(w.all) == 0 || n == 0 {
				w.open()
				continue
			}
			c := w.all[max(0, len(w.all)-1-w.r.IntN(5))]
			if _, kept := w.d.Card(c.id); !kept {
				w.open()
				continue
			}
			switch {
			case n < 4:
				w.look(c)
			case n < 7:
				w.approve(c)
			case n == 7:
				w.spend(c)
			case n == 8 && w.r.IntN(2) == 0:
				w.deny(c)
			case n == 9 && w.r.IntN(2) == 0:
				w.withdraw(c)
			default:
				w.now = w.now.Add([]time.Duration{time.Second, 8 * time.Second, time.Minute}[w.r.IntN(3)])
			}
			w.lapse()
			for _, c := range w.all {
				if got := c.k.Card(); got.State != c.state || (got.Code != c.code) {
					w.fail("card %s is %s %s, want %s %s", c.k.c.CallID, got.State, got.Code, c.state, c.code)
				}
			}
		}
		w.d.WithdrawAll(fault.VaultLocked)
	}
}

// TestTable: a decided card is decided, but for what the table says.
func TestTable(t *testing.T) {
	for _, s := range []string{StateDenied, StateExpired, StateWithdrawn, StateSpent, "", "other"} {
		for e := EventApprove; e <= EventLapse; e++ {
			if _, err := next(s, e); !errors.Is(err, ErrDecided) {
				t.Errorf("%s, event %d: %v", s, e, err)
			}
		}
	}
	for s, row := range table {
		for e, to := range row {
			if got, err := next(s, e); err != nil || got != to {
				t.Errorf("%s, event %d: %s, %v", s, e, got, err)
			}
		}
	}
}
