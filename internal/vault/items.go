package vault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// Info is what may be shown of an identity: everything but the secret.
type Info struct {
	Name       string
	Binding    Binding
	Generation uint64
	Updated    time.Time
	Suspended  bool
	Label      string
	Expires    time.Time // zero where it is not known
	Source     string    // "NAME:REFERENCE" where the secret is fetched, "" where it is in the vault
}

// PutOptions is what else may be said of a secret.
type PutOptions struct {
	Short   bool      // fewer than 16 bytes are meant
	Label   string    // at most 64 bytes, for people
	Expires time.Time // when the secret stops working; a certificate says so itself
	Source  string    // NAME:REFERENCE of a secret manager; the secret must be empty then
	// Replaces is the one generation that the secret may take the place of; 0 takes
	// the place of whatever is there. Another one answers ErrReplaced.
	Replaces uint64
}

// Put is PutIdentity for a secret of which nothing else is said.
func (v *Vault) Put(ctx context.Context, name string, b Binding, s secret.Secret, short bool) (uint64, error) {
	return v.PutIdentity(ctx, name, b, s, PutOptions{Short: short})
}

// PutIdentity seals a secret under the identity's name with its binding, in
// place of what was there. It returns the identity's new generation, which is
// greater than any before it. It ends a suspension. Where the secret lies at a
// source, it is fetched once, to see that it is there. It answers ErrBadIdentity,
// VAULT_LOCKED, and for a source ErrNoSource, ErrBadReference or ErrSource….
func (v *Vault) PutIdentity(ctx context.Context, name string, b Binding, s secret.Secret, o PutOptions) (uint64, error) {
	if fresh, ok := v.tried(name, s); ok {
		defer fresh.Wipe()
		s = fresh
	}
	it := item{name: name, binding: b.normal(), short: o.Short, label: o.Label, expires: o.Expires, source: o.Source}
	if err := it.check(s); err != nil {
		return 0, err
	}
	if it.source != "" {
		if err := v.trySource(ctx, &it); err != nil {
			return 0, fmt.Errorf("identity %s: %w", name, err)
		}
	}
	it.expires = it.binding.expiry(s, it.expires)
	gen, err := v.commit(ctx, func(op opened, c *contents, generation uint64) error {
		if o.Replaces != 0 && c.items[name].generation != o.Replaces {
			return fmt.Errorf("identity %s: %w", name, ErrReplaced)
		}
		it.generation, it.updated = generation, time.Now()
		return v.place(ctx, op, c, it, s)
	})
	v.settle(ctx)
	if err != nil {
		return 0, err
	}
	return gen, nil
}

// check says whether the item can be kept with that secret.
func (it item) check(s secret.Secret) error {
	if err := checkName(it.name); err != nil {
		return err
	}
	err := it.binding.check()
	if err == nil {
		err = errors.Join(checkLabel(it.label), checkSource(it.source), checkExpiry(it.expires))
	}
	switch {
	case err != nil:
	case it.source == "":
		s.Use(func(text []byte) { err = it.binding.checkSecret(text, it.short) })
	case !s.IsZero():
		err = fmt.Errorf("%w: a secret that is fetched is not put as well", ErrBadIdentity)
	}
	if err != nil {
		return fmt.Errorf("identity %s: %w", it.name, err)
	}
	return nil
}

// place seals the secret into the item and puts it into the clone, and into the
// backend where there is one. The backend's entry has the generation in its
// name: until the file is saved, the old entry is still there for the old file.
// v.write is held.
func (v *Vault) place(ctx context.Context, o opened, c *contents, it item, s secret.Secret) error {
	key, err := derive(o.dataKey, infoItem)
	if err != nil {
		return err
	}
	defer key.Wipe()
	var sealed []byte
	s.Use(func(text []byte) { sealed, err = seal(key, text, it.ad(o.head.id)) })
	if err != nil {
		return err
	}
	if err := v.noteChange(o, c, it); err != nil {
		return err
	}
	if v.o.Backend == nil {
		it.sealed, it.outside = sealed, false
	} else {
		it.outside = true
		if err := v.o.Backend.Put(ctx, it.outsideName(o.head.id), sealed); err != nil {
			return fmt.Errorf("identity %s: %w", it.name, err)
		}
	}
	c.items[it.name] = it
	if len(c.items) > maxItems {
		return fmt.Errorf("%w: more than %d identities", ErrTooLarge, maxItems)
	}
	return nil
}

// outsideName is the entry's name in the backend. It begins with the vault's
// id, so that two vaults may share a keychain.
func (it item) outsideName(vaultID [idBytes]byte) string {
	return fmt.Sprintf("%x/identity/%s/%d", vaultID[:8], it.name, it.generation)
}

