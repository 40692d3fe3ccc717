package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"chatelaine/internal/vault"
)

// offlineWork is the name of the vault's sealed fact: what commands did to the
// vault while no daemon ran that could write the record. The next unlock puts it
// there.
const offlineWork = "offline-work"

// offlineKept bounds the notes; more commands than that before one unlock is a
// script, and the newest ones tell.
const offlineKept = 32

// offlineNote is one such command.
type offlineNote struct {
	Decision string         `json:"decision"`
	At       time.Time      `json:"at"`
	By       string         `json:"by"`
	Detail   map[string]any `json:"detail,omitempty"`
}

func offlineNotes(v *vault.Vault) ([]offlineNote, error) {
	b, _, err := v.GetState(offlineWork)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	var out []offlineNote
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("the notes of work without a daemon cannot be read: %w", err)
	}
	return out, nil
}

// noteOffline seals what a command did into the open vault.
func noteOffline(v *vault.Vault, decision string, detail map[string]any) error {
	all, err := offlineNotes(v)
	if err != nil {
		all = nil // unreadable ones keep no new one out
	}
	all = append(all, offlineNote{decision, time.Now().UTC(), fmt.Sprintf("uid %d", os.Getuid()), detail})
	b, err := json.Marshal(all[max(0, len(all)-offlineKept):])
	if err != nil {
		return err
	}
	return v.PutState(offlineWork, b)
}

// recordOffline puts the notes into the record, each with the time of the work.
// What the record does not take stays for the next unlock; a crash in between
// writes it twice.
func (d *daemon) recordOffline(ctx context.Context) {
	all, err := offlineNotes(d.vault)
	if err == nil && len(all) == 0 {
		return
	}
	for _, n := range all {
		detail := map[string]any{"at": n.At.Format(time.RFC3339), "without_daemon": true}
		for k, v := range n.Detail {
			detail[k] = v
		}
		if err = d.gateway.Record(ctx, n.Decision, "", n.By, detail); err != nil {
			break
		}
	}
	if err == nil {
		err = d.vault.PutState(offlineWork, nil)
	}
	if err != nil {
		d.log.Warn("what was done to the vault without a daemon is not in the record yet", "cause", err.Error())
	}
}
