// Package compare says what changed between two editions of contracts and of
// the site file: for the agent, for the operator and for the upstream, which
// version bump the changes need, and which of them loosen an authority.
//
// It is closed by default: a difference that it cannot place is called changed,
// counts as breaking for everybody, and as a loosening. It must never read a
// file, start a program or decide that a change is allowed; it compares texts
// that somebody else has read. cmd/chatelaine may import it; it imports
// internal/actions, its reader of YAML, review and validate.
package compare
