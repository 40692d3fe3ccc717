package unitcreds

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

const planted = "Xq7-planted-in-the-unit-9Zt"

func sec(text string) secret.Secret { return secret.New([]byte(text)) }

// unit is a folder as a service manager makes it.
func unit(t *testing.T, name, text string) *Source {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
		t.Fatal(err)
	}
	s, err := New("unit", dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCredentialIsReadLessOneLineEnd(t *testing.T) {
	for text, want := range map[string]string{
		planted: planted, planted + "\n": planted, planted + "\r\n": planted, planted + "\n\n": planted + "\n",
		"-----BEGIN X-----\nAA\n-----END X-----\n": "-----BEGIN X-----\nAA\n-----END X-----",
	} {
		got, err := unit(t, "deploy-bot", text).Fetch(t.Context(), "deploy-bot")
		if err != nil || !got.Equal(sec(want)) {
			t.Errorf("%q: %v", text, err)
		}
		got.Wipe()
	}
}

func TestReferencesAreNamesOfOneFile(t *testing.T) {
	s := unit(t, "deploy-bot", planted)
	for _, bad := range []string{"", "..", ".", ".hidden", "a/b", "/etc/passwd", "../deploy-bot", "-x", "a\nb", "a\x00", strings.Repeat("a", 300)} {
		if _, err := s.Fetch(t.Context(), bad); !errors.Is(err, vault.ErrBadReference) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Fetch(ctx, "deploy-bot"); !errors.Is(err, vault.ErrSourceUnavailable) {
		t.Errorf("a fetch that was given up: %v", err)
	}
}

// TestCredentialOfSystemd makes a credential with the real tool, as
// docs/operations.md says, and has it decrypted as a service manager does. Where
// there is no such tool, or no right to the host's key, the log says so.
func TestCredentialOfSystemd(t *testing.T) {
	tool, err := exec.LookPath("systemd-creds")
	if err != nil || os.Getuid() != 0 {
		t.Logf("not tried: %v, user %d", err, os.Getuid())
		return
	}
	sealed := filepath.Join(t.TempDir(), "deploy-bot")
	creds := func(in string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		return string(out), err
	}
	if _, err := creds(planted+"\n", "encrypt", "--with-key=host", "--name=deploy-bot", "-", sealed); err != nil {
		t.Logf("not tried: the host gives no key here: %v", err)
		return
	}
	if b, err := os.ReadFile(sealed); err != nil || bytes.Contains(b, []byte(planted)) {
		t.Errorf("the credential on disk is in clear, or not there: %v", err)
	}
	plain, err := creds("", "decrypt", "--name=deploy-bot", sealed, "-")
	if err != nil {
		t.Fatal(err)
	}
	got, err := unit(t, "deploy-bot", plain).Fetch(t.Context(), "deploy-bot")
	if err != nil || !got.Equal(sec(planted)) {
		t.Fatalf("what systemd decrypted is another secret: %v", err)
	}
}
