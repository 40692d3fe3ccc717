// Package actions knows contracts and the operator's site file: it reads them
// strictly, resolves what one call means (which target, which identity, which
// exact request) and freezes it into a plan with a digest. It is the only
// package that knows YAML. It must never open a connection, hold a secret, read
// an answer by itself or let a caller's value choose where a request goes.
// executor, approvals, gateway and contracttest import it, and the programs
// that check contracts; it imports fault and validate.
package actions
