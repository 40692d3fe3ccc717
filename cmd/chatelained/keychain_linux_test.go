package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"chatelaine/internal/client"
	"chatelaine/internal/doctor"
	"chatelaine/internal/testkit"
)

// keychainBus is a bus that starts no service by itself: nothing outlives a test.
const keychainBus = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`

// keychainLimitTold is far above the daemon's limit for one answer of the
// keychain, which is seconds, and far below what a call may take.
const keychainLimitTold = time.Minute

// startKeychain starts a private bus with a real, unlocked gnome-keyring on it,
// and returns the bus's address and the keyring.
func startKeychain(t *testing.T, dir string) (address string, keyring *exec.Cmd) {
	t.Helper()
	testkit.NamedUser(t)
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, keychainBus, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	address = "unix:path=" + socket
	start := func(input, name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "DBUS_SESSION_BUS_ADDRESS=" + address}
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatalf("%v: install the packages dbus and gnome-keyring", err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	start("", "dbus-daemon", "--nofork", "--nopidfile", "--config-file="+config)
	var bus *dbus.Conn
	testkit.Until(t, "the bus", func() (ok bool) {
		var err error
		bus, err = dbus.Connect(address)
		return err == nil
	})
	defer bus.Close()
	keyring = start("pw", "gnome-keyring-daemon", "--foreground", "--components=secrets", "--unlock")
	testkit.Until(t, "the unlocked keyring", func() bool {
		v, err := bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").GetProperty("org.freedesktop.Secret.Service.Collections")
		return err == nil && strings.Contains(fmt.Sprint(v.Value()), "/login")
	})
	return address, keyring
}

// TestKeychain keeps the secrets in a real keychain: they survive a restart,
// the keychain holds ciphertext, and without it calls end at once and clearly.
func TestKeychain(t *testing.T) {
	t.Parallel()
	ca := testkit.CA(t)
	h := bare(t)
	h.up = testkit.HTTPS(t, ca, goodDeploy)
	if err := os.Mkdir(filepath.Join(h.dir, "k"), 0o700); err != nil {
		t.Fatal(err)
	}
	address, keyring := startKeychain(t, filepath.Join(h.dir, "k"))
	h.env = []string{"DBUS_SESSION_BUS_ADDRESS=" + address}
	h.writeConfig(testkit.CAFile(t, ca))
	h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nvault: {backend: keychain}\nlog: {level: debug}\n")
	h.mustInit()
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Fatalf("answered %s", e.Raw)
	}
	op := h.operator()
	defer op.Close()
	if s, err := op.Status(h.ctx()); err != nil || !strings.Contains(s.Vault.Backend, "keychain") {
		t.Errorf("status says %+v, %v", s.Vault, err)
	}
	thiefGets(t, address, doctor.Solved, "1 item is readable without a prompt, and ciphertext")
	slot := client.NewSlot{Kind: "keychain", Opens: "passphrase"}
	err := patiently(func() error {
		_, err := op.AddSlot(h.ctx(), slot, []byte(vaultPass), nil, h.proof(op, client.OpAddSlot, "", slot.Params()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	thiefGets(t, address, doctor.NotSolved, "what opens the vault is readable without a prompt; 1 other item is ciphertext")
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	a = h.again("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.1")); !e.OK {
		t.Errorf("after a restart: %s", e.Raw)
	}
	testkit.Plant(planted).RefuseFiles(t, filepath.Join(h.dir, "k"), h.places.State, h.places.Config)

	_ = keyring.Process.Kill()
	_, _ = keyring.Process.Wait()
	before := len(h.up.Requests())
	began := time.Now()
	e := h.call(a, "deploy_release", "gone-0001", deployVersion("1.0.2"))
	if code(e) != "IDENTITY_UNAVAILABLE" || time.Since(began) > keychainLimitTold || len(h.up.Requests()) != before {
		t.Errorf("without the keychain: %s after %s", e.Raw, time.Since(began))
	}
	h.log.waitFor("the keychain is not available")

	// Nor is there a bus: the daemon starts, and says the same.
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	h.env = []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + filepath.Join(h.dir, "nothing")}
	began = time.Now()
	h.open()
	a = h.agent("build-worker")
	e = h.call(a, "deploy_release", "gone-0002", deployVersion("1.0.3"))
	if code(e) != "IDENTITY_UNAVAILABLE" || time.Since(began) > 4*keychainLimitTold {
		t.Errorf("without a bus: %s after %s", e.Raw, time.Since(began))
	}
	p := testkit.Plant(planted)
	p.Refuse(t, "the log at debug level", h.log.bytes())
	p.RefuseProcess(t, h.proc.Process.Pid)
}

// thiefGets is what any program of the session reads in the keychain: the doctor
// asks as one.
func thiefGets(t *testing.T, address string, want doctor.Verdict, text string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{attackRole + "=" + strconv.Itoa(os.Getpid()), "DBUS_SESSION_BUS_ADDRESS=" + address}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Plant(planted).Refuse(t, "what the doctor says", out)
	var all []doctor.Finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.ID == "keychain" && (f.Verdict != want || !strings.Contains(f.Detail, text)) {
			t.Errorf("%s, %s; want %s, %s", f.Verdict, f.Detail, want, text)
		}
	}
}
