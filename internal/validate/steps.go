package validate

import (
	"errors"
	"fmt"

	"chatelaine/internal/fault"
)

// StepKind says what the step whose answer is read is for: which built-in rows
// it has and what a row may mean. The zero value is the request.
type StepKind uint8

// The kinds of step.
const (
	StepRequest   StepKind = iota
	StepLookup             // reads before the request
	StepPoll               // asks again until a named end
	StepReconcile          // tells whether the request took effect
)

// known refuses a kind that is none of the four.
func (k StepKind) known() error {
	if k > StepReconcile {
		return errors.New("there is no such step")
	}
	return nil
}

// checkEnd holds what a row means to its step.
func (r *Reader) checkEnd(s RowSpec) error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(s.HasSuccess && s.Failure != nil, "success and failure exclude each other")
	bad(s.Failure != nil && s.HasCapture, "a failure captures nothing")
	bad(s.Pending && r.step != StepPoll, "pending stands in a poll only")
	bad(s.TookEffect != nil && r.step != StepReconcile, "took_effect stands in a reconcile only")
	switch r.step {
	case StepLookup:
		bad(s.HasSuccess, "a lookup has no success; write capture")
		bad(!s.HasCapture && s.Failure == nil, "write capture or failure")
	case StepPoll:
		bad(s.HasCapture, "a poll captures nothing")
		bad(s.Pending && (s.HasSuccess || s.Failure != nil), "pending stands alone: the end has not come")
		bad(!s.Pending && !s.HasSuccess && s.Failure == nil, "write one of success, failure or pending")
	case StepReconcile:
		bad(s.HasCapture, "a reconcile captures nothing")
		errs = append(errs, checkEffect(s))
	default:
		bad(!s.HasSuccess && s.Failure == nil && !s.HasCapture, "write one of success, failure or capture")
	}
	return errors.Join(errs...)
}

// checkEffect holds a row of a reconcile to what it may tell.
func checkEffect(s RowSpec) error {
	switch {
	case s.TookEffect == nil && (s.HasSuccess || s.Failure == nil || s.Failure.Code != string(fault.OutcomeUnknown)):
		return fmt.Errorf("write took_effect; an answer that does not tell is failure: %s", fault.OutcomeUnknown)
	case s.TookEffect != nil && *s.TookEffect && (!s.HasSuccess || s.Failure != nil):
		return errors.New("took_effect: true stands beside success")
	case s.TookEffect != nil && !*s.TookEffect && s.HasSuccess:
		return errors.New("took_effect: false is no success")
	}
	return nil
}

// vague says that a code of this status cannot tell whether the change was
// done: the answer to the request itself.
func (r *Reader) vague(status int) bool {
	return r.change && r.step == StepRequest && ambiguous(status)
}

// checkStepCode holds a code to what the step can know.
func (r *Reader) checkStepCode(c fault.Code, s RowSpec) error {
	switch {
	case c == fault.OutcomeUnknown && r.step == StepLookup:
		return fmt.Errorf("failure: before the request nothing is %s", c)
	case c == fault.OutcomeUnknown && s.TookEffect != nil:
		return fmt.Errorf("failure: %s says that the answer does not tell; take took_effect away", c)
	case c == fault.UpstreamUnavailable && r.change && r.step == StepRequest && !s.NotDone:
		return fmt.Errorf("failure: %s says that nothing happened; for a change the row needs not_done: true", c)
	}
	return nil
}

// ambiguous names the statuses after which a change may or may not have
// happened.
func ambiguous(status int) bool { return status == 408 || status >= 500 }

// builtin gives the meaning of a status that no row of the contract names, nil
// for none. It ignores the body. A poll of a change that is refused tells
// nothing about the change, which was accepted before.
func (r *Reader) builtin(status int) *Proved {
	code := builtinCodes[status]
	if ambiguous(status) && status <= 599 {
		code = fault.UpstreamUnavailable
	}
	switch {
	case code == "":
		return nil
	case r.step == StepPoll && (code == fault.UpstreamUnavailable || code == fault.RemoteRateLimited):
		return &Proved{ok: true, row: builtinRow, builtin: true, pending: true}
	case r.step == StepPoll && r.change, r.vague(status):
		code = fault.OutcomeUnknown
	}
	return &Proved{ok: true, row: builtinRow, code: string(code), builtin: true}
}

// builtinRow names the row that no contract writes.
const builtinRow = "built-in"

var builtinCodes = map[int]fault.Code{
	401: fault.RemoteUnauthenticated, 403: fault.RemoteForbidden, 404: fault.NotFound, 429: fault.RemoteRateLimited,
}
