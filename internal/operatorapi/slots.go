package operatorapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"chatelaine/internal/approvals"
)

// Slots is what an operator may do with the ways to open the vault, and with
// sealed copies of it. Nothing here returns a secret of an identity; a recovery
// code is returned once, by what makes it.
type Slots interface {
	UnlockWithCode(ctx context.Context, code []byte) error
	UnlockUnattended(ctx context.Context) error
	Slots() []SlotView
	CheckSlot(n NewSlot) error
	// AddSlot needs what opens the vault already, besides the proof.
	AddSlot(ctx context.Context, n NewSlot, opens Way, unlock, passphrase []byte) (AddedSlot, error)
	Removable(id string) (SlotView, error)
	RemoveSlot(ctx context.Context, id string) error
	PlanRotation(keep string) (Rotation, error)
	RotateKey(ctx context.Context, keep string, passphrase []byte) (code string, err error)
	CheckRecipients(recipients []string) error
	Backup(ctx context.Context, recipients []string) (Backup, error)
	LookAtBackup(b []byte) (BackupFacts, error)
	Import(ctx context.Context, b []byte, opens Way, secret []byte, replace bool) (Imported, error)
}

// SlotView is what may be shown of one way to open the vault.
type SlotView struct {
	ID         string     `json:"id"`
	Kind       string     `json:"kind"`
	Label      string     `json:"label,omitempty"`
	Created    *time.Time `json:"created,omitempty"`
	Unattended bool       `json:"unattended"`
	Opens      bool       `json:"opens"`
	Detail     string     `json:"detail"`
}

// NewSlot is a slot that is asked for. Credential is for its kind only.
type NewSlot struct{ Kind, Label, Credential string }

// AddedSlot is a new slot; RecoveryCode is there where it is one.
type AddedSlot struct {
	Slot         SlotView `json:"slot"`
	RecoveryCode string   `json:"recovery_code,omitempty"`
}

// Rotation is what replacing the data key does to the slots.
type Rotation struct{ Kept, Replaced, Removed []SlotView }

// Conflict is met by the error of something that is refused because of how the
// vault is; the code and the sentence are the operator's.
type Conflict interface {
	Conflict() (code, sentence string)
}

// The operations of this file.
const (
	opAddSlot    = "vault.add-slot"
	opRemoveSlot = "vault.remove-slot"
	opRotateKey  = "vault.rotate-key"
	opBackup     = "vault.export-backup"
	opImport     = "vault.import"
)

// slotRoutes are part of the table in operatorapi.go.
func slotRoutes() []route {
	proved := func(method, path string, w widening) route { return route{method: method, path: path, widens: &w} }
	return []route{
		{http.MethodGet, "/v1/vault/slots", needsSocket, (*API).slots, nil},
		proved(http.MethodPost, "/v1/vault/slots", widening{operation: opAddSlot, aside: []string{memberSecret, memberUnlock}, plan: (*API).planAddSlot}),
		proved(http.MethodDelete, "/v1/vault/slots/{id}", widening{operation: opRemoveSlot, subject: idParam, plan: (*API).planRemoveSlot}),
		proved(http.MethodPost, "/v1/vault/rotate", widening{operation: opRotateKey, aside: []string{memberSecret}, plan: (*API).planRotate}),
		proved(http.MethodPost, "/v1/vault/backup", widening{operation: opBackup, plan: (*API).planBackup}),
		{http.MethodPost, "/v1/vault/import/parts", needsSocket, (*API).importPart, nil},
		proved(http.MethodPost, "/v1/vault/import", widening{operation: opImport, aside: []string{memberSecret}, plan: (*API).planImport}),
	}
}

func (a *API) slots(*call) (any, error) {
	list := a.vault.Slots()
	if list == nil {
		list = []SlotView{}
	}
	return map[string]any{"slots": list}, nil
}

// slotsFact binds a proof to the slots that there are: what was added or removed
// meanwhile asks again.
func (a *API) slotsFact() approvals.Part {
	var ids []string
	for _, s := range a.vault.Slots() {
		ids = append(ids, s.ID)
	}
	return factOf("the slots of the vault", ids)
}

// planAddSlot lets somebody or something else open the vault.
func (a *API) planAddSlot(_ string, of object) (statement, error) {
	if err := of.only("kind", "label", "credential", "opens"); err != nil {
		return statement{}, err
	}
	n, given := NewSlot{}, map[string]any{}
	for name, into := range map[string]*string{"kind": &n.Kind, "label": &n.Label, "credential": &n.Credential} {
		text, err := of.text(name, name == "kind")
		if err != nil {
			return statement{}, err
		}
		if *into = text; text != "" {
			given[name] = text
		}
	}
	opens, err := wayOf(of)
	if err != nil {
		return statement{}, err
	}
	given["opens"] = string(opens)
	if err := a.vault.CheckSlot(n); err != nil {
		return statement{}, err
	}
	return statement{
		covers: addSentence(n), of: given, facts: []approvals.Part{a.slotsFact()},
		do: func(c *call) (any, error) {
			pass, err := c.slotPassphrase(n.Kind)
			if err != nil {
				return nil, err
			}
			defer clear(pass)
			unlock, err := c.bytes(memberUnlock)
			if err != nil {
				return nil, err
			}
			defer clear(unlock)
			if err := a.g.Record(c.r.Context(), opAddSlot, n.Kind, c.by, map[string]any{"label": n.Label, "credential": n.Credential}); err != nil {
				return nil, err
			}
			return a.vault.AddSlot(c.r.Context(), n, opens, unlock, pass)
		},
	}, nil
}

