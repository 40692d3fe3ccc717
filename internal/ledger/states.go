package ledger

import "fmt"

// State is where a call stands.
type State uint8

// The states of a call. The zero value is a call that is not there.
const (
	Forgotten State = iota
	Claimed
	Looking
	Waiting
	StateArmed
	Sent
	Proving
	Polling     // the request was accepted; its end is asked for
	Reconciling // it may have happened; whether it took effect is looked at
	Finished
	StateUnresolved
	StateRearmed
)

var stateNames = [...]string{"forgotten", "claimed", "looking", "waiting", "armed", "sent", "proving", "polling", "reconciling", "finished", "unresolved", "rearmed"}

// String returns the name that the operator's listener uses.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Event is what happens to a call.
type Event uint8

// The events. EventCrash is the loss of the process.
const (
	EventClaim Event = iota
	EventLook
	EventWait
	EventArm
	EventSend
	EventProve
	EventPoll
	EventReconcile
	EventFinish
	EventDoubt
	EventRearm
	EventRelease
	EventCancel
	EventCrash
	EventResolve
	EventFree // a person found that it did not happen
)

// table is the whole machine: what is not in it does not happen. A release and
// a crash lead a call that was re-armed before back to StateRearmed instead of
// Forgotten. From StateUnresolved only what an earlier run left behind is polled
// or reconciled again (Resume); a call that ended unresolved stays so until a
// person resolves it.
var table = map[State]map[Event]State{
	Forgotten:       {EventClaim: Claimed},
	Claimed:         {EventLook: Looking, EventWait: Waiting, EventArm: StateArmed, EventFinish: Finished, EventRelease: Forgotten, EventCancel: Finished, EventCrash: Forgotten},
	Looking:         {EventWait: Waiting, EventArm: StateArmed, EventFinish: Finished, EventRearm: StateRearmed, EventRelease: Forgotten, EventCancel: Finished, EventCrash: Forgotten},
	Waiting:         {EventArm: StateArmed, EventFinish: Finished, EventRelease: Forgotten, EventCancel: Finished, EventCrash: Forgotten},
	StateArmed:      {EventArm: StateArmed, EventSend: Sent, EventPoll: Polling, EventReconcile: Reconciling, EventFinish: Finished, EventDoubt: StateUnresolved, EventRearm: StateRearmed, EventRelease: Forgotten, EventCrash: StateUnresolved},
	Sent:            {EventArm: StateArmed, EventProve: Proving, EventPoll: Polling, EventReconcile: Reconciling, EventFinish: Finished, EventDoubt: StateUnresolved, EventRearm: StateRearmed, EventCrash: StateUnresolved},
	Proving:         {EventArm: StateArmed, EventPoll: Polling, EventReconcile: Reconciling, EventFinish: Finished, EventDoubt: StateUnresolved, EventRearm: StateRearmed, EventCrash: StateUnresolved},
	Polling:         {EventReconcile: Reconciling, EventFinish: Finished, EventDoubt: StateUnresolved, EventRearm: StateRearmed, EventCrash: StateUnresolved},
	Reconciling:     {EventFinish: Finished, EventDoubt: StateUnresolved, EventRearm: StateRearmed, EventResolve: Finished, EventFree: StateRearmed, EventCrash: StateUnresolved},
	Finished:        {EventCrash: Finished},
	StateUnresolved: {EventResolve: Finished, EventFree: StateRearmed, EventPoll: Polling, EventReconcile: Reconciling, EventCrash: StateUnresolved},
	StateRearmed:    {EventClaim: Claimed, EventCrash: StateRearmed},
}

// next returns where e leads from s.
func next(s State, e Event) (State, error) {
	to, ok := table[s][e]
	if !ok {
		return s, fmt.Errorf("%w: %s", ErrTransition, s)
	}
	return to, nil
}

// steps are the events that SetState may cause: those that write nothing.
var steps = map[State]Event{Looking: EventLook, Waiting: EventWait, Sent: EventSend, Proving: EventProve, Reconciling: EventReconcile}

// unsent says whether nothing of the call is on the disk for this attempt yet.
func (s State) unsent() bool { return s == Claimed || s == Looking || s == Waiting }

// live says whether the call still goes on in this run.
func (s State) live() bool { return s.unsent() || (s >= StateArmed && s <= Reconciling) }
