package vault

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"

	"chatelaine/internal/secret"
)

const (
	keyBytes   = 32
	nonceBytes = chacha20poly1305.NonceSizeX
	sealExtra  = nonceBytes + chacha20poly1305.Overhead
)

// What each derived key is for (docs/vault.md, "Keys"). A subkey's label comes
// after a zero byte, so that no label reaches one of the others.
const (
	infoHeader     = "chatelaine/v1 header"
	infoBody       = "chatelaine/v1 body"
	infoItem       = "chatelaine/v1 item"
	infoGeneration = "chatelaine/v1 generation"
	infoSubkey     = "chatelaine/v1 subkey\x00"

	// adSlot is bound to the wrapped data key; it is no key of its own.
	adSlot = "chatelaine/v1 slot"
)

// errUnsealed means that an AEAD refused: another key, or other bytes.
var errUnsealed = errors.New("cannot be unsealed")

// newKey makes a random data key.
func newKey() secret.Secret {
	var b [keyBytes]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	defer clear(b[:])
	return secret.New(b[:])
}

// derive makes the key for one purpose (HKDF-SHA256, RFC 5869). A wiped data
// key means that the vault was locked meanwhile.
func derive(dataKey secret.Secret, info string) (secret.Secret, error) {
	var out secret.Secret
	err := errLocked()
	dataKey.Use(func(b []byte) {
		if len(b) != keyBytes {
			return
		}
		var key []byte
		if key, err = hkdf.Key(sha256.New, b, nil, info, keyBytes); err == nil {
			out = secret.New(key)
			clear(key)
		}
	})
	return out, err
}

// seal encrypts text (XChaCha20-Poly1305) with a random nonce in front.
func seal(key secret.Secret, text, ad []byte) ([]byte, error) {
	var out []byte
	err := withAEAD(key, func(a aead) error {
		out = make([]byte, nonceBytes, sealExtra+len(text))
		_, _ = rand.Read(out) // crypto/rand.Read never fails
		out = a.Seal(out, out[:nonceBytes], text, ad)
		return nil
	})
	return out, err
}

// unseal is the reverse of seal. It answers errUnsealed for anything that this
// key did not seal with this ad.
func unseal(key secret.Secret, sealed, ad []byte) ([]byte, error) {
	var out []byte
	err := withAEAD(key, func(a aead) error {
		if len(sealed) < sealExtra {
			return errUnsealed
		}
		text, err := a.Open(nil, sealed[:nonceBytes], sealed[nonceBytes:], ad)
		if err != nil {
			return errUnsealed
		}
		out = text
		return nil
	})
	return out, err
}

type aead interface {
	Seal(dst, nonce, plaintext, additionalData []byte) []byte
	Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error)
}

func withAEAD(key secret.Secret, f func(aead) error) error {
	err := errLocked()
	key.Use(func(b []byte) {
		if len(b) != keyBytes {
			return
		}
		a, aerr := chacha20poly1305.NewX(b)
		if aerr != nil {
			err = aerr
			return
		}
		err = f(a)
	})
	return err
}

// mac is HMAC-SHA256; nil under a wiped key.
func mac(key secret.Secret, parts ...[]byte) []byte {
	var out []byte
	key.Use(func(b []byte) {
		if len(b) == 0 {
			return
		}
		h := hmac.New(sha256.New, b)
		for _, p := range parts {
			h.Write(p)
		}
		out = h.Sum(nil)
	})
	return out
}
