package gateway

import (
	"context"
	"crypto/tls"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/ledger"
	"chatelaine/internal/secret"
	"chatelaine/internal/sessions"
)

// noLease is the lease of an identity of kind none: nothing is attached, and
// there is nothing to search for.
type noLease struct{}

func (noLease) Attach(executor.Outgoing, executor.Connection) error             { return nil }
func (noLease) ClientCertificate(executor.Connection) (*tls.Certificate, error) { return nil, nil }
func (noLease) Ready(context.Context, actions.Narrow, Exchange) error           { return nil }
func (noLease) Rejected()                                                       {}
func (noLease) Generation() uint64                                              { return 0 }
func (noLease) Scan([]byte) []secret.Hit                                        { return nil }
func (noLease) Close()                                                          {}

func ownerOf(s sessions.Session) ledger.Owner {
	return ledger.Owner{Agent: s.Name, UID: s.UID}
}
