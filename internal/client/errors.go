package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"chatelaine/internal/fault"
)

// Codes of the operator socket that the agent API does not have.
const (
	ProofRefused     fault.Code = "PROOF_REFUSED"
	ProofTooSoon     fault.Code = "PROOF_TOO_SOON"
	ProofRequired    fault.Code = "PROOF_REQUIRED"
	ChallengeExpired fault.Code = "CHALLENGE_EXPIRED"
	AlreadyDecided   fault.Code = "ALREADY_DECIDED"
)

// Error is a refusal that the daemon wrote: on the agent's side from our
// catalogue or the contract, on the operator's side with a detail.
type Error struct {
	Code       fault.Code
	Message    string        // one sentence
	Detail     string        // operator text; "" on the agent's side
	Retryable  bool          // agent's side: the same request id may be asked again
	RetryAfter time.Duration // 0 where unknown
	Fields     []fault.Field // what is wrong with the caller's own input
	RequestID  string        // agent's side: the call that this is about
	Status     int           // HTTP status
}

// Error is the text for a person; a list of mistakes has a line each.
func (e *Error) Error() string {
	s := strings.TrimSuffix(e.Message, ".")
	if s == "" {
		s = "the daemon refused"
	}
	d := e.cause()
	if d != "" && e.Code == fault.InvalidArgument {
		// The catalogue's sentence is about the input of an action.
		first, rest, more := strings.Cut(d, "\n")
		first = fmt.Sprintf("%s (%s)", first, e.Code)
		if !more {
			return first
		}
		return first + "\n" + rest
	}
	if d != "" {
		s += ": " + d
	}
	return fmt.Sprintf("%s (%s)", s, e.Code)
}

// cause is the detail without the code, which the text tells already.
func (e *Error) cause() string {
	d := strings.TrimPrefix(e.Detail, string(e.Code))
	return strings.TrimPrefix(d, ": ")
}

// CodeOf returns the daemon's code in err, "" where the daemon said nothing.
func CodeOf(err error) fault.Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// UnreachableError says that no answer came. Sent tells whether the request may
// have reached the daemon; while it is false nothing can have happened.
type UnreachableError struct {
	Where string // socket path or address
	Sent  bool
	Err   error
}

// Error is the text for a person; a list of mistakes has a line each.
func (e *UnreachableError) Error() string {
	if e.Sent {
		return fmt.Sprintf("the daemon at %s gave no answer: %v", e.Where, e.Err)
	}
	return fmt.Sprintf("cannot reach the daemon at %s: %v", e.Where, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// StrangerError says that a socket or port belongs to a user whom the caller
// was not told to trust. Nothing was sent.
type StrangerError struct {
	Where string
	UID   uint32
}

// Error is the text for a person; a list of mistakes has a line each.
func (e *StrangerError) Error() string {
	return fmt.Sprintf("%s belongs to user id %d, which is neither you nor root nor the daemon's configured user; nothing was sent", e.Where, e.UID)
}

// ReplyError says that the daemon's reply is not what this client understands:
// too large, not strict JSON, or another shape. It holds no reply bytes.
type ReplyError struct {
	Call   string // method and path
	Status int
	Err    error
}

// Error is the text for a person; a list of mistakes has a line each.
func (e *ReplyError) Error() string {
	return fmt.Sprintf("the daemon's reply to %s (status %d) cannot be read: %v", e.Call, e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *ReplyError) Unwrap() error { return e.Err }
