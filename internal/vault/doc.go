// Package vault keeps the credentials of identities sealed and applies them to
// outbound requests. It never hands one out: a Lease writes the credential into
// a header after it has compared the identity's binding with the connection
// that was really made.
//
// It must never print, log, return or quote a secret, never attach one to a
// connection that its binding does not name, and never open with contents that
// it did not write. Only cmd/chatelained may import it; the gateway and the
// operator's interface see it through interfaces of their own, and the command
// line program never links it. The file format is in docs/vault.md.
package vault
