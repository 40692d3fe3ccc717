package ledger

import (
	"errors"
	"time"

	"chatelaine/internal/fault"
)

// Owner is whom a request id belongs to: the agent's name and its user.
// Another owner's id is unknown to it.
type Owner struct {
	Agent string
	UID   uint32
}

// Keys come from the vault's data key: Index for the keyed digests that stand
// in clear, Wrap for the keys of the entries. 32 bytes each. Unlock copies them.
type Keys struct{ Index, Wrap []byte }

// Verdict is what Claim found.
type Verdict uint8

// The verdicts. The zero value is none of them.
const (
	_          Verdict = iota
	Fresh              // the caller runs the call, once
	Joined             // it runs already: wait on Done
	Recorded           // it has ended: Outcome
	Unresolved         // it may have happened: Outcome says what to answer
)

// Armed is what is written before a byte may leave.
type Armed struct {
	Attempt        int    // from 1
	IdempotencyKey string // the call's own, or ""
	Plan           []byte // canonical
	PlanDigest     [32]byte
	IntentSeq      uint64 // of the record, 0 where not known yet
	Detail         []byte // JSON for the operator, kept sealed; optional
	// What a later run needs to poll or reconcile this call: the session that it
	// belongs to in the record, and call.now.
	Session string
	Now     time.Time
}

// Polled is what is written before the first poll is sent: all that a later run
// needs to go on.
type Polled struct {
	Captured  []byte    // canonical JSON: what the request's answer gave
	Deadline  time.Time // when the poll is over, by the wall
	IntentSeq uint64    // of the request in the record
}

// Outcome is how a call ended.
type Outcome struct {
	Envelope  []byte     // the answer, given again for the same id
	Code      string     // "" for success
	Fate      fault.Fate // Final or Unresolved; Rearm sets Rearmed
	Sentence  string     // the card's sentence, for the operator
	Detail    []byte     // JSON for the operator, kept sealed; optional
	NotBefore time.Time  // for a re-armed id: when it may be sent again
	RecordSeq uint64     // where the outcome stands in the record; 0 where it is in none
}

// Info is one call as the operator sees it.
type Info struct {
	Owner
	RequestID      string
	Action         string
	State          State
	Change         bool
	Code           string // "" while it runs and for success
	Sentence       string
	ClaimedAt      time.Time
	FinishedAt     time.Time // zero until it ended
	Attempt        int
	IdempotencyKey string
	Plan           []byte
	PlanDigest     [32]byte
	IntentSeq      uint64
	RecordSeq      uint64 // of the outcome, 0 where not known
	ArmedDetail    []byte
	Detail         []byte
	Envelope       []byte
	Session        string    // the session's id in the record
	Now            time.Time // call.now; zero until it was armed
	Polled         Polled    // zero until its poll began
}

// Errors for the operator's side and for the gateway. Refusals to an agent are
// coded (internal/fault).
var (
	// ErrNotFound says that no call of that id is kept.
	ErrNotFound = errors.New("no such call")
	// ErrAmbiguous says that several agents used the id; name one as
	// ID@AGENT or ID@AGENT:UID.
	ErrAmbiguous = errors.New("several agents used this request id; name one as ID@AGENT or ID@AGENT:UID")
	// ErrNotUnresolved says that there is nothing to resolve.
	ErrNotUnresolved = errors.New("the call is not unresolved")
	// ErrArmed says that it is too late to withdraw the call.
	ErrArmed = errors.New("the call is armed or was sent")
	// ErrTransition says that the call's state does not allow the step.
	ErrTransition = errors.New("the state of the call does not allow this")
	// ErrDoubted says that an earlier attempt of a change may have happened:
	// only success or OUTCOME_UNKNOWN may end it.
	ErrDoubted = errors.New("an earlier attempt may have happened; only success or OUTCOME_UNKNOWN may end the call")
)