// noteChange writes down which entries of the backend come and go when it takes
// the place of what c holds under its name; v.write is held.
func (v *Vault) noteChange(o opened, c *contents, it item) error {
	var names []string
	if v.o.Backend != nil {
		names = append(names, it.outsideName(o.head.id))
	}
	if old := c.items[it.name]; old.outside {
		names = append(names, old.outsideName(o.head.id))
	}
	if len(names) == 0 {
		return nil
	}
	return v.noteLocked(names...)
}

// Delete removes an identity. It answers ErrNoIdentity or VAULT_LOCKED.
func (v *Vault) Delete(ctx context.Context, name string) error {
	_, err := v.commit(ctx, func(o opened, c *contents, _ uint64) error {
		it, ok := c.items[name]
		if !ok {
			return fmt.Errorf("%w: %q", ErrNoIdentity, name)
		}
		delete(c.items, name)
		if !it.outside {
			return nil
		}
		return v.noteLocked(it.outsideName(o.head.id))
	})
	v.settle(ctx)
	return err
}

// Rebind seals the secret that is there with another binding. It gets a new
// generation, so that what was approved for the old destination is stale.
func (v *Vault) Rebind(ctx context.Context, name string, b Binding) error {
	b = b.normal()
	_, err := v.commit(ctx, func(o opened, c *contents, generation uint64) error {
		it, ok := c.items[name]
		if !ok {
			return fmt.Errorf("%w: %q", ErrNoIdentity, name)
		}
		s, err := v.unsealItem(ctx, o, it)
		if err != nil {
			return err
		}
		defer s.Wipe()
		it.binding = b
		if err := it.check(s); err != nil {
			return err
		}
		it.generation, it.updated, it.sealed = generation, time.Now(), nil
		return v.place(ctx, o, c, it, s)
	})
	v.settle(ctx)
	return err
}

// fetch returns the sealed secret of an identity, wherever it lies.
func (v *Vault) fetch(ctx context.Context, o opened, it item) ([]byte, error) {
	if !it.outside {
		return it.sealed, nil
	}
	if v.o.Backend == nil {
		return nil, fault.Newf(fault.IdentityUnavailable, "identity %s is in a keychain, and none is configured", it.name)
	}
	b, err := v.o.Backend.Get(ctx, it.outsideName(o.head.id))
	if err != nil {
		return nil, fault.Newf(fault.IdentityUnavailable, "identity %s: %w", it.name, err)
	}
	return b, nil
}

// unsealItem opens one identity's secret.
func (v *Vault) unsealItem(ctx context.Context, o opened, it item) (secret.Secret, error) {
	sealed, err := v.fetch(ctx, o, it)
	if err != nil {
		return secret.Secret{}, err
	}
	key, err := derive(o.dataKey, infoItem)
	if err != nil {
		return secret.Secret{}, err
	}
	defer key.Wipe()
	text, err := unseal(key, sealed, it.ad(o.head.id))
	if fault.CodeOf(err) == fault.VaultLocked {
		return secret.Secret{}, err
	}
	if err != nil {
		return secret.Secret{}, fault.Newf(fault.IdentityUnavailable, "identity %s: its entry %w; put it again", it.name, err)
	}
	defer clear(text)
	return secret.New(text), nil
}

// List returns the identities by name; none while the vault is locked.
func (v *Vault) List() []Info {
	o, err := v.current()
	if err != nil {
		return nil
	}
	out := make([]Info, 0, len(o.contents.items))
	for _, name := range slices.Sorted(maps.Keys(o.contents.items)) {
		it := o.contents.items[name]
		out = append(out, Info{name, it.binding.clone(), it.generation, it.updated, v.suspended(it), it.label, it.expires, it.source})
	}
	return out
}

// Generation returns the current generation of an identity that may be used.
// It fails with VAULT_LOCKED or IDENTITY_UNAVAILABLE.
func (v *Vault) Generation(_ context.Context, name string) (uint64, error) {
	o, err := v.current()
	if err != nil {
		return 0, err
	}
	it, err := v.usable(o, name)
	if err == nil {
		v.touch()
	}
	return it.generation, err
}

// usable finds an identity that is there and not suspended.
func (v *Vault) usable(o opened, name string) (item, error) {
	it, ok := o.contents.items[name]
	if !ok {
		return item{}, fault.Newf(fault.IdentityUnavailable, "identity %q is not in the vault; put its secret", name)
	}
	if v.suspended(it) {
		return item{}, fault.Newf(fault.IdentityUnavailable, "identity %s is suspended: answers repeated its secret; put a new one", name)
	}
	return it, nil
}
