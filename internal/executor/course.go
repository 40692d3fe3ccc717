package executor

import (
	"maps"
	"net/http"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
)

// Next says what follows the end of a send. The zero value is none of them.
type Next uint8

// What may follow.
const (
	Done        Next = iota + 1 // the call has ended
	GoPoll                      // the request captured: poll
	PollAgain                   // the end has not come: poll once more, later
	GoReconcile                 // it may have happened: look whether it took effect
	LookAgain                   // look a second time, SecondLook later
)

// SecondLook is how long after the first look a reconcile looks again where the
// request's answer was lost or its poll had begun: a service that was still at
// work on it has told the truth by then (contract-format, "Outcomes").
const SecondLook = 30 * time.Second

// AnswerLost says that an answer with this status is the word of somebody in
// between that the service's own answer did not come: Request Timeout, Bad Gateway
// and Gateway Timeout (RFC 9110, sections 15.5.9, 15.6.3 and 15.6.5). The service
// may still be at work, as after a broken connection. 500 and 503 are answers of
// the service itself.
func AnswerLost(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// End is how one send ended, as far as the course of its call depends on it.
type End struct {
	Code     fault.Code // "" where the answer is no failure
	Captured bool       // the row captures and ends nothing
	Pending  bool       // poll: the end has not come
	// Effect is what a row of a reconcile says of the request, EffectSaid
	// whether the row says so at all.
	Effect, EffectSaid bool
	// Lost says that no whole answer was read: the connection was lost, or
	// nothing could be sent. An answer that was refused was read.
	Lost bool
	// Doubted says that an earlier attempt of a change may have happened. From
	// then on only success, or a reconcile, says otherwise.
	Doubted bool
}

// AfterRequest says what follows the last attempt of a request. The code is the
// one that the call has now: it stays where a reconcile cannot tell.
func AfterRequest(c *actions.Contract, e End) (Next, fault.Code) {
	if e.Code == "" && e.Captured {
		if _, polls := c.Poll(); polls {
			return GoPoll, fault.InProgress
		}
		return ended(c, fault.Internal) // the loader lets no such row in
	}
	return ended(c, doubted(c, e))
}

// AfterPoll says what follows a send of the poll, or a turn in which nothing
// could be sent. over says that the poll's time is up. In a poll a lost
// connection counts as pending. What a poll of a change says never frees the id:
// the request was accepted, so UPSTREAM_UNAVAILABLE and REMOTE_RATE_LIMITED of a
// row become OUTCOME_UNKNOWN.
func AfterPoll(c *actions.Contract, e End, over bool) (Next, fault.Code) {
	changes := c.Effect() != actions.Read
	code := doubted(c, e)
	switch pending := e.Pending || e.Lost; {
	case pending && !over:
		return PollAgain, fault.InProgress
	case pending && changes:
		code = fault.OutcomeUnknown
	case pending:
		code = fault.UpstreamUnavailable
	case changes && frees(c, code):
		code = fault.OutcomeUnknown
	}
	return ended(c, code)
}

// Unknown is a request's end that a reconcile looks into.
type Unknown struct {
	Code fault.Code // OUTCOME_UNKNOWN or INVALID_RESPONSE: stays where nothing can be told
	Lost bool       // the request's answer was lost; a restart always counts as that
	// Accepted says that the poll had begun: the service took the request and works
	// on it, so that it may take effect after a look that says it did not.
	Accepted bool
}

// AfterReconcile says what a look found. first is the end of the first look
// where e is the second one, nil otherwise. The code is "" where the request
// took effect and its success was proved; it is the request's own where the look
// cannot tell.
func AfterReconcile(u Unknown, first *End, e End) (Next, fault.Code) {
	switch code := notDone(e); {
	case e.EffectSaid && e.Effect && e.Code == "" && !e.Lost:
		return Done, ""
	case code == "":
		return Done, u.Code
	case !u.Lost && !u.Accepted:
		return Done, code
	case first == nil:
		return LookAgain, u.Code
	case notDone(*first) == code:
		return Done, code
	}
	return Done, u.Code
}

// notDone is the code of a look that found that the request did not take
// effect, "" for any other look.
func notDone(e End) fault.Code {
	switch {
	case e.Lost || !e.EffectSaid || e.Effect || e.Code == fault.OutcomeUnknown || e.Code == fault.InvalidResponse:
		return ""
	case e.Code == "":
		return fault.UpstreamUnavailable
	}
	return e.Code
}

// LookupRetry is how often one lookup may be sent: as the contract's retry says,
// for the codes that a read can end with. A lookup changes nothing, so that it
// may be repeated also where the request may not be sent twice under one key.
func LookupRetry(c *actions.Contract) actions.RetryPolicy {
	p := c.Retry()
	p.Codes = maps.Clone(p.Codes)
	delete(p.Codes, fault.OutcomeUnknown)
	return p
}

// AfterLookup is the code that a lookup ends its call with, "" where it captured
// and the call goes on. Nothing was changed, so that there is no OUTCOME_UNKNOWN.
func AfterLookup(e End) fault.Code {
	switch {
	case e.Code == fault.OutcomeUnknown:
		return fault.UpstreamUnavailable
	case e.Code == "" && !e.Captured:
		return fault.Internal // the loader lets no such row in
	}
	return e.Code
}

// PollWait says how long to wait for the next turn of a poll and whether it is
// the last one. A turn that would come after the poll's end comes at its end
// instead, unless the remote asked to wait longer (asked): then nothing more is
// sent, and the poll is over at its end.
func PollWait(every, asked, left time.Duration) (wait time.Duration, last, send bool) {
	due := max(every, asked)
	if due < left {
		return due, false, true
	}
	return max(0, left), true, asked <= left
}

// ended is the end of a call, unless a reconcile can look into it.
func ended(c *actions.Contract, code fault.Code) (Next, fault.Code) {
	changes := c.Effect() != actions.Read
	if c.HasReconcile() && (code == fault.OutcomeUnknown || changes && code == fault.InvalidResponse) {
		return GoReconcile, code
	}
	return Done, code
}

// doubted is the code of an end; once an attempt of a change may have happened,
// no failure of a later one stands.
func doubted(c *actions.Contract, e End) fault.Code {
	if e.Doubted && e.Code != "" && c.Effect() != actions.Read {
		return fault.OutcomeUnknown
	}
	return e.Code
}

// frees says whether a code of the API gives the id back.
func frees(c *actions.Contract, code fault.Code) bool {
	if code == "" {
		return false
	}
	if _, own := c.OwnCode(string(code)); own {
		return false
	}
	fate := fault.New(code, nil).Fate(true, true)
	return fate == fault.Rearmed || fate == fault.NotConsumed
}
