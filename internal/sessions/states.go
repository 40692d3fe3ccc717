package sessions

import "fmt"

// The states of a session.
const (
	StatePending    = "pending"
	StateAuthorised = "authorised"
	StateEnded      = "ended"
	StateRevoked    = "revoked"
	StateExpired    = "expired"
)

// Event is what happens to a session.
type Event uint8

// The events. EventReplace is the authorising of another session of the name;
// EventRestart is the loss of the process.
const (
	EventAuthorise Event = iota
	EventEnd
	EventReplace
	EventRevoke
	EventLapse
	EventRestart
)

// table is the whole machine: what is not in it does not happen. A session that
// was only pending is not known after a restart.
var table = map[string]map[Event]string{
	StatePending:    {EventAuthorise: StateAuthorised, EventEnd: StateEnded, EventRevoke: StateRevoked, EventLapse: StateExpired, EventRestart: ""},
	StateAuthorised: {EventEnd: StateEnded, EventReplace: StateEnded, EventRevoke: StateRevoked, EventLapse: StateExpired, EventRestart: StateRevoked},
	StateEnded:      {EventRestart: StateRevoked},
	StateRevoked:    {EventRestart: StateRevoked},
	StateExpired:    {EventRestart: StateRevoked},
}

// next returns where e leads from state.
func next(state string, e Event) (string, error) {
	to, ok := table[state][e]
	switch {
	case ok:
		return to, nil
	case state == StateAuthorised:
		return state, ErrDecided
	case state == "":
		return state, ErrNotFound
	}
	return state, fmt.Errorf("%w (%s)", ErrEnded, state)
}
