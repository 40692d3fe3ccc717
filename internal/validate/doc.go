// Package validate is the answer boundary: hostile bytes go in, a proved answer
// comes out. It parses JSON strictly, checks schemas with two engines that must
// both accept, chooses exactly one declared outcome, picks the few declared
// facts, checks them and builds a new closed object.
//
// It must never repair an answer, never open a socket or a file, never hand out
// a part of an answer before every step has passed, and never put an upstream
// byte into an error. It may import internal/fault and internal/secret, nothing
// else of ours. internal/actions, internal/gateway and internal/contracttest
// may import it.
package validate
