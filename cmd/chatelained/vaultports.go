package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"
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

// Bound asks the binding itself, with the connection that the target would make.
func (p linePort) Bound(name string, t *actions.Target) error {
	for _, info := range p.v.List() {
		if info.Name == name {
			return info.Binding.Fits(vault.Made{
				Scheme: t.Scheme(), Host: t.Host(), Port: t.Port(), BasePath: t.BasePath(), CADigest: t.CADigest(), Pins: t.Pins(),
			})
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
		AutoLock: s.AutoLock, Unattended: viewSlots(s.Unattended)}
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

// Identities joins what the site file names with what the vault stores.
func (p operatorPort) Identities() ([]operatorapi.IdentityView, error) {
	if err := p.d.vault.CheckOpen(); err != nil {
		return nil, err
	}
	set := p.d.gateway.Set()
	views := map[string]operatorapi.IdentityView{}
	for _, id := range set.Identities() {
		v := operatorapi.IdentityView{Name: id.Name(), Kind: id.Kind(), Targets: []string{}}
		for _, t := range targetsOf(set, id.Name()) {
			v.Targets = append(v.Targets, t.Name())
		}
		views[id.Name()] = v
	}
	for _, info := range p.d.vault.List() {
		v, named := views[info.Name]
		if !named {
			v = operatorapi.IdentityView{Name: info.Name, Kind: info.Binding.Kind, Targets: []string{}}
		}
		v.Stored, v.Generation, v.Suspended = true, info.Generation, info.Suspended
		v.Destination = destination(info.Binding)
		views[info.Name] = v
	}
	out := make([]operatorapi.IdentityView, 0, len(views))
	for _, v := range views {
		out = append(out, v)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Check compares what is stored with every target that uses the identity now.
func (p operatorPort) Check(name string) (operatorapi.IdentityCheck, error) {
	if err := p.d.vault.CheckOpen(); err != nil {
		return operatorapi.IdentityCheck{}, err
	}
	set := p.d.gateway.Set()
	id, ok := set.Identity(name)
	if !ok {
		return operatorapi.IdentityCheck{}, refuseInput("/name", "identity %s is not in targets.yaml", strconv.QuoteToASCII(name))
	}
	out := operatorapi.IdentityCheck{Name: name, Stored: id.Kind() == vault.KindNone, Targets: []operatorapi.TargetCheck{}}
	for _, info := range p.d.vault.List() {
		if info.Name == name {
			out.Stored, out.Suspended = true, info.Suspended
		}
	}
	out.Usable = out.Stored && !out.Suspended
	for _, t := range targetsOf(set, name) {
		c := operatorapi.TargetCheck{Target: t.Name(), Bound: out.Stored}
		if err := (linePort{p.d.vault}).Bound(name, t); err != nil {
			c.Bound, c.Detail = false, err.Error()
		}
		out.Usable = out.Usable && c.Bound
		out.Targets = append(out.Targets, c)
	}
	return out, nil
}

func targetsOf(set *actions.Set, identity string) []*actions.Target {
	var out []*actions.Target
	for _, t := range set.Targets() {
		if t.Identity() == identity {
			out = append(out, t)
		}
	}
	return out
}

// Bind is the one destination that the site file has now for the identity.
func (p operatorPort) Bind(name, target string) (operatorapi.Bound, error) {
	b, err := bindingFor(p.d.gateway.Set(), name, target)
	if err != nil {
		return nil, err
	}
	return boundPort{p.d.vault, name, b}, nil
}

func (p operatorPort) Delete(ctx context.Context, name string) error {
	return missing(p.d.vault.Delete(ctx, name))
}

// boundPort writes one binding of one identity, the one that a person proved.
type boundPort struct {
	v       *vault.Vault
	name    string
	binding vault.Binding
}

func (p boundPort) Destination() string { return destination(p.binding) }

// Digest covers every member of the binding, also what the destination's text
// does not show.
func (p boundPort) Digest() [32]byte {
	b, err := json.Marshal(p.binding)
	if err != nil {
		panic("chatelained: a binding has no JSON form: " + err.Error()) // text, a number and a list of text: it has
	}
	return sha256.Sum256(append([]byte("chatelaine/v1 proposed binding\x00"), b...))
}

func (p boundPort) Put(ctx context.Context, b []byte, short bool) (operatorapi.Stored, error) {
	s := secret.New(b)
	defer s.Wipe()
	gen, err := p.v.Put(ctx, p.name, p.binding, s, short)
	if err != nil {
		return operatorapi.Stored{}, unstorable(err)
	}
	return operatorapi.Stored{Name: p.name, Generation: gen, Destination: p.Destination()}, nil
}

func (p boundPort) Rebind(ctx context.Context) (operatorapi.Stored, error) {
	if err := p.v.Rebind(ctx, p.name, p.binding); err != nil {
		return operatorapi.Stored{}, missing(unstorable(err))
	}
	stored := operatorapi.Stored{Name: p.name, Destination: p.Destination()}
	for _, info := range p.v.List() { // also a suspended one has a generation
		if info.Name == p.name {
			stored.Generation = info.Generation
		}
	}
	return stored, nil
}

// unstorable turns what is wrong with a secret or a keychain into an error that
// says so; the vault's errors never quote the secret.
func unstorable(err error) error {
	switch {
	case errors.Is(err, vault.ErrBadIdentity), errors.Is(err, vault.ErrTooLarge):
		return fault.Invalid(err, fault.Field{Pointer: "/secret", Reason: err.Error()})
	case errors.Is(err, vault.ErrKeychainLocked), errors.Is(err, vault.ErrKeychainUnavailable), errors.Is(err, vault.ErrKeychainAbsent):
		return fault.New(fault.IdentityUnavailable, err)
	}
	return err
}

// missing turns the vault's word for an unknown identity into NOT_FOUND.
func missing(err error) error {
	if errors.Is(err, vault.ErrNoIdentity) {
		return fault.New(fault.NotFound, err)
	}
	return err
}

// bindingFor is the one destination that an identity's secret may ever go to,
// as the site file names it now.
func bindingFor(set *actions.Set, name, target string) (vault.Binding, error) {
	id, ok := set.Identity(name)
	if !ok {
		return vault.Binding{}, refuseInput("/name", "identity %s is not in targets.yaml; write it there first, then `chatelaine reload`", strconv.QuoteToASCII(name))
	}
	if id.Kind() == vault.KindNone {
		return vault.Binding{}, refuseInput("/name", "identity %s is of kind none and takes no secret", name)
	}
	t, err := oneTarget(targetsOf(set, name), name, target)
	if err != nil {
		return vault.Binding{}, err
	}
	b := vault.Binding{
		Kind: id.Kind(), Scheme: t.Scheme(), Host: t.Host(), Port: t.Port(), BasePath: t.BasePath(),
		CADigest: t.CADigest(), Pins: t.Pins(),
	}
	switch id.Kind() {
	case vault.KindHeader:
		b.Header, b.Prefix = id.HeaderName(), id.Prefix()
	case vault.KindBasic:
		b.Username = id.Username()
	}
	return b, nil
}

func oneTarget(all []*actions.Target, name, target string) (*actions.Target, error) {
	names := make([]string, 0, len(all))
	for _, t := range all {
		if t.Name() == target {
			return t, nil
		}
		names = append(names, t.Name())
	}
	switch {
	case target != "":
		return nil, refuseInput("/target", "target %s does not use identity %s; these do: %s", strconv.QuoteToASCII(target), name, strings.Join(names, ", "))
	case len(all) == 0:
		return nil, refuseInput("/name", "no target in targets.yaml uses identity %s, so there is nowhere to bind it to", name)
	case len(all) > 1:
		return nil, refuseInput("/target", "several targets use identity %s; name the one it is for: %s", name, strings.Join(names, ", "))
	}
	return all[0], nil
}

func refuseInput(pointer, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	return fault.Invalid(cause, fault.Field{Pointer: pointer, Reason: cause.Error()})
}

func destination(b vault.Binding) string {
	return b.Scheme + "://" + net.JoinHostPort(b.Host, strconv.Itoa(b.Port)) + b.BasePath
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
