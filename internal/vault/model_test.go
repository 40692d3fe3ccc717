package vault

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// model is what a vault should be after each event, kept beside the real one.
type model struct {
	state  string
	leases []*Lease
	locked bool // since the start
}

// TestModel walks the states at random and compares the vault with a model that
// knows only docs/vault.md.
func TestModel(t *testing.T) {
	t.Parallel() // it waits for the disk
	for seed := range uint64(20) {
		walk(t, rand.New(rand.NewPCG(seed, 1)))
	}
}

// walk plays sixty events. The files are the current one, an older one and a
// torn one.
func walk(t *testing.T, r *rand.Rand) {
	o := cheap
	o.SlotKeychain = newMemory()
	v, path := create(t, o)
	code := codeOf(t, add(t, v, NewSlot{Kind: SlotRecovery}))
	add(t, v, NewSlot{Kind: SlotKeychain})
	old := read(t, path)
	put(t, v, "a", planted, bearer())
	files := [][]byte{read(t, path), old, []byte("torn")}
	disk := 0
	m := &model{state: StateOpen}
	for step := range 60 {
		event := r.IntN(11)
		switch event {
		case 0, 1:
			m.unlock(t, v, disk, true)
		case 2:
			m.unlock(t, v, disk, false)
		case 3:
			v.Lock("test")
			if m.state == StateOpen {
				m.state, m.locked = StateSealed, true
			}
		case 4:
			disk = r.IntN(len(files))
			write(t, path, files[disk])
		case 5:
			disk = 0
			write(t, path, files[0])
		case 6:
			l, err := v.Lease(t.Context(), "a")
			if (err == nil) != (m.state == StateOpen) {
				t.Fatalf("step %d: lease in state %s: %v", step, m.state, err)
			}
			if err == nil {
				m.leases = append(m.leases, l)
			}
		case 8:
			m.unlocks(t, v, disk, v.UnlockWithCode(t.Context(), code))
		case 9:
			err := v.UnlockUnattended(t.Context())
			if m.locked {
				wantErr(t, err, ErrLockedByHand)
			} else {
				m.unlocks(t, v, disk, err)
			}
		case 10: // a slot comes and goes; the file of the walk becomes the new one
			if m.state == StateOpen && disk == 0 {
				v.unlocks = limiter{}
				a := add(t, v, NewSlot{Kind: SlotRecovery})
				if err := v.RemoveSlot(t.Context(), a.Slot.ID); err != nil {
					t.Fatal(err)
				}
				files[0] = read(t, path)
			}
		case 7:
			if n := len(m.leases); n > 0 {
				m.leases[n-1].Close()
				m.leases = m.leases[:n-1]
			}
		}
		want := m.state
		if want == StateSealed && len(m.leases) > 0 {
			want = StateLocking
		}
		if got := v.State().State; got != want {
			t.Fatalf("step %d, event %d, file %d: got %s, want %s", step, event, disk, got, want)
		}
		if want != StateOpen && !v.dataKey.IsZero() {
			t.Fatalf("step %d: a key is left in state %s", step, want)
		}
	}
}

// unlock tries a passphrase on the file that is there: 0 the current one, 1 an
// older one, 2 a torn one.
func (m *model) unlock(t *testing.T, v *Vault, disk int, right bool) {
	t.Helper()
	v.unlocks = limiter{}
	pass, open := "wrong", m.state == StateOpen
	if right {
		pass = goodPass
	}
	err := v.Unlock(t.Context(), sec(pass))
	if right || disk == 2 {
		m.unlocks(t, v, disk, err)
		return
	}
	wantErr(t, err, ErrWrongPassphrase)
	if !open {
		m.state = StateSealed
	}
}

// unlocks is what a right try does with the file that is there, in whatever way.
func (m *model) unlocks(t *testing.T, v *Vault, disk int, err error) {
	t.Helper()
	open := m.state == StateOpen
	var want error
	switch {
	case disk == 2:
		want, m.state = ErrDamaged, StateDamaged
	case disk == 1 && open:
		want, m.state = ErrChanged, StateDamaged
	case disk == 1:
		want, m.state = ErrRolledBack, StateRolledBack
	default:
		m.state = StateOpen
	}
	if open && m.state != StateOpen {
		m.locked = true
	}
	if !errors.Is(err, want) {
		t.Fatalf("file %d, open %v: got %v, want %v", disk, open, err, want)
	}
}
