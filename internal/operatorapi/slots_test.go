package operatorapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
)

const (
	slotOne = "11111111111111111111111111111111"
	slotTwo = "22222222222222222222222222222222"
	backup  = "a sealed vault"
)

// slotOperations are the widening operations on the vault itself.
func slotOperations(r *rig) []tried {
	r.vault.slots = []SlotView{{ID: slotOne, Kind: kindPassphrase, Label: "Jane"}, {ID: slotTwo, Kind: kindKeychain, Unattended: true}}
	more := func() {
		r.vault.slots = append(r.vault.slots, SlotView{ID: "33333333333333333333333333333333", Kind: "recovery"})
	}
	sum := sha256.Sum256([]byte(backup))
	digest := hex.EncodeToString(sum[:])
	r.conn.hold([]byte(backup), true)
	return []tried{
		{operation: opAddSlot, of: params{"kind": kindPassphrase, "label": "Jane", "opens": "passphrase"}, other: params{"kind": kindKeychain, "opens": "passphrase"}, change: more, says: "the slots of the vault",
			covers: "let another passphrase (Jane) open the vault"},
		{operation: opRemoveSlot, subject: slotOne, elsewhere: slotTwo, change: more, says: "the slots of the vault",
			covers: "remove the passphrase slot 11111111 (Jane): it opens the vault no more"},
		{operation: opRotateKey, of: params{}, other: params{"slot": slotOne}, change: more, says: "the slots of the vault",
			covers: "slots that stay: passphrase slot 11111111 (Jane), keychain slot 22222222; replaced by a new one: none; removed: none"},
		{operation: opBackup, of: params{"recipients": []any{"age1one"}}, other: params{"recipients": []any{"age1one", "age1thief"}},
			covers: "that only the holders of these keys can unpack, and then open with a passphrase or recovery code of the vault: age1one"},
		{operation: opImport, of: params{"digest": digest, "opens": "passphrase"}, other: params{"digest": digest, "opens": "passphrase", "replace": true},
			covers: "store the identities of the backup with digest " + digest[:digestShown] + ", each bound as it is there; those that are stored already are kept"},
	}
}

