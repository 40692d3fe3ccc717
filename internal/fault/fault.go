// Package fault holds the coded errors of chatelaine: every refusal carries one
// stable code and one sentence from our own catalogue for the agent, and a
// separate cause for the operator. It must never carry an upstream byte, a
// caller's value or a secret in the agent's half. Any package may import it; it
// imports nothing of ours.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code is a stable error code of the agent API (docs/http-api.md, "Envelope").
type Code string

// The closed set of the API's own codes. A contract may declare further codes
// for its own failures; they never equal one of these.
const (
	InvalidArgument       Code = "INVALID_ARGUMENT"
	UnknownAction         Code = "UNKNOWN_ACTION"
	SessionRequired       Code = "SESSION_REQUIRED"
	SessionPending        Code = "SESSION_PENDING"
	SessionRevoked        Code = "SESSION_REVOKED"
	ApprovalRequired      Code = "APPROVAL_REQUIRED"
	ApprovalDenied        Code = "APPROVAL_DENIED"
	ApprovalExpired       Code = "APPROVAL_EXPIRED"
	Cancelled             Code = "CANCELLED"
	PlanRequired          Code = "PLAN_REQUIRED"
	PlanExpired           Code = "PLAN_EXPIRED"
	PlanStale             Code = "PLAN_STALE"
	InProgress            Code = "IN_PROGRESS"
	DuplicateRequest      Code = "DUPLICATE_REQUEST"
	VaultLocked           Code = "VAULT_LOCKED"
	IdentityUnavailable   Code = "IDENTITY_UNAVAILABLE"
	TargetNotAllowed      Code = "TARGET_NOT_ALLOWED"
	NotFound              Code = "NOT_FOUND"
	RemoteUnauthenticated Code = "REMOTE_UNAUTHENTICATED"
	RemoteForbidden       Code = "REMOTE_FORBIDDEN"
	RemoteRateLimited     Code = "REMOTE_RATE_LIMITED"
	RemoteCommandMissing  Code = "REMOTE_COMMAND_MISSING"
	UpstreamUnavailable   Code = "UPSTREAM_UNAVAILABLE"
	OutcomeUnknown        Code = "OUTCOME_UNKNOWN"
	InvalidResponse       Code = "INVALID_RESPONSE"
	AuditUnavailable      Code = "AUDIT_UNAVAILABLE"
	Overloaded            Code = "OVERLOADED"
	Internal              Code = "INTERNAL"
)

// Fate says what an outcome does to the request id that met it.
type Fate uint8

// The fates of a request id. The zero value is NotConsumed: nothing was sent
// and the same id starts afresh.
const (
	NotConsumed Fate = iota
	Waiting          // a person has not decided
	Running          // still going on
	Final            // the recorded outcome is given again for this id
	Rearmed          // nothing happened; the same id is sent again on request
	Unresolved       // may have happened; only reconcile or a person ends it
)

// Error is a refusal or failure with two audiences. Code, Message, Fields and
// RetryAfter are for the agent; Error and Unwrap are for the operator's log.
type Error struct {
	code       Code
	message    string
	retryable  bool
	own        bool
	change     bool
	fields     []Field
	retryAfter time.Duration
	cause      error
}

// Field points into the caller's own input (an RFC 6901 pointer) and says in a
// few words of ours what is wrong there. It never repeats a value.
type Field struct {
	Pointer string `json:"pointer"`
	Reason  string `json:"reason"`
}

// New makes an error of the API's catalogue. An unknown code becomes INTERNAL,
// so that no invented code can leave. cause may be nil.
func New(code Code, cause error) *Error {
	e, ok := catalogue[code]
	if !ok {
		cause, code = fmt.Errorf("code %q is not in the catalogue: %w", code, cause), Internal
		e = catalogue[Internal]
	}
	return &Error{code: code, message: e.message, retryable: e.retryable, cause: cause}
}

// Newf is New with a cause written for the operator.
func Newf(code Code, format string, args ...any) *Error {
	return New(code, fmt.Errorf(format, args...))
}

// Own makes a contract's own failure. The message was checked by the contract
// loader; it is the contract author's text, never the remote system's.
func Own(code Code, message string, retryable bool, cause error) *Error {
	return &Error{code: code, message: message, retryable: retryable, own: true, cause: cause}
}

// Invalid makes INVALID_ARGUMENT with the fields that are wrong.
func Invalid(cause error, fields ...Field) *Error {
	e := New(InvalidArgument, cause)
	e.fields = fields
	return e
}

// NoCall is NOT_FOUND about a call of the API itself, which nobody may take for
// the remote system's word.
func NoCall() *Error {
	e := New(NotFound, errors.New("no call of this id and agent"))
	e.message = noCallHere
	return e
}

