package approvals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/durable"
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

func TestProofRefusals(t *testing.T) {
	d := newDesk(Options{})
	k, other := openCard(t, d, "s"), openCard(t, d, "s")
	id := k.Card().ID
	good := proofFor(t, d, k)
	foreign := proofFor(t, d, other)
	for name, tc := range map[string]struct {
		id   string
		p    Proof
		want error
	}{
		"no card":              {"apr_none", good, ErrNotFound},
		"no challenge":         {id, Proof{MAC: good.MAC}, ErrNewChallenge},
		"another card's":       {id, foreign, ErrNewChallenge},
		"an operation's":       {id, operationProof(t, d), ErrNewChallenge},
		"a wrong mac":          {id, Proof{ChallengeID: proofFor(t, d, k).ChallengeID, MAC: good.MAC}, errWrong},
		"no mac":               {id, Proof{ChallengeID: proofFor(t, d, k).ChallengeID}, errWrong},
		"a proof of no desk's": {id, Proof{ChallengeID: "chl_0", MAC: good.MAC}, ErrNewChallenge},
	} {
		if err := d.Approve(tc.id, tc.p, "op"); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if k.Card().State != StateOpen {
		t.Fatal("a refused proof decided something")
	}
	if err := d.Approve(other.Card().ID, foreign, "op"); err != nil {
		t.Fatalf("a proof tried elsewhere was used up: %v", err)
	}
	wrong := proofFor(t, d, k)
	if err := d.Approve(id, Proof{ChallengeID: wrong.ChallengeID, MAC: []byte("x")}, "op"); !errors.Is(err, errWrong) {
		t.Fatalf("%v", err)
	}
	if err := d.Approve(id, wrong, "op"); !errors.Is(err, ErrNewChallenge) {
		t.Fatalf("a challenge was good for two tries: %v", err)
	}
	if err := d.Deny("apr_none", "op"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("%v", err)
	}
	if _, err := d.Challenge(Operation{Kind: KindApprove, Subject: "apr_none"}); !errors.Is(err, ErrNotFound) {
		t.Fatalf("%v", err)
	}
	if _, err := d.Challenge(Operation{Kind: KindApprove, Subject: id, Digest: [32]byte{9}}); !errors.Is(err, ErrNewChallenge) {
		t.Fatalf("%v", err)
	}
	none := NewDesk(Options{})
	k = openCard(t, none, "s")
	if err := none.Approve(k.Card().ID, proofFor(t, none, k), "op"); err == nil {
		t.Fatal("approved without a verifier")
	}
}

func operationProof(t *testing.T, d *Desk) Proof {
	t.Helper()
	c, err := d.Challenge(Operation{Kind: "reload"})
	if err != nil {
		t.Fatal(err)
	}
	return Proof{ChallengeID: c.ID, MAC: c.Bytes[:]}
}

func TestProve(t *testing.T) {
	d := newDesk(Options{})
	op := Operation{Kind: "session.authorize", Subject: "ses_1", Digest: [32]byte{3}}
	issue := func() Proof {
		c, err := d.Challenge(op)
		if err != nil {
			t.Fatal(err)
		}
		return Proof{ChallengeID: c.ID, Kind: "passphrase", MAC: c.Bytes[:]}
	}
	p := issue()
	if err := d.Prove(op, p); err != nil {
		t.Fatal(err)
	}
	if err := d.Prove(op, p); !errors.Is(err, ErrNewChallenge) {
		t.Fatalf("replayed: %v", err)
	}
	for name, other := range map[string]Operation{
		"kind":    {Kind: "identity.put", Subject: "ses_1", Digest: op.Digest},
		"subject": {Kind: op.Kind, Subject: "ses_2", Digest: op.Digest},
		"digest":  {Kind: op.Kind, Subject: op.Subject},
		"a card":  {Kind: KindApprove, Subject: op.Subject, Digest: op.Digest},
	} {
		if err := d.Prove(other, issue()); !errors.Is(err, ErrNewChallenge) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	p = issue()
	p.MAC = p.MAC[:31]
	if err := d.Prove(op, p); !errors.Is(err, errWrong) {
		t.Fatalf("%v", err)
	}
}

// TestChallengeBinds: the digest differs when any of its parts does, and each
// look gives another challenge.
func TestChallengeBinds(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	op := Operation{Kind: "approve", Subject: "apr_1", Digest: [32]byte{1}}
	base := bind("daemon", op, "act_1", "ann", []byte("nonce"), at)
	seen := map[[32]byte]string{base: "base"}
	for name, got := range map[string][32]byte{
		"daemon":  bind("daemon2", op, "act_1", "ann", []byte("nonce"), at),
		"kind":    bind("daemon", Operation{"approv", "eapr_1", op.Digest}, "act_1", "ann", []byte("nonce"), at),
		"subject": bind("daemon", Operation{"approve", "apr_2", op.Digest}, "act_1", "ann", []byte("nonce"), at),
		"digest":  bind("daemon", Operation{Kind: "approve", Subject: "apr_1"}, "act_1", "ann", []byte("nonce"), at),
		"call":    bind("daemon", op, "act_2", "ann", []byte("nonce"), at),
		"moved":   bind("daemon", op, "act_1a", "nn", []byte("nonce"), at),
		"nonce":   bind("daemon", op, "act_1", "ann", []byte("nonce2"), at),
		"expiry":  bind("daemon", op, "act_1", "ann", []byte("nonce"), at.Add(1)),
	} {
		if other, ok := seen[got]; ok {
			t.Errorf("%s is bound like %s", name, other)
		}
		seen[got] = name
	}
	d := newDesk(Options{})
	k := openCard(t, d, "s")
	a, b := proofFor(t, d, k), proofFor(t, d, k)
	if a.ChallengeID == b.ChallengeID || bytes.Equal(a.MAC, b.MAC) {
		t.Fatal("two looks, one challenge")
	}
	if err := d.Approve(k.Card().ID, a, "op"); err != nil {
		t.Fatalf("a second look spoilt the first: %v", err)
	}
}

func TestBounds(t *testing.T) {
	d := newDesk(Options{})
	for range defaultPerSession {
		openCard(t, d, "s")
	}
	_, err := d.open(CardRequest{SessionID: "s"}, plan)
	if fault.CodeOf(err) != fault.Overloaded {
		t.Fatalf("%v", err)
	}
	k := openCard(t, d, "another")
	first := proofFor(t, d, k)
	for range perSubject {
		proofFor(t, d, k)
	}
	if err := d.Approve(k.Card().ID, first, "op"); !errors.Is(err, ErrNewChallenge) {
		t.Fatalf("%v", err)
	}
	for i := range challengesMax + 50 {
		if _, err := d.Challenge(Operation{Kind: "read", Subject: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.challenges) > challengesMax {
		t.Fatalf("%d challenges", len(d.challenges))
	}
	for range closedMax + 20 {
		openCard(t, d, "third").Withdraw(fault.Cancelled)
	}
	_ = d.Cards()
	if len(d.closed) > closedMax || len(d.cards) > closedMax+defaultPerSession+1 {
		t.Fatalf("%d closed cards of %d", len(d.closed), len(d.cards))
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

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []string
		d := newDesk(Options{OnOpen: func(c Card) { states = append(states, c.State) }, OnClose: func(c Card) { states = append(states, c.State) }})
		k := openCard(t, d, "s")
		time.Sleep(5*time.Minute - time.Second)
		if k.Card().State != StateOpen {
			t.Fatal(k.Card().State)
		}
		old := proofFor(t, d, k)
		time.Sleep(time.Second)
		synctest.Wait()
		if strings.Join(states, " ") != "open expired" {
			t.Fatalf("nobody was told: %q", states)
		}
		if waitCode(t, k) != fault.ApprovalExpired {
			t.Fatal("not expired")
		}
		if err := d.Approve(k.Card().ID, old, "op"); !errors.Is(err, ErrDecided) {
			t.Fatalf("approved too late: %v", err)
		}

		k = openCard(t, d, "s") // an old challenge, an open card: no denial
		old = proofFor(t, d, k)
		time.Sleep(119 * time.Second)
		fresh := proofFor(t, d, k)
		time.Sleep(time.Second)
		if err := d.Approve(k.Card().ID, old, "op"); !errors.Is(err, ErrNewChallenge) || k.Card().State != StateOpen {
			t.Fatalf("%v", err)
		}
		if err := d.Approve(k.Card().ID, fresh, "op"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if err := k.Spend(plan.digest); err != nil {
			t.Fatal(err)
		}

		k = openCard(t, d, "s")
		approve(t, d, k, "op")
		time.Sleep(10 * time.Second)
		if err := k.Spend(plan.digest); fault.CodeOf(err) != fault.ApprovalExpired || k.Card().State != StateWithdrawn {
			t.Fatalf("%v", err)
		}
		time.Sleep(closedKept)
		if _, ok := d.Card(k.c.ID); ok {
			t.Fatal("kept for ever")
		}

		k = openCard(t, d, "s") // a challenge never outlives its card
		time.Sleep(4*time.Minute + 30*time.Second)
		c, err := d.Challenge(Operation{Kind: KindApprove, Subject: k.Card().ID})
		if err != nil || !c.Expires.Equal(k.Card().Expires) {
			t.Fatalf("%v, %v", c.Expires, err)
		}
		k.Withdraw(fault.Cancelled)
	})
}

func TestClockSteps(t *testing.T) {
	wall, mono := time.Unix(1_800_000_000, 0), time.Duration(0)
	d := newDesk(Options{Clock: durable.Clock{Wall: func() time.Time { return wall }, Mono: func() time.Duration { return mono }}})
	k := openCard(t, d, "back")
	wall, mono = wall.Add(-time.Hour), 4*time.Minute
	if k.Card().State != StateOpen {
		t.Fatal(k.Card().State)
	}
	mono += time.Minute
	if k.Card().State != StateExpired {
		t.Fatal("a step back made the card live longer")
	}
	k = openCard(t, d, "slept")
	p := proofFor(t, d, k)
	wall = wall.Add(3 * time.Minute)
	if err := d.Approve(k.Card().ID, p, "op"); !errors.Is(err, ErrNewChallenge) {
		t.Fatalf("%v", err)
	}
	wall = wall.Add(3 * time.Minute)
	if k.Card().State != StateExpired {
		t.Fatal("the machine slept and the card did not age")
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
