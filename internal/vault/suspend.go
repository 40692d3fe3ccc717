package vault

import "context"

// suspendAfter is how many answers may echo the secret of one identity
// generation before it is suspended: one may be a page of the upstream that
// shows the request, three are a leak.
const suspendAfter = 3

// echo counts answers that held an identity's secret, for one generation.
type echo struct {
	generation uint64
	count      int
}

// Suspect counts one answer that echoed the secret of an identity. After three
// of one generation the identity is suspended until its secret is put anew; no
// other identity is touched. A suspension is saved in the vault, at once where
// it is open, otherwise with the next save of this run.
func (v *Vault) Suspect(name string) {
	v.mu.Lock()
	e, ok := v.echoes[name]
	if v.contents != nil {
		var it item
		it, ok = v.contents.items[name]
		if e.generation != it.generation {
			e = echo{generation: it.generation}
		}
	}
	if !ok {
		v.mu.Unlock()
		return
	}
	e.count++
	v.echoes[name] = e
	calls := append([]func(string){}, v.onSuspend...)
	v.mu.Unlock()
	if e.count != suspendAfter {
		return
	}
	v.tokens.drop(func(k tokenKey) bool { return k.name == name }, errReplaced(name))
	// The mark is in memory already; a failed save is made good by the next.
	_, _ = v.commit(context.Background(), func(opened, *contents, uint64) error { return nil })
	for _, f := range calls {
		f(name)
	}
}

// noteLeaseLocked makes the count start with the generation that was leased, so
// that an echo is counted also while the vault is locked. v.mu is held.
func (v *Vault) noteLeaseLocked(it item) {
	if v.echoes[it.name].generation != it.generation {
		v.echoes[it.name] = echo{generation: it.generation}
	}
}

// OnSuspend adds a function that is called when an identity is suspended.
func (v *Vault) OnSuspend(f func(name string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.onSuspend = append(v.onSuspend, f)
}

// suspended says whether the identity may not be used.
func (v *Vault) suspended(it item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return it.suspended || v.echoedLocked(it)
}

func (v *Vault) echoedLocked(it item) bool {
	e := v.echoes[it.name]
	return e.generation == it.generation && e.count >= suspendAfter
}

// markSuspended writes suspensions into contents that are about to be saved.
func (v *Vault) markSuspended(c *contents) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, it := range c.items {
		if v.echoedLocked(it) {
			it.suspended = true
			c.items[name] = it
		}
	}
}