// memberUnlock is what opens the vault already, for who adds another way.
const memberUnlock = "unlock"

// wayOf reads the member opens.
func wayOf(of object) (Way, error) {
	text, err := of.text("opens", true)
	if err != nil {
		return "", err
	}
	if way := Way(text); way == ByPassphrase || way == ByRecovery {
		return way, nil
	}
	return "", invalid(of.at+"/opens", "must be passphrase or recovery")
}

// Kinds of slot, as the vault names them.
const (
	kindPassphrase = "passphrase"
	kindCredential = "credential"
	kindKeychain   = "keychain"
)

// slotPassphrase is the secret member of a passphrase slot; other kinds take
// none.
func (c *call) slotPassphrase(kind string) ([]byte, error) {
	if _, there := c.body.members[memberSecret]; there != (kind == kindPassphrase) {
		return nil, invalid("/"+memberSecret, "goes with a slot of kind passphrase, and only with it")
	}
	if kind != kindPassphrase {
		return nil, nil
	}
	return c.secret()
}

func addSentence(n NewSlot) string {
	text := "let another " + n.Kind
	switch n.Kind {
	case kindCredential:
		text = "let the service manager's credential " + n.Credential
	case kindKeychain:
		text = "let a secret in the keychain of the daemon's user, which any process of that user can read,"
	case kindPassphrase:
	default:
		text += " code"
	}
	if n.Label != "" {
		text += " (" + n.Label + ")"
	}
	text += " open the vault"
	if n.Kind == kindCredential || n.Kind == kindKeychain {
		text += " without a person"
	}
	return text
}

// slotText names a slot in a sentence.
func slotText(s SlotView) string {
	text := s.Kind + " slot " + s.ID[:min(len(s.ID), slotShown)]
	if s.Label != "" {
		text += " (" + s.Label + ")"
	}
	return text
}

// slotShown is how many digits of a slot's id a sentence has.
const slotShown = 8

func slotTexts(all []SlotView) string {
	var out []string
	for _, s := range all {
		out = append(out, slotText(s))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ") // at most sixteen
}

func (a *API) planRemoveSlot(id string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	s, err := a.vault.Removable(id)
	if err != nil {
		return statement{}, err
	}
	return statement{
		covers: "remove the " + slotText(s) + ": it opens the vault no more",
		facts:  []approvals.Part{a.slotsFact()},
		do: func(c *call) (any, error) {
			if err := a.g.Record(c.r.Context(), opRemoveSlot, id, c.by, map[string]any{"kind": s.Kind, "label": s.Label}); err != nil {
				return nil, err
			}
			if err := a.vault.RemoveSlot(c.r.Context(), id); err != nil {
				return nil, err
			}
			return map[string]any{"id": id, "removed": true}, nil
		},
	}, nil
}

// planRotate seals everything under a new key. The passphrase of the slot that
// stays comes with the request.
func (a *API) planRotate(_ string, of object) (statement, error) {
	if err := of.only("slot"); err != nil {
		return statement{}, err
	}
	keep, err := of.text("slot", false)
	if err != nil {
		return statement{}, err
	}
	r, err := a.vault.PlanRotation(keep)
	if err != nil {
		return statement{}, err
	}
	s := statement{of: map[string]any{}, facts: []approvals.Part{a.slotsFact()}}
	if keep != "" {
		s.of["slot"] = keep
	}
	s.covers = fmt.Sprintf("seal the vault under a new data key; slots that stay: %s; replaced by a new one: %s; removed: %s; what waits for an approval asks again",
		slotTexts(r.Kept), slotTexts(r.Replaced), slotTexts(r.Removed))
	s.do = func(c *call) (any, error) {
		pass, err := c.secret()
		if err != nil {
			return nil, err
		}
		defer clear(pass)
		if err := a.g.Record(c.r.Context(), opRotateKey, "", c.by, map[string]any{"removed": slotTexts(r.Removed)}); err != nil {
			return nil, err
		}
		code, err := a.vault.RotateKey(c.r.Context(), keep, pass)
		if err != nil {
			return nil, err
		}
		out := map[string]any{"slots": a.vault.Slots()}
		if code != "" {
			out["recovery_code"] = code
		}
		return out, nil
	}
	return s, nil
}
