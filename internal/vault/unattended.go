package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"chatelaine/internal/secret"
)

// A systemd credential's own bytes are the slot's secret, so they must be random
// and long enough; systemd takes up to a mebibyte, no key needs more than this.
const (
	minCredential = 32
	maxCredential = 4 << 10
)

// readCredential reads a credential that the service manager has put into the
// unit's own folder (systemd.exec(5), LoadCredentialEncrypted=). Mode and owner
// are the manager's business: with a dynamic user it uses access lists.
func (v *Vault) readCredential(name string) (secret.Secret, error) {
	dir := v.o.CredentialsDir
	if dir == "" {
		return secret.Secret{}, fmt.Errorf("%w: credential %s: the service manager gave none (CREDENTIALS_DIRECTORY is not set)", ErrUnattended, name)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return secret.Secret{}, fmt.Errorf("%w: credential %s: %w", ErrUnattended, name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCredential+1))
	defer clear(b)
	switch {
	case err != nil:
		return secret.Secret{}, fmt.Errorf("%w: credential %s: %w", ErrUnattended, name, err)
	case len(b) < minCredential || len(b) > maxCredential:
		return secret.Secret{}, fmt.Errorf("%w: credential %s has %d bytes; it must have %d to %d random ones", ErrUnattended, name, len(b), minCredential, maxCredential)
	}
	return secret.New(b), nil
}

// slotItem is the name of a slot's secret in the keychain.
func slotItem(vaultID, slotID [idBytes]byte) string {
	return fmt.Sprintf("%x/slot/%x", vaultID[:8], slotID)
}

// readSlotItem reads a slot's secret from the keychain.
func (v *Vault) readSlotItem(ctx context.Context, name string) (secret.Secret, error) {
	if v.o.SlotKeychain == nil {
		return secret.Secret{}, fmt.Errorf("%w: no keychain is configured", ErrUnattended)
	}
	b, err := v.o.SlotKeychain.Get(ctx, name)
	defer clear(b)
	if err != nil {
		return secret.Secret{}, fmt.Errorf("%w: %w", ErrUnattended, err)
	}
	if len(b) != keyBytes {
		return secret.Secret{}, fmt.Errorf("%w: the keychain's item has %d bytes instead of %d", ErrUnattended, len(b), keyBytes)
	}
	return secret.New(b), nil
}

// unattendedSecret fetches the secret of a slot that needs no person.
func (v *Vault) unattendedSecret(ctx context.Context, s slot) (secret.Secret, error) {
	p, _ := decodePlain(s.kind, s.params) // checked when the file was read
	if s.kind == slotSystemdCredential {
		return v.readCredential(p.name)
	}
	return v.readSlotItem(ctx, p.name)
}

// unwrapUnattended tries every slot that needs no person, in the file's order.
func (v *Vault) unwrapUnattended(ctx context.Context, h header) (secret.Secret, error) {
	var errs []error
	for _, s := range h.slots {
		if !s.opensUnattended() {
			continue
		}
		from, err := v.unattendedSecret(ctx, s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		key, err := s.openPlain(h.id, from)
		from.Wipe()
		if err == nil {
			return key, nil
		}
		if !errors.Is(err, errUnsealed) {
			return secret.Secret{}, err
		}
		errs = append(errs, fmt.Errorf("%w: %s slot %s: what lies there is not what the slot was made with", ErrUnattended, slotNames[s.kind], s.hex()[:slotShown]))
	}
	if len(errs) == 0 {
		return secret.Secret{}, fmt.Errorf("%w: this vault has none that opens by itself", ErrNoSlot)
	}
	return secret.Secret{}, errors.Join(errs...)
}

// slotShown is how many hexadecimal digits of a slot's id a sentence has.
const slotShown = 8
