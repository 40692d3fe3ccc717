package main

import (
	"context"
	"errors"
	"os"
	"time"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// vaultOptions chooses where sealed items, slots' secrets and the counter lie. In
// the OS keychain they carry the instance's id, so that two daemons of one user
// never mix them up.
func vaultOptions(c Config, i instance) vault.Options {
	box := vault.Keychain("chatelaine "+i.ID, keychainLimit)
	o := vault.Options{GenerationFile: c.GenerationFile, SlotKeychain: box, CredentialsDir: os.Getenv(credentialsVariable)}
	if c.Backend == "keychain" {
		o.Backend = box
	}
	if c.GenerationKeychain {
		o.GenerationBackend = box
	}
	return o
}

// credentialsVariable is where the service manager names the folder of a unit's
// credentials (systemd.exec(5)).
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// keychainLimit is how long the OS keychain may take to answer: it runs on this
// machine, and a locked one may never answer.
const keychainLimit = 5 * time.Second

// unlock opens the vault with a passphrase, then what is sealed under its keys.
func (d *daemon) unlock(ctx context.Context, pass secret.Secret) error {
	return d.unlockBy(func() error { return d.vault.Unlock(ctx, pass) })
}

// unlockBy opens the vault in one way or another, then what is sealed under its
// keys. Either all of it is open afterwards or nothing is.
func (d *daemon) unlockBy(open func() error) error {
	d.accepting.Lock()
	defer d.accepting.Unlock()
	was := d.vault.CheckOpen() == nil
	if err := open(); err != nil {
		return err
	}
	if was {
		return nil
	}
	err := d.compareSet() // before a session can be used
	if err == nil {
		err = d.openSealed()
	}
	if err != nil {
		d.vault.Lock("what is sealed under it did not open")
		return err
	}
	if err := d.vault.CheckOpen(); err != nil {
		// A lock came in between: it may have passed the rooms that were opened
		// after it, and does not come again.
		d.closeSealed()
		return err
	}
	d.gateway.Unlocked()
	d.recordOffline(context.Background()) // the record has its own deadline
	d.warnExpiry(time.Now())
	return nil
}

// watchVault opens the vault by itself where it has a slot for that, and then
// locks it when the settings say so, until ctx ends.
func (d *daemon) watchVault(ctx context.Context) {
	d.openUnattended(ctx)
	d.vault.Watch(ctx, d.config.policy())
}

// openUnattended is for the start. A vault without such a slot is left alone.
func (d *daemon) openUnattended(ctx context.Context) {
	slots := d.vault.State().Unattended
	if len(slots) == 0 {
		return
	}
	err := d.unlockBy(func() error { return d.vault.UnlockUnattended(ctx) })
	switch {
	case err == nil:
		d.gateway.Note("unlock without a person", "", "the daemon")
		d.log.Info("the vault opened without a person", "slots", len(slots))
	case !errors.Is(err, context.Canceled):
		d.log.Warn("the vault did not open by itself; unlock it by hand", "cause", err.Error())
	}
}
