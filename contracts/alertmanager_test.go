package contracts_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/testkit"
	"chatelaine/internal/validate"
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
	log    string // file
}

// startAlertmanager starts the installed product and waits until it is ready.
func startAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Fatal("prometheus-alertmanager is not installed: run scripts/install-test-deps.sh as root")
	}
	dir := t.TempDir()
	pool := writeTLS(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte(alertPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "am.yml", "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
	write(t, dir, "web.yml", fmt.Sprintf("tls_server_config: {cert_file: leaf.pem, key_file: leaf.key}\nbasic_auth_users: {%s: '%s'}\n", alertUser, hash))
	address := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	am := &alertmanager{url: "https://" + address, caFile: filepath.Join(dir, "ca.pem"), log: filepath.Join(dir, "log")}
	am.client = &http.Client{
		Timeout:   testkit.Patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
	}
	cmd := exec.Command(program,
		"--config.file="+filepath.Join(dir, "am.yml"), "--web.config.file="+filepath.Join(dir, "web.yml"),
		"--web.listen-address="+address, "--cluster.listen-address=", "--storage.path="+filepath.Join(dir, "data"))
	log, err := os.Create(am.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the program has its own descriptor
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stopped := false
	t.Cleanup(func() {
		am.client.CloseIdleConnections()
		if !stopped {
			_ = cmd.Process.Kill()
			<-exited
		}
	})
	testkit.Until(t, "Alertmanager", func() bool {
		select {
		case err := <-exited:
			stopped = true
			text, _ := os.ReadFile(am.log)
			t.Fatalf("Alertmanager ended: %v\n%s", err, text)
		default:
		}
		status, _ := am.get(t, "/-/ready")
		return status == http.StatusOK
	})
	return am
}

// get reads from the product without chatelaine; status 0 means no answer.
func (am *alertmanager) get(t *testing.T, path string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, am.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(alertUser, alertPassword)
	resp, err := am.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return 0, nil
	}
	return resp.StatusCode, body.Bytes()
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

// basicPassword writes the password as the vault would, for one destination.
type basicPassword struct {
	password string
	host     string
	port     int
}

func (b basicPassword) Attach(h http.Header, c executor.Connection) error {
	if c.Scheme != "https" || c.Host != b.host || c.Port != b.port {
		return fmt.Errorf("the connection goes to %s://%s:%d", c.Scheme, c.Host, c.Port)
	}
	h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(alertUser+":"+b.password)))
	return nil
}

// silenceOnce performs create_silence at the product: parse, resolve, freeze,
// send, prove.
func silenceOnce(t *testing.T, set *actions.Set, input, password string, now time.Time) *validate.Proved {
	t.Helper()
	contract, ok := set.Contract("create_silence")
	if !ok {
		t.Fatal("create_silence is not loaded")
	}
	doc, err := validate.Parse([]byte(input), validate.CallerLimits())
	if err != nil {
		t.Fatal(err)
	}
	in, err := contract.ParseInput(doc)
	if err != nil {
		t.Fatal(err)
	}
	route, err := set.Resolve(contract, in)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := actions.Freeze(contract, route, in,
		actions.IdentityFact{Name: route.Target().Identity(), Generation: 1},
		actions.CallFacts{CallID: "act_01TEST", IdempotencyKey: "3f2b8a8e-8f0a-4b6e-9d7c-5a1f0e2d3c4b", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	request, err := plan.Request(now)
	if err != nil {
		t.Fatal(err)
	}
	x := executor.New(executor.Options{})
	defer x.Close()
	target := route.Target()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	ex := x.Send(ctx, target.Identity(), request, basicPassword{password, target.Host(), target.Port()})
	if ex.Err != nil {
		t.Fatalf("send: %v (phase %s)", ex.Err, ex.Phase)
	}
	raw := validate.Raw{Status: ex.Status, Header: ex.Header, Trailer: ex.Trailer, Body: ex.Body}
	proved, rejection := plan.Reader().Prove(raw, plan.Scope(now), now)
	if rejection != nil {
		t.Fatalf("the answer of the real product is refused: %v (status %d, %q)", rejection, ex.Status, ex.Body)
	}
	return proved
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
		proved := silenceOnce(t, set, silenceInput, alertPassword, time.Now())
		if !proved.OK() {
			code, _ := proved.Failure()
			t.Fatalf("ended %s", code)
		}
		am.holdsOnly(t, proved.Data()["silence_id"])
	})
	t.Run("wrong password", func(t *testing.T) {
		proved := silenceOnce(t, set, silenceInput, "not-the-password", time.Now())
		if code, _ := proved.Failure(); proved.OK() || code != "REMOTE_UNAUTHENTICATED" {
			t.Fatalf("ended OK=%v %s, want REMOTE_UNAUTHENTICATED", proved.OK(), code)
		}
	})
	t.Run("refused", func(t *testing.T) {
		// A call whose time is long past asks for a silence that is over.
		proved := silenceOnce(t, set, silenceInput, alertPassword, time.Now().Add(-48*time.Hour))
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

// onlyContract makes a contracts folder with one of the shipped contracts.
func onlyContract(t *testing.T, action string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, action), os.DirFS(action)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeTLS writes ca.pem, leaf.pem and leaf.key into dir and returns the pool.
func writeTLS(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	now := time.Now()
	caKey, leafKey := newKey(t), newKey(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "alertmanager"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caDER := sign(t, ca, ca, &caKey.PublicKey, caKey)
	leafDER := sign(t, leaf, ca, &leafKey.PublicKey, caKey)
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	write(t, dir, "ca.pem", string(caPEM))
	write(t, dir, "leaf.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER})))
	write(t, dir, "leaf.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caPEM)
	return pool
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, cert, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
