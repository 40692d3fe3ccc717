package approvals

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

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
		"kind":    bind("daemon", Operation{Kind: "approv", Subject: "eapr_1", Digest: op.Digest}, "act_1", "ann", []byte("nonce"), at),
		"subject": bind("daemon", Operation{Kind: "approve", Subject: "apr_2", Digest: op.Digest}, "act_1", "ann", []byte("nonce"), at),
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

// TestProveNamesWhatDiffers: a proof for something that has changed says what,
// and its challenge is used up.
func TestProveNamesWhatDiffers(t *testing.T) {
	d := newDesk(Options{})
	part := func(name string, b byte) Part { return Part{Name: name, Digest: [32]byte{b}} }
	issued := Operation{Kind: "reload", Digest: [32]byte{1}, Parts: []Part{part("the request", 1), part("deploy_release", 1), part("gone", 1)}}
	for want, parts := range map[string][]Part{
		"not what the challenge was issued for: deploy_release, gone, new; look again": {part("the request", 1), part("deploy_release", 2), part("new", 1)},
		"the request": {part("the request", 2), part("deploy_release", 1), part("gone", 1)},
		"the request, deploy_release, gone, b, c and 1 more": {part("b", 1), part("c", 1), part("d", 1)},
	} {
		c, err := d.Challenge(issued)
		if err != nil {
			t.Fatal(err)
		}
		p := Proof{ChallengeID: c.ID, MAC: c.Bytes[:]}
		err = d.Prove(Operation{Kind: "reload", Digest: [32]byte{2}, Parts: parts}, p)
		if !errors.Is(err, ErrNewChallenge) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
		if err := d.Prove(issued, p); !errors.Is(err, ErrNewChallenge) {
			t.Errorf("the challenge was good for a second try: %v", err)
		}
	}
}
