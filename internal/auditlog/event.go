package auditlog

import "time"

// The kinds of event. The set is closed: Append refuses any other.
const (
	TypeSessionOpen  = "session.open"
	TypeSessionClose = "session.close"
	TypeIntent       = "intent"  // something is about to be sent
	TypeAnswer       = "answer"  // the raw bytes that came, in Body
	TypeOutcome      = "outcome" // how the call ended
	TypeDeny         = "deny"    // a refusal; nothing was sent
	TypeConfig       = "config"
	TypeLock         = "lock"
	TypeHeartbeat    = "heartbeat"
	TypeReconcile    = "reconcile" // an unresolved intent was ended
)

// Event is one entry of the record, in clear. It is sealed whole; nothing of
// it but its length and its place is visible without a key.
type Event struct {
	// Seq is the sequence number that the record gave the event. It is filled
	// in what Recent and Read return and ignored by Append.
	Seq uint64

	EventID   string // "evt_" and 26 characters; made by Append when empty
	Type      string // one of the Type constants
	SessionID string
	CallID    string // the request id of the call
	IntentSeq uint64 // on answer, outcome and reconcile: the intent they belong to

	Wall   time.Time // wall clock; set by Append when zero
	BootID string    // the boot during which Mono counts; set by Append when empty
	Mono   int64     // nanoseconds on the boot clock; set by Append when zero

	Actor    string // who asked or decided, as shown on the card
	Target   string
	Action   string
	Decision string
	Rule     string
	Status   string
	// Detail holds JSON values: normalised input, provenance, digests. It is
	// not changed after Append, since the ring keeps it.
	Detail map[string]any

	// Body is a raw answer. In this release it travels inside the sealed
	// record. A later one may keep it in monthly files and put its digest in
	// the record instead; flags bit 1 of the frame is reserved for that.
	Body []byte
}
