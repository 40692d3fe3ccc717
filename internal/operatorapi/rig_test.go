package operatorapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/actions"
	"chatelaine/internal/approvals"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/durable"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
	"chatelaine/internal/testkit"
)

// rig is the operator's side over real rooms: gateway, ledger, sessions, desk
// and record, and real contract files. Only the vault is a table.
type rig struct {
	t        *testing.T
	api      *API
	dir      string // of contracts and targets.yaml
	g        *gateway.Gateway
	sessions *sessions.Registry
	log      *auditlog.Log
	vault    *tableVault
	daemon   *fileDaemon
	conn     *connection
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, dir: filepath.Join(dir, "contracts"), conn: &connection{}}
	copyContracts(t, r.dir)
	store, err := durable.OpenStore(filepath.Join(dir, "ledger.db"), time.Second, append(ledger.Buckets(), sessions.Buckets()...)...)
	r.must(err)
	led, err := ledger.Open(store, ledger.Options{Keep: time.Hour})
	r.must(err)
	key := append(make([]byte, 31), 1)
	r.must(led.Unlock(ledger.Keys{Index: key, Wrap: key}))
	r.sessions, err = sessions.Open(store, sessions.Options{Absolute: time.Hour, Idle: time.Hour})
	r.must(err)
	r.must(r.sessions.Unlock(sessions.Keys{Index: key, Wrap: key}))
	r.openLog(filepath.Join(dir, "audit"))
	r.must(led.SetRecordFloor(r.log.RecoveredSeq()))
	t.Cleanup(func() { r.sessions.Close(); _ = r.log.Close(); _ = store.Close() })
	r.daemon = &fileDaemon{r: r}
	set, problems := r.daemon.read()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r.vault = &tableVault{r: r, held: map[string]Stored{}}
	desk := approvals.NewDesk(approvals.Options{Verify: verifyItself})
	r.g = gateway.New(gateway.Deps{
		Set: set, Vault: openVault{}, Executor: executor.New(executor.Options{}), Ledger: led, Sessions: r.sessions, Desk: desk, Log: r.log, Metrics: gateway.NewMetrics(prometheus.NewRegistry()),
	})
	r.useDesk(desk)
	for _, id := range []string{"lost-0001", "lost-0002"} {
		c, _, err := led.Claim(ledger.Owner{Agent: "build-worker"}, id, "deploy_release", [32]byte{byte(len(id)), id[8]}, true)
		r.must(err)
		r.must(c.Arm(ledger.Armed{Attempt: 1}))
		r.must(c.Finish(ledger.Outcome{Envelope: []byte(`{"ok":false}`), Code: string(fault.OutcomeUnknown), Fate: fault.Unresolved}))
	}
	return r
}

// rigActions are the shipped contracts that the rig loads: one of each sort, not
// all of them, since every test loads them again.
var rigActions = []string{"deploy_release", "get_deployment", "review_status", "read_stock", "get_job_run", "create_silence"}

// checkOf is an identity's check in the shipped site file.
var checkOf = regexp.MustCompile(`, check: [a-z]+_[a-z_]+`)

