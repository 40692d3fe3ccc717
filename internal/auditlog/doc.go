// Package auditlog keeps the one record: it seals every event to two or more
// recipients, chains the ciphertexts, writes them durably, verifies them
// without a key and opens them with one recipient's key. docs/audit-format.md
// gives the bytes.
//
// It must never need a key that reads the past in order to append, never
// repair damage by guessing, never acknowledge what is not on disk, and never
// claim more than an intact chain proves. The gateway, the operator's API and
// the programs may import it.
package auditlog
