package approvals

import (
	"context"
	"errors"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

var errUnbuilt = errors.New("not built")

// Errors of the operator's side.
var (
	// ErrNotFound says that no card of that id is kept.
	ErrNotFound = errors.New("no such card")
	// ErrDecided says that the card was decided or closed before.
	ErrDecided = errors.New("the card is decided already")
	// ErrNewChallenge says that the challenge is used, lapsed or for something
	// else: fetch a new one and prove again.
	ErrNewChallenge = errors.New("the challenge is used or has lapsed; fetch a new one")
)

// Operation is what a proof is asked for.
type Operation struct {
	Kind, Subject string
	Digest        [32]byte
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

// Verifier checks a proof against the vault's sealed verifiers.
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
	DecidedBy, Decision               string
	Code                              fault.Code // how the call ends, "" while open, approved or spent
	Late                              []Mark
}

// Mark is a decision that came after the first.
type Mark struct {
	By, Decision string
	At           time.Time
}

// Decision is what the waiting call learns.
type Decision struct{ By string }

// CardRequest asks for a card.
type CardRequest struct {
	CallID, SessionID, Agent, CallerLabel string
	Plan                                  actions.Plan
}

// Options of a desk; zero durations are the defaults of the documents.
type Options struct {
	DaemonID                             string
	Verify                               Verifier
	CardLife, ChallengeLife, SpendWithin time.Duration
	PerSession                           int
	Clock                                durable.Clock
	OnOpen, OnClose                      func(Card)
	OnLate                               func(Card, Mark)
}

// Desk holds the cards.
type Desk struct{}

// Ticket is the waiting call's end of a card.
type Ticket struct{}

func NewDesk(o Options) *Desk                                     { return &Desk{} }
func (d *Desk) Open(r CardRequest) (*Ticket, error)               { return nil, errUnbuilt }
func (t *Ticket) Card() Card                                      { return Card{} }
func (t *Ticket) Wait(ctx context.Context) (Decision, error)      { return Decision{}, errUnbuilt }
func (t *Ticket) Spend(digest [32]byte) error                     { return errUnbuilt }
func (t *Ticket) Withdraw(reason fault.Code)                      {}
func (d *Desk) Cards() []Card                                     { return nil }
func (d *Desk) Card(id string) (Card, bool)                       { return Card{}, false }
func (d *Desk) Challenge(op Operation) (Challenge, error)         { return Challenge{}, errUnbuilt }
func (d *Desk) Prove(op Operation, p Proof) error                 { return errUnbuilt }
func (d *Desk) Approve(id string, p Proof, by string) error       { return errUnbuilt }
func (d *Desk) Deny(id, by string) error                          { return errUnbuilt }
func (d *Desk) WithdrawSession(sessionID string, code fault.Code) {}
func (d *Desk) WithdrawAll(code fault.Code)                       {}
