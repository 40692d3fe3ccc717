package durable

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestSeal(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, SealKeySize), bytes.Repeat([]byte{2}, SealKeySize)
	plain := []byte("what nobody reads on the disk")
	sealed, err := Seal(key, []byte("here"), plain)
	if err != nil || bytes.Contains(sealed, plain) {
		t.Fatal("not sealed", err)
	}
	if again, _ := Seal(key, []byte("here"), plain); bytes.Equal(again, sealed) {
		t.Fatal("two seals are alike")
	}
	if got, err := Unseal(key, []byte("here"), sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, f := range map[string]func() ([]byte, error){
		"another key":   func() ([]byte, error) { return Unseal(other, []byte("here"), sealed) },
		"another place": func() ([]byte, error) { return Unseal(key, []byte("there"), sealed) },
		"changed":       func() ([]byte, error) { return Unseal(key, []byte("here"), changed) },
		"short":         func() ([]byte, error) { return Unseal(key, []byte("here"), sealed[:5]) },
		"empty":         func() ([]byte, error) { return Unseal(key, []byte("here"), nil) },
	} {
		if _, err := f(); !errors.Is(err, ErrSealed) || strings.Contains(err.Error(), "nobody") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Seal(key[:5], nil, plain); err == nil {
		t.Error("a short key")
	}
	if _, err := Unseal(nil, nil, sealed); err == nil {
		t.Error("no key")
	}
}