// NotInAnswer is NOT_FOUND of a change whose answer was a success and did not
// hold the object that the contract looks for in it: unlike a 404, it does not
// say that nothing was done, so that the sentence warns.
func NotInAnswer(cause error) *Error {
	e := New(NotFound, cause)
	e.message = missingAfterChange
	return e
}

// DidNotHappen is UPSTREAM_UNAVAILABLE of a change that was looked up afterwards
// and did not take effect.
func DidNotHappen(cause error) *Error {
	e := New(UpstreamUnavailable, cause)
	e.message = didNotHappen
	return e
}

// Accepted says that the error came after the remote system had accepted a
// change, from the question how it went. Codes that would otherwise read as a word
// about the change itself then warn.
func (e *Error) Accepted() *Error {
	c := *e
	switch e.code {
	case NotFound, RemoteUnauthenticated, RemoteForbidden, RemoteCommandMissing:
		if !e.own {
			c.message = endUnread
		}
	}
	return &c
}

// NoRoute is NOT_FOUND about a path of the API itself.
func NoRoute() *Error {
	e := New(NotFound, errors.New("no such route"))
	e.message = noRouteHere
	return e
}

// OfChange says that the error ends a call that may have changed something.
// INVALID_RESPONSE and INTERNAL then tell the agent not to repeat it.
func (e *Error) OfChange() *Error {
	c := *e
	c.change = true
	return &c
}

// After adds how long the caller should wait, rounded up to whole seconds.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.retryAfter = d
	return &c
}

// Resolved is what is known of a call after a person found out: it happened,
// and nobody has proved an answer; or it did not, and may be asked for again.
func Resolved(happened bool) *Error {
	e := New(UpstreamUnavailable, errors.New("a person found that it did not happen"))
	e.message = resolvedNot
	if happened {
		e = New(OutcomeUnknown, errors.New("a person found that it happened"))
		e.message = resolvedDone
	}
	return e
}

// Messages returns every sentence that a code of the API may carry, the usual
// one first.
func Messages(code Code) []string {
	e := New(code, nil)
	out := []string{e.Message()}
	if m := e.OfChange().Message(); m != out[0] {
		out = append(out, m)
	}
	switch code {
	case NotFound:
		out = append(out, noCallHere, noRouteHere, missingAfterChange, endUnread)
	case RemoteUnauthenticated, RemoteForbidden, RemoteCommandMissing:
		out = append(out, endUnread)
	case OutcomeUnknown:
		out = append(out, resolvedDone)
	case UpstreamUnavailable:
		out = append(out, resolvedNot, didNotHappen)
	}
	return out
}

// Code returns the stable code.
func (e *Error) Code() Code { return e.code }

// Message returns the sentence for the agent.
func (e *Error) Message() string {
	if e.change {
		switch e.code {
		case InvalidResponse:
			return invalidAfterChange
		case Internal:
			return internalAfterChange
		}
	}
	return e.message
}

// Retryable says whether the same request id may be tried again (for a
// contract's own code: whether a new call may succeed).
func (e *Error) Retryable() bool { return e.retryable }

// IsOwn says whether the code belongs to the contract, not to the API.
func (e *Error) IsOwn() bool { return e.own }

// Fields returns what is wrong with the caller's input; only INVALID_ARGUMENT
// has any.
func (e *Error) Fields() []Field { return e.fields }

// RetryAfter returns how long to wait, zero where unknown.
func (e *Error) RetryAfter() time.Duration { return e.retryAfter }

// Status returns the HTTP status of the agent API.
func (e *Error) Status() int {
	if e.own {
		return statusOwn
	}
	return catalogue[e.code].status
}

// Fate says what becomes of the request id. sent tells whether a byte may have
// left for a call that changes something.
func (e *Error) Fate(change, sent bool) Fate {
	if e.own {
		return Final
	}
	switch e.code {
	case InvalidResponse:
		if change {
			return Unresolved
		}
		return Final
	case Internal:
		if sent && change {
			return Unresolved
		}
		return Final
	}
	return catalogue[e.code].fate
}

// Error is the operator's text: the code and the cause.
func (e *Error) Error() string {
	if e.cause == nil {
		return string(e.code)
	}
	return string(e.code) + ": " + e.cause.Error()
}

// Unwrap returns the operator's cause.
func (e *Error) Unwrap() error { return e.cause }

// From turns any error into a coded one; what has no code is INTERNAL.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(Internal, err)
}

// CodeOf returns the code of err, INTERNAL for an uncoded error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return From(err).code
}
