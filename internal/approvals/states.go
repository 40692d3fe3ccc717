package approvals

import "fmt"

// The states of a card.
const (
	StateOpen      = "open"
	StateApproved  = "approved"
	StateDenied    = "denied"
	StateExpired   = "expired"
	StateWithdrawn = "withdrawn"
	StateSpent     = "spent"
)

// Event is what happens to a card.
type Event uint8

// The events. EventLapse is the end of the time between approval and arming.
const (
	EventApprove Event = iota
	EventDeny
	EventExpire
	EventWithdraw
	EventSpend
	EventLapse
)

// table is the whole machine: what is not in it does not happen. A denial still
// wins over an approval that is not spent.
var table = map[string]map[Event]string{
	StateOpen:     {EventApprove: StateApproved, EventDeny: StateDenied, EventExpire: StateExpired, EventWithdraw: StateWithdrawn},
	StateApproved: {EventDeny: StateDenied, EventWithdraw: StateWithdrawn, EventSpend: StateSpent, EventLapse: StateWithdrawn},
}

// next returns where e leads from state.
func next(state string, e Event) (string, error) {
	to, ok := table[state][e]
	if !ok {
		return state, fmt.Errorf("%w: it is %s", ErrDecided, state)
	}
	return to, nil
}
