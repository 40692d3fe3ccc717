package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"chatelaine/internal/client"
	"chatelaine/internal/testkit"
)

// codeForm is a recovery code as it is printed.
var codeForm = regexp.MustCompile(`(?m)^(?:[0-9A-Z]{4}-){8}[0-9A-Z]{4}$`)

const newPass = "another vault passphrase"

// uninitialised is a configuration whose targets are served, without a state.
func uninitialised(t *testing.T) *home {
	t.Helper()
	ca := testkit.CA(t)
	h := bare(t)
	h.up = testkit.HTTPS(t, ca, goodDeploy)
	h.writeConfig(testkit.CAFile(t, ca))
	return h
}

func (h *home) vaultFile() string { return filepath.Join(h.places.State, "vault") }

func (h *home) readVault() []byte {
	h.t.Helper()
	b, err := os.ReadFile(h.vaultFile())
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// opensWith says whether a running daemon's vault opens with a passphrase.
func (h *home) opensWith(pass string) bool {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	_, err := op.Unlock(h.ctx(), pass)
	if err != nil && client.CodeOf(err) != client.ProofRefused {
		h.t.Error(err)
	}
	return err == nil
}

// TestRecover: init prints one recovery code, which opens a vault whose passphrase is
// forgotten, once: recover prints another.
func TestRecover(t *testing.T) {
	t.Parallel()
	h := uninitialised(t)
	out := finish(t, h.command(append(append([]string{}, initArgs...), "--recovery-out", filepath.Join(h.dir, "key")), vaultPass, operatorPass))
	out.want(t, 0)
	code := codeForm.FindString(out.out)
	if code == "" || len(codeForm.FindAllString(out.out, -1)) != 1 {
		t.Fatalf("init printed:\n%s", out.out)
	}
	h.open()
	h.put("deploy-test-bot")
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	good := h.readVault()

	// What cannot work changes nothing.
	args := func(more ...string) []string {
		return append([]string{"recover", "--code-fd", "3", "--new-passphrase-fd", "4"}, more...)
	}
	h.run(args(), "not a code", newPass).want(t, 2, "this is no recovery code")
	h.run(args(), "006H-M9SM-8575-PT3N-GA7S-SADP-RF8D-VTQQ-A7YD", newPass).want(t, 2, "the recovery code is wrong")
	h.run(args(), code, "short").want(t, 2, "shorter than 8")
	h.run(args(), code, operatorPass).want(t, 2, "must differ")
	h.run(args("--previous", "--from", "x"), code, newPass).want(t, 2, "do not go together")
	h.run(args("--from", "/no/such"), code, newPass).want(t, 2, "no such file")
	h.run(args("--age-identity", "x"), code, newPass).want(t, 2, "--from")
	h.run(append(args(), "--passphrase"), code, newPass).want(t, 2, "do not go together")
	if !bytes.Equal(good, h.readVault()) {
		t.Fatal("a refusal changed the vault")
	}

	out = h.run(args(), code, newPass)
	out.want(t, 0, "identities 1", "what was in its place is in "+h.vaultFile()+".aside-")
	next := codeForm.FindString(out.out)
	if next == "" || next == code {
		t.Errorf("recover printed:\n%s", out.out)
	}
	h.run(args(), code, newPass+"2").want(t, 2, "the recovery code is wrong")
	h.start()
	if h.opensWith(vaultPass) || !h.waitsFor(newPass) {
		t.Error("it opens with the wrong passphrase")
	}
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Errorf("answered %s", e.Raw)
	}
	h.recorded(t, "vault.recover")
	h.run(args(), next, newPass).want(t, 75, "is in use by chatelained serve")
	testkit.Plant(code).RefuseFiles(t, h.places.State, h.places.Config)

	// The file is torn, and then gone: the generation before it is taken.
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(){
		func() { h.write("s/vault", string(h.readVault()[:200])) },
		func() { _ = os.Remove(h.vaultFile()) },
	} {
		spoil()
		out = h.run(args(), next, newPass)
		out.want(t, 0, "putting back "+h.vaultFile()+".previous", "identities 1")
		next = codeForm.FindString(out.out)
	}
	h.start()
	if !h.opensWith(newPass) {
		t.Error("it does not open")
	}
}

// waitsFor unlocks after the pause that a wrong passphrase costs.
func (h *home) waitsFor(pass string) (open bool) {
	h.t.Helper()
	op := h.operator()
	defer op.Close()
	testkit.Until(h.t, "an unlock after a wrong one", func() bool {
		_, err := op.Unlock(h.ctx(), pass)
		open = err == nil
		return open
	})
	return open
}

