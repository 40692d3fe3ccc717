package approvals

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

var errWrong = errors.New("the proof does not hold")

// verify takes the challenge itself as its proof: the test's operator knows no
// passphrase, only what was issued.
func verify(_ string, challenge [32]byte, mac []byte) error {
	if !bytes.Equal(challenge[:], mac) {
		return errWrong
	}
	return nil
}

func newDesk(o Options) *Desk {
	o.DaemonID, o.Verify = "daemon-1", verify
	return NewDesk(o)
}

var plan = shown{
	action: "deploy_release", sentence: "Deploy version 2.14.3 of api to production", daemonLine: "change · target prod",
	lines: []actions.CardLine{{Label: "Reason", Value: "fix"}}, digest: [32]byte{1},
}

func openCard(t testing.TB, d *Desk, session string) *Ticket {
	t.Helper()
	k, err := d.open(CardRequest{CallID: "act_1", SessionID: session, Agent: "build-worker", CallerLabel: "build-worker (user 1000)"}, plan)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func proofFor(t testing.TB, d *Desk, k *Ticket) Proof {
	t.Helper()
	c, err := d.Challenge(Operation{Kind: KindApprove, Subject: k.Card().ID})
	if err != nil {
		t.Fatal(err)
	}
	return Proof{ChallengeID: c.ID, Kind: "passphrase", MAC: c.Bytes[:]}
}

func approve(t testing.TB, d *Desk, k *Ticket, by string) {
	t.Helper()
	if err := d.Approve(k.Card().ID, proofFor(t, d, k), by); err != nil {
		t.Fatal(err)
	}
}

func waitCode(t testing.TB, k *Ticket) fault.Code {
	t.Helper()
	_, err := k.Wait(t.Context())
	return fault.CodeOf(err)
}

func TestApproveAndSpend(t *testing.T) {
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	c := k.Card()
	if c.State != StateOpen || c.Sentence != plan.sentence || c.RequestedBy != "build-worker (user 1000)" || c.PlanDigest != plan.digest || len(d.Cards()) != 1 {
		t.Fatalf("%+v", c)
	}
	if err := k.Spend(plan.digest); fault.CodeOf(err) != fault.Internal {
		t.Fatalf("spent an open card: %v", err)
	}
	approve(t, d, k, "op ann")
	got, err := k.Wait(t.Context())
	if err != nil || got.By != "op ann" {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := k.Spend(plan.digest); err != nil {
		t.Fatal(err)
	}
	if err := k.Spend(plan.digest); fault.CodeOf(err) != fault.ApprovalExpired {
		t.Fatalf("spent twice: %v", err)
	}
	if c, ok := d.Card(c.ID); !ok || c.State != StateSpent || c.DecidedBy != "op ann" || len(d.Cards()) != 0 {
		t.Fatalf("%+v", c)
	}
	if err := d.Deny(c.ID, "op bob"); !errors.Is(err, ErrDecided) {
		t.Fatalf("denied what is armed: %v", err)
	}
}

func TestSpendAnotherPlan(t *testing.T) {
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	approve(t, d, k, "op")
	if err := k.Spend([32]byte{2}); fault.CodeOf(err) != fault.PlanStale {
		t.Fatalf("%v", err)
	}
	if err := k.Spend(plan.digest); fault.CodeOf(err) != fault.PlanStale {
		t.Fatalf("the card survived: %v", err)
	}
}

// TestManyWaitersOneSpend: duplicate calls joined to one card have one spend.
func TestManyWaitersOneSpend(t *testing.T) {
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	var wg sync.WaitGroup
	var mu sync.Mutex
	spent := 0
	for range 20 {
		wg.Go(func() {
			if _, err := k.Wait(context.Background()); err == nil && k.Spend(plan.digest) == nil {
				mu.Lock()
				spent++
				mu.Unlock()
			}
		})
	}
	approve(t, d, k, "op")
	wg.Wait()
	if spent != 1 {
		t.Fatalf("%d spends", spent)
	}
}

func TestDenyWinsUntilSpent(t *testing.T) {
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	approve(t, d, k, "op ann")
	if err := d.Deny(k.Card().ID, "op bob"); err != nil {
		t.Fatal(err)
	}
	if err := k.Spend(plan.digest); fault.CodeOf(err) != fault.ApprovalDenied {
		t.Fatalf("%v", err)
	}
	c := k.Card()
	if c.DecidedBy != "op bob" || c.Decision != "deny" || len(c.Late) != 1 || c.Late[0].By != "op ann" {
		t.Fatalf("not both recorded: %+v", c)
	}
	if waitCode(t, k) != fault.ApprovalDenied {
		t.Fatal("not denied")
	}
}

func TestSecondProof(t *testing.T) {
	var late []string
	d := newDesk(Options{OnLate: func(_ Card, m Mark) { late = append(late, m.By+" "+m.Decision) }})
	for _, first := range []string{"approve", "deny"} {
		k := openCard(t, d, "s")
		id := k.Card().ID
		ann, bob, bad := proofFor(t, d, k), proofFor(t, d, k), proofFor(t, d, k)
		if first == "approve" {
			if err := d.Approve(id, ann, "ann"); err != nil {
				t.Fatal(err)
			}
		} else if err := d.Deny(id, "ann"); err != nil {
			t.Fatal(err)
		}
		if err := d.Approve(id, bob, "bob"); !errors.Is(err, ErrDecided) {
			t.Fatalf("%v", err)
		}
		bad.MAC = []byte("wrong")
		if err := d.Approve(id, bad, "eve"); !errors.Is(err, ErrDecided) {
			t.Fatalf("%v", err)
		}
		if err := d.Approve(id, bob, "bob"); !errors.Is(err, ErrDecided) {
			t.Fatalf("%v", err)
		}
		if _, err := d.Challenge(Operation{Kind: KindApprove, Subject: id}); !errors.Is(err, ErrDecided) {
			t.Fatalf("%v", err)
		}
		c := k.Card()
		if c.DecidedBy != "ann" || len(c.Late) != 1 || c.Late[0].By != "bob" {
			t.Fatalf("%+v", c)
		}
		k.Withdraw(fault.Cancelled)
	}
	if strings.Join(late, ", ") != "bob approve, bob approve" {
		t.Fatalf("%q", late)
	}
}

func TestWithdraw(t *testing.T) {
	var closed []string
	d := newDesk(Options{OnClose: func(c Card) { closed = append(closed, c.State) }})
	a, b, c, e := openCard(t, d, "one"), openCard(t, d, "one"), openCard(t, d, "two"), openCard(t, d, "three")
	approve(t, d, b, "op")
	d.WithdrawSession("one", fault.SessionRevoked)
	if waitCode(t, a) != fault.SessionRevoked || fault.CodeOf(b.Spend(plan.digest)) != fault.SessionRevoked {
		t.Fatal("a revoked session's card lives")
	}
	if c.Card().State != StateOpen {
		t.Fatal("another session's card is gone")
	}
	d.WithdrawCalls(fault.PlanStale, func(x Card) bool { return x.SessionID == "two" })
	if waitCode(t, c) != fault.PlanStale {
		t.Fatal("a touched card lives")
	}
	d.WithdrawAll(fault.VaultLocked)
	if waitCode(t, e) != fault.VaultLocked || len(d.Cards()) != 0 {
		t.Fatal("a card outlived the lock")
	}
	a.Withdraw(fault.Cancelled) // closed already: nothing happens
	if a.Card().Code != fault.SessionRevoked {
		t.Fatal("a closed card changed")
	}
	if strings.Join(closed, " ") != "approved withdrawn withdrawn withdrawn withdrawn" {
		t.Fatalf("%q", closed)
	}
	p := Proof{}
	if err := d.Approve(a.Card().ID, p, "op"); !errors.Is(err, ErrDecided) {
		t.Fatalf("%v", err)
	}
}

func TestWaitEnds(t *testing.T) {
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Wait(ctx); fault.CodeOf(err) != fault.Overloaded || k.Card().State != StateWithdrawn {
		t.Fatalf("a card nobody waits for: %v", err)
	}
}

// TestDenyDuringProof: the vault takes its time over a proof; a denial that
// comes meanwhile has won.
func TestDenyDuringProof(t *testing.T) {
	var d *Desk
	var id string
	d = NewDesk(Options{Verify: func(string, [32]byte, []byte) error { return d.Deny(id, "bob") }})
	k := openCard(t, d, "s")
	id = k.Card().ID
	if err := d.Approve(id, proofFor(t, d, k), "ann"); !errors.Is(err, ErrDecided) {
		t.Fatalf("%v", err)
	}
	if c := k.Card(); c.State != StateDenied || len(c.Late) != 1 || c.Late[0].By != "ann" {
		t.Fatalf("%+v", c)
	}
}

// TestRace: approve and deny at one moment; never spent after a denial.
func TestRace(t *testing.T) {
	for range 50 {
		d := newDesk(Options{})
		k := openCard(t, d, "s")
		id, p := k.Card().ID, proofFor(t, d, k)
		var wg sync.WaitGroup
		var spent, denied bool
		wg.Go(func() { _ = d.Approve(id, p, "ann") })
		wg.Go(func() { denied = d.Deny(id, "bob") == nil })
		wg.Go(func() {
			if _, err := k.Wait(context.Background()); err == nil {
				spent = k.Spend(plan.digest) == nil
			}
		})
		wg.Wait()
		if spent == denied {
			t.Fatalf("spent %v, denied %v", spent, denied)
		}
	}
}

// TestCopies: nobody changes a card through what was handed out.
func TestCopies(t *testing.T) {
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	k.Card().Lines[0].Value = "mine"
	d.Cards()[0].Lines[0].Value = "mine"
	if k.Card().Lines[0].Value != "fix" || plan.lines[0].Value != "fix" {
		t.Fatal("a card was changed")
	}
}
