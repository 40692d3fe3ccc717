package gateway

import (
	"context"
	"net/http"

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
	// Bound says whether all that the site file says of the identity and the
	// target is what the identity's secret is stored for. It fails with
	// TARGET_NOT_ALLOWED.
	Bound(id *actions.IdentitySpec, t *actions.Target) error
	// Lease takes the identity for one call. Close ends it.
	Lease(ctx context.Context, identity string) (Lease, error)
	// Suspect counts an answer that echoed the identity's secret.
	Suspect(identity string)
	// Refresh renews the tokens that are in use and whose end is near, each by one
	// exchange, and returns when that is done.
	Refresh(ctx context.Context, x Exchange)
}

// Lease applies one identity to one call and searches what came back for it. It
// yields neither a secret nor a token.
type Lease interface {
	executor.CertificateCredential
	// Ready returns once the identity can be attached: at once, unless its secret is
	// exchanged for a token and no good one is there. Then x is asked, once for all
	// who wait. Nothing of a call is sent before. It fails with the coded end of the
	// exchange.
	Ready(ctx context.Context, n actions.Narrow, x Exchange) error
	// Rejected says that the target refused the token that was attached: the next
	// call gets another. It does nothing where none was.
	Rejected()
	Scan(b []byte) []secret.Hit
	Close()
}

// Exchange makes one request of an exchange, recorded before and after, and hands a
// whole answer to read, once. The error of read becomes its own. It fails with
// VAULT_LOCKED, OVERLOADED while the daemon stops, and AUDIT_UNAVAILABLE, and has
// sent nothing then.
type Exchange func(ctx context.Context, s TokenSend, c TokenCredential, read func(TokenAnswer) error) error

// The steps of an exchange in the record.
const (
	StepToken     = "token"     // the secret goes out, a token comes back
	StepChallenge = "challenge" // a registry is asked what its token must say; no secret goes out
)

// TokenSend is one request of an exchange as the vault wants it.
type TokenSend struct {
	Identity   string
	Generation uint64
	Step       string // StepToken or StepChallenge
	// At is the place that the vault means. It is sent to the one of the site file,
	// and only if that is the same.
	At Place
	// Request is the rest of it; its To is not read.
	Request executor.TokenRequest
}

// Place is a destination by its names.
type Place struct {
	Scheme, Host string
	Port         int
	Path         string
	CADigest     string
}

// TokenCredential is the secret on its way to where it is exchanged.
type TokenCredential interface {
	executor.Credential
	// Scan looks for what was sent in an answer.
	Scan(b []byte) []secret.Hit
}

// TokenAnswer is what came. Of a success it is itself a credential.
type TokenAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}
