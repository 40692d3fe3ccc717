package auditlog

import "errors"

// The reasons for which the record refuses. The agent's side sees all of them
// as AUDIT_UNAVAILABLE.
var (
	// ErrAbsent: the folder has no record. Nothing makes one silently.
	ErrAbsent = errors.New("auditlog: there is no record here; create one with chatelained init, or point to the right state folder")
	// ErrExists: Create found a record.
	ErrExists = errors.New("auditlog: there is a record here already")
	// ErrDamaged: bytes that were durable once do not hold any more.
	ErrDamaged = errors.New("auditlog: the record is damaged; nothing is appended to it")
	// ErrLocked: another process has the record open for writing.
	ErrLocked = errors.New("auditlog: another process writes this record")
	// ErrSigner: neither signing key belongs to the end of the record.
	ErrSigner = errors.New("auditlog: the signing key is not the one that the end of the record names")
	// ErrFull: no room is left that is not promised to calls already sent.
	ErrFull = errors.New("auditlog: no room on the disk for this record; free some space")
	// ErrTooLarge: the events do not fit into one segment or one epoch.
	ErrTooLarge = errors.New("auditlog: larger than one segment of the record can hold")
	// ErrLatched: a write or sync failed once; only a restart continues.
	ErrLatched = errors.New("auditlog: writing failed and stopped for good; restart the daemon")
	// ErrDeadline: the disk did not answer in time. The record may still be
	// written later.
	ErrDeadline = errors.New("auditlog: the disk did not answer in time")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("auditlog: the record is closed")

	errAltered = errors.New("the segment was altered by someone else")
)
