package sessions

import (
	"errors"
	"maps"
	"time"

	"chatelaine/internal/fault"
)

// Keys come from the vault's data key, 32 bytes each: Index for keyed digests,
// Wrap for what is sealed. Unlock copies them.
type Keys struct{ Index, Wrap []byte }

// Caller is who is at the other end of a connection, as far as it is known.
type Caller struct {
	UID      uint32
	Listener string // "socket" or "tcp"
	PID      int    // 0 where unknown
	Exe      string // "" where unknown; for the card only, never authority
}

// Pending is the answer to a request for a session. Token is told this once.
type Pending struct {
	ID, Token, PairingCode string
	Expires                time.Time
}

// Session is a copy of what the daemon knows of one session. The zero value is
// no session.
type Session struct {
	ID, Name, Anchor, State     string
	UID                         uint32
	Listener, Exe               string
	PID                         int
	PairingCode                 string
	Opened, Authorised, Expires time.Time // Expires: of the request, then of the session
	Ended                       time.Time
	AuthorisedBy, EndedBy       string
	Reason                      string // why it ended, in our words
	Conflict                    bool   // pending, while another session holds the name
	Pins                        map[string]string
}

// pendingRetry is how soon an agent may ask again whether the operator decided.
const pendingRetry = 5 * time.Second

// RequireAuthorised returns nil for an authorised session, else the refusal:
// SESSION_REQUIRED, SESSION_PENDING or SESSION_REVOKED.
func (s Session) RequireAuthorised() error {
	switch s.State {
	case StateAuthorised:
		return nil
	case StatePending:
		return fault.New(fault.SessionPending, nil).After(pendingRetry)
	case "":
		return fault.New(fault.SessionRequired, nil)
	}
	return fault.Newf(fault.SessionRevoked, "the session is %s: %s", s.State, s.Reason)
}

func (s Session) clone() Session {
	s.Pins = maps.Clone(s.Pins)
	return s
}

// Errors of the operator's side.
var (
	// ErrNotFound says that no session of that id is kept.
	ErrNotFound = errors.New("no such session")
	// ErrDecided says that the session was authorised before.
	ErrDecided = errors.New("the session is authorised already")
	// ErrEnded says that the session ended, was revoked or has lapsed.
	ErrEnded = errors.New("the session has ended; the agent must ask for a new one")
	// ErrNameTaken says that the name belongs to another user.
	ErrNameTaken = errors.New("the name belongs to the user it was first authorised for")
)
