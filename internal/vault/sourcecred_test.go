package vault

import (
	"bytes"
	"strings"
	"testing"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

const managerCredential = "planted-secret-id-of-a-role"

func place(text string) []SourceSetup {
	return []SourceSetup{{Source: &fakeSource{value: planted}, Kind: "kv", Place: text, Credential: true}}
}

func credentialOf(t testing.TB, v *Vault) (string, error) {
	t.Helper()
	s, err := v.SourceCredential(t.Context(), "bao")
	defer s.Wipe()
	text := ""
	s.Use(func(b []byte) { text = string(b) })
	if err != nil && strings.Contains(err.Error(), managerCredential) {
		t.Errorf("the error has the credential: %v", err)
	}
	return text, err
}

func TestCredentialOfASourceIsBoundToItsPlace(t *testing.T) {
	v, path := create(t, cheap)
	v.SetSources(place("https://bao.example"))
	_, err := credentialOf(t, v)
	wantErr(t, err, ErrSourceDenied)
	if err := v.PutSourceCredential(t.Context(), "bao", sec(managerCredential)); err != nil {
		t.Fatal(err)
	}
	if got, err := credentialOf(t, v); err != nil || got != managerCredential {
		t.Fatalf("%v", err)
	}
	if bytes.Contains(read(t, path), []byte(managerCredential)) {
		t.Error("the credential is in clear in the file")
	}
	for name, b := range v.contents.states {
		if bytes.Contains(b, []byte(managerCredential)) {
			t.Errorf("the credential is in clear in memory, in the fact %s", name)
		}
	}
	if got := v.Sources()[0].Credential; got != CredentialStored {
		t.Errorf("it is shown as %s", got)
	}

	// Another address, CA or role in the configuration: nothing is sent there.
	moved := reopen(t, path, cheap)
	moved.SetSources(place("https://thief.example"))
	_, err = credentialOf(t, moved)
	wantErr(t, err, ErrSourceDenied)
	if got := moved.Sources()[0].Credential; got != CredentialMoved {
		t.Errorf("it is shown as %s", got)
	}
	// No identity is among the sources, and no source among the identities.
	if len(moved.List()) != 0 {
		t.Error("the credential is listed as an identity")
	}
	if _, err := moved.Lease(t.Context(), factSource+"bao"); err == nil {
		t.Error("the credential can be leased")
	}
	if err := moved.PutState(factSource+"bao", []byte("x")); err == nil {
		t.Error("the daemon's facts can be written over it")
	}
}

func TestCredentialOfASourceOutlivesARotation(t *testing.T) {
	v, path := create(t, cheap)
	v.SetSources(place("https://bao.example"))
	if err := v.PutSourceCredential(t.Context(), "bao", sec(managerCredential)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.RotateKey(t.Context(), "", sec(goodPass)); err != nil {
		t.Fatal(err)
	}
	after := reopen(t, path, cheap)
	after.SetSources(place("https://bao.example"))
	if got, err := credentialOf(t, after); err != nil || got != managerCredential {
		t.Fatalf("after a rotation: %v", err)
	}
	after.Lock("the test")
	_, err := credentialOf(t, after)
	wantCode(t, err, fault.VaultLocked)
	if got := after.Sources()[0].Credential; got != CredentialLocked {
		t.Errorf("it is shown as %s", got)
	}
	unlock(t, after)
	after.SetSources(nil)
	if got := after.Sources(); len(got) != 1 || got[0].Kind != KindGone || got[0].Place != "https://bao.example" {
		t.Errorf("a credential without a source is shown as %+v", got)
	}
	if err := after.DeleteSourceCredential(t.Context(), "bao"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, after.DeleteSourceCredential(t.Context(), "bao"), ErrNoIdentity)
}

func TestCredentialsOfSourcesThatCannotBe(t *testing.T) {
	v, _ := create(t, cheap)
	v.SetSources(append(place("https://bao.example"), SourceSetup{Source: named{&fakeSource{}, "pass"}, Kind: "exec"}))
	for _, bad := range []string{"", "with space", "line\nend", "\x00", "ümlaut", strings.Repeat("x", maxCredentialIn+1)} {
		wantErr(t, v.PutSourceCredential(t.Context(), "bao", secret.New([]byte(bad))), ErrBadIdentity)
	}
	wantErr(t, v.PutSourceCredential(t.Context(), "nowhere", sec("x")), ErrNoSource)
	wantErr(t, v.PutSourceCredential(t.Context(), "pass", sec("x")), ErrNoSource)
}

// named is a source under another name.
type named struct {
	*fakeSource
	name string
}

func (n named) Name() string { return n.name }
