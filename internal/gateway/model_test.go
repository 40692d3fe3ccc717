package gateway

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/validate"
)

// The model of the other end: what really happened, whatever was answered. It
// knows nothing of the gateway. The walk asks, looks, locks, stops and kills at
// random, and holds every answer against what really happened:
//
//   - what was asked for under one id happens at most once;
//   - a success is told only of what happened, and is told again ever after;
//   - UPSTREAM_UNAVAILABLE is told only of what did not happen;
//   - nothing is sent while the vault is locked or the daemon stops, and what is
//     posted is what the card showed;
//   - in every other walk the identity is exchanged for tokens that end at random:
//     whatever is sent has one, and a call whose exchange failed did not happen.

type truth struct {
	w  *strollTable
	mu sync.Mutex
	r  *rand.Rand

	effects map[string]int       // by key: how often the job was started
	due     map[string]time.Time // when a late effect comes
	left    map[string]int       // polls until the job has ended
	ends    map[string]string    // how it ends: done or failed
	rev     string               // what the next lookup finds
	tokens  int                  // that were given out
	wrong   []string
}

// strollTable is what the remote may look at of the walk.
type strollTable struct {
	mu      sync.Mutex
	open    bool
	stopped bool
	shown   map[string]string // by key: the revision on its card
}

func (w *strollTable) set(open, stopped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.stopped = open, stopped
}

func (m *truth) bad(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// settle lets late effects come.
func (m *truth) settle(key string) {
	if at, ok := m.due[key]; ok && !time.Now().Before(at) {
		delete(m.due, key)
		m.effects[key]++
	}
}

func (m *truth) happened(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(key)
	return m.effects[key] > 0
}

func (m *truth) script(method, path, body string) reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if !m.w.open || m.w.stopped {
		m.bad("%s %s was sent while locked or stopped", method, path)
	}
	key := path[strings.LastIndex(path, "/")+1:]
	switch {
	case path == "/oauth2/token":
		return m.token()
	case strings.HasPrefix(path, "/heads/"):
		return m.head(key)
	case method == http.MethodPost:
		return m.post(body)
	case strings.HasPrefix(path, "/runs/"):
		return m.run(key)
	}
	return m.look(key)
}

// token is the answer of an exchange: mostly a new one, sometimes late.
func (m *truth) token() reply {
	switch m.r.IntN(8) {
	case 0:
		return []reply{{status: 503}, {status: 401}, {status: 401}, lostIt, {status: 200, body: "nonsense"}}[m.r.IntN(5)]
	case 1:
		m.tokens++
		return reply{status: 200, body: fmt.Sprintf("token-%04d", m.tokens), after: time.Duration(m.r.IntN(20)) * time.Second}
	}
	m.tokens++
	return reply{status: 200, body: fmt.Sprintf("token-%04d", m.tokens)}
}

func (m *truth) head(key string) reply {
	if m.r.IntN(6) == 0 {
		return []reply{{status: 503}, lostIt, noSuch}[m.r.IntN(2)]
	}
	m.rev = fmt.Sprintf("%04x", m.r.IntN(1<<16))
	m.w.shown[key] = m.rev
	return ok(fmt.Sprintf(`{"rev":%q}`, m.rev))
}

// post does it, or not, or later; and says so, or something else, or nothing.
func (m *truth) post(body string) reply {
	var b struct{ Key, Rev string }
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		m.bad("posted %s", body)
		return reply{status: 400}
	}
	if b.Rev != m.w.shown[b.Key] {
		m.bad("%s: posted the revision %s, shown was %s", b.Key, b.Rev, m.w.shown[b.Key])
	}
	said := reply{status: 202, body: fmt.Sprintf(`{"run":%q}`, b.Key)}
	m.left[b.Key], m.ends[b.Key] = m.r.IntN(6), []string{"done", "done", "failed"}[m.r.IntN(3)]
	switch m.r.IntN(9) {
	case 0:
		return reply{status: 409} // refused, and nothing done
	case 1:
		return reply{status: 502} // nothing done
	case 2:
		return lostIt // nothing done
	case 3:
		m.due[b.Key] = time.Now().Add(time.Duration(m.r.IntN(25)) * time.Second)
		return lostIt
	case 4:
		m.effects[b.Key]++
		return []reply{{status: 502}, lostIt, {status: 202, body: `{"run":7}`}}[m.r.IntN(3)]
	case 5:
		m.effects[b.Key]++
		said.after = time.Duration(m.r.IntN(40)) * time.Second
		return said
	}
	m.effects[b.Key]++
	return said
}

