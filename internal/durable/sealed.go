package durable

import (
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// SealKeySize is the length of a sealing key in bytes.
const SealKeySize = chacha20poly1305.KeySize

// ErrSealed says that a sealed value does not open: another key, another place
// or changed bytes. Which one cannot be told.
var ErrSealed = errors.New("the sealed value does not open: it was changed, or sealed under another key")

// Seal encrypts plain under key with XChaCha20-Poly1305 and a random nonce,
// which stands in front. place is bound to it but not kept: a value copied to
// another place does not open.
func Seal(key, place, plain []byte) ([]byte, error) {
	aead, err := sealer(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	_, _ = rand.Read(nonce) // crypto/rand.Read never fails
	return aead.Seal(nonce, nonce, plain, place), nil
}

// Unseal opens what Seal made. The error is ErrSealed or a key of the wrong
// length; it never carries a byte of the value.
func Unseal(key, place, sealed []byte) ([]byte, error) {
	aead, err := sealer(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() {
		return nil, ErrSealed
	}
	plain, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], place)
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

func sealer(key []byte) (cipher.AEAD, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("a sealing key has %d bytes, not %d", len(key), SealKeySize)
	}
	return aead, nil
}
