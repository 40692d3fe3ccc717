package approvals

import (
	"errors"
	"slices"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// Errors of the operator's side.
var (
	// ErrNotFound says that no card of that id is kept.
	ErrNotFound = errors.New("no such card")
	// ErrDecided says that the card was decided or closed before. The first
	// decision stands.
	ErrDecided = errors.New("the card is decided already")
	// ErrNewChallenge says that the challenge is used, has lapsed or belongs to
	// something else. Nothing was decided: fetch a new one and prove again.
	ErrNewChallenge = errors.New("the challenge is used, has lapsed or is for something else; fetch a new one")
	errNoVerifier   = errors.New("no verifier: nothing can be proved")
)

// KindApprove is the operation of a card; its subject is the card's id.
const KindApprove = "approve"

// Operation is what a proof is asked for. Digest covers everything that kind and
// subject do not say; for a card it is the plan's.
type Operation struct {
	Kind, Subject string
	Digest        [32]byte
	// Parts are what the digest was made of, in a person's words, so that a
	// refusal can name what differs. They decide nothing.
	Parts []Part
}

// Part is one thing that an operation's digest covers.
type Part struct {
	Name   string
	Digest [32]byte
}

// Challenge is what an operator proves over, once.
type Challenge struct {
	ID      string
	Bytes   [32]byte
	Expires time.Time
}

// Proof answers a challenge.
type Proof struct {
	ChallengeID, Kind string
	MAC               []byte
}

// Verifier checks a proof against the vault's sealed verifiers. It answers
// VAULT_LOCKED while those are sealed.
type Verifier func(kind string, challenge [32]byte, mac []byte) error

// Card is a copy of one card.
type Card struct {
	ID, State                         string
	Sentence, DaemonLine, RequestedBy string
	Action, CallID, SessionID, Agent  string
	PlanDigest                        [32]byte
	Lines                             []actions.CardLine
	Exceptions                        []string
	Opened, Expires                   time.Time
	DecidedBy, Decision               string     // Decision: "approve" or "deny"
	Code                              fault.Code // how the call ends; "" while open, approved or spent
	Late                              []Mark     // decisions that came after the first
}

// Mark is a decision that came after the first. It changed nothing.
type Mark struct {
	By, Decision string
	At           time.Time
}

const (
	decisionApprove = "approve"
	decisionDeny    = "deny"
)

// Decision is what the waiting call learns of an approval.
type Decision struct{ By string }

// CardRequest asks for a card about one frozen plan. CallerLabel names who
// asks, in the daemon's words.
type CardRequest struct {
	CallID, SessionID, Agent, CallerLabel string
	Plan                                  actions.Plan
}

// Defaults of Options, from the documents.
const (
	defaultCardLife      = 5 * time.Minute
	defaultChallengeLife = 120 * time.Second
	defaultSpendWithin   = 10 * time.Second

	// defaultPerSession bounds how many cards one session may have open, so
	// that no agent can bury a person in questions.
	defaultPerSession = 8
)

// Options of a desk; zero values are the defaults of the documents. OnOpen
// hears of a new card, OnClose of every change of its state, OnLate of a
// decision that came second. They are called without the desk's lock.
type Options struct {
	DaemonID      string
	Verify        Verifier
	CardLife      time.Duration // 5 min
	ChallengeLife time.Duration // 120 s, never more
	SpendWithin   time.Duration // 10 s from approval to arming
	PerSession    int           // open cards of one session
	Clock         durable.Clock
	OnOpen        func(Card)
	OnClose       func(Card)
	OnLate        func(Card, Mark)
}

func (o Options) filled() Options {
	if o.CardLife <= 0 {
		o.CardLife = defaultCardLife
	}
	if o.ChallengeLife <= 0 || o.ChallengeLife > defaultChallengeLife {
		o.ChallengeLife = defaultChallengeLife
	}
	if o.SpendWithin <= 0 {
		o.SpendWithin = defaultSpendWithin
	}
	if o.PerSession <= 0 {
		o.PerSession = defaultPerSession
	}
	if o.Verify == nil {
		o.Verify = func(string, [32]byte, []byte) error { return errNoVerifier }
	}
	return o
}

func (c Card) clone() Card {
	c.Lines, c.Exceptions, c.Late = slices.Clone(c.Lines), slices.Clone(c.Exceptions), slices.Clone(c.Late)
	return c
}
