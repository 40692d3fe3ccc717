package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/actions"
	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/secret"
	"chatelaine/internal/usage"
	"chatelaine/internal/vault"
)

// shelf is a daemon of which only vault, book and site file are there.
func shelf(t *testing.T, site string) (*daemon, *strings.Builder) {
	t.Helper()
	dir := t.TempDir()
	kdf := vault.KDFParams{Time: 1, MemoryKiB: 8, Threads: 1}
	v, err := vault.Create(filepath.Join(dir, "vault"), secret.New([]byte("words of the night")), vault.Options{KDF: kdf, DangerouslyWeakKDF: true})
	if err != nil {
		t.Fatal(err)
	}
	store, err := durable.OpenStore(filepath.Join(dir, "ledger.db"), time.Second, usage.Buckets()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var log strings.Builder
	d := &daemon{vault: v, store: store, usage: usage.Open(store), config: defaultConfig(), log: slog.New(slog.NewTextHandler(&log, nil))}
	d.notify = newNotifier(nil, nil, d.log)
	if err := d.unlockUsage(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "targets.yaml"), []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "contracts"), 0o700); err != nil {
		t.Fatal(err)
	}
	set, problems := actions.LoadSet(filepath.Join(dir, "targets.yaml"), filepath.Join(dir, "contracts"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d.gateway = gateway.New(gateway.Deps{Set: set, Vault: linePort{v}})
	return d, &log
}

func (d *daemon) shelve(t *testing.T, name string, b vault.Binding, expires time.Time) {
	t.Helper()
	if _, err := d.vault.PutIdentity(t.Context(), name, b, secret.New([]byte("a secret of the tests")), vault.PutOptions{Expires: expires}); err != nil {
		t.Fatal(err)
	}
}

const shelfSite = `identities:
  soon: {kind: bearer}
  late: {kind: bearer}
  never: {kind: bearer}
  open: {kind: none}
targets:
  one: {url: 'https://one.example/api', identity: soon, actions: [], effects: [read]}
  two: {url: 'https://two.example', identity: late, actions: [], effects: [read]}
  three: {url: 'https://three.example', identity: never, actions: [], effects: [read]}
  four: {url: 'https://four.example', identity: open, actions: [], effects: [read]}
`

func TestExpiryWarnings(t *testing.T) {
	d, log := shelf(t, shelfSite)
	now := time.Now().Truncate(time.Second)
	bind := func(name string) vault.Binding {
		b, err := bindingFor(d.gateway.Set(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	d.shelve(t, "soon", bind("soon"), now.Add(10*24*time.Hour))
	d.shelve(t, "late", bind("late"), now.Add(15*24*time.Hour))
	d.shelve(t, "never", bind("never"), time.Time{})
	if got := d.IdentityProblems(); len(got) != 1 || !strings.HasPrefix(got[0], "soon: its secret expires at ") {
		t.Errorf("problems: %q", got)
	}
	state := func(name string) string {
		view, err := operatorPort{d}.Identity(name)
		if err != nil {
			t.Fatal(err)
		}
		return view.State
	}
	for name, want := range map[string]string{"soon": operatorapi.IdentityExpiring, "late": operatorapi.IdentityStored, "never": operatorapi.IdentityStored, "open": operatorapi.IdentityNone} {
		if got := state(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}

	// Once a day, and once the other comes near too; over is told as well.
	said := func() int { return strings.Count(log.String(), "a secret ends") }
	for _, step := range []struct {
		at   time.Duration
		said int
	}{{0, 1}, {23 * time.Hour, 1}, {24 * time.Hour, 2}, {36 * time.Hour, 3}, {11 * 24 * time.Hour, 5}} {
		d.warnExpiry(now.Add(step.at))
		if got := said(); got != step.said {
			t.Errorf("after %s the log says it %d times, want %d\n%s", step.at, got, step.said, log)
		}
	}
	if !strings.Contains(log.String(), "its secret expired at") {
		t.Error("the log does not say that it is over")
	}

	// A lock is no reason to stop warning.
	d.vault.Lock("the test")
	if got := d.IdentityProblems(); len(got) != 1 {
		t.Errorf("of a locked vault: %q", got)
	}
	if got := state("soon"); got != operatorapi.IdentityLocked {
		t.Errorf("of a locked vault: %s", got)
	}
	if _, err := (operatorPort{d}).Identities(); fault.CodeOf(err) != fault.VaultLocked {
		t.Errorf("a list of a locked vault: %v", err)
	}
}

func TestIdentityMetrics(t *testing.T) {
	d, _ := shelf(t, shelfSite)
	now := time.Now().Truncate(time.Second)
	b, err := bindingFor(d.gateway.Set(), "soon", "")
	if err != nil {
		t.Fatal(err)
	}
	d.shelve(t, "soon", b, now.Add(time.Hour))
	d.shelve(t, "unnamed", b, now.Add(time.Hour))
	d.usage.Note("soon", 1, now, true, "")
	d.usage.Note("unnamed", 1, now, true, "")
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(identityMetrics{d})
	got, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range got {
		for _, m := range f.GetMetric() {
			values[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"chatelaine_identity_expiry_timestamp_seconds soon":   float64(now.Add(time.Hour).Unix()),
		"chatelaine_identity_last_use_timestamp_seconds soon": float64(now.Unix()),
		"chatelaine_identity_suspended soon":                  0,
	}
	if len(values) != len(want) { // a name that only the vault has is no label
		t.Errorf("%v", values)
	}
	for k, v := range want {
		if values[k] != v {
			t.Errorf("%s is %v, want %v", k, values[k], v)
		}
	}
}

// A refused secret is a problem until it is replaced or works again.
func TestRefusedSecretIsAProblem(t *testing.T) {
	d, _ := shelf(t, shelfSite)
	b, err := bindingFor(d.gateway.Set(), "soon", "")
	if err != nil {
		t.Fatal(err)
	}
	d.shelve(t, "soon", b, time.Time{})
	gen := d.storedIdentities()["soon"].Generation
	at := time.Now().Add(-time.Hour)
	d.usage.Note("soon", gen, at, true, fault.RemoteUnauthenticated)
	if got := d.IdentityProblems(); len(got) != 1 || !strings.Contains(got[0], "the remote system refused its secret") {
		t.Errorf("%q", got)
	}
	d.usage.Note("soon", gen, at.Add(time.Minute), true, "")
	if got := d.IdentityProblems(); len(got) != 0 {
		t.Errorf("it worked since: %q", got)
	}
	d.usage.Note("soon", gen, at.Add(2*time.Minute), true, fault.RemoteUnauthenticated)
	d.shelve(t, "soon", b, time.Time{})
	if got := d.IdentityProblems(); len(got) != 0 {
		t.Errorf("it was replaced: %q", got)
	}
	for range 3 {
		l, err := d.vault.Lease(t.Context(), "soon")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		d.vault.Suspect("soon")
	}
	if got := d.IdentityProblems(); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "it is suspended") }) {
		t.Errorf("%q", got)
	}
}

// Every part of a binding that the site file changes is told, old and new, and
// only then.
func TestDifferencesPartByPart(t *testing.T) {
	d, _ := shelf(t, shelfSite)
	set := d.gateway.Set()
	id, _ := set.Identity("soon")
	b, err := bindingFor(set, "soon", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := differences(set, id, b); got != nil {
		t.Errorf("of the same: %+v", got)
	}
	narrower := b
	narrower.BasePath = "" // the target has a deeper one: allowed
	if got := differences(set, id, narrower); got != nil {
		t.Errorf("of a narrower target: %+v", got)
	}
	for part, change := range map[string]func(*vault.Binding){
		"kind":        func(b *vault.Binding) { b.Kind = vault.KindBasic },
		"header":      func(b *vault.Binding) { b.Header = "X-Key" },
		"prefix":      func(b *vault.Binding) { b.Prefix = "Key " },
		"user name":   func(b *vault.Binding) { b.Username = "jane" },
		"scheme":      func(b *vault.Binding) { b.Scheme = "http" },
		"host":        func(b *vault.Binding) { b.Host = "other.example" },
		"port":        func(b *vault.Binding) { b.Port = 444 },
		"base path":   func(b *vault.Binding) { b.BasePath = "/other" },
		"CA":          func(b *vault.Binding) { b.CADigest = "sha256:00" },
		"pins":        func(b *vault.Binding) { b.Pins = []string{"sha256/a"} },
		"scopes":      func(b *vault.Binding) { b.Params = []vault.Param{{Name: "scopes", Value: "read"}} },
		"token place": func(b *vault.Binding) { b.Token = &vault.Place{Scheme: "https", Host: "login.example", Port: 443} },
	} {
		other := b
		change(&other)
		got := differences(set, id, other)
		if len(got) != 1 && part != "token place" || len(got) == 0 || !slices.ContainsFunc(got, func(x operatorapi.Difference) bool { return x.Part == part && x.Target == "one" && x.Bound != x.Now }) {
			t.Errorf("%s: %+v", part, got)
		}
	}
}
