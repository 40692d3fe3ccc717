package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// Bind is the one destination that the site file has now for the identity.
func (p operatorPort) Bind(name, target string) (operatorapi.Bound, error) {
	b, err := bindingFor(p.d.gateway.Set(), name, target)
	if err != nil {
		return nil, err
	}
	return boundPort{p.d, name, b}, nil
}

// boundPort writes one binding of one identity, the one that a person proved.
type boundPort struct {
	d       *daemon
	name    string
	binding vault.Binding
}

// Destination is where the binding lets the secret go, and what comes of it. A
// person who proves a put reads both places.
func (p boundPort) Destination() string {
	text := destination(p.binding)
	if t := p.binding.Token; t != nil {
		text += ", the secret itself only to " + placeText(*t)
	}
	return text
}

// Digest covers every member of the binding, also what the destination's text
// does not show.
func (p boundPort) Digest() [32]byte {
	b, err := json.Marshal(p.binding)
	if err != nil {
		panic("chatelained: a binding has no JSON form: " + err.Error()) // text, a number and lists of text: it has
	}
	return sha256.Sum256(append([]byte("chatelaine/v1 proposed binding\x00"), b...))
}

func (p boundPort) Put(ctx context.Context, b []byte, o operatorapi.PutOptions) (operatorapi.Stored, error) {
	s := newSecret(b, o)
	defer s.Wipe()
	return p.d.putIdentity(ctx, p.name, p.binding, s, o, 0)
}

// newSecret is the zero secret where the secret is fetched.
func newSecret(b []byte, o operatorapi.PutOptions) secret.Secret {
	if o.Source != "" {
		return secret.Secret{}
	}
	return secret.New(b)
}

// putIdentity stores a secret in the place of one generation, 0 for whatever is
// there.
func (d *daemon) putIdentity(ctx context.Context, name string, b vault.Binding, s secret.Secret, o operatorapi.PutOptions, replaces uint64) (operatorapi.Stored, error) {
	gen, err := d.vault.PutIdentity(ctx, name, b, s, vault.PutOptions{Short: o.Short, Label: o.Label, Expires: o.Expires, Source: o.Source, Replaces: replaces})
	if err != nil {
		return operatorapi.Stored{}, unstorable(err)
	}
	out := operatorapi.Stored{Name: name, Generation: gen, Destination: destination(b)}
	if info := d.storedIdentities()[name]; info.Generation == gen {
		out.Expires = moment(info.Expires) // a certificate says it itself
	}
	return out, nil
}

func (p boundPort) Rebind(ctx context.Context) (operatorapi.Stored, error) {
	if err := p.d.vault.Rebind(ctx, p.name, p.binding); err != nil {
		return operatorapi.Stored{}, missing(unstorable(err))
	}
	info := p.d.storedIdentities()[p.name] // also a suspended one has a generation
	return operatorapi.Stored{Name: p.name, Destination: destination(p.binding), Generation: info.Generation, Expires: moment(info.Expires)}, nil
}

// Rotate names the stored identity that is to get a new secret.
func (p operatorPort) Rotate(name string) (operatorapi.Rotating, error) {
	info, ok := p.d.storedIdentities()[name]
	if !ok {
		return nil, unknownIdentity(name)
	}
	return rotatingPort{p.d, info}, nil
}

func unknownIdentity(name string) error {
	return fault.New(fault.NotFound, fmt.Errorf("identity %s is neither in targets.yaml nor in the vault", strconv.QuoteToASCII(name)))
}

// rotatingPort keeps an identity as it was when a person looked at it.
type rotatingPort struct {
	d    *daemon
	info vault.Info
}

func (p rotatingPort) Try(ctx context.Context, b []byte, o operatorapi.PutOptions) (operatorapi.Trial, error) {
	s := newSecret(b, o)
	l, err := p.trial(ctx, s, o)
	if err != nil {
		s.Wipe()
		return nil, unstorable(err)
	}
	if o.Label == "" {
		o.Label = p.info.Label
	}
	return &trialPort{rotatingPort: p, secret: s, lease: l, options: o}, nil
}

// trial makes a lease of the new secret, wherever it lies.
func (p rotatingPort) trial(ctx context.Context, s secret.Secret, o operatorapi.PutOptions) (*vault.Lease, error) {
	if o.Source != "" {
		return p.d.vault.TrialFrom(ctx, p.info.Name, o.Source, o.Short)
	}
	return p.d.vault.Trial(ctx, p.info.Name, s, o.Short)
}

// trialPort is a new secret in memory, beside the stored one.
type trialPort struct {
	rotatingPort
	secret  secret.Secret
	lease   *vault.Lease
	options operatorapi.PutOptions
}

func (p *trialPort) Lease() gateway.Lease { return leasePort{p.lease} }

// Keep puts the new secret in the place of the one that was there when the trial
// began, and of no other.
func (p *trialPort) Keep(ctx context.Context) (operatorapi.Stored, error) {
	return p.d.putIdentity(ctx, p.info.Name, p.info.Binding, p.secret, p.options, p.info.Generation)
}

func (p *trialPort) Close() {
	p.lease.Close()
	p.secret.Wipe()
}

// unstorable turns what is wrong with a secret or a keychain into an error that
// says so; the vault's errors never quote the secret.
func unstorable(err error) error {
	switch {
	case errors.Is(err, vault.ErrReplaced):
		return fault.New(fault.PlanStale, err)
	case errors.Is(err, vault.ErrBadIdentity), errors.Is(err, vault.ErrTooLarge):
		return fault.Invalid(err, fault.Field{Pointer: "/secret", Reason: err.Error()})
	case errors.Is(err, vault.ErrKeychainLocked), errors.Is(err, vault.ErrKeychainUnavailable), errors.Is(err, vault.ErrKeychainAbsent):
		return fault.New(fault.IdentityUnavailable, err)
	}
	return sourceRefusal(err)
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
	return siteBinding(id, t), nil
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
