// Package durable writes small files so that a crash leaves either the old
// content or the new, and takes the one lock of a state folder. It must never
// hold a secret longer than a call and never decide what a file means. The
// state packages (vault, auditlog, sessions, ledger, approvals) and the
// programs may import it; it imports nothing of ours.
package durable
