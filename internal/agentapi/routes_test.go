package agentapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/ledger"
	"chatelaine/internal/sessions"
	"chatelaine/internal/validate"
)

func mustURL(s string) *url.URL {
	u, err := url.ParseRequestURI(s)
	if err != nil {
		panic(err) // a mistake in the test's own table
	}
	return u
}

// lockedVault is a vault that never opens.
type lockedVault struct{}

func (lockedVault) Open() error { return fault.New(fault.VaultLocked, nil) }
func (lockedVault) Generation(context.Context, string) (uint64, error) {
	return 0, fault.New(fault.VaultLocked, nil)
}
func (lockedVault) Bound(*actions.IdentitySpec, *actions.Target) error { return nil }
func (lockedVault) Lease(context.Context, string) (gateway.Lease, error) {
	return nil, fault.New(fault.VaultLocked, nil)
}
func (lockedVault) Suspect(string)                            {}
func (lockedVault) Refresh(context.Context, gateway.Exchange) {}

// realAPI stands before real rooms, with a locked vault.
func realAPI(t *testing.T) *API {
	t.Helper()
	set, problems := actions.LoadSet("../../contracts/targets.yaml", "../../contracts")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	store, err := durable.OpenStore(filepath.Join(dir, "ledger.db"), time.Second, append(ledger.Buckets(), sessions.Buckets()...)...)
	must(err)
	led, err := ledger.Open(store, ledger.Options{Keep: time.Hour})
	must(err)
	reg, err := sessions.Open(store, sessions.Options{Absolute: time.Hour, Idle: time.Hour})
	must(err)
	var recipients []auditlog.Recipient
	for range 2 {
		id, err := auditlog.GenerateIdentity()
		must(err)
		recipients = append(recipients, id.Recipient())
	}
	must(auditlog.Create(filepath.Join(dir, "audit"), recipients))
	log, err := auditlog.Open(auditlog.Options{Dir: filepath.Join(dir, "audit"), Recipients: recipients})
	must(err)
	t.Cleanup(func() { reg.Close(); _ = log.Close(); _ = store.Close() })
	return New(gateway.New(gateway.Deps{
		Set: set, Vault: lockedVault{}, Ledger: led, Sessions: reg, Log: log, Metrics: gateway.NewMetrics(prometheus.NewRegistry()),
	}))
}

// Every refusal of every route is an envelope that fits the published schema,
// and no word of the caller's comes back.
func TestEveryRefusalIsAnEnvelope(t *testing.T) {
	h := realAPI(t).Handler()
	const word = "caller-word-7f3a"
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut}
	paths := []string{
		"/v1/actions", "/v1/actions/" + word, "/v1/actions/deploy_release", "/v1/actions/deploy_release/plan", "/v1/plans/" + word + "/confirm",
		"/v1/calls/" + word, "/v1/calls/" + word + "?wait=" + word, "/v1/calls/%2e%2e%2f" + word, "/v1/sessions/current", "/openapi.json",
		"/v1/" + word, "/" + word, "/v1/vault/unlock", "/v1/approvals", "/v1/reload", "/v1/actions/deploy_release/" + word,
	}
	bodies := []string{``, `{"` + word + `":1}`, `{"input":{"` + word + `":"` + word + `"}}`, word, `{"input":{},"request_id":"` + word + ` ` + word + `"}`, `{"name":"` + word + ` ","anchor":"` + word + `"}`}
	for _, token := range []string{"", word, strings.Repeat("A", 43)} {
		for _, method := range methods {
			for _, path := range append(paths, "/v1/sessions") {
				for _, body := range bodies {
					r := httptest.NewRequest(method, path, strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer "+token)
					r.Header.Set("X-"+word, word)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					checkRefusal(t, method+" "+path+" "+body, w, word)
				}
			}
		}
	}
}

func checkRefusal(t *testing.T, what string, w *httptest.ResponseRecorder, word string) {
	t.Helper()
	b := w.Body.Bytes()
	v, err := validate.Parse(b, validate.AnswerLimits())
	if err != nil {
		t.Fatalf("%s: %d %q: %v", what, w.Code, b, err)
	}
	if bad := actions.BaseEnvelope().Validate(v); bad != nil {
		t.Errorf("%s: %d %s does not fit the envelope: %s at %s", what, w.Code, b, bad.Rule, bad.InstancePath)
	}
	m := v.(map[string]any)
	e, _ := m["error"].(map[string]any)
	code, _ := e["code"].(string)
	if m["ok"] != false || !fault.Known(fault.Code(code)) || w.Code < 400 || fault.New(fault.Code(code), nil).Status() != w.Code {
		t.Errorf("%s: %d %s", what, w.Code, b)
	}
	// A request id in its form is the one thing that is repeated, in its place.
	id, _ := m["request_id"].(string)
	text := strings.ReplaceAll(string(b), `"request_id":"`+id+`"`, "")
	if strings.Contains(text, word) || id != word && strings.Contains(id, word) {
		t.Errorf("%s: the caller's word comes back: %s", what, b)
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("%s: Content-Type %q", what, ct)
	}
}