// copyContracts puts the shipped site file and those contracts into dir.
func copyContracts(t *testing.T, dir string) {
	t.Helper()
	const shipped = "../../contracts"
	for _, action := range rigActions {
		if err := os.CopyFS(filepath.Join(dir, action), os.DirFS(filepath.Join(shipped, action))); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(shipped, "targets.yaml"))
	if err == nil {
		b = checkOf.ReplaceAll(b, nil) // those actions are not copied
		err = os.WriteFile(filepath.Join(dir, "targets.yaml"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) openLog(dir string) {
	var recipients []auditlog.Recipient
	for range 2 {
		id, err := auditlog.GenerateIdentity()
		r.must(err)
		recipients = append(recipients, id.Recipient())
	}
	r.must(auditlog.Create(dir, recipients))
	var err error
	r.log, err = auditlog.Open(auditlog.Options{Dir: dir, Recipients: recipients})
	r.must(err)
}

func (r *rig) useDesk(d *approvals.Desk) {
	r.api = New(Deps{Gateway: r.g, Sessions: r.sessions, Desk: d, Vault: r.vault, Daemon: r.daemon})
}

// verifyItself takes the challenge as its own proof.
func verifyItself(_ string, challenge [32]byte, mac []byte) error {
	if string(challenge[:]) != string(mac) {
		return wrong{errors.New("not this challenge")}
	}
	return nil
}

type openVault struct{}

func (openVault) Open() error                                        { return nil }
func (openVault) Generation(context.Context, string) (uint64, error) { return 1, nil }
func (openVault) Bound(*actions.IdentitySpec, *actions.Target) error { return nil }
func (openVault) Refresh(context.Context, gateway.Exchange)          {}
func (openVault) Suspect(string)                                     {}
func (openVault) Lease(context.Context, string) (gateway.Lease, error) {
	return nil, fault.New(fault.IdentityUnavailable, nil)
}

// tableVault binds to the first target that uses the identity, as the set in
// force has it.
type tableVault struct {
	slotTable
	sourceTable
	r      *rig
	held   map[string]Stored
	locked bool

	passphrases byte // how often the operator's was replaced

	ready     error  // what an exchange of a trial ends in; only with exchanges
	exchanges bool   // every identity is exchanged for a token
	from      string // the source of every identity
	check     string // the action that proves every identity
	tried     string // the newest secret of a rotation
	trials    int    // not closed yet
	options   PutOptions
}

func (v *tableVault) State() VaultState                    { return VaultState{State: "open"} }
func (v *tableVault) Unlock(context.Context, []byte) error { return nil }
func (v *tableVault) Lock(string)                          { v.locked = true }

func (v *tableVault) ProofParams() (ProofParams, error) {
	if v.locked {
		return ProofParams{}, fault.New(fault.VaultLocked, nil)
	}
	return ProofParams{Salt: append(make([]byte, 15), v.passphrases), Time: 1, MemoryKiB: 8192, Threads: 1}, nil
}

func (v *tableVault) SetOperatorPassphrase([]byte) error {
	v.passphrases++
	return nil
}

func (v *tableVault) Check(string) (IdentityCheck, error) { return IdentityCheck{}, nil }

func (v *tableVault) Identities() ([]IdentityView, error) {
	var out []IdentityView
	for _, s := range v.held {
		out = append(out, IdentityView{Name: s.Name, Stored: true, Generation: s.Generation, Destination: s.Destination})
	}
	return out, nil
}

func (v *tableVault) Bind(name, target string) (Bound, error) {
	for _, t := range v.r.g.Set().Targets() {
		if t.Identity() == name && (target == "" || t.Name() == target) {
			return tableBound{v, name, "https://" + t.Host() + t.BasePath(), t.Digest()}, nil
		}
	}
	return nil, invalid("/target", "no such target")
}

func (v *tableVault) Delete(_ context.Context, name string) error {
	delete(v.held, name)
	return nil
}

func (v *tableVault) write(name, to string) Stored {
	s := Stored{Name: name, Generation: v.held[name].Generation + 1, Destination: to}
	v.held[name] = s
	return s
}

type tableBound struct {
	v        *tableVault
	name, to string
	digest   [32]byte
}

func (b tableBound) Destination() string { return b.to }
func (b tableBound) Digest() [32]byte    { return b.digest }
func (b tableBound) Put(_ context.Context, _ []byte, o PutOptions) (Stored, error) {
	b.v.options = o
	return b.v.write(b.name, b.to), nil
}
func (b tableBound) Rebind(context.Context) (Stored, error) { return b.v.write(b.name, b.to), nil }

// fileDaemon loads real files.
type fileDaemon struct {
	r    *rig
	keep error // what the vault answers when it should keep what is accepted
	kept int
}

func (d *fileDaemon) Version() string            { return "test" }
func (d *fileDaemon) ID() string                 { return "test" }
func (d *fileDaemon) Mode() string               { return "test" }
func (d *fileDaemon) Listeners() []Listener      { return nil }
func (d *fileDaemon) IdentityProblems() []string { return nil }
func (d *fileDaemon) Problems() []string         { return nil }
func (d *fileDaemon) Process() Process           { return Process{} }

func (d *fileDaemon) read() (*actions.Set, []error) {
	set, problems := actions.LoadSet(filepath.Join(d.r.dir, "targets.yaml"), d.r.dir)
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	return set, errs
}

func (d *fileDaemon) Load() (Loaded, error) {
	set, problems := d.read()
	if len(problems) > 0 {
		return Loaded{}, fault.Invalid(errors.Join(problems...))
	}
	return Loaded{Change: d.r.g.Compare(set), Accept: func(ctx context.Context, by string) error {
		return d.r.g.Replace(ctx, set, by, func() error {
			if d.keep == nil {
				d.kept++
			}
			return d.keep
		})
	}}, nil
}

// edit changes one place of a file of the configuration.
func (r *rig) edit(name, from, to string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	b, err := os.ReadFile(path)
	r.must(err)
	text := strings.Replace(string(b), from, to, 1)
	if text == string(b) {
		r.t.Fatalf("%q is not in %s", from, name)
	}
	r.must(os.WriteFile(path, []byte(text), 0o600))
}

// force puts the files in force without asking anybody.
func (r *rig) force() {
	r.t.Helper()
	next, err := r.daemon.Load()
	r.must(err)
	r.must(next.Accept(r.t.Context(), "the test"))
}

// pending asks for a session.
func (r *rig) pending(name string) string {
	r.t.Helper()
	p, err := r.sessions.Request(sessions.Caller{Listener: "socket"}, name, "self")
	r.must(err)
	return p.ID
}

// params are the members of a body.
type params = map[string]any

func (r *rig) request(subject string, body params) *call {
	rc := chi.NewRouteContext()
	rc.URLParams.Add("id", subject)
	rc.URLParams.Add("name", subject)
	q := httptest.NewRequest(http.MethodPost, "/", nil)
	q = q.WithContext(context.WithValue(r.t.Context(), chi.RouteCtxKey, rc))
	return &call{r: q, by: "uid 0", body: object{members: body}, conn: r.conn}
}

func (r *rig) challenge(operation, subject string, of params) (challengeView, error) {
	body := params{"operation": operation, "subject": subject}
	if of != nil {
		body["of"] = of
	}
	v, err := r.api.challenge(r.request("", body))
	if err != nil {
		return challengeView{}, err
	}
	return v.(challengeView), nil
}

func proofOf(ch challengeView) params {
	return params{"challenge_id": ch.ChallengeID, "kind": "passphrase", "mac": ch.Challenge}
}

// proved is a proof over what the operation would do now.
func (r *rig) proved(operation, subject string, of params) params {
	r.t.Helper()
	ch, err := r.challenge(operation, subject, of)
	if err != nil {
		r.t.Fatalf("challenge %s %s: %v", operation, subject, err)
	}
	return proofOf(ch)
}

// perform sends the operation; proof may be nil.
func (r *rig) perform(operation, subject string, of params, proof any) (any, error) {
	body := maps.Clone(of)
	if body == nil {
		body = params{}
	}
	if proof != nil {
		body["proof"] = proof
	}
	if operation == opPutSource || operation == opPut && of["source"] == nil || operation == opRotate || operation == opPassphrase || operation == opRotateKey || operation == opImport || operation == opAddSlot && of["kind"] == kindPassphrase {
		body["secret"] = base64.StdEncoding.EncodeToString([]byte("a secret of the tests"))
	}
	if operation == opAddSlot {
		body["unlock"] = base64.StdEncoding.EncodeToString([]byte("what opens it"))
	}
	return r.api.widen(wideningOf(operation), r.request(subject, body))
}

// snapshot is everything that an operation can change.
func (r *rig) snapshot() string {
	r.t.Helper()
	calls, err := r.g.Calls(false)
	r.must(err)
	set := r.g.Set().Digest()
	var runs []string
	for _, s := range r.sessions.List() {
		runs = append(runs, s.ID+" "+s.State)
	}
	r.conn.mu.Lock()
	until := r.conn.until
	r.conn.mu.Unlock()
	b, err := json.Marshal([]any{calls, set, runs, r.vault.held, r.vault.slots, r.vault.secrets, r.vault.sources, r.vault.imported, r.vault.passphrases, until, r.daemon.kept})
	r.must(err)
	return string(b)
}

// decided is the last event of the record about a decision. One that nobody
// waits for takes a moment.
func (r *rig) decided(decision string) auditlog.Event {
	r.t.Helper()
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for all := r.log.Recent(); len(all) > 0; all = all[:len(all)-1] {
			if e := all[len(all)-1]; e.Decision == decision {
				return e
			}
		}
	}
	r.t.Fatalf("the record has no decision %s", decision)
	return auditlog.Event{}
}
