package main_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// alertPassword is the planted credential of the real product.
const alertPassword = "silence-only-7c1d90aa-planted"

// product is a real Alertmanager on loopback, with TLS of its own and a password.
type product struct {
	address string
	client  *http.Client
}

// startProduct starts the installed program and waits until it is ready. It
// cannot be told to choose a port and say which.
func startProduct(t *testing.T, ca *upstream.CA) *product {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testkit.LeafFiles(t, ca, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte(alertPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	put("am.yml", []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"))
	put("web.yml", fmt.Appendf(nil, "tls_server_config: {cert_file: leaf.pem, key_file: leaf.key}\nbasic_auth_users: {chatelaine: '%s'}\n", hash))
	p := &product{address: "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t)), client: &http.Client{
		Timeout: testkit.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, DisableKeepAlives: true}}}
	testkit.Product(t, "prometheus-alertmanager", func() bool {
		status, _ := p.get(t, "/-/ready")
		return status == http.StatusOK
	},
		"--config.file="+filepath.Join(dir, "am.yml"), "--web.config.file="+filepath.Join(dir, "web.yml"),
		"--web.listen-address="+p.address, "--cluster.listen-address=", "--storage.path="+filepath.Join(dir, "data"))
	return p
}

// get reads from the product without the daemon; status 0 means no answer.
func (p *product) get(t *testing.T, path string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("chatelaine", alertPassword)
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, b
}

const silenceInput = `{"alert":"DiskAlmostFull","service":"orders-db","duration_seconds":3600,"reason":"enlarging the disk"}`

// A real product that no one here wrote, through the whole daemon: the agent
// names an alert, the daemon makes the silence, and the product shows it.
func TestSilenceAtARealProduct(t *testing.T) {
	t.Parallel()
	ca := testkit.CA(t)
	p := startProduct(t, ca)
	h := newHome(t, testkit.HTTPS(t, ca, testkit.Always(run())), testkit.CAFile(t, ca))
	h.lead("alerts", p.address)
	h.open()
	h.putSecret("alerts-bot", "not-the-password-0123456789")
	a := h.agent("on-call")

	e := h.call(a, "create_silence", "silence-wrong", silenceInput)
	if code(e) != "REMOTE_UNAUTHENTICATED" {
		t.Fatalf("with a wrong password: %s", e.Raw)
	}
	h.putSecret("alerts-bot", alertPassword)
	e = h.call(a, "create_silence", "silence-0001", silenceInput)
	if !e.OK {
		t.Fatalf("answered %s", e.Raw)
	}
	if again := h.call(a, "create_silence", "silence-0001", silenceInput); string(again.Raw) != string(e.Raw) {
		t.Errorf("asked again: %s", again.Raw)
	}
	var data struct {
		SilenceID string `json:"silence_id"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatal(err)
	}
	status, body := p.get(t, "/api/v2/silences")
	var all []struct {
		ID        string `json:"id"`
		CreatedBy string `json:"createdBy"`
		Comment   string `json:"comment"`
	}
	if err := json.Unmarshal(body, &all); err != nil || status != http.StatusOK {
		t.Fatalf("the product answers %d, %v", status, err)
	}
	if len(all) != 1 || all[0].ID != data.SilenceID || all[0].CreatedBy != "chatelaine" || all[0].Comment != "enlarging the disk" {
		t.Errorf("the product holds %s, the agent was told %q", body, data.SilenceID)
	}
	for _, secret := range []string{alertPassword, base64.StdEncoding.EncodeToString([]byte("chatelaine:" + alertPassword))} {
		planted := testkit.Plant(secret)
		planted.Refuse(t, "the answer", e.Raw)
		planted.Refuse(t, "the log at debug level", h.log.bytes())
		planted.RefuseFiles(t, h.places.State, h.places.Runtime, h.places.Config)
		planted.RefuseProcess(t, h.proc.Process.Pid)
	}
}

// lead sends one target of the site file to another address, before the start.
func (h *home) lead(target, address string) {
	h.t.Helper()
	path := filepath.Join(h.places.Config, "targets.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), "\n  "+target+":\n")
	before, after, there := strings.Cut(rest, "https://"+h.up.Addr())
	if !ok || !there {
		h.t.Fatalf("no target %s in\n%s", target, b)
	}
	h.write("c/targets.yaml", head+"\n  "+target+":\n"+before+"https://"+address+after)
}

// putSecret stores one secret.
func (h *home) putSecret(name, secret string) {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	err := patiently(func() error {
		_, err := op.PutIdentity(h.ctx(), name, client.PutIdentity{Secret: []byte(secret), Proof: h.proof(op, client.OpIdentityPut, name)})
		return err
	})
	if err != nil {
		h.t.Fatalf("put %s: %v", name, err)
	}
}
