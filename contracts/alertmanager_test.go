package contracts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"chatelaine/internal/actions"
	"chatelaine/internal/testkit"
)

const (
	alertUser     = "chatelaine"
	alertPassword = "silence-only-7c1d90aa"
)

// alertmanager is the real product, running on loopback with TLS of its own and
// a password.
type alertmanager struct {
	url    string
	caFile string
	client *http.Client
}

// startAlertmanager starts the installed product and waits until it is ready.
func startAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	dir := t.TempDir()
	client := overTLS(t, writeTLS(t, dir))
	hash, err := bcrypt.GenerateFromPassword([]byte(alertPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "am.yml", "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
	write(t, dir, "web.yml", fmt.Sprintf("tls_server_config: {cert_file: leaf.pem, key_file: leaf.key}\nbasic_auth_users: {%s: '%s'}\n", alertUser, hash))
	address := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	am := &alertmanager{url: "https://" + address, caFile: filepath.Join(dir, "ca.pem"), client: client}
	testkit.Product(t, "prometheus-alertmanager", func() bool {
		status, _ := am.get(t, "/-/ready")
		return status == http.StatusOK
	},
		"--config.file="+filepath.Join(dir, "am.yml"), "--web.config.file="+filepath.Join(dir, "web.yml"),
		"--web.listen-address="+address, "--cluster.listen-address=", "--storage.path="+filepath.Join(dir, "data"))
	return am
}

// get reads from the product without chatelaine; status 0 means no answer.
func (am *alertmanager) get(t *testing.T, path string) (int, []byte) {
	return ask(t, am.client, http.MethodGet, am.url+path, nil, basic(alertUser, alertPassword))
}

// silence is what the product itself tells about a silence.
type silence struct {
	ID        string `json:"id"`
	CreatedBy string `json:"createdBy"`
	Comment   string `json:"comment"`
	StartsAt  time.Time
	EndsAt    time.Time
	Matchers  []struct {
		Name, Value      string
		IsRegex, IsEqual bool
	}
}

func (am *alertmanager) silences(t *testing.T) []silence {
	t.Helper()
	status, body := am.get(t, "/api/v2/silences")
	if status != http.StatusOK {
		t.Fatalf("GET silences: status %d", status)
	}
	var out []silence
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// site writes a site file whose target is this product, reached by its real
// address with its real certificate authority.
func (am *alertmanager) site(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	return write(t, dir, "targets.yaml", fmt.Sprintf(`targets:
  alerts:
    url: %s
    ca: %s
    allow: [loopback]
    identity: alerts-bot
    actions: [create_silence]
    effects: [read, change]
    ask: session
identities:
  alerts-bot: {kind: basic, username: %s}
`, am.url, am.caFile, alertUser))
}

const silenceInput = `{"alert":"DiskAlmostFull","service":"orders-db","duration_seconds":3600,"reason":"enlarging \"the\" disk \u2192 more"}`

// TestCreateSilenceAtTheRealAlertmanager is the main job against a remote system
// that no one here wrote.
func TestCreateSilenceAtTheRealAlertmanager(t *testing.T) {
	am := startAlertmanager(t)
	set, problems := actions.LoadSet(am.site(t), onlyContract(t, "create_silence"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	t.Run("made", func(t *testing.T) {
		proved := perform(t, set, "create_silence", silenceInput, basic(alertUser, alertPassword), time.Now())
		if !proved.OK() {
			code, _ := proved.Failure()
			t.Fatalf("ended %s", code)
		}
		am.holdsOnly(t, proved.Data()["silence_id"])
	})
	t.Run("wrong password", func(t *testing.T) {
		proved := perform(t, set, "create_silence", silenceInput, basic(alertUser, "not-the-password"), time.Now())
		if code, _ := proved.Failure(); proved.OK() || code != "REMOTE_UNAUTHENTICATED" {
			t.Fatalf("ended OK=%v %s, want REMOTE_UNAUTHENTICATED", proved.OK(), code)
		}
	})
	t.Run("refused", func(t *testing.T) {
		// A call whose time is long past asks for a silence that is over.
		proved := perform(t, set, "create_silence", silenceInput, basic(alertUser, alertPassword), time.Now().Add(-48*time.Hour))
		if code, builtin := proved.Failure(); proved.OK() || code != "SILENCE_REFUSED" || builtin {
			t.Fatalf("ended OK=%v %s, want the contract's SILENCE_REFUSED", proved.OK(), code)
		}
	})
	if got := am.silences(t); len(got) != 1 {
		t.Errorf("the product holds %d silences, want the one that was asked for", len(got))
	}
}

// holdsOnly checks the product's own view of the one silence.
func (am *alertmanager) holdsOnly(t *testing.T, id any) {
	t.Helper()
	all := am.silences(t)
	if len(all) != 1 {
		t.Fatalf("the product holds %d silences, want 1", len(all))
	}
	s := all[0]
	if s.ID != id {
		t.Errorf("the product's id is %q, the agent was told %v", s.ID, id)
	}
	if s.CreatedBy != "chatelaine" || s.Comment != "enlarging \"the\" disk \u2192 more" {
		t.Errorf("createdBy %q, comment %q", s.CreatedBy, s.Comment)
	}
	if d := s.EndsAt.Sub(s.StartsAt); d < 3590*time.Second || d > 3600*time.Second {
		t.Errorf("it lasts %v, want an hour", d)
	}
	want := map[string]string{"alertname": "DiskAlmostFull", "service": "orders-db"}
	for _, m := range s.Matchers {
		if m.IsRegex || !m.IsEqual || want[m.Name] != m.Value {
			t.Errorf("matcher %+v", m)
		}
		delete(want, m.Name)
	}
	if len(want) > 0 {
		t.Errorf("no matcher for %v", want)
	}
}
