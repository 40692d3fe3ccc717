package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"time"
)

// Operations on the vault that need a proof, as the daemon names them.
const (
	OpAddSlot    = "vault.add-slot"
	OpRemoveSlot = "vault.remove-slot"
	OpRotateKey  = "vault.rotate-key"
	OpBackup     = "vault.export-backup"
	OpImport     = "vault.import"
)

// Slot is one way to open the vault.
type Slot struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"` // passphrase, recovery, credential, keychain, passkey
	Label      string    `json:"label,omitzero"`
	Created    time.Time `json:"created,omitzero"`
	Unattended bool      `json:"unattended"` // it opens without a person
	Opens      bool      `json:"opens"`      // the daemon's version can open it
	Detail     string    `json:"detail"`
}

// NewSlot is a slot that is asked for. Credential is for its kind only. Opens says
// what opens the vault already: "passphrase" or "recovery".
type NewSlot struct{ Kind, Label, Credential, Opens string }

// Params are those of vault.add-slot.
func (n NewSlot) Params() Params {
	p := Params{"kind": n.Kind, "opens": n.Opens}
	if n.Label != "" {
		p["label"] = n.Label
	}
	if n.Credential != "" {
		p["credential"] = n.Credential
	}
	return p
}

// AddedSlot is a new slot; RecoveryCode is shown once and kept nowhere.
type AddedSlot struct {
	Slot         Slot   `json:"slot"`
	RecoveryCode string `json:"recovery_code,omitzero"`
}

// RotatedKey is the vault under its new data key.
type RotatedKey struct {
	Slots        []Slot `json:"slots"`
	RecoveryCode string `json:"recovery_code,omitzero"`
}

// Backup is a sealed vault within an age file.
type Backup struct {
	File       []byte `json:"backup"`
	Vault      string `json:"vault"`
	Generation uint64 `json:"generation"`
	Identities int    `json:"identities"`
}

// Import asks for the identities of a backup.
type Import struct {
	Sealed  []byte // the vault file out of the backup, still sealed
	Opens   string // "passphrase" or "recovery"
	Replace bool
}

// Params are those of vault.import.
func (i Import) Params() Params {
	sum := sha256.Sum256(i.Sealed)
	p := Params{"digest": hex.EncodeToString(sum[:]), "opens": i.Opens}
	if i.Replace {
		p["replace"] = true
	}
	return p
}

// Imported says what became of the identities of a backup.
type Imported struct {
	Added    []string `json:"added"`
	Replaced []string `json:"replaced"`
	Kept     []string `json:"kept"`
}

// UnlockWithCode opens the vault with a recovery code as it was typed.
func (o *Operator) UnlockWithCode(ctx context.Context, code string) (VaultStatus, error) {
	body := struct {
		Code string `json:"recovery_code"`
	}{code}
	return askFor[VaultStatus](ctx, o, unlockTimeout, "POST", "/v1/vault/unlock", body)
}

// UnlockUnattended has the daemon try the slots that need no person.
func (o *Operator) UnlockUnattended(ctx context.Context) (VaultStatus, error) {
	body := struct {
		Unattended bool `json:"unattended"`
	}{true}
	return askFor[VaultStatus](ctx, o, unlockTimeout, "POST", "/v1/vault/unlock", body)
}

// Slots lists the ways to open the vault.
func (o *Operator) Slots(ctx context.Context) ([]Slot, error) {
	out, err := ask[struct {
		Slots []Slot `json:"slots"`
	}](ctx, o, "GET", "/v1/vault/slots", nil)
	return out.Slots, err
}

// secretBody are the parameters of an operation with what its challenge does not
// cover. secret is nil where there is none.
func secretBody(of Params, secret []byte, p Proof) map[string]any {
	body := map[string]any{"proof": p}
	for k, v := range of {
		body[k] = v
	}
	if secret != nil {
		body["secret"] = secret
	}
	return body
}

// AddSlot adds a way in. unlock is what opens the vault already, as n.Opens says;
// passphrase is for a passphrase slot, else nil.
func (o *Operator) AddSlot(ctx context.Context, n NewSlot, unlock, passphrase []byte, p Proof) (AddedSlot, error) {
	body := secretBody(n.Params(), passphrase, p)
	body["unlock"] = unlock
	return askFor[AddedSlot](ctx, o, unlockTimeout, "POST", "/v1/vault/slots", body)
}

// RemoveSlot takes a way in away.
func (o *Operator) RemoveSlot(ctx context.Context, id string, p Proof) error {
	return o.act(ctx, "DELETE", "/v1/vault/slots/"+url.PathEscape(id), withProof{p})
}

// RotateParams are those of vault.rotate-key: the passphrase slot that stays,
// "" where there is one.
func RotateParams(slot string) Params {
	if slot == "" {
		return Params{}
	}
	return Params{"slot": slot}
}

// RotateKey seals the vault under a new data key.
func (o *Operator) RotateKey(ctx context.Context, slot string, passphrase []byte, p Proof) (RotatedKey, error) {
	return askFor[RotatedKey](ctx, o, unlockTimeout, "POST", "/v1/vault/rotate", secretBody(RotateParams(slot), passphrase, p))
}

// OpPassphrase replaces the operator passphrase.
const OpPassphrase = "operator.passphrase"

// SetOperatorPassphrase replaces the operator passphrase; p is made with the
// present one. The caller wipes pass.
func (o *Operator) SetOperatorPassphrase(ctx context.Context, pass []byte, p Proof) error {
	_, err := askFor[map[string]any](ctx, o, unlockTimeout, "POST", "/v1/operator/passphrase", secretBody(nil, pass, p))
	return err
}

// BackupParams are those of vault.export-backup.
func BackupParams(recipients []string) Params { return Params{"recipients": recipients} }

// Backup writes a sealed copy of the vault for the recipients.
func (o *Operator) Backup(ctx context.Context, recipients []string, p Proof) (Backup, error) {
	return askFor[Backup](ctx, o, unlockTimeout, "POST", "/v1/vault/backup", secretBody(BackupParams(recipients), nil, p))
}

// importPart is how much of a backup one request carries: in base64 it stays
// below what the daemon takes as a body.
const importPart = 32 << 10

// SendBackup gives the daemon the sealed bytes of a backup, for an Import on the
// same connection.
func (o *Operator) SendBackup(ctx context.Context, sealed []byte) error {
	for at := 0; at == 0 || at < len(sealed); at += importPart {
		body := struct {
			Part  []byte `json:"part"`
			First bool   `json:"first"`
		}{sealed[at:min(at+importPart, len(sealed))], at == 0}
		if err := o.act(ctx, "POST", "/v1/vault/import/parts", body); err != nil {
			return err
		}
	}
	return nil
}

// Import stores the identities of the backup that was sent; secret is its
// passphrase, or its recovery code as it was typed.
func (o *Operator) Import(ctx context.Context, i Import, secret []byte, p Proof) (Imported, error) {
	return askFor[Imported](ctx, o, unlockTimeout, "POST", "/v1/vault/import", secretBody(i.Params(), secret, p))
}
