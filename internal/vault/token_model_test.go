package vault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
)

// tokenModel is what docs/vault.md ("Tokens") says of one token, without any of the
// code: when an exchange is due, and what a call meets.
type tokenModel struct {
	token    int // number of the token that is there, 0 for none
	came     time.Time
	used     bool
	failed   bool      // the last exchange brought nothing
	quiet    time.Time // no exchange before
	rejected time.Time
	sends    int // exchanges so far
}

const modelLife = 1000 * time.Second

func (m *tokenModel) age() time.Duration { return time.Since(m.came) }

func (m *tokenModel) good() bool { return m.token > 0 && m.age() < modelLife-time.Minute }

// exchange is one exchange, which works or does not.
func (m *tokenModel) exchange(works bool) {
	m.sends++
	if works {
		m.token, m.came, m.used, m.failed, m.quiet = m.sends, time.Now(), false, false, time.Time{}
		return
	}
	m.quiet = time.Now().Add(exchangeBackoff)
	m.failed = !m.good()
}

// call says what a call gets.
func (m *tokenModel) call(works bool) (token int, ok bool) {
	if !m.good() {
		if m.failed && time.Now().Before(m.quiet) {
			return 0, false
		}
		m.token = 0
		m.exchange(works)
	}
	m.used = m.used || m.good()
	return m.token, m.good()
}

func (m *tokenModel) refresh(works bool) {
	if m.good() && m.used && m.age() >= modelLife*8/10 && !time.Now().Before(m.quiet) {
		m.exchange(works)
	}
}

func (m *tokenModel) reject() {
	soon := !m.rejected.IsZero() && time.Since(m.rejected) < exchangeBackoff
	m.rejected, m.token, m.failed, m.quiet = time.Now(), 0, soon, time.Time{}
	if soon {
		m.quiet = time.Now().Add(exchangeBackoff)
	}
}

func (m *tokenModel) drop() { *m = tokenModel{sends: m.sends} }

// TestTokenModel walks the phases at random. Every move that the code makes is one
// of its table, or it panics; what calls meet is what the model says; and each move
// of the table is made by some walk.
func TestTokenModel(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(15) {
		inBubble(t, clientBinding(), clientSecret, func(t *testing.T, v *Vault) {
			walkTokens(t, v, rand.New(rand.NewPCG(seed, 2)), seen)
		})
	}
	for from, all := range phases {
		for _, to := range all {
			if !seen[string(from)+" to "+string(to)] && from != phaseRenewing {
				t.Errorf("no walk went from %s to %s", from, to)
			}
		}
	}
}

func walkTokens(t *testing.T, v *Vault, r *rand.Rand, seen map[string]bool) {
	m := &tokenModel{}
	works := true
	e := &endpoint{answer: func(n int, _ sent) (TokenAnswer, error) {
		if !works {
			return jsonAnswer(503, ""), nil
		}
		return jsonAnswer(200, fmt.Sprintf(`{"access_token":"%s","token_type":"Bearer","expires_in":1000}`, tokenOf(n))), nil
	}}
	var leases []*Lease
	defer func() {
		for _, l := range leases {
			l.Close()
		}
	}()
	before := phaseNone
	for step := range 200 {
		works = r.IntN(4) > 0
		event := r.IntN(12)
		switch event {
		case 0, 1, 2, 3:
			l, err := v.Lease(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
			err = l.Ready(t.Context(), Narrow{}, e.exchange)
			want, ok := m.call(works)
			if (err == nil) != ok {
				t.Fatalf("step %d: %v, the model says %v", step, err, ok)
			}
			if held, _ := l.token(); ok && !held.text.Equal(sec(tokenOf(want))) {
				t.Fatalf("step %d: not token %d", step, want)
			}
		case 4:
			time.Sleep(time.Duration(r.IntN(6)) * time.Second)
		case 5, 6:
			time.Sleep(time.Duration(r.IntN(900)) * time.Second)
		case 7, 8:
			n := m.sends
			v.Refresh(t.Context(), e.exchange)
			m.refresh(works)
			if m.sends > n {
				seen["good to renewing"] = true // and back, within Refresh
			}
		case 9:
			i := len(leases) - 1
			if i < 0 {
				continue
			}
			held, _ := leases[i].token()
			if held != nil && m.good() && held.text.Equal(sec(tokenOf(m.token))) && time.Since(m.came) >= 0 && held == current(v) {
				m.reject()
			}
			leases[i].Rejected()
		case 10:
			if r.IntN(3) == 0 {
				v.Lock("walk")
				unlock(t, v)
				m.drop()
			}
		case 11:
			if r.IntN(3) == 0 {
				put(t, v, "a", clientSecret, clientBinding())
				m.drop()
			}
		}
		synctest.Wait()
		if e.count() != m.sends {
			t.Fatalf("step %d, event %d: %d exchanges, the model says %d", step, event, e.count(), m.sends)
		}
		before = noteMove(t, v, before, seen)
	}
}

// current is the token that is given out now.
func current(v *Vault) *heldToken {
	e := v.tokens.entries[tokenKey{name: "a", generation: v.contents.items["a"].generation}]
	if e == nil {
		return nil
	}
	return e.token
}

// noteMove checks what must be true in each phase.
func noteMove(t *testing.T, v *Vault, before phase, seen map[string]bool) phase {
	t.Helper()
	now := phaseNone
	if len(v.tokens.entries) > 1 {
		t.Fatalf("%d tokens are kept", len(v.tokens.entries))
	}
	for _, e := range v.tokens.entries {
		now = e.phase
		if (e.token != nil) != (now == phaseGood || now == phaseRenewing) || (e.flight != nil) != (now == phaseMinting || now == phaseRenewing) {
			t.Fatalf("in phase %s: token %v, exchange %v", now, e.token != nil, e.flight != nil)
		}
		if e.token != nil && e.token.text.IsZero() {
			t.Fatal("a token that is given out is wiped")
		}
	}
	for _, path := range paths(before, now, 3) {
		for i := 1; i < len(path); i++ {
			seen[string(path[i-1])+" to "+string(path[i])] = true
		}
	}
	return now
}

// paths are the shortest ways of the table from one phase to another.
func paths(from, to phase, most int) [][]phase {
	if from == to || most == 0 {
		return nil
	}
	var out [][]phase
	for _, next := range phases[from] {
		if next == to {
			return [][]phase{{from, to}}
		}
	}
	for _, next := range phases[from] {
		for _, p := range paths(next, to, most-1) {
			out = append(out, slices.Concat([]phase{from}, p))
		}
	}
	return out
}

// A move that the table does not have is a mistake that must not go on.
func TestPhaseTable(t *testing.T) {
	all := []phase{phaseNone, phaseMinting, phaseGood, phaseRenewing, phaseSpent}
	for _, from := range all {
		for _, to := range all {
			moved := func() (ok bool) {
				defer func() { _ = recover() }()
				e := tokenEntry{phase: from}
				e.move(to)
				return true
			}()
			if moved != slices.Contains(phases[from], to) {
				t.Errorf("from %s to %s: moved %v", from, to, moved)
			}
		}
	}
	if code := fault.CodeOf(errReplaced("a")); code != fault.IdentityUnavailable {
		t.Errorf("who waits for a replaced identity is told %s", code)
	}
}
