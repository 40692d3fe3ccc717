// Package ledger is the daemon's own memory of every call by its request id:
// claimed, armed, finished, replayed. It is what keeps one call from becoming
// two sends. It must never send, never decide about authority and never keep a
// word of a call in clear on the disk. The gateway, the operator's listener and
// cmd/chatelained may import it.
//
// Crash story. claimed, looking and waiting live in memory only: nothing was
// sent, and the same id starts again. Arm is on the disk before the send and
// Finish before the answer. An armed entry without a finish is unresolved at
// the next start, since it cannot be told from one that was sent. So is a
// finished one whose outcome the record lost (SetRecordFloor).
package ledger
