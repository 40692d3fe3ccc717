// Package client speaks to a running chatelaine daemon: as an agent over its
// agent listener and as an operator over its operator socket. It holds the wire
// structs, the strict reading of replies, the places of sockets and tokens, and
// the proof that an operator gives.
//
// It must never link the vault, keep a secret longer than the request that
// carries it, or send a byte to a socket whose owner it was not told to trust.
// Programs on the near side of the wall import it: cmd/chatelaine, the demo,
// tests. It imports only fault.
package client
