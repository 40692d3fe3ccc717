package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/actions"
	"chatelaine/internal/approvals"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/durable"
	"chatelaine/internal/executor"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
	"chatelaine/internal/validate"
)

// rig is the whole line over real rooms: contracts, ledger, record, sessions,
// desk and executor. Only the vault is a table and the network a pipe, so that it
// runs in a bubble of testing/synctest, where waiting takes no time.
type rig struct {
	t      testing.TB
	dir    string
	remote *remote
	vault  *fakeVault
	ids    []auditlog.Identity
	told   *strings.Builder

	store    *durable.Store
	ledger   *ledger.Ledger
	log      *auditlog.Log
	sessions *sessions.Registry
	desk     *approvals.Desk
	exec     *executor.Executor
	g        *Gateway

	token string
	peer  Peer

	identity string               // what the site file says of it
	numbers  *prometheus.Registry // of this run
}

const rigAgent = "build-worker"

// newRig makes contracts of the texts given and starts.
func newRig(t testing.TB, contracts ...string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), remote: &remote{}, peer: Peer{Listener: "socket"}, told: &strings.Builder{}}
	r.vault = &fakeVault{open: true, generation: 1}
	r.identity = "kind: bearer"
	for _, text := range contracts {
		r.write(text)
	}
	r.writeSite("")
	for range 2 {
		id, err := auditlog.GenerateIdentity()
		r.must(err)
		r.ids = append(r.ids, id)
	}
	r.must(auditlog.Create(r.path("audit"), r.recipients()))
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) recipients() []auditlog.Recipient {
	return []auditlog.Recipient{r.ids[0].Recipient(), r.ids[1].Recipient()}
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) write(text string) {
	r.t.Helper()
	_, rest, _ := strings.Cut(text, "action: ")
	name, _, _ := strings.Cut(rest, "\n")
	r.must(os.MkdirAll(r.path("contracts/"+name), 0o700))
	r.must(os.WriteFile(r.path("contracts/"+name+"/contract.yaml"), []byte(text), 0o600))
}

func (r *rig) writeSite(more string) {
	r.t.Helper()
	names, err := filepath.Glob(r.path("contracts/*"))
	r.must(err)
	for i, n := range names {
		names[i] = filepath.Base(n)
	}
	site := fmt.Sprintf(`targets:
  jobs: {url: 'http://127.0.0.1:7', allow: [loopback], identity: bot, actions: [%s], effects: [read, change], ask: session%s}
identities: {bot: {%s}}
`, strings.Join(names, ", "), more, r.identity)
	r.must(os.WriteFile(r.path("targets.yaml"), []byte(site), 0o600))
}

func (r *rig) load() *actions.Set {
	r.t.Helper()
	set, problems := actions.LoadSet(r.path("targets.yaml"), r.path("contracts"))
	if len(problems) > 0 {
		r.t.Fatal(problems)
	}
	return set
}

