package gateway

import (
	"context"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/secret"
)

// Vault is what the straight line needs of the vault: whether it is open, which
// generation of an identity is current, and a lease that applies the secret. It
// never yields a secret. cmd/chatelained joins it to internal/vault.
type Vault interface {
	// Open returns nil while the vault is open, VAULT_LOCKED otherwise.
	Open() error
	// Generation returns the current generation of a stored identity. It fails
	// with VAULT_LOCKED or IDENTITY_UNAVAILABLE.
	Generation(ctx context.Context, identity string) (uint64, error)
	// Bound says whether the target is the destination that the identity's
	// secret is stored for. It fails with TARGET_NOT_ALLOWED.
	Bound(identity string, t *actions.Target) error
	// Lease takes the identity for one call. Close ends it.
	Lease(ctx context.Context, identity string) (Lease, error)
	// Suspect counts an answer that echoed the identity's secret.
	Suspect(identity string)
}

// Lease applies one identity to one call and searches what came back for it.
type Lease interface {
	executor.Credential
	Generation() uint64
	Scan(b []byte) []secret.Hit
	Close()
}
