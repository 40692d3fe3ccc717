package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"

	"chatelaine/internal/fault"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

func viewSlot(s vault.Slot) operatorapi.SlotView {
	v := operatorapi.SlotView{ID: s.ID, Kind: s.Kind, Label: s.Label, Unattended: s.Unattended, Opens: s.Opens, Detail: s.Detail}
	if !s.Created.IsZero() {
		t := s.Created.UTC()
		v.Created = &t
	}
	return v
}

func viewSlots(all []vault.Slot) []operatorapi.SlotView {
	out := make([]operatorapi.SlotView, 0, len(all))
	for _, s := range all {
		out = append(out, viewSlot(s))
	}
	return out
}

// Slots lists the ways in.
func (p operatorPort) Slots() []operatorapi.SlotView { return viewSlots(p.d.vault.Slots()) }

// UnlockWithCode opens the vault with what a person typed as a recovery code.
func (p operatorPort) UnlockWithCode(ctx context.Context, typed []byte) error {
	defer clear(typed)
	code, err := vault.ParseRecoveryCode(typed)
	if err != nil {
		return fault.Invalid(err, fault.Field{Pointer: "/recovery_code", Reason: err.Error()})
	}
	defer code.Wipe()
	return slotRefusal(p.d.unlockBy(func() error { return p.d.vault.UnlockWithCode(ctx, code) }))
}

// UnlockUnattended tries the slots that need no person.
func (p operatorPort) UnlockUnattended(ctx context.Context) error {
	return slotRefusal(p.d.unlockBy(func() error { return p.d.vault.UnlockUnattended(ctx) }))
}

// CheckSlot says what is wrong with a slot before a person proves anything.
func (p operatorPort) CheckSlot(n operatorapi.NewSlot) error {
	return slotRefusal(vault.NewSlot{Kind: n.Kind, Label: n.Label, Credential: n.Credential}.Check())
}

// AddSlot adds a way in.
func (p operatorPort) AddSlot(ctx context.Context, n operatorapi.NewSlot, opens operatorapi.Way, unlock, passphrase []byte) (operatorapi.AddedSlot, error) {
	pass := secret.New(passphrase)
	defer pass.Wipe()
	way, wipe, err := typedWay("/unlock", opens, unlock)
	if err != nil {
		return operatorapi.AddedSlot{}, err
	}
	defer wipe()
	added, err := p.d.vault.AddSlot(ctx, vault.NewSlot{Kind: n.Kind, Label: n.Label, Credential: n.Credential, Passphrase: pass}, way)
	if err != nil {
		return operatorapi.AddedSlot{}, wrongSecret("/unlock", "vault", err)
	}
	defer added.Code.Wipe()
	out := operatorapi.AddedSlot{Slot: viewSlot(added.Slot)}
	if !added.Code.IsZero() {
		out.RecoveryCode = added.Code.Reveal()
	}
	return out, nil
}

// Removable finds a slot that may go.
func (p operatorPort) Removable(id string) (operatorapi.SlotView, error) {
	s, err := p.d.vault.Removable(id)
	return viewSlot(s), slotRefusal(err)
}

// RemoveSlot takes a way in away.
func (p operatorPort) RemoveSlot(ctx context.Context, id string) error {
	return slotRefusal(p.d.vault.RemoveSlot(ctx, id))
}

// PlanRotation says what a rotation would do to the slots.
func (p operatorPort) PlanRotation(keep string) (operatorapi.Rotation, error) {
	r, err := p.d.vault.PlanRotation(keep)
	return operatorapi.Rotation{Kept: viewSlots(r.Kept), Replaced: viewSlots(r.Replaced), Removed: viewSlots(r.Removed)}, slotRefusal(err)
}

// RotateKey seals everything under a new data key and returns the new recovery
// code, "" where there is none.
func (p operatorPort) RotateKey(ctx context.Context, keep string, passphrase []byte) (string, error) {
	pass := secret.New(passphrase)
	defer pass.Wipe()
	code, err := p.d.vault.RotateKey(ctx, keep, pass)
	if err != nil {
		return "", wrongSecret("/secret", "vault", err)
	}
	defer code.Wipe()
	if code.IsZero() {
		return "", nil
	}
	return code.Reveal(), nil
}

// CheckRecipients refuses what is no public key of age.
func (p operatorPort) CheckRecipients(recipients []string) error {
	_, err := parseRecipients(recipients)
	return err
}

func parseRecipients(recipients []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for i, text := range recipients {
		one, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil || len(one) != 1 || strings.ContainsAny(text, "\r\n#") {
			// Not quoted: somebody may have given the private key.
			return nil, refuseInput(fmt.Sprintf("/recipients/%d", i), "recipient %d is no public key of age; it begins with age1", i+1)
		}
		out = append(out, one...)
	}
	return out, nil
}