// start is one run of the daemon, with the vault open.
func (r *rig) start() {
	r.t.Helper()
	var err error
	r.log, err = auditlog.Open(auditlog.Options{Dir: r.path("audit"), Recipients: r.recipients(), SegmentBytes: 1 << 20})
	r.must(err)
	r.store, err = durable.OpenStore(r.path("ledger.db"), time.Second, append(ledger.Buckets(), sessions.Buckets()...)...)
	r.must(err)
	r.ledger, err = ledger.Open(r.store, ledger.Options{})
	r.must(err)
	r.must(r.ledger.SetRecordFloor(r.log.RecoveredSeq()))
	r.sessions, err = sessions.Open(r.store, sessions.Options{})
	r.must(err)
	r.desk = approvals.NewDesk(approvals.Options{DaemonID: "dmn_test", Verify: func(string, [32]byte, []byte) error { return nil }})
	r.exec = executor.New(executor.Options{Dial: r.remote.dial, HeaderTimeout: time.Hour})
	r.numbers = prometheus.NewRegistry()
	r.g = New(Deps{
		Set: r.load(), Vault: r.vault, Executor: r.exec, Ledger: r.ledger, Sessions: r.sessions, Desk: r.desk, Log: r.log,
		Metrics: NewMetrics(r.numbers),
		Limits:  Limits{Answer: 32 << 10},
		Logger:  slog.New(slog.NewTextHandler(r.told, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	r.sessions.OnEnd(func(s sessions.Session, reason string) { r.g.SessionEnded(s, reason) })
	r.unlock()
	r.agent()
}

var rigKeys = append(make([]byte, 31), 1)

func (r *rig) unlock() {
	r.t.Helper()
	r.vault.set(true)
	r.must(r.ledger.Unlock(ledger.Keys{Index: rigKeys, Wrap: rigKeys}))
	r.must(r.sessions.Unlock(sessions.Keys{Index: rigKeys, Wrap: rigKeys}))
	r.must(r.g.TakeUp())
	r.g.Unlocked()
}

func (r *rig) lock() {
	r.vault.set(false)
	r.g.Locked("the test")
	r.ledger.Lock()
	r.sessions.Lock()
}

// stop is a stop as on SIGTERM.
func (r *rig) stop() {
	if r.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	r.must(r.g.Drain(ctx))
	r.halt()
	r.remote.serves.Wait()
}

func (r *rig) halt() {
	r.g.stop()
	r.sessions.Close()
	r.exec.Close()
	r.must(r.store.Close())
	r.must(r.log.Close())
	r.store = nil
}

// crash goes on with the disk as it is now.
func (r *rig) crash() {
	r.t.Helper()
	r.kill()
	r.start()
}

// kill ends this run; the next one has the disk as it is now. What this run does from
// here on is lost, as after kill -9.
func (r *rig) kill() {
	r.t.Helper()
	old := r.dir
	r.dir = r.t.TempDir()
	r.must(os.CopyFS(r.dir, os.DirFS(old)))
	r.must(filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		} else if err == nil {
			err = os.Chmod(path, 0o600)
		}
		return err
	}))
	r.remote.cut()
	r.g.draining.Store(true)
	r.g.drain.Do(func() { close(r.g.drained) })
	<-r.g.running.close()
	r.halt()
	r.remote.mend()
}

func (r *rig) agent() {
	r.t.Helper()
	p, err := r.sessions.Request(r.peer.caller(), rigAgent, "self")
	r.must(err)
	_, pins := r.g.Permits()
	r.must(r.sessions.Authorize(p.ID, pins, "the test"))
	r.token = p.Token
}

func (r *rig) revoke() {
	r.t.Helper()
	for _, s := range r.sessions.List() {
		if s.State == sessions.StateAuthorised {
			r.must(r.sessions.Revoke(s.ID, "the test"))
		}
	}
}

// call performs an action and reads the envelope.
func (r *rig) call(action, id, input string) envelope {
	r.t.Helper()
	return r.read(r.g.Perform(r.t.Context(), r.asks(action, id, input)))
}

func (r *rig) asks(action, id, input string) Ask {
	r.t.Helper()
	doc, err := validate.Parse([]byte(input), validate.CallerLimits())
	r.must(err)
	return Ask{Token: r.token, Peer: r.peer, Action: action, Input: doc, RequestID: id}
}

// look is GET /v1/calls/{id}.
func (r *rig) look(id string, wait time.Duration) envelope {
	r.t.Helper()
	return r.read(r.g.CallState(r.t.Context(), r.token, r.peer, id, wait))
}

type envelope struct {
	OK    bool              `json:"ok"`
	Data  map[string]string `json:"data"`
	Error struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		Retryable  bool   `json:"retryable"`
		RetryAfter int    `json:"retry_after_seconds"`
	} `json:"error"`
	status int
	raw    string
}

func (e envelope) code() string {
	if e.OK {
		return "OK"
	}
	return e.Error.Code
}

func (r *rig) read(a Answer) envelope {
	r.t.Helper()
	e := envelope{status: a.Status, raw: string(a.Body)}
	r.must(json.Unmarshal(a.Body, &e))
	return e
}

// want fails unless the envelope has the code.
func (r *rig) want(e envelope, code string) {
	r.t.Helper()
	if e.code() != code {
		r.t.Fatalf("answered %s, want %s\n%s", e.raw, code, r.told)
	}
}

// sent fails unless exactly these requests reached the remote, in this order.
func (r *rig) sent(want ...string) {
	r.t.Helper()
	if got := strings.Join(r.remote.requests(), ", "); got != strings.Join(want, ", ") {
		r.t.Fatalf("sent: %s\nwant: %s", got, strings.Join(want, ", "))
	}
}

// count is what a counter says, of the labels' values that hold this one.
func (r *rig) count(name, label string) float64 {
	r.t.Helper()
	families, err := r.numbers.Gather()
	r.must(err)
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || strings.Contains(m.String(), strconv.Quote(label))) {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// events are those of the record of this run, of one type where it is given.
func (r *rig) events(kind string) (out []auditlog.Event) {
	for _, e := range r.log.Recent() {
		if kind == "" || e.Type == kind {
			out = append(out, e)
		}
	}
	return out
}
