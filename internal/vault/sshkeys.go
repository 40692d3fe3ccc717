package vault

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

// fingerprints shows host keys as OpenSSH does, each with its type; a text that
// is no key is "no key".
func fingerprints(keys []string) string {
	var out []string
	for _, text := range keys {
		k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			out = append(out, "no key")
			continue
		}
		out = append(out, k.Type()+" "+ssh.FingerprintSHA256(k))
	}
	return strings.Join(out, ", ")
}

// minSSHRSA is the least that ssh-keygen makes by itself today.
const minSSHRSA = 3072

// parseSSHKey reads a private key as ssh-keygen writes it, or PKCS#8, PKCS#1 and
// SEC1. Its errors never name the content.
func parseSSHKey(b []byte) (crypto.Signer, error) {
	key, err := ssh.ParseRawPrivateKey(b)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return nil, errors.New("the private key is protected by a passphrase; take it off a copy with `ssh-keygen -p -N '' -f COPY`, the vault seals what it is given")
	}
	if block, rest := pem.Decode(b); block != nil && len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it must be one private key and nothing else")
	}
	if err != nil {
		return nil, errors.New("it is no private key of SSH; take the file that ssh-keygen made, not the one that ends with .pub")
	}
	if k, ok := key.(*ed25519.PrivateKey); ok {
		key = *k
	}
	signer, _ := key.(crypto.Signer)
	return signer, checkKey(signer, minSSHRSA)
}
