package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
)

// The operator's key to the record opens with the new passphrase and with no
// other, and with the former one where anything fails.
func TestResealAuditKey(t *testing.T) {
	t.Parallel()
	a := quietApp()
	a.state = t.TempDir()
	a.config, a.runtime = a.state, a.state
	if word, err := a.resealAuditKey([]byte("former words"), []byte("new words here")); word != keyNone || err != nil {
		t.Errorf("without a file: %q, %v", word, err)
	}
	path := filepath.Join(a.state, auditKeyName)
	key := []byte("THE KEY OF THE RECORD\n")
	var sealed bytes.Buffer
	r, err := age.NewScryptRecipient("former words")
	if err != nil {
		t.Fatal(err)
	}
	r.SetWorkFactor(10) // quick: the test is about the file
	w, err := age.Encrypt(&sealed, r)
	if err == nil {
		_, err = w.Write(key)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(path, sealed.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if word, err := a.resealAuditKey([]byte("other words"), []byte("new words here")); word != keyAsItWas || err == nil {
		t.Errorf("with a passphrase that does not open it: %q, %v", word, err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, sealed.Bytes()) {
		t.Errorf("it was changed all the same: %v", err)
	}
	if word, err := a.resealAuditKey([]byte("former words"), []byte("new words here")); word != keySealedAnew || err != nil {
		t.Fatalf("%q, %v", word, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := openAge(b, []byte("new words here")); err != nil || !bytes.Equal(text, key) {
		t.Errorf("%v", err)
	}
	if _, err := openAge(b, []byte("former words")); err == nil {
		t.Error("it opens with the former passphrase")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != keyFileMode {
		t.Errorf("%v, %v", info, err)
	}
}
