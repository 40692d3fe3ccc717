package main

import (
	"context"
	"errors"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/fault"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// Sources lists the places outside the vault where secrets lie.
func (p operatorPort) Sources() []operatorapi.SourceView {
	out := []operatorapi.SourceView{}
	for _, s := range p.d.vault.Sources() {
		out = append(out, operatorapi.SourceView{
			Name: s.Name, Kind: s.Kind, Place: s.Place, Keep: strictyaml.DurationText(s.Keep), Credential: s.Credential,
			CredentialStored: s.Credential == vault.CredentialStored || s.Credential == vault.CredentialMoved,
			LastFetched:      moment(s.Fetched), LastFailed: moment(s.Failed), Failure: s.Failure,
		})
	}
	return out
}

// CheckSource looks at a reference before a person proves anything.
func (p operatorPort) CheckSource(text string) error {
	return sourceRefusal(p.d.vault.CheckSource(text))
}

// SourcePlace names where a source's credential would be bound to.
func (p operatorPort) SourcePlace(name string) (string, error) {
	place, err := p.d.vault.SourcePlace(name)
	return place, sourceRefusal(err)
}

// PutSource stores what the daemon logs in with. The configuration does not change
// while the daemon runs, so the place is the one that was proved.
func (p operatorPort) PutSource(ctx context.Context, name, place string, credential []byte) error {
	s := secret.New(credential)
	defer s.Wipe()
	if now, err := p.SourcePlace(name); err != nil || now != place {
		return errors.Join(err, refuseInput("/name", "the source is another one now"))
	}
	return sourceRefusal(p.d.vault.PutSourceCredential(ctx, name, s))
}

// DeleteSource removes it.
func (p operatorPort) DeleteSource(ctx context.Context, name string) error {
	return missing(p.d.vault.DeleteSourceCredential(ctx, name))
}

// sourceRefusal says which member of a request a source does not take. What the
// source itself answered is the identity's: it cannot be had now.
func sourceRefusal(err error) error {
	switch {
	case errors.Is(err, vault.ErrNoSource), errors.Is(err, vault.ErrBadReference):
		return fault.Invalid(err, fault.Field{Pointer: "/source", Reason: err.Error()})
	case errors.Is(err, vault.ErrBadIdentity):
		return fault.Invalid(err, fault.Field{Pointer: "/secret", Reason: err.Error()})
	case vault.IsSource(err):
		return fault.New(fault.IdentityUnavailable, err)
	}
	return err
}
