package vault

import (
	"context"
	"fmt"
	"sync/atomic"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// trialGeneration is set in the generation of every trial: no stored identity
// has so high a one, so that nothing that is kept for a generation, such as a
// connection or a token, is shared with it.
const trialGeneration = 1 << 63

var trials atomic.Uint64

// Trial makes a lease of a stored identity's binding and another secret, to
// prove that secret before it takes the place of the old. It is written nowhere.
// Each trial has a generation of its own. It fails with VAULT_LOCKED,
// IDENTITY_UNAVAILABLE where there is no such identity, or ErrBadIdentity where
// the secret could not be put. The caller closes it.
func (v *Vault) Trial(ctx context.Context, name string, s secret.Secret, short bool) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o, err := v.current()
	if err != nil {
		return nil, err
	}
	it, ok := o.contents.items[name]
	if !ok {
		return nil, fault.Newf(fault.IdentityUnavailable, "identity %q is not in the vault; put its secret", name)
	}
	it.short, it.source = short, ""
	if err := it.check(s); err != nil {
		return nil, err
	}
	it.generation = trialGeneration | trials.Add(1)
	var own secret.Secret
	s.Use(func(b []byte) { own = secret.New(b) })
	l, err := v.take(it, own)
	if err != nil {
		return nil, fmt.Errorf("trial of %s: %w", name, err)
	}
	l.trial = true
	return l, nil
}
