package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// linePort shows the gateway what it needs of the vault.
type linePort struct{ v *vault.Vault }

func (p linePort) Open() error { return p.v.CheckOpen() }

func (p linePort) Generation(ctx context.Context, name string) (uint64, error) {
	return p.v.Generation(ctx, name)
}

// Bound asks the binding itself about all that the site file says of identity and
// target: the kind and its constants, the place of an exchange, and the connection
// that the target would make.
func (p linePort) Bound(id *actions.IdentitySpec, t *actions.Target) error {
	for _, info := range p.v.List() {
		if info.Name == id.Name() {
			return info.Binding.FitsSite(siteBinding(id, t))
		}
	}
	return nil // not stored, or locked: another step says so
}

func (p linePort) Suspect(name string) { p.v.Suspect(name) }

func (p linePort) Lease(ctx context.Context, name string) (gateway.Lease, error) {
	l, err := p.v.Lease(ctx, name)
	if err != nil {
		return nil, err
	}
	return leasePort{l}, nil
}

// leasePort hands the executor's connection to the vault, which compares it
// with what the secret is bound to.
type leasePort struct{ l *vault.Lease }

func (p leasePort) Generation() uint64         { return p.l.Generation() }
func (p leasePort) Scan(b []byte) []secret.Hit { return p.l.Scan(b) }
func (p leasePort) Close()                     { p.l.Close() }

func (p leasePort) Attach(out executor.Outgoing, c executor.Connection) error {
	return p.l.Attach(out, madeBy(c))
}

func (p leasePort) ClientCertificate(c executor.Connection) (*tls.Certificate, error) {
	return p.l.ClientCertificate(madeBy(c))
}

// madeBy is the executor's connection in the vault's words.
func madeBy(c executor.Connection) vault.Made {
	return vault.Made{
		Scheme: c.Scheme, Host: c.Host, Port: c.Port, BasePath: c.BasePath,
		CADigest: c.CADigest, Pins: c.Pins, PeerSPKI: c.PeerSPKI,
	}
}

// operatorPort shows the operator listener the vault's switches and its
// write-only side.
type operatorPort struct{ d *daemon }

func (p operatorPort) State() operatorapi.VaultState {
	s := p.d.vault.State()
	return operatorapi.VaultState{State: s.State, Reason: s.Reason, Since: s.Since.UTC(), Backend: s.Backend, Rollback: s.Rollback, Identities: s.Identities,
		AutoLock: s.AutoLock, Unattended: viewSlots(s.Unattended), Sources: p.Sources()}
}

func (p operatorPort) Unlock(ctx context.Context, pass []byte) error {
	s := secret.New(pass)
	clear(pass)
	defer s.Wipe()
	return refusal(p.d.unlock(ctx, s))
}

func (p operatorPort) Lock(reason string) { p.d.vault.Lock(reason) }

func (p operatorPort) ProofParams() (operatorapi.ProofParams, error) {
	pp, err := p.d.vault.ProofParams()
	if err != nil {
		return operatorapi.ProofParams{}, err
	}
	return operatorapi.ProofParams{Salt: pp.Salt, Time: pp.Time, MemoryKiB: pp.MemoryKiB, Threads: pp.Threads}, nil
}

func refuseInput(pointer, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	return fault.Invalid(cause, fault.Field{Pointer: pointer, Reason: cause.Error()})
}

// refused and tooSoon carry the vault's answers to the operator listener in the
// shapes it declares.
type refused struct{ error }

func (refused) ProofRefused() bool { return true }
func (r refused) Unwrap() error    { return r.error }

type tooSoon struct {
	error
	wait time.Duration
}

func (t tooSoon) Wait() time.Duration { return t.wait }
func (t tooSoon) Unwrap() error       { return t.error }

// unusable marks a vault that no passphrase opens.
type unusable struct{ error }

func (unusable) VaultUnusable() bool { return true }
func (u unusable) Unwrap() error     { return u.error }

func refusal(err error) error {
	var pe *vault.ProofError
	for _, bad := range []error{vault.ErrAbsent, vault.ErrNotPrivate, vault.ErrDamaged, vault.ErrChanged, vault.ErrRolledBack} {
		if errors.Is(err, bad) {
			return unusable{err}
		}
	}
	switch {
	case errors.As(err, &pe):
		return tooSoon{err, pe.RetryAfter}
	case errors.Is(err, vault.ErrWrongPassphrase), errors.Is(err, vault.ErrProofRefused):
		return refused{err}
	}
	return err
}
