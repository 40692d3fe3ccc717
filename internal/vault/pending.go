package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"chatelaine/internal/durable"
)

// An entry of a keychain and the file that refers to it cannot be changed in
// one step. So the names of entries that are about to come or go are written
// down first, in a file beside the vault.
//
// On disk after each step: (1) the names; (2) the new entry in the keychain; (3)
// the vault file; (4) the old entry gone; (5) the names gone. A crash at any
// point leaves a vault that is whole, and perhaps entries that nothing refers
// to; the next unlock removes those that the names name. The names are no
// secret: the keychain shows them too.
const (
	pendingMark = "chatelaine pending 1"
	maxPending  = 1 << 20
)

func pendingPath(path string) string { return path + ".pending" }

// readPending returns the names that were written down; none where the file is
// missing or not ours.
func (v *Vault) readPending() []string {
	b, err := os.ReadFile(pendingPath(v.path))
	if err != nil || len(b) > maxPending {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if lines[0] != pendingMark {
		return nil
	}
	return lines[1:]
}

// noteLocked writes down names; v.write is held.
func (v *Vault) noteLocked(names ...string) error {
	all := v.readPending()
	for _, n := range names {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return v.writePending(all)
}

func (v *Vault) writePending(names []string) error {
	if len(names) == 0 {
		err := os.Remove(pendingPath(v.path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	text := pendingMark + "\n" + strings.Join(names, "\n") + "\n"
	if len(text) > maxPending {
		return fmt.Errorf("%w: too many entries wait for the keychain", ErrTooLarge)
	}
	return durable.WriteFile(pendingPath(v.path), []byte(text), fileMode)
}

// settle removes the written-down entries that the vault does not refer to. What
// cannot be removed now stays written down for the next time.
func (v *Vault) settle(ctx context.Context) {
	v.write.Lock()
	defer v.write.Unlock()
	v.settleLocked(ctx)
}

// settleLocked is settle with v.write held. A vault that is locked waits for
// its next unlock: only an open one knows what it refers to.
func (v *Vault) settleLocked(ctx context.Context) {
	names := v.readPending()
	if len(names) == 0 {
		return
	}
	o, err := v.current()
	if err != nil {
		return
	}
	used := o.outside()
	var left []string
	for _, n := range names {
		b := v.backendOf(o, n)
		if used[n] || b == nil {
			continue // it is where it should be, or it is not ours to remove
		}
		if err := b.Delete(ctx, n); err != nil && !errors.Is(err, ErrKeychainAbsent) {
			left = append(left, n)
		}
	}
	_ = v.writePending(left) // what stays too long is looked at again
}

// outside names every entry that lies in a keychain.
func (o opened) outside() map[string]bool {
	used := map[string]bool{}
	for _, it := range o.contents.items {
		if it.outside {
			used[it.outsideName(o.head.id)] = true
		}
	}
	for _, s := range o.head.slots {
		if s.kind == slotKeychain {
			p, _ := decodePlain(s.kind, s.params)
			used[p.name] = true
		}
	}
	return used
}

// backendOf is where an entry of this vault lies; nil for a name that this
// package did not make.
func (v *Vault) backendOf(o opened, name string) Backend {
	switch {
	case strings.HasPrefix(name, fmt.Sprintf("%x/identity/", o.head.id[:8])):
		return v.o.Backend
	case strings.HasPrefix(name, fmt.Sprintf("%x/slot/", o.head.id[:8])):
		return v.o.SlotKeychain
	}
	return nil
}
