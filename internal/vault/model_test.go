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
}

// TestModel walks the states at random and compares the vault with a model that
// knows only docs/vault.md.
func TestModel(t *testing.T) {
	for seed := range uint64(30) {
		walk(t, rand.New(rand.NewPCG(seed, 1)))
	}
}

// walk plays sixty events. The files are the current one, an older one and a
// torn one.
func walk(t *testing.T, r *rand.Rand) {
	v, path := create(t, cheap)
	old := read(t, path)
	put(t, v, "a", planted, bearer())
	files := [][]byte{read(t, path), old, []byte("torn")}
	disk := 0
	m := &model{state: StateOpen}
	for step := range 60 {
		event := r.IntN(8)
		switch event {
		case 0, 1:
			m.unlock(t, v, disk, true)
		case 2:
			m.unlock(t, v, disk, false)
		case 3:
			v.Lock("test")
			if m.state == StateOpen {
				m.state = StateSealed
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
	var want error
	switch {
	case disk == 2:
		want, m.state = ErrDamaged, StateDamaged
	case !right:
		want = ErrWrongPassphrase
		if !open {
			m.state = StateSealed
		}
	case disk == 1 && open:
		want, m.state = ErrChanged, StateDamaged
	case disk == 1:
		want, m.state = ErrRolledBack, StateRolledBack
	default:
		m.state = StateOpen
	}
	if !errors.Is(err, want) {
		t.Fatalf("file %d, right %v, open %v: got %v, want %v", disk, right, open, err, want)
	}
}
