package vault

import (
	"context"
	"strings"
	"time"
)

// LockPolicy says when an open vault locks by itself. The zero value means
// never.
type LockPolicy struct {
	Idle time.Duration // without a lease, a change or a right proof; 0: never
	Age  time.Duration // after the unlock; 0: never
	// Slept is how long the machine has slept since some moment; nil: a sleep
	// does not lock, and is not counted in Idle and Age.
	Slept  func() time.Duration
	OnWake bool // a sleep locks
}

// watchEvery is how often the policy is looked at. Nothing is sent in between:
// every use of the vault looks too.
const watchEvery = 5 * time.Second

// sleptAtLeast is a sleep: the two clocks are not read in one moment, and a
// machine that slept less was not left alone.
const sleptAtLeast = time.Second

// autoLock is what the policy is compared with. It is guarded by Vault.mu.
type autoLock struct {
	p            LockPolicy
	base         time.Time
	opened, used time.Duration // on the clock of up
	slept        time.Duration // at the unlock
	due          chan struct{} // nudges the watcher; nil: nobody watches
}

// up counts time since base, with the time asleep, which Go's own clock leaves
// out on Linux.
func (a *autoLock) up() time.Duration { return time.Since(a.base) + a.asleep() }

func (a *autoLock) asleep() time.Duration {
	if a.p.Slept == nil {
		return 0
	}
	return a.p.Slept()
}

// begin starts counting, at an unlock.
func (a *autoLock) begin() {
	a.base = time.Now()
	a.opened = a.up()
	a.used = a.opened
	a.slept = a.asleep()
}

// touch says that the vault is in use.
func (a *autoLock) touch() { a.used = a.up() }

// overdue says why an open vault should be locked by now, "" where it should
// not, and wakes whoever does it.
func (a *autoLock) overdue() string {
	reason := a.why()
	if reason != "" {
		select {
		case a.due <- struct{}{}:
		default:
		}
	}
	return reason
}

func (a *autoLock) why() string {
	if a.due == nil {
		return ""
	}
	slept := a.asleep() // read once: it asks the system
	up := time.Since(a.base) + slept
	switch {
	case a.p.OnWake && slept-a.slept >= sleptAtLeast:
		return "the machine slept"
	case a.p.Age > 0 && up-a.opened >= a.p.Age:
		return "open for " + a.p.Age.String()
	case a.p.Idle > 0 && up-a.used >= a.p.Idle:
		return "not used for " + a.p.Idle.String()
	}
	return ""
}

// text is for people; "" where nobody watches.
func (a *autoLock) text() string {
	if a.due == nil {
		return ""
	}
	var parts []string
	if a.p.Idle > 0 {
		parts = append(parts, "not used for "+a.p.Idle.String())
	}
	if a.p.Age > 0 {
		parts = append(parts, "open for "+a.p.Age.String())
	}
	if a.p.OnWake && a.p.Slept != nil {
		parts = append(parts, "after a sleep of the machine")
	}
	return strings.Join(parts, "; ")
}

// Watch locks the vault when the policy says so, until ctx ends. It counts from
// now where the vault is open already. One watcher at a time.
func (v *Vault) Watch(ctx context.Context, p LockPolicy) {
	due := make(chan struct{}, 1)
	v.mu.Lock()
	v.auto = autoLock{p: p, due: due}
	v.auto.begin()
	v.mu.Unlock()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			v.mu.Lock()
			v.auto = autoLock{}
			v.mu.Unlock()
			return
		case <-tick.C:
		case <-due:
		}
		v.mu.Lock()
		reason := ""
		if v.state == StateOpen {
			reason = v.auto.why()
		}
		v.mu.Unlock()
		if reason != "" {
			v.Lock("by itself: " + reason)
		}
	}
}

// touch is for uses that save nothing.
func (v *Vault) touch() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == StateOpen {
		v.auto.touch()
	}
}
