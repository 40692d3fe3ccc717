package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/usage"
	"chatelaine/internal/vault"
)

// Identities joins what the site file names with what the vault stores.
func (p operatorPort) Identities() ([]operatorapi.IdentityView, error) {
	if err := p.d.vault.CheckOpen(); err != nil {
		return nil, err
	}
	set, stored := p.d.gateway.Set(), p.d.storedIdentities()
	names := map[string]bool{}
	for _, id := range set.Identities() {
		names[id.Name()] = true
	}
	for name := range stored {
		names[name] = true
	}
	out := make([]operatorapi.IdentityView, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, p.d.identityView(set, name, stored))
	}
	return out, nil
}

// storedIdentities are those of an open vault by name.
func (d *daemon) storedIdentities() map[string]vault.Info {
	out := map[string]vault.Info{}
	for _, info := range d.vault.List() {
		out[info.Name] = info
	}
	return out
}

// identityView is one identity of an open vault.
func (d *daemon) identityView(set *actions.Set, name string, stored map[string]vault.Info) operatorapi.IdentityView {
	v := operatorapi.IdentityView{Name: name, Targets: []string{}}
	spec, named := set.Identity(name)
	if named {
		v.Kind = spec.Kind()
	}
	for _, t := range targetsOf(set, name) {
		v.Targets = append(v.Targets, t.Name())
	}
	info, there := stored[name]
	if there {
		v.Kind, v.Label, v.Source = info.Binding.Kind, info.Label, info.Source
		v.Stored, v.Generation, v.Suspended = true, info.Generation, info.Suspended
		v.Updated, v.Expires = moment(info.Updated), moment(info.Expires)
		v.Destination = destination(info.Binding)
	}
	v.LastUsed, v.LastFailure = lastUse(d.usage.Get(name))
	switch {
	case !there && v.Kind == vault.KindNone:
		v.State = operatorapi.IdentityNone
	case !there:
		v.State = operatorapi.IdentityMissing
	case info.Suspended:
		v.State = operatorapi.IdentitySuspended
	case !named:
		v.State = operatorapi.IdentityUnnamed
	case len(differences(set, spec, info.Binding)) > 0:
		v.State = operatorapi.IdentityElsewhere
	default:
		v.State = d.expiryState(info.Expires, time.Now())
	}
	return v
}

func lastUse(e usage.Entry) (*time.Time, *operatorapi.Failure) {
	if e.Code == "" {
		return moment(e.Used), nil
	}
	return moment(e.Used), &operatorapi.Failure{Code: e.Code, At: e.Failed.UTC(), Generation: e.Generation}
}

// moment is nil for a time that is not known.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Identity is everything about one identity but its secret. Of a locked vault it
// is what the site file says.
func (p operatorPort) Identity(name string) (operatorapi.IdentityDetail, error) {
	set, stored := p.d.gateway.Set(), p.d.storedIdentities()
	spec, named := set.Identity(name)
	info, there := stored[name]
	locked := p.d.vault.CheckOpen() != nil
	if !named && !there {
		if locked {
			return operatorapi.IdentityDetail{}, p.d.vault.CheckOpen()
		}
		return operatorapi.IdentityDetail{}, unknownIdentity(name)
	}
	out := operatorapi.IdentityDetail{
		IdentityView: p.d.identityView(set, name, stored),
		Binding:      []operatorapi.BindingPart{}, Differs: []operatorapi.Difference{}, Actions: actionsOf(set, name),
	}
	if named {
		out.Check, out.Exchanges = spec.Check(), spec.Exchanges()
	}
	if there {
		for _, x := range partsOf(info.Binding) {
			out.Binding = append(out.Binding, operatorapi.BindingPart(x))
		}
		if named {
			out.Differs = append(out.Differs, differences(set, spec, info.Binding)...)
		}
	}
	if locked && out.Kind != vault.KindNone {
		out.State = operatorapi.IdentityLocked
	}
	out.Why = why(out.State)
	return out, nil
}

// why says what a state means for a person who has to mend it.
func why(state string) string {
	switch state {
	case operatorapi.IdentityMissing:
		return "no secret is stored; every call that needs it answers IDENTITY_UNAVAILABLE"
	case operatorapi.IdentitySuspended:
		return "three answers repeated this secret, so the remote system may have shown it to others; a new secret ends the suspension"
	case operatorapi.IdentityElsewhere:
		return "targets.yaml names another destination than the secret is bound to; calls to it answer TARGET_NOT_ALLOWED"
	case operatorapi.IdentityExpired:
		return "its expiry is over; it is still sent until it is replaced"
	case operatorapi.IdentityUnnamed:
		return "targets.yaml has no identity of this name; nothing uses the secret"
	case operatorapi.IdentityLocked:
		return "the vault is locked (VAULT_LOCKED); what is stored shows after an unlock"
	}
	return ""
}

func actionsOf(set *actions.Set, identity string) []operatorapi.IdentityAction {
	out := []operatorapi.IdentityAction{}
	for _, c := range set.Contracts() {
		for _, name := range c.Targets() {
			if t, ok := set.Target(name); ok && t.Identity() == identity && t.AllowsAction(c.Action()) {
				out = append(out, operatorapi.IdentityAction{Action: c.Action(), Effect: c.Effect().String(), Target: name})
			}
		}
	}
	return out
}

// Check compares what is stored with every target that uses the identity now.
func (p operatorPort) Check(name string) (operatorapi.IdentityCheck, error) {
	if err := p.d.vault.CheckOpen(); err != nil {
		return operatorapi.IdentityCheck{}, err
	}
	set := p.d.gateway.Set()
	spec, ok := set.Identity(name)
	if !ok {
		return operatorapi.IdentityCheck{}, refuseInput("/name", "identity %s is not in targets.yaml", strconv.QuoteToASCII(name))
	}
	info, there := p.d.storedIdentities()[name]
	none := spec.Kind() == vault.KindNone
	out := operatorapi.IdentityCheck{Name: name, Stored: there || none, Suspended: info.Suspended, Action: spec.Check(), Targets: []operatorapi.TargetCheck{}}
	out.Usable = out.Stored && !out.Suspended
	for _, t := range targetsOf(set, name) {
		c := operatorapi.TargetCheck{Target: t.Name(), Bound: out.Stored}
		if there {
			if err := info.Binding.FitsSite(siteBinding(spec, t)); err != nil {
				c.Bound, c.Detail = false, err.Error()
			}
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

// Delete forgets the secret, and when it was used.
func (p operatorPort) Delete(ctx context.Context, name string) error {
	if err := p.d.vault.Delete(ctx, name); err != nil {
		return missing(err)
	}
	if err := p.d.usage.Forget(name); err != nil {
		p.d.log.Warn("the last use of a removed identity is still kept", "identity", name, "cause", err.Error())
	}
	return nil
}
