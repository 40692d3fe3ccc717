package main

import (
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/vault"
)

// vaultLocks are the settings of the vault that concern when it locks by itself,
// where its counter lies, and when it warns.
type vaultLocks struct {
	Idle, Age          time.Duration // 0: off
	WarnBefore         time.Duration // of a secret's expiry; 0: off
	OnWake             bool
	GenerationKeychain bool
}

var vaultLockKeys = []string{"lock_idle", "lock_after", "lock_on_sleep", "generation_keychain", "warn_before"}

// Bounds of the two times: a vault that locks within a minute serves nobody, and
// a year is as good as off.
const (
	shortestLock = time.Minute
	longestLock  = 365 * 24 * time.Hour
)

// defaultWarnBefore is two weeks: somebody is on leave for one, and a new secret
// from another team takes days.
const defaultWarnBefore = 14 * 24 * time.Hour

// vaultLocks reads them. Off is the default for both times, because a daemon
// without a person beside it would stand still at night.
func (r *reader) vaultLocks(n *strictyaml.Node) {
	r.lockTime(n.Get("lock_idle"), "vault.lock_idle", &r.c.Idle)
	r.lockTime(n.Get("lock_after"), "vault.lock_after", &r.c.Age)
	r.lockTime(n.Get("warn_before"), "vault.warn_before", &r.c.WarnBefore)
	r.truth(n.Get("lock_on_sleep"), "vault.lock_on_sleep", &r.c.OnWake)
	r.truth(n.Get("generation_keychain"), "vault.generation_keychain", &r.c.GenerationKeychain)
}

func (r *reader) lockTime(n *strictyaml.Node, key string, into *time.Duration) {
	switch {
	case n == nil:
	case n.Kind == strictyaml.Bool && !n.Truth, n.Text == "off":
		*into = 0
		r.said(key)
	default:
		if d, ok := r.f.Duration(n, key, shortestLock, longestLock); ok {
			*into = d
			r.said(key)
		}
	}
}

func (r *reader) truth(n *strictyaml.Node, key string, into *bool) {
	if n == nil {
		return
	}
	if n.Kind != strictyaml.Bool {
		r.f.Report(n.Pos, "type", "write true or false", "%s must be true or false", key)
		return
	}
	*into = n.Truth
	r.said(key)
}

// vaultIdle runs after every section was read: a card that waits for a person is
// no use of the vault, so the vault must not lock before the card's time is up.
func (r *reader) vaultIdle(n *strictyaml.Node) {
	if n == nil || n.Kind != strictyaml.Mapping || r.c.Idle == 0 || r.c.Idle >= r.c.CardLife {
		return
	}
	r.f.Report(n.Get("lock_idle").Pos, "range", "write at least "+strictyaml.DurationText(r.c.CardLife)+", or shorten approvals.card",
		"vault.lock_idle is shorter than approvals.card, so cards would end before a person has had their time")
}

func (l vaultLocks) rows() [][2]string {
	text := func(d time.Duration) string {
		if d == 0 {
			return "off"
		}
		return strictyaml.DurationText(d)
	}
	truth := map[bool]string{true: "true", false: "false"}
	return [][2]string{
		{"vault.lock_idle", text(l.Idle)}, {"vault.lock_after", text(l.Age)},
		{"vault.lock_on_sleep", truth[l.OnWake]}, {"vault.generation_keychain", truth[l.GenerationKeychain]},
		{"vault.warn_before", text(l.WarnBefore)},
	}
}

func (l vaultLocks) policy() vault.LockPolicy {
	return vault.LockPolicy{Idle: l.Idle, Age: l.Age, OnWake: l.OnWake, Slept: vault.Asleep}
}