// Backup seals a copy of the vault, which is sealed already, for the recipients.
func (p operatorPort) Backup(ctx context.Context, recipients []string) (operatorapi.Backup, error) {
	to, err := parseRecipients(recipients)
	if err != nil {
		return operatorapi.Backup{}, err
	}
	b, err := p.d.vault.Backup(ctx)
	if err != nil {
		return operatorapi.Backup{}, slotRefusal(err)
	}
	facts, err := vault.LookAtBackup(b)
	if err != nil {
		return operatorapi.Backup{}, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil { // keys of kinds that age does not mix
		return operatorapi.Backup{}, refuseInput("/recipients", "these recipients do not go together: %v", err)
	}
	if _, err := w.Write(b); err != nil {
		return operatorapi.Backup{}, err
	}
	if err := w.Close(); err != nil {
		return operatorapi.Backup{}, err
	}
	return operatorapi.Backup{File: out.Bytes(), Vault: facts.Vault, Generation: facts.Generation, Identities: len(p.d.vault.List())}, nil
}

// LookAtBackup reads what a backup shows without a key.
func (p operatorPort) LookAtBackup(b []byte) (operatorapi.BackupFacts, error) {
	f, err := vault.LookAtBackup(b)
	return operatorapi.BackupFacts{Vault: f.Vault, Generation: f.Generation}, slotRefusal(err)
}

// Import takes identities out of a backup.
func (p operatorPort) Import(ctx context.Context, b []byte, opens operatorapi.Way, typed []byte, replace bool) (operatorapi.Imported, error) {
	way, wipe, err := typedWay("/secret", opens, typed)
	if err != nil {
		return operatorapi.Imported{}, err
	}
	defer wipe()
	r, err := p.d.vault.Import(ctx, b, way, replace)
	list := func(names []string) []string { return append([]string{}, names...) }
	return operatorapi.Imported{Added: list(r.Added), Replaced: list(r.Replaced), Kept: list(r.Kept)}, wrongSecret("/secret", "backup", err)
}

// SetOperatorPassphrase replaces what decisions are proved with.
func (p operatorPort) SetOperatorPassphrase(b []byte) error {
	pass := secret.New(b)
	defer pass.Wipe()
	return slotRefusal(p.d.vault.SetOperatorPassphrase(pass))
}

// wrongSecret tells a wrong passphrase that came beside a proof from a wrong
// proof; of is what it should have opened, since a person typed two.
func wrongSecret(pointer, of string, err error) error {
	what := ""
	switch {
	case errors.Is(err, vault.ErrWrongCode): // first: of an import it is the other one too
		what = "recovery code"
	case errors.Is(err, vault.ErrWrongPassphrase):
		what = "passphrase"
	}
	if what != "" {
		told := fmt.Errorf("the %s's %s is wrong", of, what)
		return fault.Invalid(told, fault.Field{Pointer: pointer, Reason: told.Error()})
	}
	return slotRefusal(err)
}

// typedWay is what a person typed to open the vault, or a backup. wipe clears it.
func typedWay(pointer string, opens operatorapi.Way, typed []byte) (w vault.Way, wipe func(), err error) {
	if opens == operatorapi.ByRecovery {
		code, err := vault.ParseRecoveryCode(typed)
		if err != nil {
			return vault.Way{}, nil, fault.Invalid(err, fault.Field{Pointer: pointer, Reason: err.Error()})
		}
		return vault.ByCode(code), code.Wipe, nil
	}
	s := secret.New(typed)
	return vault.ByPassphrase(s), s.Wipe, nil
}

// conflict is refused because of how the vault is.
type conflict struct {
	error
	code, sentence string
}

func (c conflict) Conflict() (code, sentence string) { return c.code, c.sentence }
func (c conflict) Unwrap() error                     { return c.error }

// slotRefusal is refusal for what concerns slots and backups.
func slotRefusal(err error) error {
	switch {
	case errors.Is(err, vault.ErrWrongCode):
		return refused{err}
	case errors.Is(err, vault.ErrLastSlot):
		return conflict{err, "LAST_SLOT", "A person could not open the vault any more."}
	case errors.Is(err, vault.ErrUnattended), errors.Is(err, vault.ErrLockedByHand):
		return conflict{err, "NOT_UNATTENDED", "The vault does not open without a person."}
	case errors.Is(err, vault.ErrNoSlot):
		return fault.New(fault.NotFound, err)
	case errors.Is(err, vault.ErrBadPassphrase), errors.Is(err, vault.ErrSamePassphrase):
		return fault.Invalid(err, fault.Field{Pointer: "/secret", Reason: err.Error()})
	case errors.Is(err, vault.ErrBadSlot), errors.Is(err, vault.ErrBadBackup), errors.Is(err, vault.ErrTooLarge):
		return fault.Invalid(err, fault.Field{Reason: err.Error()})
	}
	return unstorable(refusal(err))
}
