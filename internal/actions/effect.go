package actions

// Effect says what a contract may do to the remote system. The zero value is
// none of them.
type Effect uint8

// The effects, from the least to the most.
const (
	Read Effect = iota + 1
	Change
	Destroy
)

var effectNames = map[string]Effect{"read": Read, "change": Change, "destroy": Destroy}

// String gives the word of the contract format.
func (e Effect) String() string {
	for name, v := range effectNames {
		if v == e {
			return name
		}
	}
	return "no effect"
}

// Ask says when a person is asked. The zero value asks every time that the
// effect allows: it never weakens another one.
type Ask uint8

// The ways of asking, from the weakest to the strictest.
const (
	AskNever Ask = iota + 1
	AskSession
	AskEveryCall
)

var askNames = map[string]Ask{"session": AskSession, "every_call": AskEveryCall}

// String gives the word of the contract format; "never" is what a read has
// where nobody wrote anything.
func (a Ask) String() string {
	switch a {
	case AskNever:
		return "never"
	case AskSession:
		return "session"
	case AskEveryCall:
		return "every_call"
	}
	return "unset"
}

// Stricter returns the stricter of two; an unset one gives way to the other.
func Stricter(a, b Ask) Ask {
	return max(a, b)
}
