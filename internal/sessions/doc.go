// Package sessions knows who calls: which agent run asked for a session, which
// the operator authorised, which have ended, and what each one may do without a
// further question. It must never decide about a single call and never keep a
// token. The gateway, the operator's listener and cmd/chatelained may import it.
//
// Crash story. Pending sessions live in memory only. An authorised session is
// on the disk, sealed, with a keyed digest of its token; after a restart the
// digest serves to answer SESSION_REVOKED, since a process that the daemon does
// not watch any more is not the one that was authorised.
package sessions
