package main

import (
	"chatelaine/internal/gateway"
	"chatelaine/internal/usage"
)

// identityUsed keeps when an identity was last used and how that failed.
func (d *daemon) identityUsed(u gateway.Used) {
	d.usage.Note(u.Identity, u.Generation, u.At, u.Sent, u.Code)
}

// unlockUsage opens the book of last uses.
func (d *daemon) unlockUsage() error {
	k, err := d.keys("usage")
	if err != nil {
		return err
	}
	defer k.wipe()
	return d.usage.Unlock(usage.Keys{Index: k.index, Wrap: k.wrap})
}

// lockUsage writes what was noted and drops the keys.
func (d *daemon) lockUsage() {
	if err := d.usage.Lock(); err != nil {
		d.usageLost(err)
	}
}

// usageLost says that last uses were not written. Nothing depends on them.
func (d *daemon) usageLost(err error) {
	d.log.Warn("last uses of identities were not written", "cause", err.Error())
}