func TestRewrap(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	args := []string{"rewrap", "--passphrase-fd", "3", "--new-passphrase-fd", "4"}
	before := h.readVault()
	h.run(args, newPass, newPass).want(t, 2, "the passphrase is wrong")
	h.run(args, vaultPass, "short").want(t, 2, "shorter than 8")
	h.run(args, vaultPass, operatorPass).want(t, 2, "must differ")
	h.run(append([]string{"rewrap", "--passes", "1"}, args[1:]...), vaultPass, newPass).want(t, 2, "too weak")
	h.run(append([]string{"rewrap", "--memory-mib", "2000000"}, args[1:]...), vaultPass, newPass).want(t, 2, "more than any machine has")
	h.run([]string{"rewrap", "--keep-passphrase", "--passphrase-fd", "3", "--new-passphrase-fd", "4"}, vaultPass, newPass).want(t, 2, "do not go together")
	if !bytes.Equal(before, h.readVault()) {
		t.Fatal("a refusal changed the vault")
	}
	h.run(append([]string{"rewrap", "--passes", "3"}, args[1:]...), vaultPass, newPass).want(t, 0, "argon2id, 3 passes over 64 MiB, 4 threads")
	h.run([]string{"rewrap", "--keep-passphrase", "--passes", "4", "--passphrase-fd", "3"}, newPass).want(t, 0, "4 passes")
	h.start()
	if h.opensWith(vaultPass) || !h.waitsFor(newPass) {
		t.Error("it opens with the wrong passphrase")
	}
	h.recorded(t, "vault.rewrap", "vault.rewrap")
	h.run(args, newPass, vaultPass).want(t, 75, "is in use by chatelained serve")
}

// recorded wants exactly these decisions of commands that ran without the daemon
// in the log, which has each that the record took.
func (h *home) recorded(t *testing.T, decisions ...string) {
	t.Helper()
	for _, d := range decisions {
		h.log.waitFor("decision=" + d)
	}
	if got := strings.Count(string(h.log.bytes()), "decision="+decisions[0]); got != len(decisions) {
		t.Errorf("the log has %s %d times, want %d", decisions[0], got, len(decisions))
	}
}

// TestOpensWithACredential starts a daemon as a service manager does, with the
// credential in a folder of the unit's own: nobody types, status says so, and
// once it is locked it wants a person.
func TestOpensWithACredential(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	h.put("deploy-test-bot")
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	h.write("cred/chatelaine-vault", strings.Repeat("random", 8))
	h.env = []string{"CREDENTIALS_DIRECTORY=" + filepath.Join(h.dir, "cred")}
	h.open()
	op := h.operator()
	n := client.NewSlot{Kind: "credential", Credential: "chatelaine-vault", Opens: "passphrase"}
	_, p := h.prove(op, client.OpAddSlot, "", n.Params())
	if _, err := op.AddSlot(h.ctx(), n, []byte(operatorPass), nil, p); client.CodeOf(err) != "INVALID_ARGUMENT" {
		t.Errorf("who only decides adds a way in: %v", err)
	}
	testkit.Until(t, "a right passphrase after a wrong one", func() bool {
		_, p := h.prove(op, client.OpAddSlot, "", n.Params())
		_, err := op.AddSlot(h.ctx(), n, []byte(vaultPass), nil, p)
		return err == nil
	})
	op.Close()
	if err := h.stop(); err != nil {
		t.Error(err)
	}

	h.start()
	h.log.waitFor("the vault opened without a person")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Errorf("answered %s", e.Raw)
	}
	op = h.operator()
	defer op.Close()
	s, err := op.Status(h.ctx())
	if err != nil || len(s.Vault.Unattended) != 1 || !strings.Contains(s.Vault.Unattended[0].Detail, "credential chatelaine-vault") || !strings.Contains(s.Vault.AutoLock, "sleep") {
		t.Errorf("got %+v, %v", s.Vault, err)
	}
	if _, err := op.Lock(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if _, err := op.UnlockUnattended(h.ctx()); client.CodeOf(err) != "NOT_UNATTENDED" {
		t.Errorf("got %v", err)
	}
	if s, err := op.Status(h.ctx()); err != nil || s.Vault.State != "sealed" || !strings.HasPrefix(s.Vault.Reason, "by the operator") {
		t.Errorf("got %+v, %v", s.Vault, err)
	}
	if !h.opensWith(vaultPass) {
		t.Error("a person cannot open it")
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}

	// Another credential: the daemon starts, says why, and waits for a person.
	h.write("cred/chatelaine-vault", strings.Repeat("foreign", 8))
	h.start()
	h.log.waitFor("what lies there is not what the slot was made with")
	if !h.opensWith(vaultPass) {
		t.Error("a person cannot open it")
	}
}

