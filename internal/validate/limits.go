package validate

// Limits bound what Parse accepts. Every field must be positive; the zero value
// accepts nothing.
type Limits struct {
	Bytes        int // the whole document
	Depth        int // arrays and objects inside one another
	Nodes        int // values: scalars, arrays and objects
	StringBytes  int // one string after unescaping
	NameBytes    int // one member name after unescaping
	NumberDigits int // significant digits of one number
	Exponent     int // the exponent as written, and that of the value in scientific form
}

const (
	answerBytes = 1 << 20 // an answer of one step; larger ones are downloads, not facts
	callerBytes = 64 << 10
	answerNodes = 50_000 // what two engines check in well under a second
	callerNodes = 10_000
	answerDepth = 64 // Kubernetes objects reach about 20
	callerDepth = 32

	// capturedBytes bounds the canonical form of all that one answer gives to later
	// steps. These are ids, revisions and short texts; the plan and the ledger keep
	// them until the call is forgotten, also those that are never sent. It is as much
	// as a caller may send.
	capturedBytes = 64 << 10

	// nameBytes is twice the longest Kubernetes label key and longer than any
	// member name of the services that contracts were cut from.
	nameBytes = 1024

	// Both engines use big rationals. 64 digits and exponents keep their
	// arithmetic cheap and are far beyond 64-bit integers and money.
	numberDigits   = 64
	numberExponent = 64
)

// AnswerLimits are the limits for an upstream answer.
func AnswerLimits() Limits {
	return Limits{
		Bytes: answerBytes, Depth: answerDepth, Nodes: answerNodes,
		StringBytes: answerBytes, NameBytes: nameBytes,
		NumberDigits: numberDigits, Exponent: numberExponent,
	}
}

// CallerLimits are the limits for a body on a local listener.
func CallerLimits() Limits {
	return Limits{
		Bytes: callerBytes, Depth: callerDepth, Nodes: callerNodes,
		StringBytes: callerBytes, NameBytes: nameBytes,
		NumberDigits: numberDigits, Exponent: numberExponent,
	}
}
