// Package approvals holds the cards that a person decides: one decision about
// one digest, once, with a proof that the agent cannot make. It must never
// send, never judge a contract and never hold a passphrase. The gateway, the
// operator's listener and cmd/chatelained may import it.
//
// Crash story. Cards and challenges live in memory only: after a crash nothing
// was sent and nothing is approved, and the same request id asks again.
package approvals
