package vault

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// crashing is a backend whose process dies at the n-th change: from then on
// nothing that it is asked happens.
type crashing struct {
	*memory
	left *int
}

var errDied = errors.New("died")

func (c crashing) step() error {
	if *c.left--; *c.left < 0 {
		return errDied
	}
	return nil
}

func (c crashing) Put(ctx context.Context, name string, b []byte) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.memory.Put(ctx, name, b)
}

func (c crashing) Delete(ctx context.Context, name string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.memory.Delete(ctx, name)
}

// referred says whether the keychain holds what the vault refers to, and nothing
// else.
func referred(t *testing.T, v *Vault, m *memory) {
	t.Helper()
	o, err := v.current()
	if err != nil {
		t.Fatal(err)
	}
	used := o.outside()
	for name := range m.items {
		if !used[name] && !strings.HasSuffix(name, "/generation") {
			t.Errorf("%s is an orphan", name)
		}
	}
	for name := range used {
		if m.items[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestNoOrphanOutlivesTheNextUnlock stops the keychain after each number of
// changes, in the middle of every kind of save, and starts again.
func TestNoOrphanOutlivesTheNextUnlock(t *testing.T) {
	t.Parallel() // it waits for the disk
	for _, change := range []func(v *Vault) error{
		func(v *Vault) error { _, err := v.Put(t.Context(), "a", bearer(), sec(planted), false); return err },
		func(v *Vault) error { _, err := v.Put(t.Context(), "new", bearer(), sec(planted), false); return err },
		func(v *Vault) error { b := bearer(); b.Host = "other.example"; return v.Rebind(t.Context(), "a", b) },
		func(v *Vault) error { return v.Delete(t.Context(), "a") },
		func(v *Vault) error {
			_, err := v.AddSlot(t.Context(), NewSlot{Kind: SlotKeychain}, ByPassphrase(sec(goodPass)))
			return err
		},
		func(v *Vault) error { return v.RemoveSlot(t.Context(), v.Slots()[1].ID) },
		func(v *Vault) error { _, err := v.RotateKey(t.Context(), "", sec(goodPass)); return err },
	} {
		for n := range 6 {
			m := newMemory()
			o := cheap
			o.Backend, o.SlotKeychain = m, m
			v, path := create(t, o)
			put(t, v, "a", planted, bearer())
			put(t, v, "b", planted, bearer())
			add(t, v, NewSlot{Kind: SlotKeychain})
			left := n
			c := crashing{m, &left}
			v.o.Backend, v.o.SlotKeychain = c, c
			_ = change(v)
			w := reopen(t, path, o)
			referred(t, w, m)
			if _, err := os.Stat(pendingPath(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("names stay written down: %v", err)
			}
			for _, i := range w.List() {
				attached(t, w, i.Name, Made{Scheme: "https", Host: i.Binding.Host, Port: 443, BasePath: "/api"})
			}
		}
	}
}

// TestOrphansOfAKeychainThatIsLocked stay written down until it answers.
func TestOrphansOfAKeychainThatIsLocked(t *testing.T) {
	m := newMemory()
	o := cheap
	o.Backend = m
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	left := 1 // the new entry is stored, the old one not removed
	v.o.Backend = crashing{m, &left}
	put(t, v, "a", planted, bearer())
	m.setFail(ErrKeychainLocked)
	w, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, w)
	if len(w.readPending()) == 0 {
		t.Error("the names are forgotten")
	}
	m.setFail(nil)
	put(t, w, "b", planted, bearer())
	referred(t, w, m)
}

// TestForeignNamesAreLeftAlone: whoever can write the list cannot have
// something else removed.
func TestForeignNamesAreLeftAlone(t *testing.T) {
	m := newMemory()
	o := cheap
	o.Backend, o.SlotKeychain = m, m
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	m.items["another/identity/x/1"], m.items["precious"] = []byte("1"), []byte("2")
	v.Lock("test")
	oc := v.head.id
	for _, text := range []string{
		pendingMark + "\nprecious\nanother/identity/x/1\n\n../x\n" + item{name: "a", generation: 2}.outsideName(oc) + "\n",
		"something else\nprecious\n", "", "\x00", strings.Repeat("x", maxPending+1),
	} {
		write(t, pendingPath(path), []byte(text))
		w := reopen(t, path, o)
		if m.items["precious"] == nil || m.items["another/identity/x/1"] == nil {
			t.Errorf("%.40q removed what is not ours", text)
		}
		attached(t, w, "a", madeFor(bearer()))
	}
}
