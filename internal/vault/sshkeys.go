package vault

import (
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