func (m *truth) run(key string) reply {
	switch m.r.IntN(8) {
	case 0:
		return []reply{{status: 500}, {status: 429, header: http.Header{"Retry-After": {"7"}}}, lostIt}[m.r.IntN(3)]
	case 1:
		return reply{status: 200, body: `{"state":"waits"}`, after: 2 * time.Second}
	}
	if m.left[key]--; m.left[key] >= 0 {
		return ok(fmt.Sprintf(`{"state":"waits","run":%q}`, key))
	}
	return ok(fmt.Sprintf(`{"state":%q,"run":%q}`, m.ends[key], key))
}

// look tells the truth, or nothing.
func (m *truth) look(key string) reply {
	m.settle(key)
	switch {
	case m.r.IntN(5) == 0:
		return []reply{{status: 503}, lostIt, isLocked}[m.r.IntN(3)]
	case m.effects[key] > 0:
		return ok(fmt.Sprintf(`{"key":%q,"run":%q}`, key, key))
	}
	return noSuch
}

// stroll is one random walk.
type stroll struct {
	t    *testing.T
	r    *rig
	m    *truth
	rand *rand.Rand
	seed uint64
	runs int // of the daemon

	mu    sync.Mutex
	told  map[string]string // by id: the end it was told, where that stands
	tally map[string]int    // over all walks: how often each code was heard
	notes []string
}

