package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/client"
	"chatelaine/internal/testkit"
	"chatelaine/internal/testkit/kvserver"
)

// managerSecret is what the daemon logs in with at the secret manager.
const managerSecret = "secret-id-4c1b77-planted"

const managerEntry = "secret/deploy/bot"

// withManager is an open home whose identity deploy-test-bot is fetched from a
// secret manager.
func withManager(t *testing.T) (*home, *kvserver.Server) {
	ca := testkit.CA(t)
	srv := kvserver.New(t)
	srv.Role("3f0a", managerSecret)
	srv.Write(managerEntry, map[string]any{"token": planted})
	h := bare(t)
	h.up = testkit.HTTPS(t, ca, goodDeploy)
	h.writeConfig(testkit.CAFile(t, ca))
	h.write("c/bao.pem", string(srv.CA()))
	h.write("c/chatelaine.yaml", fmt.Sprintf("listen: {agent_tcp: off}\nlog: {level: debug}\nvault:\n  sources:\n    bao: {kv: {address: %q, ca: bao.pem, approle: {role_id: 3f0a}}, timeout: 30s}\n    unit: {credentials: true}\n", srv.URL))
	unit := filepath.Join(h.dir, "cred")
	if err := errors.Join(os.Mkdir(unit, 0o700), os.WriteFile(filepath.Join(unit, "deploy-bot"), []byte(planted+"\n"), 0o400)); err != nil {
		t.Fatal(err)
	}
	h.env = []string{"CREDENTIALS_DIRECTORY=" + unit, "VAULT_ADDR=https://127.0.0.1:1", "VAULT_TOKEN=hvs.of-the-environment", "HTTPS_PROXY=http://127.0.0.1:1"}
	h.mustInit()
	h.open()
	return h, srv
}

// putSource stores what the daemon logs in with.
func (h *home) putSource() {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	err := patiently(func() error {
		return op.PutSource(h.ctx(), "bao", []byte(managerSecret), h.proof(op, client.OpPutSource, "bao"))
	})
	if err != nil {
		h.t.Fatalf("put the source: %v", err)
	}
}

// putFrom binds an identity to a secret that lies at a source.
func (h *home) putFrom(name, reference string) {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	put := client.PutIdentity{Source: reference}
	err := patiently(func() error {
		put.Proof = h.proof(op, client.OpIdentityPut, name, put.Params())
		_, err := op.PutIdentity(h.ctx(), name, put)
		return err
	})
	if err != nil {
		h.t.Fatalf("put %s from %s: %v", name, reference, err)
	}
}

// relock locks the vault and opens it again.
func (h *home) relock() {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	if _, err := op.Lock(h.ctx()); err != nil {
		h.t.Fatal(err)
	}
	h.unlock()
}

// TestSecretAtAManager fetches a credential from a secret manager: it reaches the
// remote system and nothing else, is fetched once while it is kept, again after a
// lock and a restart, and where the manager is sealed nothing is sent.
func TestSecretAtAManager(t *testing.T) {
	t.Parallel()
	h, srv := withManager(t)
	h.putSource()
	h.putFrom("deploy-test-bot", "bao:"+managerEntry+"#token")
	h.putFrom("deploy-prod-bot", "unit:deploy-bot")
	a := h.agent("build-worker")
	for _, version := range []string{"1.0.0", "1.0.1"} {
		if e := h.call(a, "deploy_release", "", deployVersion(version)); !e.OK {
			t.Fatalf("answered %s", e.Raw)
		}
	}
	for _, r := range h.up.Requests() {
		if got := r.Header().Get("Authorization"); got != "Bearer "+planted {
			t.Error("another credential was sent than the one at the manager")
		}
	}
	if reads, logins := srv.Count("/data/deploy/bot"), srv.Count("/login"); reads != 1 || logins != 1 {
		t.Errorf("%d reads and %d logins for a put and two calls, want one each", reads, logins)
	}
	for _, r := range srv.Requests() {
		if strings.Contains(fmt.Sprint(r.Header), "of-the-environment") {
			t.Error("a token of the environment was sent")
		}
	}

	op := h.operator()
	defer op.Close()
	x, err := op.Identity(h.ctx(), "deploy-test-bot")
	if err != nil || x.Source != "bao:"+managerEntry+"#token" {
		t.Errorf("shown as %+v, %v", x, err)
	}
	s, err := op.Status(h.ctx())
	if err != nil || len(s.Vault.Sources) != 2 || s.Vault.Sources[0].Credential != "stored" || s.Vault.Sources[0].LastFetched.IsZero() {
		t.Errorf("status says %+v, %v", s.Vault.Sources, err)
	}

	h.relock()
	srv.Seal(true)
	before := len(h.up.Requests())
	if e := h.call(a, "deploy_release", "sealed-0001", deployVersion("1.0.2")); code(e) != "IDENTITY_UNAVAILABLE" || len(h.up.Requests()) != before {
		t.Errorf("with a sealed manager: %s", e.Raw)
	}
	h.log.waitFor("the server is sealed")
	srv.Seal(false)

	if err := h.stop(); err != nil {
		t.Error(err)
	}
	a = h.again("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.3")); !e.OK {
		t.Errorf("after a restart: %s", e.Raw)
	}
	for _, p := range []string{planted, managerSecret, "hvs.login-1-of-the-stand-in"} {
		testkit.Plant(p).RefuseFiles(t, h.places.State, h.places.Config)
		if strings.Contains(string(h.log.bytes()), p) {
			t.Errorf("the log holds %s", p)
		}
	}
}