// TestSlotBodies refuses what is no request for a slot, before any proof counts.
func TestSlotBodies(t *testing.T) {
	r := newRig(t)
	slotOperations(r)
	for what, c := range map[string]struct {
		operation string
		of        params
	}{
		"no kind": {opAddSlot, params{"opens": "passphrase"}}, "no way": {opAddSlot, params{"kind": "keychain"}}, "kind is a number": {opAddSlot, params{"kind": 1, "opens": "recovery"}}, "another member": {opAddSlot, params{"kind": "keychain", "opens": "recovery", "x": 1}},
		"slot is a list": {opRotateKey, params{"slot": []any{}}}, "no recipients": {opBackup, params{}}, "empty recipients": {opBackup, params{"recipients": []any{}}},
		"a recipient is a number": {opBackup, params{"recipients": []any{1}}}, "seventeen recipients": {opBackup, params{"recipients": make([]any, maxRecipients+1)}},
		"no digest": {opImport, params{"opens": "passphrase"}}, "short digest": {opImport, params{"digest": "00", "opens": "passphrase"}},
		"upper-case digest": {opImport, params{"digest": strings.Repeat("AB", 32), "opens": "passphrase"}},
		"opens by nothing":  {opImport, params{"digest": strings.Repeat("ab", 32), "opens": "keychain"}},
	} {
		if _, err := r.challenge(c.operation, "", c.of); err == nil || translate(err).status != http.StatusBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	of := params{"kind": kindKeychain, "opens": "recovery"}
	body := params{"kind": kindKeychain, "opens": "recovery", "unlock": "QUJD", "secret": "QUJD", "proof": r.proved(opAddSlot, "", of)}
	if _, err := r.api.widen(wideningOf(opAddSlot), r.request("", body)); err == nil || translate(err).status != http.StatusBadRequest || len(r.vault.secrets) != 0 {
		t.Errorf("a passphrase for a keychain slot: %v", err)
	}
}

// TestPartsOfABackup hold what came, for one connection, and are used once.
func TestPartsOfABackup(t *testing.T) {
	r := newRig(t)
	part := func(first bool, b string) error {
		_, err := r.api.importPart(r.request("", params{"part": base64.StdEncoding.EncodeToString([]byte(b)), "first": first}))
		return err
	}
	r.must(part(true, "something else"))
	r.must(part(true, backup[:5]))
	r.must(part(false, backup[5:]))
	sum := sha256.Sum256([]byte(backup))
	of := params{"digest": hex.EncodeToString(sum[:]), "opens": "recovery"}
	if _, err := r.perform(opImport, "", of, r.proved(opImport, "", of)); err != nil || string(r.vault.imported) != backup {
		t.Errorf("got %q, %v", r.vault.imported, err)
	}
	if _, err := r.perform(opImport, "", of, r.proved(opImport, "", of)); err == nil || !strings.Contains(err.Error(), "not the digest") {
		t.Errorf("used twice: %v", err)
	}
	r.must(part(true, strings.Repeat("x", maxImport)))
	if err := part(false, "y"); err == nil {
		t.Error("more than a vault is held")
	}
	if r.conn.take() != nil {
		t.Error("what is too large stays")
	}
	_, err := r.api.importPart(r.request("", params{"part": "%"}))
	if err == nil || translate(err).status != http.StatusBadRequest {
		t.Errorf("got %v", err)
	}
}

// TestOneWayIn: an unlock names exactly one.
func TestOneWayIn(t *testing.T) {
	r := newRig(t)
	for what, body := range map[string]params{
		"nothing": {}, "two": {"passphrase": "a", "recovery_code": "b"}, "unattended is false": {"unattended": false},
		"unattended is a text": {"unattended": "yes"}, "another": {"fingerprint": "x"}, "a number": {"recovery_code": 1},
	} {
		if _, err := r.api.unlock(r.request("", body)); err == nil || translate(err).status != http.StatusBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, body := range []params{{"passphrase": "a"}, {"recovery_code": "b"}, {"unattended": true}} {
		_, err := r.api.unlock(r.request("", body))
		r.must(err)
	}
	if got := strings.Join(r.vault.secrets, ","); got != "code b,nobody" {
		t.Errorf("got %s", got)
	}
}

// slotTable stands for the slots of a vault.
type slotTable struct {
	slots    []SlotView
	imported []byte
	secrets  []string // what came beside a proof
}

func (s *slotTable) UnlockWithCode(_ context.Context, code []byte) error {
	s.secrets = append(s.secrets, "code "+string(code))
	return nil
}
func (s *slotTable) UnlockUnattended(context.Context) error {
	s.secrets = append(s.secrets, "nobody")
	return nil
}
func (s *slotTable) Slots() []SlotView         { return s.slots }
func (s *slotTable) CheckSlot(n NewSlot) error { return nil }

func (s *slotTable) AddSlot(_ context.Context, n NewSlot, _ Way, unlock, pass []byte) (AddedSlot, error) {
	v := SlotView{ID: "00000000000000000000000000000099", Kind: n.Kind, Label: n.Label}
	s.slots = append(s.slots, v)
	s.secrets = append(s.secrets, "slot "+string(unlock)+" "+string(pass))
	return AddedSlot{Slot: v}, nil
}

func (s *slotTable) Removable(id string) (SlotView, error) {
	for _, v := range s.slots {
		if v.ID == id {
			return v, nil
		}
	}
	return SlotView{}, notFound("no such slot")
}

func (s *slotTable) RemoveSlot(_ context.Context, id string) error {
	s.slots = s.slots[1:]
	return nil
}
func (s *slotTable) PlanRotation(string) (Rotation, error) { return Rotation{Kept: s.slots}, nil }
func (s *slotTable) RotateKey(_ context.Context, _ string, pass []byte) (string, error) {
	s.secrets = append(s.secrets, "rotate "+string(pass))
	return "CODE", nil
}
func (s *slotTable) CheckRecipients([]string) error { return nil }
func (s *slotTable) Backup(_ context.Context, r []string) (Backup, error) {
	s.secrets = append(s.secrets, "backup")
	return Backup{File: []byte("sealed"), Generation: 3}, nil
}
func (s *slotTable) LookAtBackup([]byte) (BackupFacts, error) { return BackupFacts{Vault: "v"}, nil }
func (s *slotTable) Import(_ context.Context, b []byte, w Way, secret []byte, _ bool) (Imported, error) {
	s.imported = b
	s.secrets = append(s.secrets, string(w)+" "+string(secret))
	return Imported{Added: []string{"a"}}, nil
}