func (w *stroll) note(format string, args ...any) {
	w.notes = append(w.notes, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *stroll) fail(format string, args ...any) {
	w.t.Helper()
	for _, n := range w.notes[max(0, len(w.notes)-60):] {
		w.t.Log(n)
	}
	w.t.Logf("%s", w.r.told)
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func keyOf(id string) string {
	return "job" + string('a'+rune(id[len(id)-1]-'0'))
}

// heard holds one answer against what happened. It runs under the walk's lock.
func (w *stroll) heard(id string, e envelope) {
	key, code := keyOf(id), e.code()
	w.note("%s heard %s", id, code)
	w.tally[code]++
	before, ended := w.told[id]
	switch code {
	case "OK":
		if !w.m.happened(key) || e.Data["run"] != key {
			w.fail("%s: a success of what did not happen: %s", id, e.raw)
		}
		w.told[id] = code
	case "REMOTE_UNAUTHENTICATED": // only a token endpoint says so here
		if w.m.happened(key) {
			w.fail("%s: it had no token, and it happened", id)
		}
		w.told[id] = code
	case "JOB_FAILED", "OUTCOME_UNKNOWN", "INVALID_RESPONSE", "APPROVAL_DENIED":
		w.told[id] = code
	case "BUSY":
		if w.m.happened(key) {
			w.fail("%s: refused, and it happened", id)
		}
		w.told[id] = code
	case "UPSTREAM_UNAVAILABLE":
		if w.m.happened(key) {
			w.fail("%s: it happened, and may be sent again: %s", id, e.raw)
		}
	}
	// A denial frees the input, not the id; everything else that ended stays.
	if ended && code != before && code != "VAULT_LOCKED" && code != "SESSION_REVOKED" && code != "SESSION_REQUIRED" {
		w.fail("%s was told %s, and then %s", id, before, e.raw)
	}
}

// ask performs the call of an id beside the walk. What a run that was killed
// would still have said is not heard.
func (w *stroll) ask(id string) {
	g, run, token := w.r.g, w.runs, w.r.token
	doc, err := validate.Parse([]byte(fmt.Sprintf(`{"key":%q}`, keyOf(id))), validate.CallerLimits())
	if err != nil {
		w.fail("%v", err)
	}
	w.note("%s asks", id)
	go func() {
		a := g.Perform(w.t.Context(), Ask{Token: token, Peer: w.r.peer, Action: "start_job", Input: doc, RequestID: id})
		e := envelope{status: a.Status, raw: string(a.Body)}
		if err := json.Unmarshal(a.Body, &e); err != nil {
			w.t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if run == w.runs {
			w.heard(id, e)
		}
	}()
	synctest.Wait()
}

func (w *stroll) step() {
	id := fmt.Sprintf("model-000%d", w.rand.IntN(4))
	switch n := w.rand.IntN(20); {
	case n < 7:
		w.ask(id)
	case n < 12:
		time.Sleep(time.Duration(1+w.rand.IntN(20)) * time.Second)
		w.r.vault.tokens.drop() // a token's end is nobody's turn
	case n < 14:
		w.decide()
	case n == 14:
		w.note("lock")
		w.m.w.set(false, false)
		w.r.lock()
	case n < 17:
		w.note("unlock")
		w.m.w.set(true, false)
		w.r.unlock()
	case n == 17:
		w.restart()
	case n == 18 && w.r.vault.Open() == nil:
		w.note("another session")
		w.r.revoke()
		w.r.agent()
	case n == 19:
		w.resolve()
	}
	synctest.Wait()
	w.m.mu.Lock()
	wrong := w.m.wrong
	w.m.mu.Unlock()
	if len(wrong) > 0 {
		w.fail("%s", strings.Join(wrong, "; "))
	}
}

func (w *stroll) decide() {
	for _, c := range w.r.desk.Cards() {
		if c.State != "open" {
			continue
		}
		if w.rand.IntN(8) == 0 {
			w.note("deny %s", c.CallID)
			_ = w.r.desk.Deny(c.ID, "the test")
			continue
		}
		w.note("approve %s", c.CallID)
		w.r.approve()
		return
	}
}

// restart stops or kills the daemon, wherever it is.
func (w *stroll) restart() {
	kill := w.rand.IntN(3) > 0
	w.note("restart, killed %v", kill)
	w.mu.Lock()
	w.runs++
	w.mu.Unlock()
	if kill {
		w.r.kill()
	} else {
		w.r.stop()
	}
	w.m.w.set(true, false) // the next run begins open, and goes on at once with what was left
	w.r.start()
}

// resolve says the truth about what nobody knows.
func (w *stroll) resolve() {
	all, err := w.r.g.Calls(true)
	if err != nil {
		return // locked
	}
	for _, c := range all {
		if w.m.happened(keyOf(c.RequestID)) || len(w.m.due) > 0 {
			w.note("resolve %s: it happened", c.RequestID)
			if err := w.r.g.Resolve(w.t.Context(), c.RequestID, true, "the test"); err != nil {
				w.fail("%v", err)
			}
			w.mu.Lock()
			w.told[c.RequestID] = "OUTCOME_UNKNOWN"
			w.mu.Unlock()
			continue
		}
		w.note("resolve %s: it did not", c.RequestID)
		if err := w.r.g.Resolve(w.t.Context(), c.RequestID, false, "the test"); err != nil {
			w.fail("%v", err)
		}
		w.mu.Lock()
		delete(w.told, c.RequestID)
		w.mu.Unlock()
	}
}

// finish lets everything come to its end, and asks once more for every id.
func (w *stroll) finish() {
	w.m.w.set(true, false)
	w.r.unlock()
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	for key, n := range w.m.effects {
		if n > 1 {
			w.fail("%s happened %d times", key, n)
		}
	}
	if n := w.r.vault.out(); n != 0 {
		w.fail("%d leases are out", n)
	}
	if w.r.vault.tokens != nil {
		for i, auth := range w.r.remote.auth {
			if exchange := w.r.remote.got[i] == "POST /oauth2/token"; exchange != (auth == "") || !exchange && !strings.HasPrefix(auth, "Bearer token-") {
				w.fail("%s was sent with %q", w.r.remote.got[i], auth)
			}
		}
		w.r.hides()
	}
	if run, _ := w.r.ledger.Counts(); run != 0 {
		w.fail("%d calls still run", run)
	}
	for id := range w.told {
		e := w.r.look(id, 0)
		w.mu.Lock()
		w.heard(id, e)
		w.mu.Unlock()
	}
}

// TestModel walks the line at random beside the model of the other end. The seeds
// are fixed, so that a failure comes again.
func TestModel(t *testing.T) {
	const walks, steps = 14, 60
	tally := map[string]int{}
	for seed := range uint64(walks) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				table := &strollTable{open: true, shown: map[string]string{}}
				m := &truth{
					w: table, r: rand.New(rand.NewPCG(seed, 11)),
					effects: map[string]int{}, due: map[string]time.Time{}, left: map[string]int{}, ends: map[string]string{},
				}
				w := &stroll{t: t, m: m, rand: rand.New(rand.NewPCG(seed, 12)), seed: seed, told: map[string]string{}, tally: tally}
				w.r = newRig(t, job(seed%3 > 0, seed%2 > 0))
				if seed%2 == 0 {
					w.r.withTokens()
				}
				w.r.remote.answer(m.script)
				for range steps {
					w.step()
				}
				w.finish()
			})
		})
	}
	t.Logf("heard: %v", tally)
	for _, code := range []string{"OK", "IN_PROGRESS", "APPROVAL_REQUIRED", "UPSTREAM_UNAVAILABLE", "OUTCOME_UNKNOWN", "INVALID_RESPONSE", "JOB_FAILED", "BUSY", "REMOTE_UNAUTHENTICATED"} {
		if tally[code] == 0 {
			t.Errorf("%s was never heard: the walks miss it", code)
		}
	}
}
