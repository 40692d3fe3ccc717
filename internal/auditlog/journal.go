package auditlog

import "time"

// Activity is one call as the activity journal shows it.
type Activity struct {
	CallID, SessionID, Actor, Action, Target string
	Decision, Rule, Status                   string
	Started, Ended                           time.Time
	FirstSeq, LastSeq                        uint64
	Intents, Answers                         int
	Unresolved                               bool // an intent without an outcome: it may have happened
	Detail                                   map[string]any
}

// SessionEntry is one session as the session journal shows it.
type SessionEntry struct {
	SessionID, Actor, Status string
	Opened, Closed           time.Time
	Decisions                []Decision
	Calls                    []CallRef
	Denied                   int
	Detail                   map[string]any
}

// Decision is one yes or no inside a session.
type Decision struct {
	Seq                        uint64
	At                         time.Time
	By, Decision, Rule, CallID string
}

// CallRef points from a session to a call.
type CallRef struct{ CallID, Action, Status string }
