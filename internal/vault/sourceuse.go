package vault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// fromSource fetches the secret of an identity that lies elsewhere, and holds it
// to the rules of one that is put. It fails with VAULT_LOCKED or
// IDENTITY_UNAVAILABLE. The caller wipes it.
func (v *Vault) fromSource(ctx context.Context, it item) (secret.Secret, error) {
	// Another daemon may have replaced a refresh token that they share, and a server
	// that is sent the old one may take the whole grant for stolen.
	anew := it.binding.Kind == KindOAuth2Refresh
	s, err := v.sources.get(ctx, it.source, anew)
	if fault.CodeOf(err) == fault.VaultLocked {
		return secret.Secret{}, err
	}
	if err == nil {
		err = it.checkFetched(s)
	}
	if err != nil {
		s.Wipe()
		return secret.Secret{}, fault.Newf(fault.IdentityUnavailable, "identity %s: %w", it.name, err)
	}
	return s, nil
}

// rejectedSecret says that the target refused the secret of the lease: what is kept
// of it is not used again.
func (l *Lease) rejectedSecret() {
	if l != nil && l.source != "" && !l.trial {
		l.vault.sources.forgetValue(l.source, l.cred)
	}
}

// checkFetched holds a fetched value to what a secret that is put obeys.
func (it item) checkFetched(s secret.Secret) (err error) {
	s.Use(func(text []byte) { err = it.binding.checkSecret(text, it.short) })
	if err != nil {
		return fmt.Errorf("what lies at its source: %w", err)
	}
	return nil
}

// trySource asks the source now, before an identity is bound to it: so that a
// wrong reference is told to the person who gives it. Where what lies there says
// when it ends, the item says so too. It answers ErrBadIdentity, ErrBadReference,
// ErrNoSource or one of ErrSource….
func (v *Vault) trySource(ctx context.Context, it *item) error {
	s, err := v.sources.get(ctx, it.source, true)
	if err != nil {
		return err
	}
	defer s.Wipe()
	if err := it.checkFetched(s); err != nil {
		return err
	}
	it.expires = it.binding.expiry(s, it.expires)
	return nil
}

// CheckSource says what is wrong with a NAME:REFERENCE without asking the source.
// It answers ErrBadReference or ErrNoSource.
func (v *Vault) CheckSource(text string) error {
	_, _, err := v.sources.find(text)
	return err
}

// TrialFrom is Trial with a secret that lies at a source. What a server puts in the
// place of a refresh token is written there, proved or not: the old one is used up.
func (v *Vault) TrialFrom(ctx context.Context, name, source string, short bool) (*Lease, error) {
	if err := v.CheckOpen(); err != nil {
		return nil, err
	}
	s, err := v.sources.get(ctx, source, true)
	if err != nil {
		return nil, err
	}
	defer s.Wipe()
	l, err := v.Trial(ctx, name, s, short)
	if err == nil {
		l.source = source
	}
	return l, err
}

// storeAtSource puts a new value in the place of an old one where an identity's
// secret lies. It answers ErrSourceChanged where another daemon was faster: the
// next fetch then has its value. A source that takes no values answers
// ErrSourceDenied.
func (v *Vault) storeAtSource(ctx context.Context, source string, old, value secret.Secret) error {
	s, reference, err := v.sources.find(source)
	if err != nil {
		return err
	}
	k, ok := s.Source.(Keeper)
	if !ok {
		return fmt.Errorf("source %s: %w: a source of kind %s takes no new values", s.Source.Name(), ErrSourceDenied, s.Kind)
	}
	err = k.Store(ctx, reference, old, value)
	v.sources.forget(source)
	return err
}

// Sources returns the sources by name, for status.
func (v *Vault) Sources() []SourceInfo {
	o, locked := v.current()
	b := &v.sources
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]SourceInfo, 0, len(b.all))
	for _, name := range slices.Sorted(maps.Keys(b.all)) {
		s := b.all[name]
		i := SourceInfo{Name: name, Kind: s.Kind, Place: s.Place, Keep: s.Keep, Fetched: s.fetched, Failed: s.failed, Failure: s.failure, Credential: CredentialNone}
		if s.Credential {
			i.Credential = CredentialLocked
			if locked == nil {
				i.Credential = o.contents.credentialState(name, s.Place)
			}
		}
		out = append(out, i)
	}
	if locked == nil {
		out = append(out, o.contents.leftSources(b.all)...)
	}
	return out
}

// leftSources are those that the configuration names no more, and whose credential
// is still here.
func (c *contents) leftSources(all map[string]*namedSource) (out []SourceInfo) {
	for _, fact := range slices.Sorted(maps.Keys(c.states)) {
		name, ok := strings.CutPrefix(fact, factSource)
		if !ok || all[name] != nil {
			continue
		}
		kept, _ := decodeSourceCredential(c.states[fact])
		out = append(out, SourceInfo{Name: name, Kind: KindGone, Place: kept.place, Credential: CredentialStored})
	}
	return out
}

// factSource begins the name of the fact that holds the credential with which the
// daemon logs in at a source. No identity can have it: their names have no space.
const factSource = "source "

// infoSource is the label of the key that these are sealed under, and the
// beginning of their associated data.
const (
	infoSource      = "chatelaine/v1 source"
	sourceKeyLabel  = "source credentials"
	maxCredentialIn = 4 << 10 // bytes of a source's own credential
	maxPlace        = 1 << 10
)

// sourceCredential is that fact: where it may be sent, and the sealed bytes. It is
// sealed apart from the body, as an identity's secret is, so that it is in clear
// only while it is used.
type sourceCredential struct {
	place   string
	updated time.Time
	sealed  []byte
}

