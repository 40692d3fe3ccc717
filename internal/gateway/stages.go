package gateway

import (
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
	"chatelaine/internal/secret"
	"chatelaine/internal/sessions"
	"chatelaine/internal/validate"
)

// Each stage of the line is a small type that only the step before can make,
// so that a step cannot be skipped. They are passed by value and never kept.

// identified: the caller has an authorised session, or is an operator who proves
// an identity.
type identified struct {
	ask      Ask
	session  sessions.Session
	operator string     // who proves an identity, "" for an agent's call
	trial    *heldLease // of such a call: a secret that is not stored yet; nil takes the stored one
}

// opened: the vault was open when the call came in.
type opened struct{ identified }

// named: the action is one the caller may ask for.
type named struct {
	opened
	set      *actions.Set
	contract *actions.Contract
}

// valid: the input fits the contract.
type valid struct {
	named
	input actions.Input
}

// routed: exactly one target, inside the allowed set.
type routed struct {
	valid
	route actions.Route
}

// claimed: the request id is ours, under the digest of {action, input}.
type claimed struct {
	routed
	call *ledger.Call
	live *live
	came time.Time
}

// looked: what the lookups found is proved; nothing where the contract has none.
type looked struct {
	claimed
	looking  actions.Looking
	identity actions.IdentityFact
}

// planned: everything that will be sent is frozen under one digest.
type planned struct {
	claimed
	plan     actions.Plan
	identity actions.IdentityFact
	looked   bool // lookups were sent for it
}

// approved: that digest may be performed, and how that was decided.
type approved struct {
	planned
	decision string // "not asked", "session", "approved by …"
	cardID   string
	spend    func() error
}

// cleared: vault, session, contract, target and identity still agree, right
// before arming.
type cleared struct {
	approved
	lease Lease
	// turned closes once the vault was locked or unlocked since the lease was taken.
	turned <-chan struct{}
	place  func()    // gives the first attempt's place back; more than once does nothing
	now    time.Time // call.now, the same for every attempt
}

// turn: one send of one step, which authority was just looked at for; the lease
// is held.
type turn struct {
	claimed
	plan     actions.Plan // the zero value before the freeze: a lookup
	identity actions.IdentityFact
	lease    Lease
	step     actions.Step
	attempt  int       // of this step, from 1
	now      time.Time // call.now

	decision, cardID string // of a request: how it was allowed
	request          uint64 // of a poll or reconcile: the request's intent, 0 where not known
}

// intended: the intent is durable in the record, that of a request in the ledger
// too.
type intended struct {
	turn
	intent auditlog.Receipt
}

// answered: the one attempt has ended, one way or another.
type answered struct {
	intended
	exchange executor.Exchange
}

// kept: what came was searched for the credential and is on its way into the
// record, masked where it echoed.
type kept struct {
	answered
	hits   []secret.Hit
	digest string
	event  auditlog.Event
}

// judged: the answer is proved or refused.
type judged struct {
	kept
	proved    *validate.Proved
	rejection *validate.Rejection
	// fault is nil only with a proved answer that is no failure: a success, a
	// capture, or the word of a poll or a reconcile.
	fault *fault.Error
	// status is how the record names this attempt's own end, and recorded that
	// outcome, with the answer, on its way there.
	status   string
	recorded *auditlog.Pending
}