// TestBackupAndBack exports a vault, loses it and its secrets, and takes both
// ways back.
func TestBackupAndBack(t *testing.T) {
	t.Parallel()
	h := uninitialised(t)
	out := finish(t, h.command(append(append([]string{}, initArgs...), "--recovery-out", filepath.Join(h.dir, "key")), vaultPass, operatorPass))
	code := codeForm.FindString(out.out)
	h.open()
	h.put("deploy-test-bot")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	op := h.operator()
	to := []string{id.Recipient().String()}
	ch, p := h.prove(op, client.OpBackup, "", client.BackupParams(to))
	if !strings.Contains(ch.Covers, to[0]) {
		t.Errorf("the challenge covers %q", ch.Covers)
	}
	b, err := op.Backup(h.ctx(), to, p)
	if err != nil || b.Identities != 1 {
		t.Fatalf("got %+v, %v", b.Identities, err)
	}
	if bytes.Contains(b.File, []byte(planted)) {
		t.Error("the backup shows the secret")
	}
	op.Close()
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	h.write("backup.age", string(b.File))
	h.write("age.key", id.String()+"\n")
	h.write("other.key", "not a key\n")
	if err := os.Remove(h.vaultFile()); err != nil {
		t.Fatal(err)
	}
	from := func(key string) []string {
		return []string{"recover", "--from", filepath.Join(h.dir, "backup.age"), "--age-identity", filepath.Join(h.dir, key), "--code-fd", "3", "--new-passphrase-fd", "4"}
	}
	h.run(from("other.key"), code, newPass).want(t, 2, "holds no age identity")
	h.run(from("backup.age"), code, newPass).want(t, 2, "holds no age identity")
	h.run(from("age.key")[:3], code, newPass).want(t, 2, "--age-identity FILE")
	h.run(from("age.key"), code, newPass).want(t, 0, "identities 1")
	h.start()
	if !h.opensWith(newPass) {
		t.Fatal("it does not open")
	}
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Errorf("answered %s", e.Raw)
	}
}

// TestVaultLockSettings refuses what would not do what it says.
func TestVaultLockSettings(t *testing.T) {
	t.Parallel()
	h := uninitialised(t)
	for text, says := range map[string]string{
		"vault: {lock_idle: 1s}":                          "must be from 1m to",
		"vault: {lock_idle: soon}":                        "is no length of time",
		"vault: {warn_before: soon}":                      "is no length of time",
		"vault: {warn_before: 2000d}":                     "must be from 1m to",
		"vault: {lock_after: 30}":                         "is no length of time",
		"vault: {lock_on_sleep: maybe}":                   "must be true or false",
		"vault: {generation_keychain: 1}":                 "must be true or false",
		"vault: {lock_idle: 2m}":                          "vault.lock_idle is shorter than approvals.card",
		"approvals: {card: 20m}\nvault: {lock_idle: 15m}": "vault.lock_idle is shorter than approvals.card",
		"vault: {lock_idel: 15m}":                         "lock_idle",
	} {
		h.write("c/chatelaine.yaml", text+"\n")
		h.run([]string{"config"}).want(t, 2, says)
	}
	h.write("c/chatelaine.yaml", "vault: {lock_idle: 15m, lock_after: 8h, lock_on_sleep: false, generation_keychain: true, warn_before: 30d}\n")
	out := h.run([]string{"config"})
	out.want(t, 0)
	for _, line := range []string{`vault.lock_idle +15m `, `vault.lock_after +8h `, `vault.lock_on_sleep +false `, `vault.generation_keychain +true `, `vault.warn_before +720h `} {
		if !regexp.MustCompile(line).MatchString(out.out) {
			t.Errorf("%s is not in:\n%s", line, out.out)
		}
	}
	h.write("c/chatelaine.yaml", "vault: {lock_idle: off, lock_after: off}\n")
	h.run([]string{"config"}).want(t, 0)
}

// TestKilledWhileAKeyIsReplaced kills the daemon at the moment that a rotation
// is under way: what is found opens.
func TestKilledWhileAKeyIsReplaced(t *testing.T) {
	t.Parallel()
	h := rig(t, goodDeploy)
	h.open()
	h.put("deploy-test-bot")
	op := h.operator()
	_, p := h.prove(op, client.OpRotateKey, "", client.RotateParams(""))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = op.RotateKey(h.ctx(), "", []byte(vaultPass), p)
	}()
	before := h.readVault()
	testkit.Until(t, "another vault file", func() bool {
		b, err := os.ReadFile(h.vaultFile())
		return err == nil && !bytes.Equal(b, before)
	})
	_ = h.proc.Process.Signal(syscall.SIGKILL)
	<-done
	op.Close()
	h.kill()
	h.open()
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Errorf("answered %s", e.Raw)
	}
}
