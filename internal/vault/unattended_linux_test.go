package vault

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

func init() {
	children["keychain slot"] = playSlot
}

// onKeychain keeps the secret of a slot and the counter in the real keychain.
func onKeychain(limit time.Duration) Options {
	o, box := cheap, Keychain("chatelaine test", limit)
	o.SlotKeychain, o.GenerationBackend = box, box
	return o
}

// playSlot makes a vault with a keychain slot, or opens one without a person,
// and says how that ended and how a passphrase then did. Arguments: the time-out, "make" or
// "open", and the vault.
func playSlot(args []string) error {
	limit, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	ctx, o := context.Background(), onKeychain(limit)
	if args[1] == "make" {
		v, err := Create(args[2], sec(goodPass), o)
		if err != nil {
			return err
		}
		if _, err := v.Put(ctx, "a", bearer(), sec(planted), false); err != nil {
			return err
		}
		_, err = v.AddSlot(ctx, NewSlot{Kind: SlotKeychain}, ByPassphrase(sec(goodPass)))
		fmt.Println(classOf(err), v.State().Rollback)
		return nil
	}
	v, err := Open(args[2], o)
	if err != nil {
		return err
	}
	err = v.UnlockUnattended(ctx)
	fmt.Println(classOf(err), v.State().State, err)
	if err := v.Unlock(ctx, sec(goodPass)); err != nil {
		return err
	}
	fmt.Println("done", v.State().State, v.State().Rollback)
	return nil
}

// TestKeychainSlot opens a vault with a real keychain that is unlocked, locked,
// gone, or silent; a passphrase opens it each time, and status says whether a
// rollback would be noticed.
func TestKeychainSlot(t *testing.T) {
	s := newSession(t)
	conn := s.keyring(t, "pw")
	path := filepath.Join(t.TempDir(), "vault")
	wantLines(t, s.run(t, "keychain slot", answersIn, "make", path), "done OS keychain, service chatelaine test")
	open := func(limit string) []string { return s.run(t, "keychain slot", limit, "open", path) }
	wantLines(t, open(answersIn), "done open", "done open OS keychain")
	s.lock(t, conn)
	wantLines(t, open(answersIn), "locked sealed", "done open not detectable: OS keychain, service chatelaine test: the keychain is locked")
	s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+s.home+"/gone")
	wantLines(t, open(answersIn), "unavailable sealed", "done open not detectable")
	silent := newSession(t)
	other := silent.connect(t)
	requestName(t, other)
	other.Eavesdrop(make(chan *dbus.Message, 1000)) // takes every message and answers none
	wantLines(t, silent.run(t, "keychain slot", "300ms", "open", path), "unavailable no answer within 300ms", "done open not detectable")
}

// TestCredentialOfSystemd makes a credential with the real tool, as
// docs/operations.md says, has it decrypted as a service manager does, and opens
// a vault with it. Where there is no such tool, or no right to the host's key,
// the log says so; the file's own rules have tests that need neither.
func TestCredentialOfSystemd(t *testing.T) {
	tool, err := exec.LookPath("systemd-creds")
	if err != nil || os.Getuid() != 0 {
		t.Logf("not tried: %v, user %d", err, os.Getuid())
		return
	}
	dir := t.TempDir()
	sealed, unit := filepath.Join(dir, "chatelaine-vault"), filepath.Join(dir, "unit")
	if err := os.Mkdir(unit, 0o700); err != nil {
		t.Fatal(err)
	}
	creds := func(in []byte, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Stdin = bytes.NewReader(in)
		var out, errText bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errText
		err := cmd.Run()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(errText.String()))
		}
		return out.Bytes(), err
	}
	random := bytes.Repeat([]byte("\x00\xffrandom\n"), 4) // as random bytes may be
	if _, err := creds(random, "encrypt", "--with-key=host", "--name=chatelaine-vault", "-", sealed); err != nil {
		t.Logf("not tried: the host gives no key here: %v", err)
		return
	}
	if bytes.Contains(read(t, sealed), []byte("random")) {
		t.Error("the credential on disk is in clear")
	}
	plain, err := creds(nil, "decrypt", "--name=chatelaine-vault", sealed, "-")
	if err != nil || !bytes.Equal(plain, random) {
		t.Fatalf("got %q, %v", plain, err)
	}
	if err := os.WriteFile(filepath.Join(unit, "chatelaine-vault"), plain, 0o400); err != nil {
		t.Fatal(err)
	}
	o := cheap
	o.CredentialsDir = unit
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	add(t, v, NewSlot{Kind: SlotCredential, Credential: "chatelaine-vault"})
	w, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.UnlockUnattended(t.Context()); err != nil {
		t.Fatal(err)
	}
	attached(t, w, "a", madeFor(bearer()))
	// What somebody has altered on disk never reaches a unit.
	b := read(t, sealed)
	b[len(b)/2] ^= 1
	write(t, sealed, b)
	if _, err := creds(nil, "decrypt", "--name=chatelaine-vault", sealed, "-"); err == nil {
		t.Error("systemd takes an altered credential")
	}
	if err := w.RemoveSlot(t.Context(), w.Slots()[1].ID); err != nil {
		t.Error(err)
	}
}