func (c sourceCredential) encode() []byte {
	w := &writer{}
	w.str(c.place)
	w.u64(uint64(c.updated.UnixMilli()))
	w.blob(c.sealed)
	return w.b
}

func decodeSourceCredential(b []byte) (sourceCredential, bool) {
	r := &reader{b: b}
	c := sourceCredential{place: r.str(maxPlace)}
	c.updated = time.UnixMilli(int64(r.u64()))
	c.sealed = r.blob(maxCredentialIn + sealExtra)
	return c, r.done() && c.place != ""
}

func sourceAD(vaultID [idBytes]byte, name, place string) []byte {
	w := &writer{b: []byte(infoSource)}
	w.raw(vaultID[:])
	w.str(name)
	w.str(place)
	return w.b
}

func (c *contents) credentialState(name, place string) string {
	b, there := c.states[factSource+name]
	if !there {
		return CredentialMissing
	}
	if kept, ok := decodeSourceCredential(b); !ok || kept.place != place {
		return CredentialMoved
	}
	return CredentialStored
}

// credentialled finds a source that needs a credential.
func (v *Vault) credentialled(name string) (*namedSource, error) {
	v.sources.mu.Lock()
	defer v.sources.mu.Unlock()
	s := v.sources.all[name]
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: it is not in vault.sources of chatelaine.yaml", ErrNoSource)
	case !s.Credential:
		return nil, fmt.Errorf("%w: a source of kind %s needs no credential", ErrNoSource, s.Kind)
	}
	return s, nil
}

// SourcePlace returns where the credential of a source would be bound to.
func (v *Vault) SourcePlace(name string) (string, error) {
	s, err := v.credentialled(name)
	if err != nil {
		return "", err
	}
	return s.Place, nil
}

// PutSourceCredential seals what the daemon logs in with at a source, bound to
// the place that the source has now. It answers ErrNoSource, ErrBadIdentity or
// VAULT_LOCKED.
func (v *Vault) PutSourceCredential(ctx context.Context, name string, s secret.Secret) error {
	src, err := v.credentialled(name)
	if err != nil {
		return err
	}
	if err := checkSourceCredential(s); err != nil {
		return err
	}
	key, err := v.Subkey(sourceKeyLabel)
	if err != nil {
		return err
	}
	defer key.Wipe()
	_, err = v.commit(ctx, func(o opened, c *contents, _ uint64) (err error) {
		kept := sourceCredential{place: src.Place, updated: time.Now()}
		s.Use(func(text []byte) { kept.sealed, err = seal(key, text, sourceAD(o.head.id, name, src.Place)) })
		c.states[factSource+name] = kept.encode()
		return err
	})
	v.sources.drop()
	return err
}

func checkSourceCredential(s secret.Secret) error {
	ok := false
	s.Use(func(b []byte) {
		ok = len(b) > 0 && len(b) <= maxCredentialIn
		for _, c := range b {
			ok = ok && c > ' ' && c <= '~'
		}
	})
	if !ok {
		return fmt.Errorf("%w: the credential of a source is 1 to %d printable ASCII characters without a space", ErrBadIdentity, maxCredentialIn)
	}
	return nil
}

// DeleteSourceCredential removes it. It answers ErrNoIdentity or VAULT_LOCKED.
func (v *Vault) DeleteSourceCredential(ctx context.Context, name string) error {
	_, err := v.commit(ctx, func(_ opened, c *contents, _ uint64) error {
		if _, there := c.states[factSource+name]; !there || strings.TrimSpace(name) == "" {
			return fmt.Errorf("%w: no credential is stored for that source", ErrNoIdentity)
		}
		delete(c.states, factSource+name)
		return nil
	})
	v.sources.drop()
	return err
}

// CredentialOf is SourceCredential for one name: what a source is given instead of
// the vault.
func (v *Vault) CredentialOf(name string) func(context.Context) (secret.Secret, error) {
	return func(ctx context.Context) (secret.Secret, error) { return v.SourceCredential(ctx, name) }
}

// SourceCredential opens what the daemon logs in with, if it is bound to the place
// that the source has now. It is for the source alone, which wipes it. It answers
// VAULT_LOCKED or ErrSourceDenied.
func (v *Vault) SourceCredential(_ context.Context, name string) (secret.Secret, error) {
	src, err := v.credentialled(name)
	if err != nil {
		return secret.Secret{}, err
	}
	o, err := v.current()
	if err != nil {
		return secret.Secret{}, err
	}
	switch o.contents.credentialState(name, src.Place) {
	case CredentialMissing:
		return secret.Secret{}, fmt.Errorf("source %s: %w: its credential is not in the vault; chatelaine vault source put %s", name, ErrSourceDenied, name)
	case CredentialMoved:
		return secret.Secret{}, fmt.Errorf("source %s: %w: its credential is bound to another place than chatelaine.yaml names now; chatelaine vault source put %s", name, ErrSourceDenied, name)
	}
	kept, _ := decodeSourceCredential(o.contents.states[factSource+name])
	key, err := o.rootKey(infoSubkey + sourceKeyLabel)
	if err != nil {
		return secret.Secret{}, err
	}
	defer key.Wipe()
	text, err := unseal(key, kept.sealed, sourceAD(o.head.id, name, src.Place))
	if err != nil {
		if fault.CodeOf(err) == fault.VaultLocked {
			return secret.Secret{}, err
		}
		return secret.Secret{}, fmt.Errorf("source %s: %w: its credential does not open; put it again", name, ErrSourceDenied)
	}
	defer clear(text)
	return secret.New(text), nil
}
